//! Help, wrong command lines, completions and manual pages.

use std::collections::BTreeSet;

use cto_testkit::{Answer, House, skip};

use crate::house;

/// Commands that the help lists: two blanks, a name, at least two blanks, words.
fn listed(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line
            .strip_prefix("  ")
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))?;
        rest.split_once("  ")
            .map(|(name, _)| name.trim().to_owned())
    };
    text.lines().filter_map(name).collect()
}

fn narrow(house: &House, args: &[&str]) -> Answer {
    let output = house.command(args).env("COLUMNS", "80").output().unwrap();
    Answer::of(&output)
}

fn visible() -> Vec<String> {
    let tree = cto_harness::cli::command_tree();
    tree.get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(|sub| sub.get_name().to_owned())
        .collect()
}

#[test]
fn the_short_help_has_at_most_eight_commands() {
    let house = house();
    let asked = house.cto(&["-h"]);
    assert_eq!(asked.code, Some(0));
    let names = listed(&asked.stdout);
    assert!((4..=8).contains(&names.len()), "{names:?}");
    for name in ["run", "show", "verify", "doctor"] {
        assert!(
            names.iter().any(|listed| listed == name),
            "{name}: {names:?}"
        );
    }
    assert!(asked.stdout.contains("cto help"), "{}", asked.stdout);

    // Nothing was asked: the same words, but no script may take them for a pass.
    let bare = house.cto(&[]);
    assert_eq!((bare.code, bare.stdout.as_str()), (Some(2), ""));
    assert_eq!(bare.stderr, asked.stdout);
    assert!(!house.state().exists());
}

#[test]
fn the_long_help_has_every_command_once_under_a_heading() {
    let house = house();
    let long = house.cto(&["--help"]);
    assert_eq!(
        (long.code, &long.stdout),
        (Some(0), &house.cto(&["help"]).stdout)
    );
    let mut names = listed(&long.stdout);
    let mut want = visible();
    names.sort();
    want.sort();
    assert_eq!(names, want);
    for heading in [
        "Everyday:",
        "Evidence:",
        "Tasks and engines:",
        "This host and this program:",
        "Options:",
    ] {
        assert!(long.stdout.lines().any(|line| line == heading), "{heading}");
    }
    assert!(!long.stdout.contains("__"), "a hidden command is shown");
}

#[test]
fn every_help_fits_eighty_columns() {
    let house = house();
    let mut pages: Vec<Vec<String>> = vec![vec!["-h".into()], vec!["--help".into()]];
    for name in visible() {
        pages.push(vec!["help".into(), name.clone()]);
        pages.push(vec![name, "-h".into()]);
    }
    for page in pages {
        let args: Vec<&str> = page.iter().map(String::as_str).collect();
        let answer = narrow(&house, &args);
        assert_eq!(answer.code, Some(0), "{args:?}");
        let wide: Vec<&str> = answer
            .stdout
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect();
        assert!(wide.is_empty(), "{args:?}: {wide:#?}");
    }
}

#[test]
fn help_explains_one_command() {
    let house = house();
    assert_eq!(
        house.cto(&["help", "verify"]).stdout,
        house.cto(&["verify", "--help"]).stdout
    );
    assert!(
        house
            .cto(&["help", "config", "check"])
            .stdout
            .contains("Usage: cto config check")
    );
    assert!(house.cto(&["help", "config"]).stdout.contains("runs_dir"));
    let answer = house.cto(&["help", "dance"]);
    assert_eq!(answer.code, Some(2));
    assert!(
        answer.stderr.starts_with("error[unknown_command]"),
        "{answer:?}"
    );
}

#[test]
fn a_wrong_command_line_has_the_shape_of_every_failure() {
    let house = house();
    for (args, command, code) in [
        (&["--json"][..], None, "missing_command"),
        (&["--json", "dance"], None, "unknown_command"),
        (
            &["run", "--json", "--nonsense"],
            Some("run"),
            "unknown_argument",
        ),
        (
            &["engines", "a", "--json"],
            Some("engines"),
            "unknown_command",
        ),
        (
            &["run", "--json", "--stage", "9"],
            Some("run"),
            "invalid_value",
        ),
        (
            &["run", "--json", "--timeout", "soon"],
            Some("run"),
            "invalid_value",
        ),
        (
            &["--color", "blue", "--json", "runs"],
            Some("runs"),
            "invalid_value",
        ),
        (
            &["diff", "--json", "--stat", "--raw"],
            Some("diff"),
            "argument_conflict",
        ),
        (
            &["completions", "--json"],
            Some("completions"),
            "missing_argument",
        ),
        (
            &["completions", "--json", "cmd.exe"],
            Some("completions"),
            "invalid_value",
        ),
        (
            &["config", "dance", "--json"],
            Some("config"),
            "unknown_command",
        ),
        (
            &["show", "no-such-run", "--json"],
            Some("show"),
            "unknown_run",
        ),
    ] {
        let answer = house.cto(args);
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        let json = answer.json();
        assert_eq!(json["schema_version"], 1, "{args:?}");
        assert_eq!(
            (json["command"].as_str(), json["error"]["code"].as_str()),
            (command, Some(code)),
            "{args:?}: {json}"
        );
        assert_eq!(json["error"]["exit_code"], 2, "{args:?}");
        assert_eq!(answer.stderr, "", "{args:?}");
        let spoken: Vec<&str> = args
            .iter()
            .copied()
            .filter(|word| *word != "--json")
            .collect();
        let spoken = house.cto(&spoken);
        assert!(
            spoken.code == Some(2) && spoken.stdout.is_empty(),
            "{spoken:?}"
        );
        assert!(
            code == "missing_command" || spoken.stderr.starts_with(&format!("error[{code}]: ")),
            "{spoken:?}"
        );
    }
}

