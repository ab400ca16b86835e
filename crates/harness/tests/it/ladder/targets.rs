//! Admissions of repositories that may be changed: each defect has its own code, and no bundle says where.

use cto_testkit::{Bundle, House};
use serde_json::{Value, json};

use super::{file, repo_of_case, run_at};
use crate::{assert_good, house};

pub fn admission(path: &str) -> Value {
    json!({
        "admission_status": "admitted", "target_repository_path": path, "repository_owner": "me",
        "ownership_evidence": "I made it", "risk_classification": "low_risk_noncritical",
        "noncritical_rationale": "safe to delete", "allowed_paths": ["*", "*/"], "forbidden_paths": [".env"],
        "forbidden_actions": ["push", "merge", "deploy", "close", "pr_open", "issue_close", "public_publication",
            "credential_change", "vendor_source_mutation", "cortex_core_mutation"],
        "approval_source": "the owner", "approval_timestamp": "2026-06-01", "operator_outcome_required": true,
        "review_trigger": "before any other path",
    })
}

fn blocked(house: &House, record: &Value) -> Bundle {
    let named = file(house, "target.json", record);
    run_at(house, "5", &["--target", &named])
}

#[test]
fn every_defect_of_a_target_admission_has_its_own_code() {
    let house = house();
    let repo = repo_of_case(&house, "target");
    let (path, before) = (repo.path().to_owned(), repo.bytes());
    let target_codes = |bundle: &Bundle| -> Vec<String> {
        let codes = bundle.codes().into_iter();
        codes.filter(|code| code.starts_with("target_")).collect()
    };
    let none = run_at(&house, "5", &[]);
    assert_eq!(target_codes(&none), ["target_admission_missing"]);
    let whole = blocked(&house, &admission(&path));
    assert_eq!(target_codes(&whole), Vec::<String>::new());
    assert!(whole.has_code("stage_not_proven"));
    for (field, value, code) in [
        (
            "admission_status",
            json!("not_admitted"),
            "target_not_admitted",
        ),
        ("repository_owner", json!(""), "target_unowned"),
        ("ownership_evidence", json!(""), "target_unowned"),
        ("risk_classification", json!("critical"), "target_critical"),
        ("allowed_paths", json!([]), "target_paths_empty"),
        ("allowed_paths", json!(["nowhere/"]), "target_not_admitted"),
        (
            "forbidden_actions",
            json!(["push"]),
            "target_forbidden_action_missing",
        ),
        ("approval_source", json!(""), "target_approval_missing"),
        (
            "operator_outcome_required",
            json!(false),
            "target_outcome_not_required",
        ),
    ] {
        let mut record = admission(&path);
        record[field] = value;
        let bundle = blocked(&house, &record);
        assert_eq!(target_codes(&bundle), [code], "{field}");
        assert_eq!(bundle.report()["process_started"], false);
        assert!(
            bundle.anywhere(&path).is_empty(),
            "{field}: the path is told"
        );
        assert_good(&bundle);
    }
    assert_eq!(repo.bytes(), before, "nothing of it was touched");
}

#[test]
fn an_admission_belongs_to_a_repository() {
    let house = house();
    let repo = repo_of_case(&house, "target");
    let path = repo.path();
    let skeleton = house.cto(&["admit", "target", "new", "--repo", path, "--json"]);
    let written = skeleton.json()["path"].as_str().unwrap().to_owned();
    assert!(written.contains("/records/targets/"), "{written}");
    let checked = house.cto(&["admit", "target", "check", "--repo", path, "--json"]);
    assert_eq!(
        checked.json()["ok"],
        true,
        "admitting nothing is a valid state"
    );
    let run = run_at(&house, "5", &["--target", &written]);
    assert!(run.has_code("target_not_admitted"), "{:?}", run.codes());
    let from = file(&house, "whole.json", &admission(path));
    let args = [
        "admit", "target", "new", "--repo", path, "--from", &from, "--json",
    ];
    let whole = house.cto(&args).json();
    assert!(whole["previous"].is_string(), "the skeleton is kept");
    let shown = house.cto(&["admit", "target", "show", "--repo", path, "--json"]);
    assert_eq!(shown.json()["record"]["admission_status"], "admitted");
    let of_engine = house.cto(&["admit", "target", "new", "--engine", "pi"]);
    assert_eq!(of_engine.code, Some(2));
}
