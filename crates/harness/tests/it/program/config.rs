//! The config file: what it can set, what it can never do, and who is believed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cto_testkit::{Answer, Case, House, is_root, skip};
use serde_json::Value;

use crate::house;

/// The default place of a house's config file.
fn place(house: &House) -> PathBuf {
    house.root().join("home/.config/cto/config.toml")
}

fn configured(text: &str) -> House {
    let house = house();
    fs::create_dir_all(place(&house).parent().unwrap()).unwrap();
    fs::write(place(&house), text).unwrap();
    house
}

fn with(house: &House, vars: &[(&str, &str)], args: &[&str]) -> Answer {
    Answer::of(
        &house
            .command(args)
            .envs(vars.iter().copied())
            .output()
            .unwrap(),
    )
}

fn setting(answer: &Answer, key: &str) -> (Value, Value) {
    let json = answer.json();
    let found = json["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == key)
        .unwrap_or_else(|| panic!("{key}"));
    (found["value"].clone(), found["source"].clone())
}

#[test]
fn every_setting_says_where_it_came_from() {
    let house = house();
    let answer = house.cto(&["config", "--json"]);
    let json = answer.json();
    assert_eq!(
        (answer.code, &json["exists"]),
        (Some(0), &Value::Bool(false))
    );
    assert_eq!(json["file"].as_str(), place(&house).to_str());
    for knob in cto_core::operator::settings::KNOBS {
        let (_, source) = setting(&answer, knob.key);
        let want = if knob.key == "home" {
            "environment"
        } else {
            "default"
        };
        assert_eq!(source["kind"], want, "{}", knob.key);
    }
    assert_eq!(
        setting(&answer, "home"),
        (
            house.state().to_str().into(),
            serde_json::json!({"kind": "environment", "name": "CTO_STATE_DIR"})
        )
    );
    assert!(!house.state().exists(), "reading wrote state");
}

#[test]
fn flag_beats_variable_beats_file_beats_default() {
    let house = configured("home = \"~/conf\"\nruns_dir = \"/conf-runs\"\ntimeout = 77\n");
    let none = ("CTO_STATE_DIR", "");
    let answer = with(&house, &[none], &["config", "--json"]);
    let conf = house.root().join("home/conf");
    assert_eq!(
        setting(&answer, "home"),
        (
            conf.to_str().into(),
            serde_json::json!({"kind": "config", "line": 1})
        )
    );
    assert_eq!(
        setting(&answer, "runs_dir"),
        (
            "/conf-runs".into(),
            serde_json::json!({"kind": "config", "line": 2})
        )
    );
    assert_eq!(
        setting(&answer, "timeout"),
        (
            "77".into(),
            serde_json::json!({"kind": "config", "line": 3})
        )
    );
    let vars = [
        none,
        ("CTO_HOME", "/var-home"),
        ("CTO_RUNS_DIR", "/var-runs"),
    ];
    let answer = with(&house, &vars, &["config", "--json"]);
    assert_eq!(setting(&answer, "home").0, "/var-home");
    assert_eq!(setting(&answer, "runs_dir").0, "/var-runs");
    let answer = with(
        &house,
        &vars,
        &[
            "config",
            "--json",
            "--home",
            "/flag",
            "--runs-dir",
            "/flag-runs",
        ],
    );
    assert_eq!(
        setting(&answer, "home"),
        (
            "/flag".into(),
            serde_json::json!({"kind": "flag", "name": "--home"})
        )
    );
    assert_eq!(setting(&answer, "runs_dir").0, "/flag-runs");
    // A person is told which lines do nothing.
    let text = with(&house, &vars, &["config"]).stdout;
    assert!(
        text.contains("line 1 of it has no effect: CTO_HOME beats it"),
        "{text}"
    );
    assert!(!text.contains("line 3 of it"), "{text}");
}

#[test]
fn settings_reach_the_runs() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    fs::create_dir_all(place(&house).parent().unwrap()).unwrap();
    let cases = house.root().join("cases");
    fs::write(
        place(&house),
        format!(
            "cases = {:?}\ntimeout = 77\nidle = 44\nruns_dir = \"~/bundles\"\n",
            cases.display().to_string()
        ),
    )
    .unwrap();
    let limits = |args: &[&str]| house.cto(args).json()["contract"]["limits"].clone();
    let found = limits(&["contract", "quick", "--json"]);
    assert_eq!(
        (
            found["engine_wall_seconds"].as_u64(),
            found["engine_idle_seconds"].as_u64()
        ),
        (Some(77), Some(44))
    );
    let found = limits(&["contract", &case, "--json", "--timeout", "5"]);
    assert_eq!(
        (
            found["engine_wall_seconds"].as_u64(),
            found["engine_idle_seconds"].as_u64()
        ),
        (Some(5), Some(44))
    );
    let (answer, bundle) = house.run_args(&["run", "quick", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        bundle.dir.starts_with(house.root().join("home/bundles")),
        "{}",
        bundle.dir.display()
    );
}

#[test]
fn a_broken_file_stops_everything_and_says_where() {
    let house = configured(
        "color = \"auto\"\nhom = \"/x\"\n  api_key = \"hunter2\"\nallow_engine = [\"codex\"]\nstage = 5\n",
    );
    for args in [
        &["run"][..],
        &["runs"],
        &["doctor"],
        &["show"],
        &["verify"],
        &["recover"],
        &["contract"],
        &["engines"],
        &["config"],
        &["config", "check"],
    ] {
        let answer = house.cto(args);
        assert_eq!(
            (answer.code, answer.stdout.as_str()),
            (Some(2), ""),
            "{args:?}: {answer:?}"
        );
        for want in [
            "error[config_invalid]",
            "config.toml:2:1:",
            "config.toml:3:3:",
            "config.toml:4:1:",
            "config.toml:5:1:",
        ] {
            assert!(
                answer.stderr.contains(want),
                "{args:?} {want}: {}",
                answer.stderr
            );
        }
        assert!(!answer.stderr.contains("hunter2"), "a value is shown");
    }
    assert_eq!(house.cto(&["exec", "--", "true"]).code, Some(125));
    let json = house.cto(&["runs", "--json"]).json();
    assert_eq!(
        (json["command"].as_str(), json["error"]["code"].as_str()),
        (Some("runs"), Some("config_invalid"))
    );
    assert!(!house.state().exists(), "something ran");
    // What is about the program itself still answers.
    for args in [
        &["help"][..],
        &["-h"],
        &["man"],
        &["completions", "zsh"],
        &["config", "path"],
        &["--version"],
    ] {
        assert_eq!(house.cto(args).code, Some(0), "{args:?}");
    }
    assert_eq!(
        with(&house, &[("CTO_CONFIG", "/dev/null")], &["engines"]).code,
        Some(0)
    );
}

#[test]
fn no_file_can_open_an_engine_raise_a_stage_or_loosen_anything() {
    for line in [
        "engine = \"codex\"",
        "default_engine = \"codex\"",
        "allow_codex = true",
        "CTO_HARNESS_ALLOW_CODEX = \"1\"",
        "stage = 6",
        "runtime_default_activation = true",
        "core_promotion_status = \"promoted\"",
        "contain = \"none\"",
        "layers = []",
        "script = \"/x\"",
        "[limits]\nmemory_mib = 1",
        "[engines.codex]\ngate = \"open\"",
        "base_url = \"http://x\"",
        "openai_token = \"x\"",
    ] {
        let house = configured(&format!("{line}\n"));
        let answer = house.cto(&["engines", "--json"]);
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(2), Some("config_invalid")),
            "{line}"
        );
    }
}

