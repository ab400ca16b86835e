//! The real Pi, from the npm registry, through the whole path against a scripted model.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cto_testkit::Repo;
use serde_json::json;

use crate::assert_good;
use crate::fixtures::pi_lab::{DONE, KEY, Lab, PROBE, edit, pi, quick, tool};
use crate::house;

fn script(turns: &[String]) -> String {
    format!("{PROBE}{}{DONE}", turns.concat())
}

#[test]
fn a_good_run_passes_and_tells_everything() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let bundle = lab.play(
        &script(&[tool("read", json!({"path": "answer.txt"})), edit()]),
        &[],
    );
    assert_eq!(
        bundle.status(),
        "pass",
        "{:?} {}",
        bundle.codes(),
        bundle.text("backend/stderr.log")
    );
    assert_good(&bundle);
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
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
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(
        (&ended["unknown_lines"], &ended["model"]["calls"]),
        (&json!(0), &json!(3)),
        "{ended}"
    );
    let report = bundle.report();
    assert_eq!(report["claimed"]["status"], "completed");
    assert_eq!(
        (&report["engine"]["version"], &report["engine"]["warnings"]),
        (&json!("0.74.2"), &json!(null))
    );
    assert_eq!(
        report["relies_on"].as_array().unwrap().len(),
        2,
        "the proof of stage 1 and the baseline"
    );
    assert_eq!(bundle.lines("backend/model-calls.jsonl").len(), 3);
    assert_eq!(bundle.json("backend/model-probe.json")["outcome"], "ok");
    let calls = bundle.lines("backend/model-calls.jsonl");
    assert!(
        calls
            .iter()
            .all(|call| call["model_asked"] == "scripted" && call["model_answered"] == "scripted"),
        "{calls:?}"
    );
}

#[test]
fn what_it_did_decides_and_not_what_it_says() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let wrong = tool(
        "write",
        json!({"path": "answer.txt", "content": "almost\n"}),
    );
    let new_file = tool("write", json!({"path": "notes.txt", "content": "hello\n"}));
    let child = tool(
        "bash",
        json!({"command": "setsid sleep 317 >/dev/null 2>&1 & echo begun"}),
    );
    for (name, turns, status, code) in [
        (
            "wrong patch",
            vec![wrong],
            "fail",
            Some("verification_failed"),
        ),
        (
            "out of scope",
            vec![edit(), new_file],
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
        if name == "surviving child" {
            let containment = bundle.json("containment.json");
            let engine = containment["processes"]
                .as_array()
                .unwrap()
                .iter()
                .find(|row| row["process"] == "engine")
                .unwrap();
            assert_eq!(engine["survivors"], 0, "{engine}");
            assert!(engine["ended_with_it"].as_u64().unwrap() >= 1, "{engine}");
        }
    }
}

#[test]
fn an_endless_loop_ends_with_the_budget() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let again = format!(
        "after = \"last\"\n{PROBE}{}",
        tool("read", json!({"path": "answer.txt"}))
    );
    let bundle = lab.play(&again, &["--model-calls", "9"]);
    assert_eq!(
        (bundle.status().as_str(), bundle.codes()),
        ("fail", vec!["budget_exceeded".to_owned()])
    );
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(ended["model"]["calls"], 9, "{ended}");
    assert_good(&bundle);
}

#[test]
fn no_process_the_harness_starts_ever_holds_the_endpoint_or_the_key() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let look = tool(
        "bash",
        json!({"command": "env; cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; sleep 0.3"}),
    );
    let model = lab.model(&script(&[look, edit()]));
    let needles = [KEY.to_owned(), model.authority.clone()];
    let over = AtomicBool::new(false);
    let (answer, bundle, seen) = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut found, mut processes) = (Vec::new(), 0);
            while !over.load(Ordering::Relaxed) {
                processes = processes.max(watch(
                    lab.house.root().to_str().unwrap(),
                    &needles,
                    &mut found,
                ));
            }
            (found, processes)
        });
        let (answer, bundle) = lab.run(&model, &[]);
        over.store(true, Ordering::Relaxed);
        (answer, bundle, watcher.join().unwrap())
    });
    assert_eq!(answer.code, Some(0), "{:?}", bundle.codes());
    assert!(seen.1 >= 2, "the watcher saw nothing of the run");
    assert_eq!(seen.0, Vec::<String>::new());
    crate::fixtures::pi_lab::assert_no_leak(&bundle, &model);
    // What the engine itself could see is in its log, and was recorded without anything to take
    // out.
    assert!(
        bundle
            .text("backend/stdout.log")
            .contains("CTO_MODEL_TOKEN")
    );
    assert_eq!(
        bundle.event("engine.ended").unwrap()["stdout"]["redactions"],
        0
    );
}

