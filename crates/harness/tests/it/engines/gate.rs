//! Who opens an engine: variable, flag, or a gate record at a terminal; and what a run without flags
//! then asks for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use cto_testkit::{Bundle, House, Repo, converse, sha256_hex, without_styles};
use serde_json::{Value, json};

use crate::fixtures::admission::{ENGINE, admitted, program};
use crate::house;

const RUN: [&str; 3] = ["run", "--engine", ENGINE];

fn record(house: &House) -> std::path::PathBuf {
    house.state().join(format!("records/{ENGINE}/gate.json"))
}

fn opened(house: &House) {
    let answer = house.cto(&["engines", "open", ENGINE, "--confirm", ENGINE]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

/// The bundle that a command left.
fn left_by(house: &House, command: Command) -> Bundle {
    let before = house.run_dirs();
    let answer = converse(command, "");
    let mut after = house.run_dirs();
    after.retain(|dir| !before.contains(dir));
    assert_eq!(after.len(), 1, "{answer:?}");
    Bundle::at(after.remove(0))
}

/// What a person is told about a bundle.
fn shown(house: &House, bundle: &Bundle) -> String {
    house.cto(&["show", &bundle.run_id()]).stdout
}

/// The row of the gate `engine` after a run that a person typed.
fn at_terminal(house: &House, more: &[&str], env: &[(&str, &str)]) -> Value {
    gate(&typed(house, more, env))
}

fn typed(house: &House, more: &[&str], env: &[(&str, &str)]) -> Bundle {
    let mut command = house.command(&[&RUN[..], more].concat());
    command.envs(env.iter().copied());
    left_by(house, command)
}

fn gate(bundle: &Bundle) -> Value {
    let gates = bundle.json("gates.json");
    let rows = gates["gates"].as_array().unwrap();
    rows.iter()
        .find(|row| row["gate"] == "engine")
        .unwrap()
        .clone()
}

#[test]
fn a_record_opens_at_a_terminal_and_nowhere_else() {
    let house = house();
    admitted(&house);
    let closed = at_terminal(&house, &[], &[]);
    assert_eq!(closed["result"], "blocked", "{closed}");
    opened(&house);
    let row = at_terminal(&house, &[], &[]);
    let sha = sha256_hex(&fs::read(record(&house)).unwrap());
    assert_eq!(row["result"], "pass", "{row}");
    assert_eq!(
        row["detail"],
        format!("opened by its gate record (sha256 {sha})")
    );
    // The variable closes for one command, whatever else opens; the flag is named where it opens.
    let variable = "CTO_HARNESS_ALLOW_CODEX";
    let shut = at_terminal(&house, &["--allow-engine", ENGINE], &[(variable, "0")]);
    assert_eq!(shut["result"], "blocked", "{shut}");
    let flag = at_terminal(&house, &["--allow-engine", ENGINE], &[]);
    assert_eq!(flag["detail"], "opened by --allow-engine");
    let said = at_terminal(&house, &[], &[(variable, "1")]);
    assert_eq!(said["detail"], "opened by its variable");
    // A script, CI, a pipe.
    let ci = at_terminal(&house, &[], &[("CI", "true")]);
    assert!(ci["detail"].to_string().contains("CI is set"), "{ci}");
    let piped = house.run_args(&[&RUN[..], &["--json"]].concat()).1;
    assert!(gate(&piped)["detail"].to_string().contains("no terminal"));
    let binary = house.command(&RUN);
    let mut script = Command::new("sh");
    script
        .args(["-c", "\"$0\" \"$@\"; exit $?"])
        .arg(binary.get_program());
    script.args(binary.get_args()).env_clear();
    for (name, value) in binary.get_envs() {
        value.map(|value| script.env(name, value));
    }
    let bundle = left_by(&house, script);
    let row = gate(&bundle);
    assert!(row["detail"].to_string().contains("script"), "{row}");
    let hints = shown(&house, &bundle);
    assert!(hints.contains("--allow-engine codex"), "{hints}");
}

#[test]
fn a_gate_is_opened_by_its_name_and_closed_at_once() {
    let house = house();
    let bare = house.cto(&["engines", "open", ENGINE, "--confirm", ENGINE]);
    assert_eq!(bare.code, Some(3), "{bare:?}");
    assert!(bare.stderr.contains("setup codex"), "{bare:?}");
    admitted(&house);
    for words in [
        &["engines", "open", ENGINE][..],
        &["engines", "open", ENGINE, "--confirm", "pi"],
        &["engines", "open", ENGINE, "--confirm", ""],
    ] {
        let answer = house.cto(words);
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert!(!record(&house).exists(), "{words:?}");
    }
    let typed = |text: &str| converse(house.command(&["engines", "open", ENGINE]), text);
    assert_eq!(typed("no\n").code, Some(3));
    assert!(!record(&house).exists());
    assert_eq!(typed("codex\n").code, Some(0));
    let kept: Value = serde_json::from_slice(&fs::read(record(&house)).unwrap()).unwrap();
    assert_eq!(kept["engine"], ENGINE);
    assert!(kept["approval_source"].to_string().contains("typed"));
    for engine in ["fake", "nobody"] {
        let answer = house.cto(&["engines", "open", engine, "--confirm", engine]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
    }
    let ended = house.cto(&["engines", "close", ENGINE, "--json"]).json();
    assert_eq!(ended["closed"], json!(true));
    assert!(!record(&house).exists());
    assert!(fs::metadata(ended["previous"].as_str().unwrap()).is_ok());
    let again = house.cto(&["engines", "close", ENGINE, "--json"]);
    assert_eq!(
        (again.code, &again.json()["closed"]),
        (Some(0), &json!(false))
    );
    // Whatever lies there, it can be closed.
    symlink("/nowhere", record(&house)).unwrap();
    assert_eq!(house.cto(&["engines", "close", ENGINE]).code, Some(0));
    assert!(record(&house).symlink_metadata().is_err());
}

#[test]
fn a_record_falls_with_its_program_and_is_believed_like_every_other() {
    let house = house();
    admitted(&house);
    opened(&house);
    fs::set_permissions(record(&house), fs::Permissions::from_mode(0o666)).unwrap();
    let row = at_terminal(&house, &[], &[]);
    assert!(
        row["detail"].to_string().contains("does not count"),
        "{row}"
    );
    fs::set_permissions(record(&house), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(at_terminal(&house, &[], &[])["result"], "pass");
    let listed = converse(house.command(&["engines"]), "").stdout;
    let line = without_styles(&listed);
    let line = line.lines().find(|line| line.starts_with("codex")).unwrap();
    assert!(line.contains("open") && line.contains("record"), "{line}");
    program(&house, "codex 6.6.6");
    let bundle = typed(&house, &[], &[]);
    let row = gate(&bundle);
    assert!(
        row["detail"]
            .to_string()
            .contains("is not the one that is admitted"),
        "{row}"
    );
    let hint = shown(&house, &bundle);
    assert!(hint.contains("`cto setup codex`"), "{hint}");
    // Admitted anew, the gate is still the old program's.
    let sets = [
        "--set",
        "approval_source=me",
        "--set",
        "review_trigger=later",
    ];
    let bin = house.root().join("elsewhere/engine/bin/codex");
    let new = [
        "admit",
        "executable",
        "new",
        "--engine",
        ENGINE,
        "--bin",
        bin.to_str().unwrap(),
    ];
    assert_eq!(house.cto(&[&new[..], &sets].concat()).code, Some(0));
    let bundle = typed(&house, &[], &[]);
    let row = gate(&bundle);
    assert!(
        row["detail"].to_string().contains("another program"),
        "{row}"
    );
    assert!(shown(&house, &bundle).contains("`cto engines open codex`"));
    opened(&house);
    assert_eq!(at_terminal(&house, &[], &[])["result"], "pass");
}

#[test]
fn a_run_without_a_stage_asks_for_the_second_once_the_first_is_proven() {
    let house = house().with("CTO_HARNESS_ALLOW_CODEX", "1");
    admitted(&house);
    let stage = |words: &[&str]| {
        let (_, bundle) = house.run_args(&[&RUN[..], words, &["--json"]].concat());
        bundle.report()["stage"].clone()
    };
    assert_eq!(stage(&[]), 1);
    let proven = house.cto(&["validate", "stage1", "--engine", ENGINE]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    assert_eq!(stage(&[]), 2);
    assert_eq!(stage(&["--stage", "1"]), 1);
    assert_eq!(stage(&["--model", "another"]), 1, "another lane");
    let asked = house
        .cto(&["eligibility", "--engine", ENGINE, "--json"])
        .json();
    let gates = asked["gates"].as_array().unwrap();
    let passed = gates.iter().find(|gate| gate["gate"] == "stage").unwrap();
    assert_eq!(
        passed["result"], "pass",
        "eligibility answers for the run: {passed}"
    );
    let contract = house
        .cto(&["contract", "--engine", ENGINE, "--json"])
        .json();
    assert_eq!(contract["contract"]["lane"]["stage"], 2);
}

#[test]
fn eligibility_answers_for_a_try() {
    let house = house().with("CTO_HARNESS_ALLOW_CODEX", "1");
    admitted(&house);
    let repo = Repo::new(&house, "r");
    repo.write("Makefile", "test:\n\ttrue\n");
    repo.commit("first");
    let words = [
        "eligibility",
        "--try",
        "--repo",
        repo.path(),
        "--engine",
        ENGINE,
    ];
    let answer = house.cto(&[&words[..], &["--json"]].concat());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let reasons = answer.json()["decision"]["reasons"].to_string();
    assert!(reasons.contains("no proof of stage 2"), "{reasons}");
    assert!(reasons.contains("where the engine came from"), "{reasons}");
    let text = house.cto(&words);
    assert!(text.stdout.contains("`cto setup codex`"), "{text:?}");
}
