//! `cto case new` and `cto case check`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cto_testkit::{Case, House, script, skip, write};
use serde_json::Value;

use crate::assert_good;
use crate::fixtures::rust::with_own_rust;
use crate::house;

const NOP: &str = "[[step]]\ndo = \"say\"\ntext = \"done\"\n";

/// A case without a fault.
fn sound(name: &str) -> Case {
    let cheat = script(&[write("answer.txt", "wrong again\n")]);
    Case::new(name)
        .file("scripts/nop.toml", NOP)
        .file("scripts/cheat.toml", &cheat)
}

/// The lines of a check that are wrong, and the exit code.
fn wrong(house: &House, args: &[&str]) -> (Option<i32>, Vec<String>) {
    let mut args = [&["case", "check"], args].concat();
    args.push("--json");
    let answer = house.cto(&args);
    assert!(!answer.panicked(), "{answer:?}");
    let json = answer.json();
    assert_eq!(
        json["ok"].as_bool(),
        Some(answer.code == Some(0)),
        "{answer:?}"
    );
    let checks = json["cases"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|case| case["checks"].as_array().unwrap().clone());
    let line = |check: Value| {
        format!(
            "{}: {}",
            check["check"].as_str().unwrap(),
            check["detail"].as_str().unwrap()
        )
    };
    (
        answer.code,
        checks
            .filter(|check| check["mark"] == "wrong")
            .map(line)
            .collect(),
    )
}

