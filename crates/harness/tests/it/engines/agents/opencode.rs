//! The real OpenCode, from the npm registry, through the whole path against a scripted model.

use cto_testkit::{Bundle, House};
use serde_json::{Value, json};

use crate::assert_good;
use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{DONE, Lab, OPENCODE, PROBE, assert_no_leak, quick, tool};
use crate::house;

fn script(turns: &[String]) -> String {
    format!("{PROBE}{}{DONE}", turns.concat())
}

fn edit(file: &str, from: &str, to: &str) -> String {
    tool(
        "edit",
        json!({"filePath": file, "oldString": from, "newString": to}),
    )
}

fn shell(command: &str) -> String {
    tool("bash", json!({"command": command, "description": "work"}))
}

fn lab(house: House) -> Option<Lab> {
    let program = OPENCODE.installed()?;
    let case = house.case(&quick());
    house.hand_over(&house.root().join("cases"));
    Some(Lab::of(&OPENCODE, &program, house, case))
}

/// Nothing was tried that is forbidden, nothing said that was not understood.
fn assert_quiet(bundle: &Bundle) {
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(
        ended["unknown_lines"],
        0,
        "{}",
        bundle.text("backend/stdout.log")
    );
    let actions = &ended["actions"];
    assert_eq!(actions["recorded"], true, "{actions}");
    let seen = actions["attempts"].as_array().map_or(0, Vec::len);
    assert_eq!(seen, 0, "{actions}");
}

#[test]
fn the_default_case_passes_as_root_and_as_an_ordinary_user() {
    let Some(program) = OPENCODE.installed() else {
        return;
    };
    for house in houses() {
        let lab = Lab::of(&OPENCODE, &program, house, "r1-string-slugify".into());
        let turns = [
            tool("read", json!({"filePath": "strings.py"})),
            edit(
                "strings.py",
                "return text.lower()",
                "import re\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")",
            ),
            shell("python3 -m unittest"),
        ];
        let model = lab.model(&script(&turns));
        let (answer, bundle) = lab.run(&model, &[]);
        assert_eq!(
            answer.code,
            Some(0),
            "{:?} {answer:?}",
            bundle.report()["blockers"]
        );
        assert_no_leak(&bundle, &model);
        assert_good(&bundle);
        assert_quiet(&bundle);
        assert_eq!(bundle.changed_files(), ["strings.py"]);
        let types = bundle.event_types();
        for event in [
            "engine.message",
            "engine.tool_call",
            "engine.file_change",
            "engine.tokens",
            "engine.model_call",
            "engine.result",
        ] {
            assert!(types.iter().any(|have| have == event), "{event}: {types:?}");
        }
        let report = bundle.report();
        assert_eq!(report["claimed"]["status"], "completed");
        let engine = &report["engine"];
        assert_eq!(
            (&engine["version"], &engine["warnings"]),
            (&json!(OPENCODE.version), &Value::Null)
        );
    }
}

#[test]
fn what_it_did_decides_and_not_what_it_says() {
    let Some(lab) = lab(house()) else { return };
    let right = || edit("answer.txt", "wrong", "right");
    let wrong = edit("answer.txt", "wrong", "almost");
    let outside = tool(
        "write",
        json!({"filePath": "notes.txt", "content": "hello\n"}),
    );
    let child = shell("setsid sleep 317 >/dev/null 2>&1 & echo begun");
    for (name, turns, status, code) in [
        (
            "wrong patch",
            vec![wrong],
            "fail",
            Some("verification_failed"),
        ),
        (
            "out of scope",
            vec![right(), outside],
            "fail",
            Some("disallowed_file_change"),
        ),
        ("no diff", vec![], "fail", Some("no_diff")),
        ("surviving child", vec![right(), child], "pass", None),
    ] {
        let bundle = lab.play(&script(&turns), &[]);
        assert_eq!(bundle.status(), status, "{name}: {:?}", bundle.codes());
        assert_eq!(bundle.codes().first().map(String::as_str), code, "{name}");
        assert_good(&bundle);
        assert_quiet(&bundle);
    }
}

#[test]
fn after_a_good_probe_the_provider_is_gone_however_long_it_retries() {
    let Some(lab) = lab(house()) else { return };
    for (name, turn) in [
        (
            "401",
            "status = 401\nbody = '{\"error\":{\"message\":\"no such key\"}}'",
        ),
        (
            "500",
            "status = 500\nbody = '{\"error\":{\"message\":\"broken\"}}'",
        ),
    ] {
        let bundle = lab.play(&format!("after = \"last\"\n{PROBE}[[turn]]\n{turn}\n"), &[]);
        assert_eq!(
            (bundle.status().as_str(), bundle.codes()),
            ("blocked", vec!["provider_unavailable".to_owned()]),
            "{name}: {:?}",
            bundle.report()["blockers"]
        );
        assert_good(&bundle);
    }
}

#[test]
fn an_endless_loop_ends_with_the_budget() {
    let Some(lab) = lab(house()) else { return };
    let again = format!("after = \"last\"\n{PROBE}{}", shell("cat answer.txt"));
    let bundle = lab.play(&again, &["--model-calls", "9"]);
    assert_eq!(
        (bundle.status().as_str(), bundle.codes()),
        ("fail", vec!["budget_exceeded".to_owned()]),
        "{:?}",
        bundle.report()["blockers"]
    );
    assert_good(&bundle);
}
