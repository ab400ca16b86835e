//! `cto run`: the good road, the closed gates, and everything that is wrong before a run begins.

use std::collections::BTreeSet;
use std::process::Stdio;

use cto_testkit::{Answer, Bundle, Case, House, ORACLE, sha256_hex};

use crate::assert_good;
use crate::fixtures::bundles::ARTIFACTS;
use crate::house;
use crate::passed;

/// Every field spec 01 requires of a report.
const REQUIRED_FIELDS: &str = "schema_version kind origin case_id run_id status failure_reason backend stage run_started_at \
    run_finished_at backend_exit_code artifacts_dir changed_files workspace_scratch backend_scratch allowed_writes_passed \
    forbidden_paths_passed approval_status verification tests_command tests_passed required_events_passed blockers claimed observed \
    artifact_paths artifact_digests freshness not_applicable task_digest contract_digest allowed_mutation_scope \
    runtime_workspace_root run_artifact_dir process_started source_admission_status result relies_on events \
    runtime_default_activation core_promotion_status engine";

const GATED: [&str; 4] = ["case", "codex", "opencode", "pi"];

fn assert_fields(bundle: &Bundle) {
    let report = bundle.report();
    for field in REQUIRED_FIELDS.split_whitespace() {
        assert!(report.get(field).is_some(), "report.json has no {field}");
    }
    assert_eq!(report["runtime_default_activation"], false);
    assert_eq!(report["core_promotion_status"], "not-promoted");
    assert_eq!(report["artifacts_dir"], report["run_artifact_dir"]);
    let text = bundle.text("report.json");
    let home = bundle.dir.parent().unwrap().display().to_string();
    assert!(
        !text.contains(&home),
        "a bundle goes to strangers; it names {home}"
    );
}

/// A command line that is refused before anything is written.
fn assert_refused(house: &House, args: &[&str], code: &str) -> Answer {
    let answer = house.cto(args);
    assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
    assert!(answer.stderr.contains(code), "{args:?}: {answer:?}");
    assert!(answer.stdout.is_empty(), "{args:?}: {answer:?}");
    assert!(house.run_dirs().is_empty(), "{args:?} left a bundle");
    answer
}

