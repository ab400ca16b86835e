//! The real Codex, from the npm registry, through the whole path against a scripted model.

use cto_testkit::{Bundle, House};
use serde_json::{Value, json};

use crate::assert_good;
use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{CODEX, DONE, Lab, PROBE, assert_no_leak, quick, tool};
use crate::house;

fn script(turns: &[String]) -> String {
    format!("{PROBE}{}{DONE}", turns.concat())
}

fn shell(command: &str) -> String {
    tool("exec_command", json!({"cmd": command}))
}

/// A change by the tool that Codex calls a patch.
fn patch(file: &str, from: &str, to: &str) -> String {
    let lines = |mark: char, text: &str| -> String {
        text.lines().map(|line| format!("{mark}{line}\n")).collect()
    };
    shell(&format!(
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: {file}\n@@\n{}{}*** End Patch\nEOF",
        lines('-', from),
        lines('+', to)
    ))
}

fn edit() -> String {
    patch("answer.txt", "wrong", "right")
}

fn lab(house: House) -> Option<Lab> {
    let program = CODEX.installed()?;
    let case = house.case(&quick());
    house.hand_over(&house.root().join("cases"));
    Some(Lab::of(&CODEX, &program, house, case))
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
    assert_eq!(ended["model"]["refused"], 0, "{ended}");
}

#[test]
fn the_default_case_passes_as_root_and_as_an_ordinary_user() {
    let Some(program) = CODEX.installed() else {
        return;
    };
    let mut tasks = Vec::new();
    for house in houses() {
        let lab = Lab::of(&CODEX, &program, house, "r1-string-slugify".into());
        let turns = [
            shell("cat strings.py"),
            patch(
                "strings.py",
                "    return text.lower()",
                "    import re\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")",
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
            "engine.warning",
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
            (&json!(CODEX.version), &Value::Null)
        );
        let calls = bundle.lines("backend/model-calls.jsonl");
        assert_eq!(calls.len(), 4);
        assert!(calls.iter().all(|call| call["model_asked"] == "scripted"));
        tasks.push(report["task_digest"].clone());
    }
    assert!(tasks.iter().all(|task| *task == tasks[0]), "{tasks:?}");
}

#[test]
fn what_it_did_decides_and_not_what_it_says() {
    let Some(lab) = lab(house()) else { return };
    let wrong = patch("answer.txt", "wrong", "almost");
    let outside = shell("echo hello > notes.txt");
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
            vec![edit(), outside],
            "fail",
            Some("disallowed_file_change"),
        ),
        ("no diff", vec![], "fail", Some("no_diff")),
        ("surviving child", vec![edit(), child], "pass", None),
    ] {
        let bundle = lab.play(&script(&turns), &[]);
        assert_eq!(bundle.status(), status, "{name}: {:?}", bundle.codes());
        assert_eq!(bundle.codes().first().map(String::as_str), code, "{name}");
        assert_eq!(bundle.report()["claimed"]["status"], "completed", "{name}");
        assert_good(&bundle);
        assert_quiet(&bundle);
        if name == "surviving child" {
            let containment = bundle.json("containment.json");
            let processes = containment["processes"].as_array().unwrap();
            let engine = processes.iter().find(|row| row["process"] == "engine");
            assert_eq!(engine.unwrap()["survivors"], 0, "{containment}");
        }
    }
}

#[test]
fn an_endless_loop_ends_with_the_budget() {
    let Some(lab) = lab(house()) else { return };
    let again = format!("after = \"last\"\n{PROBE}{}", shell("cat answer.txt"));
    let bundle = lab.play(&again, &["--model-calls", "9"]);
    assert_eq!(
        (bundle.status().as_str(), bundle.codes()),
        ("fail", vec!["budget_exceeded".to_owned()])
    );
    assert_good(&bundle);
}

#[test]
fn after_a_good_probe_the_provider_is_gone_whatever_its_exit_code() {
    let Some(lab) = lab(house()) else { return };
    for (name, turn) in [
        (
            "401",
            "status = 401\nbody = '{\"error\":{\"message\":\"no such key\"}}'",
        ),
        (
            "429",
            "status = 429\nbody = '{\"error\":{\"message\":\"too many\"}}'",
        ),
        (
            "500",
            "status = 500\nbody = '{\"error\":{\"message\":\"broken\"}}'",
        ),
        ("hung up", "hang_up = true"),
        (
            "cut",
            "text = \"one two three four five six\"\ndrop_after = 1",
        ),
        (
            "silent",
            "text = \"one two three four five six\"\nsilent_after = 1",
        ),
    ] {
        let bundle = lab.play(&format!("{PROBE}[[turn]]\n{turn}\n"), &[]);
        assert_eq!(
            (bundle.status().as_str(), bundle.codes()),
            ("blocked", vec!["provider_unavailable".to_owned()]),
            "{name}: {:?}",
            bundle.report()["blockers"]
        );
        let report = bundle.report();
        assert_eq!(report["failure_reason"], "provider unavailable", "{name}");
        assert_eq!(report["backend_exit_code"], 1, "{name}");
        assert_good(&bundle);
    }
    // Right, and verified; then the provider fails: blocked all the same.
    let late = lab.play(&format!("{PROBE}{}[[turn]]\nstatus = 503\n", edit()), &[]);
    assert_eq!(
        (late.status().as_str(), late.codes()),
        ("blocked", vec!["provider_unavailable".to_owned()])
    );
    assert_eq!(late.report()["tests_passed"], true);
}

#[test]
fn it_is_closed_by_default() {
    let house = house();
    let (answer, bundle) = house.run_args(&["run", "--engine", "codex", "--json"]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["engine_gate_closed".to_owned()])
    );
    assert_eq!(bundle.report()["process_started"], false);
}
