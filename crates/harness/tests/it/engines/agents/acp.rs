//! Real agents that speak the Agent Client Protocol, through the whole path against a scripted model.

use cto_testkit::{Bundle, House};
use serde_json::json;

use crate::assert_good;
use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{
    ACP_CODEX, ACP_GEMINI, ACP_OPENCODE, ACP_PI, ACP_QWEN, Agent, DONE, Lab, PROBE, assert_no_leak,
    quick, tool,
};
use crate::house;

/// One agent, and how its model calls the tools that work.
struct Lane {
    agent: &'static Agent,
    edit: fn(&str, &str, &str) -> String,
    shell: fn(&str) -> String,
    /// It asks before it changes anything.
    asks: bool,
    /// Calls of another model that it makes by itself, and that are refused.
    side_calls: bool,
}

const LANES: [Lane; 5] = [
    Lane {
        agent: &ACP_OPENCODE,
        edit: |file, from, to| {
            let edit = json!({"filePath": file, "oldString": from, "newString": to});
            tool("edit", edit)
        },
        shell: |command| tool("bash", json!({"command": command, "description": "work"})),
        asks: true,
        side_calls: false,
    },
    Lane {
        agent: &ACP_CODEX,
        edit: |file, from, to| {
            let lines = |mark: char, text: &str| -> String {
                text.lines().map(|line| format!("{mark}{line}\n")).collect()
            };
            let patch = format!(
                "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: {file}\n@@\n{}{}*** End Patch\nEOF",
                lines('-', from),
                lines('+', to)
            );
            tool("exec_command", json!({"cmd": patch}))
        },
        shell: |command| tool("exec_command", json!({"cmd": command})),
        asks: false,
        side_calls: true,
    },
    Lane {
        agent: &ACP_GEMINI,
        edit: |file, from, to| in_python("run_shell_command", file, from, to),
        shell: |command| tool("run_shell_command", json!({"command": command})),
        asks: true,
        side_calls: false,
    },
    Lane {
        agent: &ACP_QWEN,
        edit: |file, from, to| in_python("run_shell_command", file, from, to),
        shell: |command| {
            let asked = json!({"command": command, "is_background": false});
            tool("run_shell_command", asked)
        },
        asks: true,
        side_calls: false,
    },
    Lane {
        agent: &ACP_PI,
        edit: |file, from, to| {
            let edits = json!([{"oldText": from, "newText": to}]);
            tool("edit", json!({"path": file, "edits": edits}))
        },
        shell: |command| tool("bash", json!({"command": command})),
        asks: false,
        side_calls: false,
    },
];

/// Their own tools that edit want a path from the root, which no script knows.
fn in_python(shell: &str, file: &str, from: &str, to: &str) -> String {
    let command = format!(
        "python3 - <<'EOF'\np = {file:?}\nt = open(p).read()\nopen(p, 'w').write(t.replace({from:?}, {to:?}))\nEOF"
    );
    tool(shell, json!({"command": command, "is_background": false}))
}

fn script(turns: &[String]) -> String {
    format!("{PROBE}{}{DONE}", turns.concat())
}

fn lab(lane: &Lane, house: House) -> Option<Lab> {
    let program = lane.agent.installed()?;
    let case = house.case(&quick());
    house.hand_over(&house.root().join("cases"));
    Some(Lab::of(lane.agent, &program, house, case))
}

/// Nothing was tried that is forbidden, nothing said that was not understood.
fn assert_quiet(bundle: &Bundle, lane: &Lane) {
    let ended = bundle.event("engine.ended").unwrap();
    let log = bundle.text("backend/stdout.log");
    assert_eq!(ended["unknown_lines"], 0, "{log}");
    let dismissed = json!({"kind": "dismissed", "because": "answered"});
    assert_eq!(ended["end"], dismissed, "{ended}");
    let actions = &ended["actions"];
    assert_eq!(actions["recorded"], true, "{actions}");
    let seen = actions["attempts"].as_array().map_or(0, Vec::len);
    assert_eq!(seen, 0, "{actions}");
    if !lane.side_calls {
        assert_eq!(ended["model"]["refused"], 0, "{ended}");
    }
}

#[test]
fn opencode_passes_the_default_case() {
    passes_the_default_case(&LANES[0]);
}

#[test]
fn codex_passes_the_default_case() {
    passes_the_default_case(&LANES[1]);
}