#[test]
fn the_built_in_case_passes_from_nothing_twice() {
    let house = house();
    for number in 1..=2 {
        let answer = house.cto(&["run"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(
            answer.stdout.starts_with("PASS  r1-string-slugify"),
            "{answer:?}"
        );
        assert!(answer.stdout.contains("next: "), "{answer:?}");
        assert!(
            answer
                .stderr
                .lines()
                .any(|line| line.ends_with("engine: fake")),
            "a log has no step: {answer:?}"
        );
        assert!(
            !answer.stderr.contains(['\r', '\u{1b}']),
            "drawn where there is no terminal: {answer:?}"
        );
        assert_eq!(house.run_dirs().len(), number);
    }
    for dir in house.run_dirs() {
        assert_good(&Bundle::at(dir));
    }
}

#[test]
fn a_pass_has_every_artifact_and_every_field() {
    let (house, bundle) = passed();
    for artifact in ARTIFACTS {
        assert!(bundle.has(artifact), "no {artifact}");
    }
    for log in [
        "backend/stdout.log",
        "backend/stderr.log",
        "backend/fake-gate.log",
    ] {
        assert!(bundle.has(log), "no {log}");
    }
    assert_fields(&bundle);
    let report = bundle.report();
    assert_eq!(
        (
            report["failure_reason"].is_null(),
            report["blockers"].as_array().unwrap().len()
        ),
        (true, 0)
    );
    assert_eq!(report["verification_control"]["red"], true);
    assert!(bundle.text("report.md").starts_with("# PASS: quick\n"));
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    assert!(!bundle.has("run.lock") && !bundle.has(".reserve"));
    assert!(house.work_entries().is_empty());
    assert_eq!(
        std::fs::read_dir(house.state().join("open"))
            .unwrap()
            .count(),
        0
    );
    assert_good(&bundle);
}

#[test]
fn both_digests_mean_what_they_say() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let other = "[[step]]\ndo = \"write\"\npath = \"answer.txt\"\ntext = \"right\\nright\\n\"\n";
    let (_, first) = house.run(&case, ORACLE, &[]);
    let (_, again) = house.run(&case, ORACLE, &[]);
    let (_, lane) = house.run(&case, other, &[]);
    let (_, task) = house.run(&case, ORACLE, &["--timeout", "77"]);
    let digest = |bundle: &Bundle, key: &str| bundle.report()[key].as_str().unwrap().to_owned();
    assert_eq!(
        digest(&first, "contract_digest"),
        sha256_hex(&first.bytes("contract.json"))
    );
    for key in ["task_digest", "contract_digest"] {
        assert_eq!(
            digest(&first, key),
            digest(&again, key),
            "{key} holds a run id or a time"
        );
        assert_ne!(
            digest(&first, key),
            digest(&task, key),
            "{key} forgot a limit"
        );
    }
    assert_eq!(digest(&first, "task_digest"), digest(&lane, "task_digest"));
    assert_ne!(
        digest(&first, "contract_digest"),
        digest(&lane, "contract_digest")
    );
    let printed = house.cto(&["contract", &case, "--json"]).json();
    assert_eq!(
        printed["task_digest"].as_str().unwrap(),
        digest(&first, "task_digest")
    );
}

#[test]
fn sha256sum_agrees_with_the_sums() {
    let (_house, bundle) = passed();
    let checked = std::process::Command::new("sha256sum")
        .args(["-c", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(&bundle.dir)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(checked.success());
    let listed = bundle.text("SHA256SUMS").lines().count();
    let rest = bundle
        .names()
        .iter()
        .filter(|name| !name.starts_with("attestation"))
        .count();
    assert_eq!(
        listed + 1,
        rest,
        "the sums list every file but themselves and the signatures"
    );
}

#[test]
fn closed_engines_leave_a_full_bundle_and_touch_nothing() {
    let house = house();
    for engine in GATED {
        let before = house.outside();
        let (answer, bundle) = house.run_args(&["run", "--engine", engine, "--json"]);
        assert_eq!(answer.code, Some(3), "{engine}: {answer:?}");
        assert_eq!(
            (bundle.status(), bundle.codes()),
            ("blocked".into(), vec!["engine_gate_closed".to_owned()]),
            "{engine}"
        );
        assert_fields(&bundle);
        for artifact in ARTIFACTS {
            assert!(bundle.has(artifact), "{engine}: no {artifact}");
        }
        let types = bundle.event_types();
        assert_eq!(
            types,
            [
                "run.started",
                "task.contract.created",
                "backend.gate.blocked",
                "run.completed"
            ],
            "{engine}"
        );
        let block = bundle.event("backend.gate.blocked").unwrap();
        assert_eq!(block["executed"], false, "{engine}");
        assert_eq!(block.get("case_executed").is_some(), engine == "case");
        assert_eq!(bundle.report()["process_started"], false);
        let acted = bundle.actions();
        assert!(
            !acted
                .iter()
                .any(|action| action.starts_with("workspace.") || action.starts_with("engine.")),
            "{acted:?}"
        );
        assert!(
            house.work_entries().is_empty() && !bundle.has("backend/stdout.log"),
            "{engine}"
        );
        assert!(bundle.has(&format!("backend/{engine}-gate.log")));
        assert_eq!(house.outside(), before, "{engine}");
        assert_good(&bundle);
    }
}

#[test]
fn an_open_gate_still_stops_at_stage_one() {
    let house = house().with("CTO_HARNESS_ALLOW_CODEX", "1");
    let (answer, by_variable) = house.run_args(&["run", "--engine", "codex", "--json"]);
    assert_eq!(answer.code, Some(3));
    assert_eq!(by_variable.codes(), ["stage_gate_closed"]);
    let (_, by_flag) = house.run_args(&["run", "--engine", "pi", "--allow-engine", "pi", "--json"]);
    assert_eq!(by_flag.codes(), ["stage_gate_closed"]);
    let (_, higher) = house.run_args(&["run", "--engine", "codex", "--stage", "2", "--json"]);
    assert!(
        higher.has_code("stage_not_proven") && higher.status() == "blocked",
        "{:?}",
        higher.codes()
    );
    for bundle in [by_variable, by_flag, higher] {
        assert_eq!(bundle.report()["process_started"], false);
        assert_good(&bundle);
    }
}

#[test]
fn what_is_wrong_before_a_run_leaves_no_bundle() {
    let house = house().with("CTO_HARNESS_CODEX_STAGE", "3");
    let bad_script = house.script("bad", "[[step]]\ndo = \"dance\"\n");
    assert_refused(&house, &["run", "no-such-case"], "unknown_case");
    assert_refused(&house, &["run", "/nowhere/at/all"], "unknown_case");
    assert_refused(
        &house,
        &["run", "--engine", "no-such-engine"],
        "unknown_engine",
    );
    assert_refused(&house, &["run", "--no-such-flag"], "unexpected argument");
    assert_refused(&house, &["run", "--stage", "7"], "7");
    assert_refused(&house, &["run", "--timeout", "0"], "0");
    assert_refused(
        &house,
        &["run", "--script", "no-such-script"],
        "unreadable_script",
    );
    assert_refused(&house, &["run", "--script", &bad_script], "bad_script");
    assert_refused(
        &house,
        &["run", "--engine", "codex", "--stage", "2"],
        "disagree",
    );
    assert_refused(
        &house,
        &["run", "--engine", "pi", "--script", "oracle"],
        "script_without_fake",
    );
    let json = house.cto(&["run", "no-such-case", "--json"]);
    assert_eq!(
        (json.code, json.json()["error"]["code"].as_str()),
        (Some(2), Some("unknown_case"))
    );
}

#[test]
fn an_invalid_contract_is_blocked_with_every_error_in_the_bundle() {
    let house = house();
    let case = house.case(&Case::new("crooked").allowed("[\"../x\", \"/etc\", \"a\", \"a\"]"));
    let (answer, bundle) = house.run_args(&["run", &case, "--json"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(bundle.codes(), ["contract_invalid"]);
    let contract = bundle.json("contract.json");
    assert_eq!(
        (
            contract["invalid"].as_bool(),
            contract["errors"].as_array().unwrap().len()
        ),
        (Some(true), 3)
    );
    assert_eq!(contract["errors"][0]["line"], 6);
    assert_eq!(
        bundle.event("task.contract.created").unwrap()["valid"],
        false
    );
    assert_eq!(
        bundle.report()["contract_digest"].as_str().unwrap(),
        sha256_hex(&bundle.bytes("contract.json"))
    );
    assert_good(&bundle);
}

#[test]
fn many_at_once_get_ids_of_their_own() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let children: Vec<_> = (0..12)
        .map(|_| {
            house
                .command(&["run", &case, "--json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        })
        .collect();
    let answers: Vec<Answer> = children
        .into_iter()
        .map(|c| Answer::of(&c.unwrap().wait_with_output().unwrap()))
        .collect();
    let ids: BTreeSet<String> = answers
        .iter()
        .map(|answer| answer.json()["run_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 12);
    for answer in &answers {
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    for dir in house.run_dirs() {
        assert_good(&Bundle::at(dir));
    }
}
