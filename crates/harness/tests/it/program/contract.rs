//! `cto contract`: what a run would be judged by, and every error with its place.

use cto_testkit::{Case, sha256_hex};

use crate::house;

/// The adapter input: every field a contract must have.
const FIELDS: &str = "task_id title objective route repo_scope target_repository authority_basis risk_class allowed_paths \
    forbidden_paths forbidden_actions mutation_mode approval_required approval_policy verification_commands verification_control \
    hidden_verification toolchains inputs setup evidence_expectations success_criteria rollback limits";

#[test]
fn every_field_and_both_digests_are_printed() {
    let house = house();
    let json = house.cto(&["contract", "--json"]).json();
    for field in FIELDS.split_whitespace() {
        assert!(json["contract"].get(field).is_some(), "no {field}");
    }
    let own = sha256_hex(&cto_testkit::canonical(&json["contract"]));
    assert_eq!(json["contract_digest"].as_str().unwrap(), own);
    let text = house.cto(&["contract"]);
    assert_eq!(text.code, Some(0));
    for digest in ["task_digest", "contract_digest"] {
        assert!(
            text.stdout.contains(json[digest].as_str().unwrap()),
            "{digest}"
        );
    }
    assert!(
        house.run_dirs().is_empty() && house.work_entries().is_empty(),
        "printing a contract ran something"
    );
}

#[test]
fn the_task_digest_is_the_same_for_every_engine() {
    let house = house();
    let of = |engine: &str| {
        house
            .cto(&["contract", "--engine", engine, "--json"])
            .json()
    };
    let (fake, codex) = (of("fake"), of("codex"));
    assert_eq!(fake["task_digest"], codex["task_digest"]);
    assert_ne!(fake["contract_digest"], codex["contract_digest"]);
    assert_eq!(codex["contract"]["lane"]["executable_sha256"], "not_seen");
}

#[test]
fn errors_have_file_line_and_column_and_leave_no_bundle() {
    let house = house();
    for (name, case, want) in [
        (
            "climbs",
            Case::new("climbs").allowed("[\"a\", \"../b\"]"),
            "climbs/case.toml:6:23: allowed_paths: the path leaves",
        ),
        (
            "absolute",
            Case::new("absolute").allowed("[\"/b\"]"),
            "absolute/case.toml:6:18: allowed_paths: the path is absolute",
        ),
        (
            "empty",
            Case::new("empty").allowed("[\"\"]"),
            "empty/case.toml:6:18: allowed_paths: the path is empty",
        ),
        (
            "none",
            Case::new("none").allowed("[]"),
            "none/case.toml:6:17: allowed_paths is empty",
        ),
        (
            "twice",
            Case::new("twice").allowed("[\"a\", \"a/\"]"),
            "twice/case.toml:6:23: allowed_paths: \"a/\" is listed twice",
        ),
        (
            "git",
            Case::new("git").allowed("[\".git/config\"]"),
            "git/case.toml:6:18: allowed_paths: the path names git metadata",
        ),
        (
            "unknown",
            Case::new("unknown").extra("surprise = 1"),
            "unknown/case.toml:15:1: unknown field `surprise`",
        ),
        (
            "version",
            Case::new("version").extra("schema_version = 1"),
            "version/case.toml:15:1: duplicate key",
        ),
        (
            "patch",
            Case::new("patch").control("{ patch = \"nope.patch\" }"),
            "there is no file \"nope.patch\"",
        ),
        (
            "climbing-patch",
            Case::new("climbing-patch").control("{ patch = \"../x\" }"),
            "is not a file name beside the case file",
        ),
    ] {
        let dir = house.case(&case);
        let answer = house.cto(&["contract", &dir]);
        assert_eq!(answer.code, Some(2), "{name}: {answer:?}");
        assert!(
            answer.stderr.contains("error[contract_invalid]") && answer.stderr.contains(want),
            "{name}: {}",
            answer.stderr
        );
        let json = house.cto(&["contract", &dir, "--json"]);
        assert_eq!(
            (json.code, json.json()["error"]["code"].as_str()),
            (Some(2), Some("contract_invalid")),
            "{name}"
        );
    }
    assert!(house.run_dirs().is_empty());
}

#[test]
fn text_that_is_not_utf8_is_placed() {
    let house = house();
    let dir = house.case(&Case::new("bytes"));
    let path = std::path::Path::new(&dir).join("case.toml");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(7).position(|w| w == b"\"Quick\"").unwrap();
    bytes[at + 1] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let answer = house.cto(&["contract", &dir]);
    assert_eq!(answer.code, Some(2));
    assert!(
        answer.stderr.contains("bytes/case.toml:3:10: is not UTF-8"),
        "{}",
        answer.stderr
    );
    let (run, bundle) = house.run_args(&["run", &dir, "--json"]);
    assert_eq!(
        (run.code, bundle.codes()),
        (Some(3), vec!["contract_invalid".to_owned()])
    );
}

#[test]
fn actions_no_case_can_permit_are_always_forbidden() {
    let house = house();
    let dir = house.case(&Case::new("quick"));
    let json = house.cto(&["contract", &dir, "--json"]).json();
    let forbidden = json["contract"]["forbidden_actions"].to_string();
    for action in ["push", "merge", "deploy", "public_publication"] {
        assert!(forbidden.contains(action), "{action}");
    }
}
