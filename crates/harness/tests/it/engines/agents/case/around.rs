//! What lies around Case and what it is told: neither a repository nor the operator's environment gives it orders, and
//! nothing of it is left when it is ended.

use std::process::Command;
use std::time::Duration;

use cto_testkit::{Case, wait_until};

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
        .replace("CTO_HARNESS_ALLOW_CASE\"", &format!("{gate}\""));
    assert!(text.contains(change.0), "{id}");
    put(house, id, &text.replace(change.0, change.1));
}

/// The result of the first tool, as its event log has it.
pub fn first_tool(bundle: &Bundle) -> String {
    let log = bundle.text("backend/case-events.jsonl");
    let seen = log.lines().find(|line| line.contains("tool_end")).unwrap();
    let seen: Value = serde_json::from_str(seen).unwrap();
    seen["result"].as_str().unwrap().to_owned()
}

/// As JavaScript and for a shell: it leaves a file where it is run.
const PRELOAD: &str =
    "//bin/true; touch preloaded; exit\nrequire('fs').writeFileSync('preloaded', '')\n";
const MARK: &str = "MARK-OF-THE-PACKAGE";

/// What a repository can hold that Case takes for orders where it is started, and how that would show.
type Neighbour = (
    &'static str,
    &'static [(&'static str, &'static str)],
    fn(&Seen) -> bool,
);

const NEIGHBOURS: [Neighbour; 4] = [
    (
        "a file of variables",
        &[("workspace/.env", "FROM_DOTENV=1\nOPENAI_API_KEY=stolen\n")],
        |seen| seen.first.contains("FROM_DOTENV"),
    ),
    (
        "a preload",
        &[
            ("workspace/bunfig.toml", "preload = [\"./preload.js\"]\n"),
            ("workspace/preload.js", PRELOAD),
        ],
        |seen| {
            seen.first.contains("preloaded") || seen.changed.iter().any(|path| path == "preloaded")
        },
    ),
    (
        "a shell",
        &[(
            "workspace/.pi/settings.json",
            "{\"shellPath\": \"/nonexistent/shell\"}\n",
        )],
        |seen| seen.is_error,
    ),
    (
        "a package of its name",
        &[
            (
                "workspace/package.json",
                "{\"name\": \"case\", \"version\": \"0.0.1\"}\n",
            ),
            ("workspace/prompts/implementer.md", MARK),
        ],
        |seen| seen.prompted,
    ),
];

/// What came of a run beside such a file.
struct Seen {
    first: String,
    is_error: bool,
    changed: Vec<String>,
    prompted: bool,
    bundle: Bundle,
}

fn beside(lab: &Lab) -> Seen {
    let look = shell("env | grep -e FROM_DOTENV -e stolen; ls preloaded 2>/dev/null; true");
    let model = lab.model(&scenario(&[look, implements(), rest(4)]));
    let (_, bundle) = lab.run(&model, &[]);
    let log = bundle.text("backend/case-events.jsonl");
    let first = log.lines().find(|line| line.contains("tool_end")).unwrap();
    Seen {
        first: first_tool(&bundle),
        is_error: first.contains("\"isError\":true"),
        changed: bundle.changed_files(),
        prompted: model.heard(MARK),
        bundle,
    }
}

fn in_the_neighbourhood_of(files: &[(&str, &str)]) -> Case {
    // Not forbidden here, or nobody would be shown it.
    let case = quick().forbidden("[\"secret/\"]");
    files
        .iter()
        .fold(case, |case, (name, text)| case.file(name, text))
}

#[test]
fn nothing_of_a_repository_gives_it_orders() {
    for house in houses() {
        let program = case_program(&house);
        let mut lab = Lab::of(&CASE, &program, house, String::new());
        for (name, files, shows) in NEIGHBOURS {
            lab.case = lab.house.case(&in_the_neighbourhood_of(files));
            lab.house.hand_over(&lab.house.root().join("cases"));
            let seen = beside(&lab);
            assert_verdict(name, &seen.bundle, "pass", &[]);
            assert!(!shows(&seen), "{name}: {}", seen.first);
            assert_eq!(seen.changed, ["answer.txt"], "{name}");
        }
    }
}