#[test]
fn gemini_passes_the_default_case() {
    passes_the_default_case(&LANES[2]);
}

#[test]
fn qwen_passes_the_default_case() {
    passes_the_default_case(&LANES[3]);
}

#[test]
fn pi_passes_the_default_case() {
    passes_the_default_case(&LANES[4]);
}

/// As root and as an ordinary user.
fn passes_the_default_case(lane: &Lane) {
    let mut tasks = Vec::new();
    let Some(program) = lane.agent.installed() else {
        return;
    };
    for house in houses() {
        let lab = Lab::of(lane.agent, &program, house, "r1-string-slugify".into());
        let fixed =
            "    import re\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")";
        let turns = [
            (lane.shell)("cat strings.py"),
            (lane.edit)("strings.py", "    return text.lower()", fixed),
            (lane.shell)("python3 -m unittest"),
        ];
        let model = lab.model(&script(&turns));
        let (answer, bundle) = lab.run(&model, &[]);
        let name = lane.agent.engine;
        let why = &bundle.report()["blockers"];
        assert_eq!(answer.code, Some(0), "{name}: {why:?} {answer:?}");
        assert_no_leak(&bundle, &model);
        assert_good(&bundle);
        assert_quiet(&bundle, lane);
        assert_eq!(bundle.changed_files(), ["strings.py"], "{name}");
        let types = bundle.event_types();
        let mut wanted = vec!["engine.message", "engine.tool_call", "engine.result"];
        wanted.extend(lane.asks.then_some("engine.permission"));
        for event in wanted {
            assert!(types.iter().any(|have| have == event), "{event}: {types:?}");
        }
        let report = bundle.report();
        assert_eq!(report["claimed"]["status"], "completed");
        let engine = &report["engine"];
        assert_eq!(engine["version"], json!(lane.agent.version));
        tasks.push(report["task_digest"].clone());
    }
    assert!(tasks.iter().all(|task| *task == tasks[0]), "{tasks:?}");
}

#[test]
fn what_it_did_decides_and_not_what_it_says() {
    for lane in &LANES {
        let Some(lab) = lab(lane, house()) else {
            return;
        };
        let right = || (lane.edit)("answer.txt", "wrong", "right");
        let wrong = (lane.edit)("answer.txt", "wrong", "almost");
        let outside = (lane.shell)("echo hello > notes.txt");
        let child = (lane.shell)("setsid sleep 317 >/dev/null 2>&1 & echo begun");
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
            let name = format!("{} {name}", lane.agent.engine);
            assert_eq!(bundle.status(), status, "{name}: {:?}", bundle.codes());
            assert_eq!(bundle.codes().first().map(String::as_str), code, "{name}");
            assert_good(&bundle);
            assert_quiet(&bundle, lane);
        }
    }
}

/// The others try again for a minute or two: those are rows of `just lanes`, a 401 of every run of the tests.
#[test]
fn after_a_good_probe_the_provider_is_gone() {
    let lane = &LANES[1];
    let Some(lab) = lab(lane, house()) else {
        return;
    };
    let turn = "[[turn]]\nstatus = 500\nbody = '{\"error\":{\"message\":\"broken\"}}'\n";
    let bundle = lab.play(&format!("after = \"last\"\n{PROBE}{turn}"), &[]);
    let said = (bundle.status(), bundle.codes());
    let want = (
        "blocked".to_owned(),
        vec!["provider_unavailable".to_owned()],
    );
    assert_eq!(said, want, "{:?}", bundle.report()["blockers"]);
    assert_good(&bundle);
}

#[test]
fn what_the_contract_does_not_allow_is_rejected_and_said_so() {
    let lane = &LANES[0];
    let Some(lab) = lab(lane, house()) else {
        return;
    };
    let outside = tool(
        "write",
        json!({"filePath": "notes.txt", "content": "hello\n"}),
    );
    let bundle = lab.play(&script(&[outside]), &[]);
    let asked = bundle.event("engine.permission").unwrap();
    assert_eq!(
        (&asked["answer"], &asked["rule"]),
        (&json!("reject_once"), &json!("out_of_scope")),
        "{asked}"
    );
    assert_eq!(bundle.codes(), ["no_diff"]);
    let shown = lab.house.cto(&["replay", &bundle.run_id()]);
    assert!(
        shown.stdout.contains("rejected once (out of scope)"),
        "{shown:?}"
    );
}
