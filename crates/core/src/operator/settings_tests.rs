use super::*;
use proptest::prelude::*;

fn issues(text: &str) -> Vec<String> {
    parse_config("config.toml", text.as_bytes())
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

const GOOD: &str = "# mine\nhome = \"~/state\"\nruns_dir = \"/srv/runs\"\ncases = \"/srv/cases\"\ntimeout = 1_200\nidle = 60\ncolor = \"never\"\nprices = \"/srv/prices.toml\"\ngit = \"/opt/git/bin/git\"\n";

#[test]
fn every_knob_can_be_set() {
    let config = parse_config("config.toml", GOOD.as_bytes()).unwrap();
    let got: Vec<_> = KNOBS
        .iter()
        .map(|knob| {
            config
                .get(knob.key)
                .map(|given| (given.value.as_str(), given.line))
                .unwrap()
        })
        .collect();
    assert_eq!(
        got,
        [
            ("~/state", 2),
            ("/srv/runs", 3),
            ("/srv/cases", 4),
            ("1200", 5),
            ("60", 6),
            ("never", 7),
            ("/srv/prices.toml", 8),
            ("/opt/git/bin/git", 9)
        ]
    );
    assert_eq!(parse_config("c", b"").unwrap(), Config::default());
}

#[test]
fn wrong_values_are_placed() {
    assert_eq!(
        issues(
            "home = 7\ntimeout = \"soon\"\n  idle = 0\ncolor = \"blue\"\nruns_dir = \"runs\"\ncases = [\"a\"]\n"
        ),
        [
            "config.toml:1:8: home takes a directory as text, absolute or below `~/`, not this integer",
            "config.toml:2:11: timeout takes a whole number of seconds, 1 to 604800, not this string",
            "config.toml:3:10: idle takes a whole number of seconds, 1 to 604800, not this integer",
            "config.toml:4:9: color takes \"auto\", \"always\" or \"never\", not this string",
            "config.toml:5:12: runs_dir takes a directory as text, absolute or below `~/`, not this string",
            "config.toml:6:9: cases takes a directory as text, absolute or below `~/`, not this array",
        ]
    );
    for bad in [
        "timeout = 604801",
        "timeout = -1",
        "timeout = 1.5",
        "timeout = 99999999999999999999",
        "home = \"a\\u0000b\"",
        "home.x = \"/a\"",
    ] {
        assert_eq!(issues(bad).len(), 1, "{bad}");
    }
}

#[test]
fn unknown_secret_and_powerful_keys_are_refused_each_in_its_own_words() {
    for (key, want) in [
        ("hom", "is not a known key"),
        ("jobz", "is not a known key"),
        ("token", "secret"),
        ("api_key", "secret"),
        ("API-KEY", "secret"),
        ("password", "secret"),
        ("base_url", "secret or an endpoint"),
        ("openai.baseUrl", "secret or an endpoint"),
        ("credential_command", "secret"),
        ("allow_engine", "would change what a run may do"),
        ("allow", "would change what a run may do"),
        ("engine", "would change what a run may do"),
        ("stage", "would change what a run may do"),
        ("engines.codex.stage", "would change what a run may do"),
        (
            "runtime_default_activation",
            "would change what a run may do",
        ),
        ("core_promotion_status", "would change what a run may do"),
        ("default_engine", "would change what a run may do"),
        ("containment", "would change what a run may do"),
        ("jail.layers", "would change what a run may do"),
        ("hidden_verification", "would change what a run may do"),
    ] {
        let found = issues(&format!("color = \"auto\"\n{key} = \"hunter2\"\n"));
        assert_eq!(found.len(), 1, "{key}");
        assert!(
            found[0].starts_with("config.toml:2:") && found[0].contains(want),
            "{key}: {found:?}"
        );
        assert!(!found[0].contains("hunter2"), "{key}: a value is shown");
    }
}

#[test]
fn tables_hide_nothing() {
    let found = issues("[engine.codex]\nenabled = true\ntoken = \"x\"\n[empty]\n[[list]]\na = 1\n");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(
        found[0].starts_with("config.toml:2:1: \"engine.codex.enabled\" would change"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("config.toml:3:1: \"engine.codex.token\" looks like a secret"),
        "{found:?}"
    );
}

#[test]
fn broken_text_is_placed() {
    assert!(
        issues("home = \"/a\"\nhome = \"/b\"\n")[0].starts_with("config.toml:2:1: duplicate key")
    );
    assert!(issues("color = \"auto\"\nhome\n")[0].starts_with("config.toml:2:"));
    let found = parse_config("c", b"color = \"auto\"\n# \xff\n").unwrap_err();
    assert_eq!(found[0].to_string(), "c:2:3: is not UTF-8 from here on");
}

#[test]
fn no_knob_is_named_like_a_secret_or_a_power() {
    for knob in KNOBS {
        assert!(
            refusal(knob.key).contains("is not a known key"),
            "{}",
            knob.key
        );
    }
}

#[test]
fn every_combination_of_sources_is_ordered() {
    for bits in 0u8..16 {
        let on = |bit: u8| bits & bit != 0;
        let chosen = Layers {
            flag: on(1).then_some(1),
            environment: on(2).then_some((Source::Environment { name: "CTO_HOME" }, 2)),
            config: on(4).then_some((9, 4)),
            default: on(8).then_some(8),
        }
        .choose("home");
        let want = match bits {
            0 => None,
            _ if on(1) => Some((Source::Flag { name: "--home" }, 1)),
            _ if on(2) => Some((Source::Environment { name: "CTO_HOME" }, 2)),
            _ if on(4) => Some((Source::Config { line: 9 }, 4)),
            _ => Some((Source::Default, 8)),
        };
        assert_eq!(chosen, want, "{bits:04b}");
    }
}

proptest! {
    #[test]
    fn any_bytes_give_a_config_or_an_issue(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Err(found) = parse_config("c", &bytes) {
            prop_assert!(!found.is_empty());
        }
    }

    #[test]
    fn one_changed_byte_never_panics(at in 0usize..GOOD.len(), byte in any::<u8>()) {
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes[at] = byte;
        if let Err(found) = parse_config("c", &bytes) {
            prop_assert!(!found.is_empty() && found.iter().all(|issue| issue.line > 0 && issue.column > 0));
        }
    }

    #[test]
    fn only_known_keys_get_in(key in "[a-z_]{1,12}") {
        let known = Knob::find(&key).is_some();
        let text = format!("{key} = 5\n");
        prop_assert!(parse_config("c", text.as_bytes()).is_err() || known);
    }
}

#[test]
fn deep_nesting_is_an_issue_not_a_crash() {
    let dotted = format!("{}a = 1\n", "a.".repeat(30_000));
    let brackets = format!("a = {}1{}\n", "[".repeat(30_000), "]".repeat(30_000));
    let inline = format!("a = {}1{}\n", "{ b = ".repeat(10_000), "}".repeat(10_000));
    for text in [dotted, brackets, inline] {
        assert!(!issues(&text).is_empty());
    }
}

#[test]
fn a_program_is_named_by_its_absolute_path() {
    for path in ["git", "./git", "~/bin/git", "/usr/../tmp/git", "", "/a\\nb"] {
        let found = issues(&format!("git = \"{path}\"\n"));
        assert!(
            found[0].contains("absolute path of a program"),
            "{path}: {found:?}"
        );
    }
    assert!(issues("git = [\"/usr/bin/git\"]\n")[0].contains("absolute path"));
    assert!(issues("git.path = \"/usr/bin/git\"\n")[0].contains("absolute path"));
}