/// That the test before can fail: the same files, and an engine that is started in the repository.
#[test]
fn one_that_is_started_in_the_repository_takes_orders_there() {
    const WITHIN: Agent = Agent::of("case-within", "0.0.0");
    if !only_of_the_double("to be started where it takes orders") {
        return;
    }
    let house = house();
    let program = case_program(&house);
    own(
        &house,
        "case-within",
        ("cwd = \"empty\"", "cwd = \"workspace\""),
    );
    let mut lab = Lab::of(&WITHIN, &program, house, String::new());
    for (name, files, shows) in NEIGHBOURS {
        lab.case = lab.house.case(&in_the_neighbourhood_of(files));
        let seen = beside(&lab);
        // These are hidden from every engine, wherever it is started.
        let hidden = |(file, _): &(&str, &str)| {
            ["/.env", "/.pi/", "/bunfig.toml"]
                .iter()
                .any(|own| file.contains(own))
        };
        assert_ne!(
            shows(&seen),
            files.iter().any(hidden),
            "{name}: {}",
            seen.first
        );
    }
}

#[test]
fn no_proxy_of_the_operator_reaches_it() {
    const PROXIED: Agent = Agent::of("case-proxied", "0.0.0");
    let nowhere = "http://127.0.0.1:9";
    let lab = lab(house());
    let lab = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]
        .iter()
        .fold(lab, |lab, name| lab.with(name, nowhere));
    let whole = scenario(&[implements(), rest(4)]);
    assert_verdict("proxies", &lab.play(&whole, &[]), "pass", &[]);
    if !only_of_the_double("to be given a proxy") {
        return;
    }
    let house = house();
    let program = case_program(&house);
    let variable = format!("[invocation.env]\nHTTP_PROXY = \"{nowhere}\"");
    own(&house, "case-proxied", ("[invocation.env]", &variable));
    let case = house.case(&quick());
    let lab = Lab::of(&PROXIED, &program, house, case);
    let bundle = lab.play(&whole, &[]);
    assert_ne!(bundle.status(), "pass", "with one it reaches nobody");
}

#[test]
fn no_prompt_is_in_its_words_and_it_stands_in_an_empty_place() {
    let lab = lab(house());
    let look = shell(
        "tr '\\0' ' ' < /proc/$PPID/cmdline; echo; readlink /proc/$PPID/cwd; ls -A \"$(readlink /proc/$PPID/cwd)\"; env | grep -ci proxy",
    );
    let bundle = lab.play(&scenario(&[look, implements(), rest(4)]), &[]);
    assert_verdict("words", &bundle, "pass", &[]);
    let seen = first_tool(&bundle);
    let mut lines = seen.lines();
    let words = lines.next().unwrap();
    assert!(
        words.contains("run --task ") && words.contains(" --mode unattended"),
        "{seen}"
    );
    assert!(!words.contains("answer right"), "{seen}");
    assert_eq!(lines.next(), Some("/scratch/cwd"), "{seen}");
    assert_eq!(lines.next(), Some("0"), "it is empty: {seen}");
}

/// In the page that each of its agents reads, and nowhere in its words.
#[test]
fn instructions_stand_in_the_page_of_its_task() {
    let lab = lab(house());
    let words = lab.house.root().join("AGENTS.md");
    std::fs::write(&words, "Say MARK-7431 in every message.\n").unwrap();
    let look = shell("cat .case/tasks/active/*.md");
    for told in [true, false] {
        let typed = words.display().to_string();
        let more: &[&str] = if told {
            &["--instructions", &typed]
        } else {
            &[]
        };
        let turns = [look.clone(), implements(), rest(4)];
        let bundle = lab.play(&scenario(&turns), more);
        assert_verdict("told", &bundle, "pass", &[]);
        let page = first_tool(&bundle);
        assert_eq!(page.contains("MARK-7431"), told, "{page}");
        assert!(page.contains("## Result"), "{page}");
        assert_eq!(bundle.has("instructions.md"), told);
    }
}

/// Bad input ends with 1, before a phase began: one cause, one blocker, and a sentence that says so.
#[test]
fn an_end_before_the_beginning_is_said_with_its_exit_code() {
    const LOST: Agent = Agent::of("case-lost", "0.0.0");
    let house = house();
    let program = case_program(&house);
    let project = "\"name\": \"workspace\"";
    own(&house, "case-lost", (project, "\"name\": \"elsewhere\""));
    let case = house.case(&quick());
    let lab = Lab::of(&LOST, &program, house, case);
    let bundle = lab.play(&scenario(&[implements(), rest(4)]), &[]);
    assert_verdict("lost", &bundle, "fail", &["engine_failed"]);
    let report = bundle.report();
    assert_eq!(
        report["failure_reason"],
        "case-lost engine failed with exit code 1"
    );
    assert_eq!(report["backend_exit_code"], 1);
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
