//! The real OpenCode, from the npm registry, through the whole path against a scripted model. What its failures come to is
//! the failure table of `engines/matrix/lanes.rs`.

use cto_testkit::Bundle;
use serde_json::{Value, json};

use crate::assert_good;
use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{DONE, Lab, OPENCODE, PROBE, assert_no_leak, tool};

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