#[test]
fn words_that_are_no_text_are_refused_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let house = house();
    let odd = std::ffi::OsStr::from_bytes(b"\xff\x1b[2J");
    for (before, code) in [(&[][..], "unknown_command"), (&["show"], "invalid_utf8")] {
        let output = house
            .command(before)
            .arg(odd)
            .arg("--json")
            .output()
            .unwrap();
        let answer = Answer::of(&output);
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(2), Some(code)),
            "{answer:?}"
        );
    }
}

#[test]
fn a_near_miss_is_named() {
    let answer = house().cto(&["verfy"]);
    assert!(answer.stderr.contains("verify"), "{answer:?}");
    let answer = house().cto(&["run", "--scrpt", "x"]);
    assert!(answer.stderr.contains("--script"), "{answer:?}");
}

#[test]
fn a_wrong_exec_cannot_be_taken_for_the_code_of_its_command() {
    let house = house();
    for args in [
        &["exec"][..],
        &["exec", "--workspace"],
        &["exec", "--net", "all", "--", "true"],
    ] {
        assert_eq!(house.cto(args).code, Some(125), "{args:?}");
    }
    let json = house
        .cto(&["exec", "--json", "--net", "all", "--", "true"])
        .json();
    assert_eq!(
        (
            json["command"].as_str(),
            json["error"]["exit_code"].as_u64()
        ),
        (Some("exec"), Some(125))
    );
}

#[test]
fn typed_words_cannot_write_to_the_terminal() {
    let house = house();
    for args in [
        &["\u{1b}[2Jx"][..],
        &["run", "--\u{1b}]0;x\u{7}"],
        &["show", "\u{1b}[31mx"],
    ] {
        let answer = house.on_terminal(80, args);
        let drawn = answer
            .stdout
            .replace("\u{1b}[1m", "")
            .replace("\u{1b}[31m", "")
            .replace("\u{1b}[0m", "");
        assert!(
            !drawn.contains("\u{1b}[2J") && !drawn.contains("\u{1b}]") && !drawn.contains('\u{7}'),
            "{args:?}: {drawn:?}"
        );
        assert_eq!(answer.code, Some(2));
    }
}

#[test]
fn completions_know_every_visible_command_and_no_other() {
    let house = house();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let answer = house.cto(&["completions", shell]);
        assert_eq!(
            (answer.code, answer.stderr.as_str()),
            (Some(0), ""),
            "{shell}"
        );
        for name in visible() {
            assert!(answer.stdout.contains(&name), "{shell}: {name}");
        }
        for hidden in [
            "__fake",
            "__jail",
            "__attack",
            "__hostile",
            "__echo-door",
            "--layers",
            "run-case",
        ] {
            assert!(!answer.stdout.contains(hidden), "{shell}: {hidden}");
        }
        assert_eq!(
            house.cto(&["completions", shell, "--json"]).json()["script"],
            answer.stdout
        );
    }
    assert!(!house.state().exists());
}

#[test]
fn bash_can_read_its_completions() {
    let house = house();
    let file = house.root().join("cto.bash");
    std::fs::write(&file, house.cto(&["completions", "bash"]).stdout).unwrap();
    let Ok(output) = std::process::Command::new("bash")
        .arg("-n")
        .arg(&file)
        .output()
    else {
        return skip("bash cannot be started");
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn manual_pages_are_one_a_command() {
    let house = house();
    let main = house.cto(&["man"]);
    assert_eq!((main.code, main.stderr.as_str()), (Some(0), ""));
    for want in [
        ".TH cto 1",
        "EXIT STATUS",
        "FILES",
        "runs_dir",
        "cto\\-verify(1)",
    ] {
        assert!(main.stdout.contains(want), "{want}: {}", main.stdout);
    }
    let dir = house.root().join("share/man1");
    let answer = house.cto(&["man", "--out", dir.to_str().unwrap()]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let names: BTreeSet<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut want: BTreeSet<String> = visible()
        .iter()
        .map(|name| format!("cto-{name}.1"))
        .collect();
    want.extend(["cto.1", "cto-config-check.1", "cto-config-path.1"].map(str::to_owned));
    assert!(want.is_subset(&names), "{names:?}");
    assert!(names.iter().all(|name| !name.contains("__")), "{names:?}");
    assert_eq!(
        std::fs::read_to_string(dir.join("cto.1")).unwrap(),
        main.stdout
    );
    let run = std::fs::read_to_string(dir.join("cto-run.1")).unwrap();
    assert!(
        run.contains("Directory for all state") && run.contains("SEE ALSO"),
        "{run}"
    );

    std::fs::write(house.root().join("file"), "").unwrap();
    let blocked = house.root().join("file/below");
    let answer = house.cto(&["man", "--out", blocked.to_str().unwrap(), "--json"]);
    assert_eq!(
        (answer.code, answer.json()["error"]["code"].as_str()),
        (Some(2), Some("unwritable_page"))
    );
}
