//! Case through the whole path against a scripted model: the double that ships, or a real `ca` where
//! `CTO_HARNESS_CASE_BIN` names one.
//!
//! - this file: a sound pipeline, and how rows are told; `words.rs` what its agents say, `wire.rs` what its model does
//! - `around.rs` what lies around it, what it is told, and how it is ended; `reached.rs` validators and the matrix
//! - `lingers.rs` it stays when its work is done, or says of its commits what is not so; `meddled.rs` what is done to its log

mod around;
mod lingers;
mod meddled;
mod reached;
mod wire;
mod words;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cto_testkit::{Bundle, House, skip};
use serde_json::{Value, json};

use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{CASE, Lab, PROBE, assert_no_leak, quick, tool};
use crate::{assert_good, house, program};

/// A file of its own: the harness's very program is refused as an engine.
pub fn case_program(house: &House) -> PathBuf {
    if let Some(real) = std::env::var_os("CTO_HARNESS_CASE_BIN") {
        return PathBuf::from(real).canonicalize().unwrap();
    }
    let place = house.root().join("ca-double");
    double_in(&place);
    house.hand_over(&place);
    place.join("ca")
}

/// Only the double does on request what a real one was seen to do by itself.
pub fn is_double() -> bool {
    std::env::var_os("CTO_HARNESS_CASE_BIN").is_none()
}

/// The same for what only the double can show: with a real one that is skipped, by its name.
pub fn only_of_the_double(what: &str) -> bool {
    if !is_double() {
        skip(&format!("no real ca can be asked for this: {what}"));
    }
    is_double()
}

/// The double, as a file of its own below this directory.
pub fn double_in(place: &Path) -> PathBuf {
    fs::create_dir_all(place).unwrap();
    let path = place.join("ca");
    let mut bytes = fs::read(program()).unwrap();
    bytes.push(b'\n');
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

pub fn lab(house: House) -> Lab {
    let program = case_program(&house);
    let case = house.case(&quick());
    house.hand_over(&house.root().join("cases"));
    Lab::of(&CASE, &program, house, case)
}

pub fn says(text: &str) -> String {
    format!("[[turn]]\ntext = '''{text}'''\n")
}

pub fn envelope(result: Value) -> String {
    says(&format!("<<<AGENT_RESULT\n{result}\nAGENT_RESULT>>>"))
}

pub fn fine() -> String {
    envelope(json!({"status": "completed", "summary": "done"}))
}

pub fn failed() -> String {
    envelope(json!({"status": "failed", "error": "I could not"}))
}

pub fn right() -> String {
    tool("write", json!({"path": "answer.txt", "content": "right\n"}))
}

pub fn shell(command: &str) -> String {
    tool("bash", json!({"command": command}))
}

pub fn commits() -> String {
    shell("git add -A -- ':!.case/' && git commit -qm done")
}

/// The implementer does what it is asked for.
pub fn implements() -> String {
    [right(), commits(), fine()].concat()
}

pub fn scenario(turns: &[String]) -> String {
    format!("select = \"requests\"\n{PROBE}{}", turns.concat())
}

pub fn assert_kept_apart(bundle: &Bundle) {
    let started = bundle.text("backend/case-events.jsonl");
    assert!(started.contains("pipeline_start"), "{started}");
    assert!(
        bundle
            .changed_files()
            .iter()
            .all(|path| !path.starts_with(".case")),
        "its own folder is scratch"
    );
}

/// What the model says, and the verdict that must come of it.
struct Row {
    name: &'static str,
    turns: Vec<String>,
    status: &'static str,
    codes: &'static [&'static str],
}

fn row(
    name: &'static str,
    turns: impl IntoIterator<Item = String>,
    status: &'static str,
    codes: &'static [&'static str],
) -> Row {
    Row {
        name,
        turns: turns.into_iter().collect(),
        status,
        codes,
    }
}

/// Four phases that end well, so that a row says only what is different.
fn rest(count: usize) -> String {
    fine().repeat(count)
}

/// The sentence by which a run fails, word for word, where the table of failures has one.
fn sentence(code: &str) -> Option<&'static str> {
    match code {
        "agent_protocol_failed" => Some("case agent result protocol failed"),
        "provider_unavailable" => Some("provider unavailable"),
        "provider_response_shape_unavailable" => Some("provider response shape unavailable"),
        _ => None,
    }
}