#[test]
fn a_new_case_runs_at_once() {
    let house = house();
    let place = house.root().join("elsewhere");
    let answer = house.cto(&["case", "new", "mine", "--lang", "sh"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.trim_end().ends_with("case check ./mine"),
        "{answer:?}"
    );
    for file in [
        "case.toml",
        "workspace/test.sh",
        "hidden/check_initials.sh",
        "scripts/oracle.toml",
        "scripts/nop.toml",
        "scripts/cheat.toml",
    ] {
        assert!(place.join("mine").join(file).is_file(), "no {file}");
    }
    assert!(
        fs::read_to_string(place.join("mine/case.toml"))
            .unwrap()
            .contains("task_id = \"mine\"")
    );
    let (run, bundle) = house.run_args(&["run", "./mine", "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_good(&bundle);
    let json = house
        .cto(&[
            "case",
            "new",
            "other",
            "--dir",
            &place.display().to_string(),
            "--json",
        ])
        .json();
    assert_eq!(
        (json["command"].as_str(), json["case"].as_str()),
        (Some("case new"), Some("other"))
    );
}

#[test]
fn a_new_case_is_sound_in_every_language() {
    let house = with_own_rust(house());
    let found = |program: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .any(|dir| dir.join(program).is_file())
    };
    for (language, program) in [
        ("python", "python3"),
        ("sh", "awk"),
        ("node", "node"),
        ("rust", "cargo"),
    ] {
        if !found(program) {
            skip(&format!("{language}: {program} is not on PATH"));
            continue;
        }
        // Where version managers keep their programs.
        let home = std::env::var("HOME").unwrap_or_default();
        let mut command = house.command(&["case", "new", language, "--lang", language]);
        assert!(command.output().unwrap().status.success());
        let mut command = house.command(&["case", "check", &format!("./{language}"), "-j", "2"]);
        let output = command.env("HOME", home).output().unwrap();
        assert!(
            output.status.success(),
            "{language}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

#[test]
fn nothing_that_is_there_is_touched() {
    let house = house();
    let place = house.root().join("elsewhere");
    fs::create_dir(place.join("dir")).unwrap();
    fs::write(place.join("file"), "mine").unwrap();
    symlink("/nonexistent", place.join("link")).unwrap();
    let before = house.outside();
    for name in ["dir", "file", "link"] {
        let answer = house.cto(&["case", "new", name]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("error[case_exists]"), "{answer:?}");
    }
    for name in ["", "Upper", "a b", "../up", "a/b", "-x", "new\nline"] {
        let answer = house.cto(&["case", "new", "--", name]);
        assert_eq!(answer.code, Some(2), "{name:?}: {answer:?}");
    }
    for (dir, code) in [("nowhere", "unwritable_case"), ("file", "unwritable_case")] {
        let answer = house.cto(&["case", "new", "mine", "--dir", dir]);
        assert!(
            answer.code == Some(2) && answer.stderr.contains(code),
            "{answer:?}"
        );
    }
    assert_eq!(house.outside(), before);
}

#[test]
fn a_sound_case_is_called_sound_and_leaves_nothing() {
    let house = house();
    let temporary = house.root().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let case = house.case(&sound("quick"));
    let mut command = house.command(&["case", "check", &case]);
    let output = command.env("TMPDIR", &temporary).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    for line in [
        "✓ oracle         pass",
        "✓ nop            fail: no_diff",
        "✓ cheat          fail",
        "✓ baseline       fail: verification_failed",
    ] {
        assert!(text.contains(line), "no {line}: {text}");
    }
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "the temporary home was left behind"
    );
    assert!(
        !house.state().exists(),
        "a check wrote into the state of the operator"
    );
}

#[test]
fn the_built_in_cases_are_sound() {
    let (code, wrong) = wrong(&house(), &["-j", "2"]);
    assert_eq!((code, wrong), (Some(0), Vec::new()));
}

#[test]
fn faults_that_can_be_seen() {
    let house = house();
    for (case, want) in [
        (
            sound("field").extra("surprise = 1"),
            "case file: field/case.toml:15:1: unknown field `surprise`",
        ),
        (
            sound("patch").control("{ patch = \"no.patch\" }"),
            "control: there is no file \"no.patch\" beside the case file",
        ),
        (
            sound("stray").file("notes.txt", "x"),
            "files: notes.txt: means nothing to a case",
        ),
        (
            sound("stray-dir").file("scirpts/nop.toml", "x"),
            "files: scirpts/nop.toml: means nothing to a case",
        ),
        (
            sound("toml").file("scripts/nop.toml", "[[step]]\ndo = 1\n"),
            "scripts: scripts/nop.toml: line 2, column 6: ",
        ),
        (
            sound("hidden").hidden("[\"sh check.sh\"]"),
            "hidden checks: hidden_verification names commands",
        ),
        (
            sound("idle").file("hidden/check.sh", "true"),
            "hidden checks: 1 file(s) in hidden/, but hidden_verification runs none",
        ),
        (
            sound("open")
                .allowed("[\"answer.txt\", \"test_a.py\"]")
                .file("workspace/test_a.py", ""),
            "hidden checks: none, and test_a.py may be changed",
        ),
        (
            sound("inputs").extra("inputs = [\"data\"]"),
            "inputs: \"data\" is not in inputs/",
        ),
        (
            sound("commands").commands("[]"),
            "checks: verification_commands is empty",
        ),
    ] {
        let dir = house.case(&case);
        let (code, found) = wrong(&house, &[&dir, "--static"]);
        assert_eq!(code, Some(1), "{want}: {found:?}");
        assert!(
            found.iter().any(|line| line.starts_with(want)),
            "{want}: {found:?}"
        );
    }
    let dir = house.case(&sound("renamed"));
    fs::rename(&dir, Path::new(&dir).with_file_name("other")).unwrap();
    let (code, found) = wrong(&house, &[&dir.replace("renamed", "other"), "--static"]);
    assert_eq!(
        (code, found),
        (
            Some(1),
            vec!["name: task_id is \"renamed\", the directory \"other\"".to_owned()]
        )
    );
    let dir = house.case(&Case::new("bare"));
    let (_, found) = wrong(&house, &[&dir, "--static"]);
    assert_eq!(
        found,
        [
            "scripts: scripts/nop.toml is missing",
            "scripts: scripts/cheat.toml is missing"
        ]
    );
}

#[test]
fn faults_that_only_a_trial_shows() {
    let house = house();
    let right = script(&[write("answer.txt", "right\n")]);
    let elsewhere = script(&[write("stray.txt", "right\n")]);
    for (case, want) in [
        (
            sound("solved").file("workspace/answer.txt", "right\n"),
            "baseline: must not satisfy its own checks",
        ),
        (
            sound("weak-oracle").file("scripts/oracle.toml", NOP),
            "oracle: must pass, and ended fail: no_diff",
        ),
        (
            sound("wide-oracle").file("scripts/oracle.toml", &elsewhere),
            "oracle: must pass, and ended fail: disallowed_file_change",
        ),
        (
            sound("busy-nop").file("scripts/nop.toml", &right),
            "nop: must fail with no_diff alone, and ended pass",
        ),
        (
            sound("honest-cheat").file("scripts/cheat-2.toml", &right),
            "cheat-2: must fail, and ended pass",
        ),
        (
            sound("blind").commands("[\"true\"]"),
            "oracle: must pass, and ended fail: verification_untrusted",
        ),
        (
            sound("tool").extra("toolchains = [\"no-such-tool\"]"),
            "cheat: could not be tried, blocked: toolchain_unavailable",
        ),
    ] {
        let dir = house.case(&case);
        let (code, found) = wrong(&house, &[&dir]);
        assert_eq!(code, Some(1), "{want}: {found:?}");
        assert!(
            found.iter().any(|line| line.starts_with(want)),
            "{want}: {found:?}"
        );
        let (code, found) = wrong(&house, &[&dir, "--static"]);
        assert_eq!(
            (code, found),
            (Some(0), Vec::new()),
            "{want}: seen without a trial"
        );
    }
}

#[test]
fn a_red_oracle_is_shown_with_its_log() {
    let house = house();
    let dir = house.case(
        &sound("quick")
            .file(
                "scripts/oracle.toml",
                &script(&[write("answer.txt", "nearly\n")]),
            )
            .commands("[\"cat answer.txt; false\"]"),
    );
    let answer = house.cto(&["case", "check", &dir]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stdout.contains("| nearly"), "{}", answer.stdout);
}

#[test]
fn several_cases_and_what_is_no_case() {
    let house = house();
    let (one, two) = (
        house.case(&sound("one")),
        house.case(&sound("two").extra("surprise = 1")),
    );
    let json = house
        .cto(&[
            "case",
            "check",
            &one,
            &two,
            "sh-word-count",
            "--static",
            "--json",
        ])
        .json();
    let ok: Vec<_> = json["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["ok"].as_bool().unwrap())
        .collect();
    assert_eq!(ok, [true, false, true]);
    assert_eq!(house.cto(&["case", "check", "nope"]).code, Some(2));
    assert_eq!(house.cto(&["case", "check", "./nope"]).code, Some(2));
    let all = house.cto(&[
        "case",
        "check",
        "--static",
        "--cases",
        &house.root().join("cases").display().to_string(),
        "--json",
    ]);
    assert_eq!(
        (all.code, all.json()["cases"].as_array().unwrap().len()),
        (Some(1), 2)
    );
}

#[test]
fn what_cannot_be_tried_is_said_so() {
    let house = house();
    let dir = house.case(&sound("quick").extra("surprise = 1"));
    let answer = house.cto(&["case", "check", &dir]);
    assert!(
        answer
            .stdout
            .contains("· trials         not tried: mend what is wrong first"),
        "{answer:?}"
    );
}