#[test]
fn it_is_never_read_from_where_an_agent_can_write() {
    let house = house();
    let elsewhere = house.root().join("elsewhere");
    let broken = "this is no toml\n";
    // The current directory is not looked at.
    for name in [
        "config.toml",
        "cto.toml",
        ".cto.toml",
        ".config/cto/config.toml",
        "cto/config.toml",
    ] {
        let path = elsewhere.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, broken).unwrap();
    }
    assert_eq!(house.cto(&["engines"]).code, Some(0));
    // A relative name would be looked up there.
    for (name, value) in [
        ("CTO_CONFIG", "config.toml"),
        ("XDG_CONFIG_HOME", "."),
        ("HOME", "."),
    ] {
        let answer = with(&house, &[(name, value)], &["engines", "--json"]);
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(2), Some("config_relative")),
            "{name}"
        );
    }
    // Nor is a repository, however it is reached.
    let repository = house.root().join("repo");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir_all(repository.join("cto")).unwrap();
    fs::write(repository.join("cto/config.toml"), "color = \"auto\"\n").unwrap();
    let inside = repository.join("cto/config.toml");
    let link = house.root().join("link.toml");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    for (name, value) in [
        ("CTO_CONFIG", &inside),
        ("XDG_CONFIG_HOME", &repository),
        ("CTO_CONFIG", &link),
    ] {
        let answer = with(
            &house,
            &[(name, value.to_str().unwrap())],
            &["engines", "--json"],
        );
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(2), Some("config_untrusted")),
            "{name}={value:?}"
        );
    }
}