/// The marker file a blocker leaves.
fn marker(code: &str) -> Option<&'static str> {
    match code {
        "agent_protocol_failed" => Some("backend/provider-agent-protocol.txt"),
        "provider_unavailable" => Some("backend/provider-unavailable.txt"),
        "provider_auth_unavailable" => Some("backend/provider-auth-unavailable.txt"),
        "provider_response_shape_unavailable" => Some("backend/provider-reasoning-only.txt"),
        "model_not_admitted" => Some("backend/provider-model-not-admitted.txt"),
        "timeout" => Some("backend/provider-timeout.txt"),
        _ => None,
    }
}

/// A file of a bundle, where a run got as far as that.
fn shown(bundle: &Bundle, name: &str) -> String {
    match bundle.has(name) {
        true => bundle.text(name),
        false => String::new(),
    }
}

fn assert_verdict(name: &str, bundle: &Bundle, status: &str, codes: &[&str]) {
    let report = bundle.report();
    assert_eq!(
        (bundle.status().as_str(), bundle.codes()),
        (
            status,
            codes.iter().map(|code| (*code).to_owned()).collect()
        ),
        "{name}: {}\n{}\n{}",
        report["blockers"],
        shown(bundle, "backend/case-events.jsonl"),
        shown(bundle, "backend/stderr.log")
    );
    assert_good(bundle);
    for code in codes {
        if let Some(file) = marker(code) {
            assert!(bundle.has(file), "{name}: {file}");
        }
    }
    if let Some(wanted) = codes.first().and_then(|code| sentence(code)) {
        assert_eq!(report["failure_reason"], wanted, "{name}");
    }
}

/// As root and as an ordinary user. Every row is a run of its own; none leaves a trace of address or key.
fn play_all(rows: &[Row]) {
    for lab in houses().into_iter().map(lab) {
        for row in rows {
            let model = lab.model(&scenario(&row.turns));
            let (answer, bundle) = lab.run(&model, &[]);
            assert!(!answer.panicked(), "{}: {answer:?}", row.name);
            assert_verdict(row.name, &bundle, row.status, row.codes);
            assert_kept_apart(&bundle);
            assert_no_leak(&bundle, &model);
        }
    }
}

#[test]
fn a_pipeline_passes_as_root_and_as_an_ordinary_user() {
    let mut tasks = Vec::new();
    for house in houses() {
        let program = case_program(&house);
        let lab = Lab::of(&CASE, &program, house, "r1-string-slugify".into());
        let fix = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";
        let write = tool("write", json!({"path": "strings.py", "content": fix}));
        let turns = [write, commits(), fine(), fine(), fine(), fine(), fine()];
        let model = lab.model(&scenario(&turns));
        let (answer, bundle) = lab.run(&model, &[]);
        let report = bundle.report();
        assert_eq!(answer.code, Some(0), "{:?} {answer:?}", report["blockers"]);
        assert_no_leak(&bundle, &model);
        assert_good(&bundle);
        assert_kept_apart(&bundle);
        assert_eq!(bundle.changed_files(), ["strings.py"]);
        for (field, value) in [
            ("case_process_started", json!(true)),
            ("case_model_provider", json!("lab")),
            ("case_model", json!("scripted")),
            ("case_model_admission_status", json!("admitted")),
            ("case_runtime_model_provider", json!("openai")),
        ] {
            assert_eq!(report[field], value, "{field}");
        }
        let ended = bundle.event("engine.ended").unwrap();
        assert_eq!(ended["unknown_lines"], 0, "{ended}");
        let attempts = ended["actions"]["attempts"].as_array().map_or(0, Vec::len);
        assert_eq!(attempts, 0, "an honest closer tries nothing: {ended}");
        let phases: Vec<Value> = bundle
            .events()
            .into_iter()
            .filter(|event| event["type"] == "engine.phase" && event["data"]["outcome"].is_string())
            .map(|event| event["data"]["phase"].clone())
            .collect();
        let all = [
            "implementer",
            "verifier",
            "reviewer",
            "closer",
            "retrospective",
        ];
        assert_eq!(phases, all);
        let log = bundle.text("backend/case-events.jsonl");
        assert!(!log.contains("\"isError\":true"), "it could commit: {log}");
        let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        tasks.push(first["taskId"].clone());
    }
    tasks.dedup();
    assert_eq!(tasks.len(), houses().len(), "fresh ids: {tasks:?}");
}

#[test]
fn the_harness_itself_is_no_engine() {
    let house = house();
    let own = program().canonicalize().unwrap();
    let lab = Lab::of(&CASE, &own, house, "r1-string-slugify".into());
    let model = lab.model(&scenario(&[fine()]));
    let (_, bundle) = lab.run(&model, &[]);
    assert!(
        bundle
            .codes()
            .contains(&"executable_not_admitted".to_owned()),
        "{:?}",
        bundle.codes()
    );
}
