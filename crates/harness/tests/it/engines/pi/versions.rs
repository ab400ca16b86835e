//! Every version of Pi that is installed, over every protocol it speaks.

use serde_json::{Value, json};

use crate::assert_good;
use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{DONE, Lab, PI, PI_24, PROBE, assert_no_leak, edit, quick, tool};
use crate::house;

#[test]
fn the_default_case_passes_with_the_newer_one_as_root_and_as_an_ordinary_user() {
    let Some(program) = PI_24.installed() else {
        return;
    };
    for house in houses() {
        let lab = Lab::of(&PI_24, &program, house, "r1-string-slugify".into());
        let fixed = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";
        let turns = [
            tool("read", json!({"path": "strings.py"})),
            tool("write", json!({"path": "strings.py", "content": fixed})),
            tool("bash", json!({"command": "python3 -m unittest"})),
        ];
        let model = lab.model(&format!("{PROBE}{}{DONE}", turns.concat()));
        let (answer, bundle) = lab.run(&model, &[]);
        assert_eq!(answer.code, Some(0), "{:?} {answer:?}", bundle.codes());
        assert_no_leak(&bundle, &model);
        assert_good(&bundle);
        assert_eq!(bundle.changed_files(), ["strings.py"]);
        let ended = bundle.event("engine.ended").unwrap();
        assert_eq!(
            ended["unknown_lines"],
            0,
            "{}",
            bundle.text("backend/stdout.log")
        );
        let actions = &ended["actions"];
        assert_eq!(actions["recorded"], true, "{actions}");
        assert_eq!(
            actions["attempts"].as_array().map_or(0, Vec::len),
            0,
            "{actions}"
        );
        let engine = &bundle.report()["engine"];
        assert_eq!(
            (&engine["version"], &engine["warnings"]),
            (&json!(PI_24.version), &Value::Null)
        );
    }
}

#[test]
fn both_versions_speak_all_three_protocols() {
    for agent in [&PI, &PI_24] {
        let Some(program) = agent.installed() else {
            continue;
        };
        let house = house();
        let case = house.case(&quick());
        house.hand_over(&house.root().join("cases"));
        let lab = Lab::of(agent, &program, house, case);
        for protocol in ["openai-chat", "openai-responses", "anthropic-messages"] {
            let scenario = format!("{PROBE}{}{DONE}", edit());
            let bundle = lab.play(&scenario, &["--model-protocol", protocol]);
            let name = format!("{} {protocol}", agent.version);
            assert_eq!(
                bundle.status(),
                "pass",
                "{name}: {:?} {}",
                bundle.codes(),
                bundle.text("backend/stdout.log")
            );
            assert_good(&bundle);
            let ended = bundle.event("engine.ended").unwrap();
            assert_eq!(ended["unknown_lines"], 0, "{name}");
            assert_eq!(ended["model"]["refused"], 0, "{name}: {ended}");
            let calls = bundle.lines("backend/model-calls.jsonl");
            assert!(
                calls.len() == 2 && calls.iter().all(|call| call["outcome"] == "ok"),
                "{name}: {calls:?}"
            );
        }
    }
}