/// Looks at every process below `cto`: its command line, and its environment unless it is the
/// command itself or the model.
fn watch(root: &str, needles: &[String], found: &mut Vec<String>) -> usize {
    let mut seen = 0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if !pid.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let (argv, environ) = (read("cmdline"), read("environ"));
        let holds = |bytes: &[u8], needle: &str| {
            bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        };
        // Of this house, by what it was started with; others' houses are none of ours.
        let ours = holds(&environ, root) || holds(&argv, root);
        let inherited = holds(&environ, "CTO_STATE_DIR=");
        let jailed = holds(&environ, "CTO_MODEL_TOKEN=") || holds(&environ, "/scratch/home");
        seen += usize::from(jailed);
        for needle in needles {
            if (ours || jailed) && holds(&argv, needle) {
                found.push(format!(
                    "{needle} in argv of {}",
                    String::from_utf8_lossy(&argv)
                ));
            }
            if jailed || (ours && !inherited) {
                let text = holds(&environ, needle)
                    .then(|| format!("{needle} in environ of {}", String::from_utf8_lossy(&argv)));
                found.extend(text);
            }
        }
    }
    seen
}

#[test]
fn it_is_closed_by_default_and_stage_one_never_starts_it() {
    let house = house();
    let (answer, bundle) = house.run_args(&["run", "--engine", "pi", "--json"]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["engine_gate_closed".to_owned()])
    );
    let (answer, bundle) =
        house.run_args(&["run", "--engine", "pi", "--allow-engine", "pi", "--json"]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["stage_gate_closed".to_owned()])
    );
    let (answer, bundle) = house.run_args(&[
        "run",
        "--engine",
        "pi",
        "--allow-engine",
        "pi",
        "--stage",
        "2",
        "--json",
    ]);
    assert_eq!(answer.code, Some(3));
    for code in [
        "provider_decision_closed",
        "model_not_admitted",
        "executable_not_admitted",
        "stage_not_proven",
    ] {
        assert!(bundle.has_code(code), "{code}: {:?}", bundle.codes());
    }
    assert_eq!(bundle.report()["process_started"], false);
}

#[test]
fn a_try_on_a_persons_own_repository() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    assert_eq!(
        lab.play(&script(&[edit()]), &[]).status(),
        "pass",
        "the proof of stage 2"
    );
    let repo = Repo::new(&lab.house, "mine");
    repo.write("answer.txt", "wrong\n");
    repo.write("control.txt", "fine\n");
    repo.commit("a bug");
    let control = lab.house.root().join("control.patch");
    fs::write(
        &control,
        "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n",
    )
    .unwrap();
    let model = lab.model(&script(&[edit()]));
    let (answer, bundle) = lab.house.run_args(&[
        "try",
        "--repo",
        repo.path(),
        "--engine",
        "pi",
        "--task",
        "Make the answer right",
        "--allow",
        "answer.txt",
        "--test",
        "grep -qx right answer.txt && grep -qx fine control.txt",
        "--control",
        control.to_str().unwrap(),
        "--base-url-file",
        &model.url_file,
        "--json",
    ]);
    assert_eq!(
        answer.code,
        Some(0),
        "{:?} {answer:?}",
        bundle.report()["blockers"]
    );
    crate::fixtures::pi_lab::assert_no_leak(&bundle, &model);
    assert_good(&bundle);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}