#[test]
fn only_the_operators_own_file_is_believed() {
    let house = configured("color = \"never\"\n");
    for (mode, code) in [(0o600, 0), (0o644, 0), (0o664, 2), (0o646, 2), (0o666, 2)] {
        fs::set_permissions(place(&house), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(house.cto(&["engines"]).code, Some(code), "{mode:o}");
    }
    fs::set_permissions(place(&house), fs::Permissions::from_mode(0o600)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(place(&house), Some(12345), None).unwrap();
        let answer = house.cto(&["engines", "--json"]);
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(2), Some("config_untrusted"))
        );
    } else {
        skip("a file of somebody else: only root can give a file away");
    }
}

#[test]
fn odd_files_are_typed_failures() {
    let house = house();
    let at = |name: &str| house.root().join(name).display().to_string();
    fs::create_dir(at("dir")).unwrap();
    fs::write(at("big"), "#".repeat(70_000)).unwrap();
    fs::write(at("bytes"), b"color = \"\xff\"\n").unwrap();
    std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
    std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status()
        .unwrap();
    for (name, code) in [
        ("nothing", "config_unreadable"),
        ("dir", "config_unreadable"),
        ("big", "config_unreadable"),
        ("loop", "config_unreadable"),
        ("pipe", "config_unreadable"),
        ("bytes", "config_invalid"),
    ] {
        let answer = with(&house, &[("CTO_CONFIG", &at(name))], &["runs", "--json"]);
        assert!(!answer.panicked(), "{answer:?}");
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(2), Some(code)),
            "{name}"
        );
    }
    // No file, an empty one, and no place for one are all the same.
    fs::write(at("empty"), "").unwrap();
    for vars in [
        &[][..],
        &[("CTO_CONFIG", at("empty").as_str())],
        &[("HOME", "/dev/null")],
        &[("HOME", "")],
    ] {
        assert_eq!(with(&house, vars, &["runs"]).code, Some(0), "{vars:?}");
    }
}

#[test]
fn check_and_path() {
    let house = configured("color = \"auto\"\n");
    let file = place(&house).display().to_string();
    assert_eq!(house.cto(&["config", "path"]).stdout, format!("{file}\n"));
    assert_eq!(
        house.cto(&["config", "check"]).stdout,
        format!("ok: {file}\n")
    );
    fs::write(
        house.root().join("elsewhere/mine.toml"),
        "timeout = \"soon\"\n",
    )
    .unwrap();
    let answer = house.cto(&["config", "check", "mine.toml"]);
    assert_eq!(answer.code, Some(2));
    assert!(
        answer
            .stderr
            .contains("mine.toml:1:11: timeout takes a whole number"),
        "{}",
        answer.stderr
    );
    assert_eq!(house.cto(&["config", "check", "none.toml"]).code, Some(2));
    assert_eq!(
        with(&house, &[("CTO_CONFIG", "/dev/null")], &["config", "path"]).code,
        Some(2)
    );
}
