//! What lies around Case and what it is told: neither a repository nor the operator's environment gives it orders, and
//! nothing of it is left when it is ended.

use std::process::Command;
use std::time::Duration;

use cto_testkit::wait_until;

use super::*;
use crate::engines::known::put;
use crate::fixtures::people::alive;
use crate::fixtures::pi_lab::{Agent, decision, model};

/// The manifest of the house, as one of the operator's own with something changed.
fn own(house: &House, id: &str, change: (&str, &str)) {
    let text = include_str!("../../../../../../../engines/case.toml");
    let gate = format!("CTO_HARNESS_ALLOW_{}", id.to_uppercase().replace('-', "_"));
    let text = text
        .replace("id = \"case\"", &format!("id = \"{id}\""))
        // In a manifest of one's own it could be a secret.
        .replace("UNUSED", "no")
        .replace("CTO_HARNESS_ALLOW_CASE\"", &format!("{gate}\""));
    assert!(text.contains(change.0), "{id}");
    put(house, id, &text.replace(change.0, change.1));
}

/// The result of the first tool, as its event log has it.
fn first_tool(bundle: &Bundle) -> String {
    let log = bundle.text("backend/case-events.jsonl");
    let seen = log.lines().find(|line| line.contains("tool_end")).unwrap();
    let seen: Value = serde_json::from_str(seen).unwrap();
    seen["result"].as_str().unwrap().to_owned()
}

#[test]
fn the_neighbourhood_changes_nothing_and_no_prompt_is_in_its_words() {
    for house in houses() {
        let program = case_program(&house);
        let preload = "require('fs').writeFileSync('preloaded', '')\n";
        let case = quick()
            .file("workspace/.env", "FROM_DOTENV=1\nOPENAI_API_KEY=stolen\n")
            .file("workspace/bunfig.toml", "preload = [\"./preload.js\"]\n")
            .file("workspace/preload.js", preload)
            .file(
                "workspace/.pi/settings.json",
                "{\"shellPath\": \"/nonexistent/shell\"}\n",
            )
            .file(
                "workspace/package.json",
                "{\"name\": \"case\", \"version\": \"0.0.1\"}\n",
            );
        let case = house.case(&case);
        house.hand_over(&house.root().join("cases"));
        // Proxies are obeyed by Case, so none may reach it.
        let house = house
            .with("HTTP_PROXY", "http://127.0.0.1:9")
            .with("http_proxy", "http://127.0.0.1:9")
            .with("ALL_PROXY", "http://127.0.0.1:9");
        let lab = Lab::of(&CASE, &program, house, case);
        let look = shell(
            "tr '\\0' ' ' < /proc/$PPID/cmdline; echo; readlink /proc/$PPID/cwd; ls -A \"$(readlink /proc/$PPID/cwd)\"; env | grep -ci -e proxy -e dotenv -e stolen",
        );
        let turns = [look, implements(), rest(4)];
        let bundle = lab.play(&scenario(&turns), &[]);
        assert_verdict("neighbourhood", &bundle, "pass", &[]);
        assert_eq!(bundle.changed_files(), ["answer.txt"]);
        let seen = first_tool(&bundle);
        let mut lines = seen.lines();
        let words = lines.next().unwrap();
        assert!(
            words.contains("run --task ") && words.contains(" --mode unattended"),
            "{seen}"
        );
        assert!(!words.contains("answer right"), "{seen}");
        assert_eq!(lines.next(), Some("/scratch/cwd"), "{seen}");
        assert_eq!(
            lines.next(),
            Some("0"),
            "it stands in an empty place: {seen}"
        );
    }
}

#[test]
fn a_tiny_profile_has_no_verifier() {
    const TINY: Agent = Agent::of("case-tiny", "0.0.0");
    let house = house();
    let program = case_program(&house);
    let profile = "\"profile\": \"standard\"";
    own(&house, "case-tiny", (profile, "\"profile\": \"tiny\""));
    let case = house.case(&quick());
    let lab = Lab::of(&TINY, &program, house, case);
    let bundle = lab.play(&scenario(&[implements(), rest(3)]), &[]);
    assert_verdict("tiny", &bundle, "pass", &[]);
    let log = bundle.text("backend/case-events.jsonl");
    assert!(!log.contains("verifier"), "{log}");
    // A report of it has the same fields: they are its manifest's.
    assert_eq!(bundle.report()["case_process_started"], true);
}

#[test]
fn settings_without_a_model_are_one_cause_with_one_blocker() {
    const BLANK: Agent = Agent::of("case-blank", "0.0.0");
    let house = house();
    let program = case_program(&house);
    let models =
        r#", "models": {"default": {"provider": "{runtime_provider}", "model": "{model}"}}"#;
    own(&house, "case-blank", (models, ""));
    let case = house.case(&quick());
    let lab = Lab::of(&BLANK, &program, house, case);
    let model = lab.model(&scenario(&[implements(), rest(4)]));
    let (_, bundle) = lab.run(&model, &[]);
    assert_verdict("no model", &bundle, "fail", &["missing_required_event"]);
    assert_eq!(model.requests(), 1, "nothing but the probe was answered");
}

