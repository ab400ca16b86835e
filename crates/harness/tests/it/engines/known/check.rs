//! `cto engines new` and `cto engines check`: from nothing to an agent that works.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{LAB, environment, own_directory, put};
use crate::fixtures::people::houses;
use crate::house;

/// The mark of a line of the answer.
fn mark<'j>(json: &'j Value, check: &str) -> &'j str {
    let lines = json["checks"].as_array().unwrap();
    let found = lines.iter().find(|line| line["check"] == check);
    found.map_or("none", |line| line["mark"].as_str().unwrap())
}

#[test]
fn an_agent_that_works_is_said_to_line_by_line_and_leaves_nothing() {
    for house in houses() {
        let program = environment(&house).display().to_string();
        put(&house, "lab", LAB);
        let answer = house.cto(&["engines", "check", "lab", "--bin", &program, "--json"]);
        let json = answer.json();
        assert_eq!(answer.code, Some(0), "{json:#}");
        for check in [
            "manifest", "program", "identity", "runs on", "packages", "version", "started",
            "model", "edited", "ended", "attempts", "lines", "verdict",
        ] {
            assert_eq!(mark(&json, check), "ok", "{check}: {json:#}");
        }
        assert!(
            house.run_dirs().is_empty(),
            "a check is no run of the operator"
        );
        assert!(!house.state().join("records").exists());
    }
}

#[test]
fn what_does_not_work_is_the_line_that_is_wrong() {
    let house = house();
    let program = environment(&house).display().to_string();
    for (from, to, check) in [
        // It asks somebody else, and so nobody.
        (
            "OPENAI_API_BASE = \"{door}\"",
            "OPENAI_API_BASE = \"http://127.0.0.1:9/v1\"",
            "model",
        ),
        // Its edits are read in another form.
        (
            "answer = \"\"\"\n{path}",
            "answer = \"\"\"\nfile {path}",
            "edited",
        ),
        ("\"--message\"", "\"--mesage\"", "ended"),
        ("argv = [", "argv = [\"--connect\", ", "attempts"),
        ("lab_agent.dist-info", "lab.dist-info", "version"),
        (
            "packages = \"pyvenv.cfg\"",
            "packages = \"node_modules\"",
            "packages",
        ),
        ("title", "titel", "manifest"),
    ] {
        assert!(LAB.contains(from), "{from}");
        put(&house, "lab", &LAB.replacen(from, to, 1));
        let answer = house.cto(&["engines", "check", "lab", "--bin", &program, "--json"]);
        let json = answer.json();
        assert_eq!(answer.code, Some(1), "{to}: {json:#}");
        assert_eq!(mark(&json, check), "wrong", "{to}: {json:#}");
    }
    put(&house, "lab", LAB);
    let other = house.cto(&["engines", "check", "lab", "--bin", "/bin/true", "--json"]);
    assert_eq!(other.code, Some(1));
    assert_eq!(mark(&other.json(), "identity"), "wrong");
    let none = house.cto(&["engines", "check", "lab"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.stderr.contains("--bin FILE"));
    assert_eq!(house.cto(&["engines", "check", "nobody"]).code, Some(2));
    assert_eq!(house.cto(&["engines", "check", "fake"]).code, Some(2));
}

#[test]
fn a_new_manifest_is_private_taken_as_it_is_and_written_once() {
    let house = house();
    let answer = house.cto(&["engines", "new", "my-agent"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stdout.contains("engines check my-agent --bin FILE"));
    let file = own_directory(&house).join("my-agent.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let listed = house.cto(&["engines", "--json"]).json();
    let row = listed["engines"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(row["engine"], "my-agent", "{listed:#}");
    assert_eq!(row["gated_by_env"], "CTO_HARNESS_ALLOW_MY_AGENT");
    fs::write(&file, "mine").unwrap();
    let again = house.cto(&["engines", "new", "my-agent"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("manifest_exists"), "{again:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    for name in ["pi", "fake", "allow", "No", "../x"] {
        let refused = house.cto(&["engines", "new", name]);
        assert_eq!(refused.code, Some(2), "{name}");
    }
    // What would not be used is not left behind.
    let dir = house.root().join("elsewhere/repo/engines");
    fs::create_dir_all(house.root().join("elsewhere/repo/.git")).unwrap();
    let dir = dir.display().to_string();
    let refused = house.cto(&["engines", "new", "other", "--engines", &dir]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("repository"), "{refused:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}