#[test]
fn what_it_starts_is_ended_with_it() {
    let lab = lab(house());
    let leaves = shell("setsid sleep 76541 >/dev/null 2>&1 & echo left");
    let bundle = lab.play(&scenario(&[leaves, implements(), rest(4)]), &[]);
    assert_verdict("a child in the background", &bundle, "pass", &[]);
    assert_eq!(alive("76541"), 0);
    let hangs = shell("sleep 76542");
    let bundle = lab.play(&scenario(&[hangs]), &["--timeout", "4"]);
    assert_eq!(bundle.status(), "blocked", "{:?}", bundle.codes());
    assert_eq!(bundle.codes(), ["timeout"]);
    assert!(bundle.has("backend/provider-timeout.txt"));
    assert_eq!(alive("76542"), 0);
}

#[test]
fn a_signal_to_the_harness_ends_all_of_it_and_is_said() {
    let lab = lab(house());
    let model = lab.model(&scenario(&[right(), shell("sleep 76543")]));
    let mut child = lab.house.start(&[
        "run",
        &lab.case,
        "--engine",
        "case",
        "--stage",
        "2",
        "--base-url-file",
        &model.url_file,
    ]);
    assert!(wait_until(|| alive("76543") > 0), "the tool never began");
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.unwrap().success());
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(alive("76543"), 0);
    let runs = lab.house.cto(&["runs", "--json"]).json().to_string();
    assert!(runs.contains("interrupted"), "{runs}");
}

/// The knobs of the profile, and from the caller what it does not hold.
#[test]
fn a_profile_fixes_the_knobs_and_prints_no_address() {
    let lab = lab(house());
    for (kind, mut record) in [("model", model()), ("decision", decision())] {
        record["provider"] = json!("qwen-local");
        record["model"] = json!("qwen3.6-35b-a3b");
        lab.record(kind, &record);
    }
    // The pair is of the lane, and so of its proof.
    let proven = lab.house.cto(&["validate", "stage1", "--engine", "case"]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    let words: [&[&str]; 2] = [&["run", "--profile", "qwen-local"], &["case-qwen-loop.sh"]];
    for words in words {
        let model = lab.model(&scenario(&[implements(), rest(4)]));
        let more = [
            lab.case.as_str(),
            "--base-url-file",
            &model.url_file,
            "--json",
        ];
        let (answer, bundle) = lab.house.run_args(&[words, &more[..]].concat());
        assert_verdict("profile", &bundle, "pass", &[]);
        let (report, contract) = (bundle.report(), bundle.json("contract.json"));
        assert_eq!(report["backend"], "case");
        assert_eq!(report["stage"], 2);
        assert_eq!(report["case_model_provider"], "qwen-local");
        assert_eq!(report["case_model"], "qwen3.6-35b-a3b");
        assert_eq!(report["case_runtime_model_provider"], "openai");
        assert_eq!(contract["limits"]["engine_wall_seconds"], 3600);
        assert_no_leak(&bundle, &model);
        for said in [&answer.stdout, &answer.stderr] {
            assert!(!said.contains(&model.authority), "{said}");
        }
    }
    for (words, code) in [
        (
            &["--profile", "qwen-local", "--engine", "pi"][..],
            "another_engine",
        ),
        (&["--profile", "nobody"], "unknown_profile"),
        (&["--profile", "qwen-local", "--model", "m"], "--model"),
    ] {
        let answer = lab.house.cto(&[&["run"], words].concat());
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains(code), "{answer:?}");
    }
}

/// The variable has it tried, and the one request before a run shows whether it is there.
#[test]
fn a_login_that_case_does_not_pass_on_needs_a_bridge_that_is_proven() {
    let lab = lab(house());
    for (kind, mut record) in [("model", model()), ("decision", decision())] {
        record["provider"] = json!("openai-codex");
        if kind == "decision" {
            record["decision_status"] = json!("external_provider_approved");
            record["provider_class"] = json!("external_openai_codex");
        }
        lab.record(kind, &record);
    }
    let proven = lab.house.cto(&["validate", "stage1", "--engine", "case"]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    let whole = scenario(&[implements(), rest(4)]);
    let closed: &[&str] = &["provider_auth_unavailable"];
    assert_verdict("no word of it", &lab.play(&whole, &[]), "blocked", closed);
    let lab = lab.with("CTO_HARNESS_CASE_OPENAI_CODEX_AUTH_BRIDGE", "1");
    let refused = lab.play("[probe]\nstatus = 401\n", &[]);
    assert_verdict("not proven", &refused, "blocked", closed);
    assert_verdict("proven", &lab.play(&whole, &[]), "pass", &[]);
}
