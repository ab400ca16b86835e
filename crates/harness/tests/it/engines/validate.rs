//! Validators, and what a proof is worth.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cto_testkit::{Bundle, House, sha256_hex};
use serde_json::Value;

use crate::fixtures::admission::{admitted, program};
use crate::fixtures::lasting::lasting_house;
use crate::house;

const ENGINE: &str = "codex";

fn validate(house: &House, name: &str, more: &[&str]) -> Value {
    house
        .cto(&[&["validate", name, "--json"][..], more].concat())
        .json()
}

fn failed(document: &Value) -> Vec<&str> {
    let checks = document["checked"].as_array().unwrap().iter();
    checks
        .filter(|check| check["ok"] != true)
        .map(|check| check["name"].as_str().unwrap())
        .collect()
}

/// The blocked gates of a run at stage 2.
fn stage_two(house: &House) -> (Vec<String>, Bundle) {
    let url = house.root().join("elsewhere/url");
    fs::write(&url, "http://127.0.0.1:9/v1\n").unwrap();
    let args = [
        "run",
        "--engine",
        ENGINE,
        "--allow-engine",
        ENGINE,
        "--stage",
        "2",
        "--base-url-file",
        url.to_str().unwrap(),
        "--json",
    ];
    let (_, bundle) = house.run_args(&args);
    let told = |b: &Value| {
        format!(
            "{}: {}",
            b["code"].as_str().unwrap(),
            b["detail"].as_str().unwrap_or_default()
        )
    };
    (
        bundle.report()["blockers"]
            .as_array()
            .unwrap()
            .iter()
            .map(told)
            .collect(),
        bundle,
    )
}

#[test]
fn the_table_is_listed() {
    let listed = house().cto(&["validate", "--list", "--json"]).json();
    let names: Vec<&str> = listed["validators"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    let stages: Vec<&&str> = names
        .iter()
        .filter(|name| name.starts_with("stage"))
        .collect();
    assert_eq!(
        stages,
        [&"stage1", &"stage2", &"stage3", &"stage4", &"stage5"]
    );
    assert_eq!(house().cto(&["validate", "stage9"]).code, Some(2));
    assert_eq!(house().cto(&["validate"]).code, Some(2));
}

#[test]
fn doubles_show_both_stages_in_a_state_of_their_own_and_prove_nothing() {
    let house = house();
    for (name, check) in [
        ("stage1", "validator_run_proves_nothing"),
        ("stage2", "engine_fixes_the_fixture"),
    ] {
        let document = validate(&house, name, &[]);
        assert_eq!(
            (document["ok"].as_bool(), failed(&document)),
            (Some(true), vec![]),
            "{document}"
        );
        assert!(
            document["checked"]
                .as_array()
                .unwrap()
                .iter()
                .any(|row| row["name"] == check),
            "{document}"
        );
    }
    assert!(
        house.run_dirs().is_empty() && !house.state().exists(),
        "the operator's state is untouched"
    );
}

fn names(document: &Value) -> Vec<&str> {
    let checks = document["checked"].as_array().unwrap().iter();
    checks
        .map(|check| check["name"].as_str().unwrap())
        .collect()
}

/// Every check there is, once, in this order, and all of them hold.
fn assert_shown(document: &Value, stages: &[&str]) {
    let nothing: Vec<&str> = Vec::new();
    assert_eq!(failed(document), nothing, "{document}");
    assert_eq!(document["ok"], true, "{document}");
    assert_eq!(names(document).join(", "), stages.join(", "));
}

const FIRST: &str = "refused_by_default, recognised_and_not_run, gate_precedes_every_effect, patch_is_empty, test_log_says_why, \
    not_applicable_has_reasons, bundle_verifies, proof_written, validator_run_proves_nothing, fake_stays_default, \
    provider_unavailable_closed, missing_event_closed, artifact_write_failure_closed";
const SECOND: &str = "engine_fixes_the_fixture, no_target_was_inspected, compared_with_fake_in_every_aspect, baseline_is_named, \
    same_dispatch_path, no_diff_closed, disallowed_file_closed, failed_tests_closed, missing_test_command_closed";
const THIRD: &str = "engine_fixes_the_copy, stage3_bundle_verifies, source_unmutated, copy_clean_start, copy_clean_end, \
    stage3_validator_run_proves_nothing, source_is_not_a_target, dirty_starting_tree_closed, dirty_starting_merge_closed, \
    dirty_ending_lock_closed, timeout_engine_closed";
const FOURTH: &str = "approval_denied_before_mutation, engine_works_in_the_sandbox, stage4_bundle_verifies, \
    approval_granted_before_mutation, branch_policy_recorded, disposal_recorded, nothing_published, \
    stage4_validator_run_proves_nothing, approval_denied_closed, reviewer_reject_closed";

const FIFTH: &str = "target_admission_missing_blocks, unowned_blocks, critical_blocks, empty_paths_block, missing_action_blocks, \
    missing_approval_blocks, no_outcome_required_blocks, paths_beyond_admission_block, target_not_admitted_blocks, \
    changed_contract_is_mismatch, outcome_missing_blocks, approval_consumed_blocks, blocked_report_hides_target_path, \
    target_untouched_before_a_word, target_with_history, target_clean_start, target_clean_end, accepted_result_lands, \
    stage5_settlement_verifies, stage5_validator_run_proves_nothing, target_unowned_closed, target_critical_closed, \
    outcome_missing_closed";

fn proofs(document: &Value) -> String {
    let paths = document["proof_paths"].as_array().unwrap().iter();
    let names = paths.map(|path| path.as_str().unwrap().rsplit('/').next().unwrap());
    names.collect::<Vec<_>>().join(", ")
}

const PROOFS: &str = "stage1-gate-proof.json, stage2-no-target-inspection.json, stage2-fake-baseline-comparison.json, \
    stage3-copied-repo-proof.json, stage4-disposable-sandbox-proof.json";

fn assert_untouched(house: &House) {
    assert!(
        house.run_dirs().is_empty() && !house.state().exists(),
        "the operator's state is untouched"
    );
}

/// The double that ships climbs, with records, a store and a key of its own; so does that of Case.
#[test]
fn the_double_of_case_climbs_to_stage_four_by_approvals_of_its_own() {
    let Some(house) = lasting_house() else { return };
    let document = validate(&house, "stage4", &["--engine", "case"]);
    assert_shown(&document, &[FIRST, SECOND, THIRD, FOURTH]);
    assert_eq!(proofs(&document), PROOFS);
    assert!(document["fake_baseline"].is_string());
    assert_untouched(&house);
}

#[test]
fn a_double_climbs_to_a_repository_that_somebody_owns() {
    let Some(house) = lasting_house() else { return };
    let document = validate(&house, "stage5", &[]);
    assert_shown(&document, &[FIRST, SECOND, THIRD, FOURTH, FIFTH]);
    let all = format!("{PROOFS}, stage5-owned-repo-proof.json");
    assert_eq!(proofs(&document), all);
    let blocked = document["failure_reports"].as_array().unwrap();
    let mut unique = blocked.clone();
    unique.dedup();
    assert_eq!(blocked, &unique, "no report is told twice");
    assert_untouched(&house);
}

/// The engine does nothing, so no stage from 2 on is shown, and what stands on one is not tried.
#[test]
fn what_was_not_shown_carries_no_later_stage() {
    let Some(house) = lasting_house() else { return };
    let cases = house.root().join("cases");
    let built_in = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    fs::create_dir_all(&cases).unwrap();
    cto_testkit::copy_dir(
        &built_in.join("r1-string-slugify"),
        &cases.join("r1-string-slugify"),
    );
    let oracle = cases.join("r1-string-slugify/scripts/oracle.toml");
    fs::write(&oracle, "[[step]]\ndo = \"say\"\ntext = \"Done.\"\n").unwrap();
    let case = cases.join("r1-string-slugify");
    let document = validate(&house, "stage5", &["--case", case.to_str().unwrap()]);
    assert_eq!(document["ok"], false);
    let failed = failed(&document);
    assert_eq!(
        failed[..2],
        ["engine_fixes_the_fixture", "engine_fixes_the_copy"]
    );
    for name in FOURTH.split(", ").chain(FIFTH.split(", ")) {
        let closed = name.ends_with("_closed");
        assert_eq!(failed.contains(&name), !closed, "{name}");
    }
    assert_untouched(&house);
}

#[test]
fn a_program_in_a_temporary_directory_shows_no_stage_from_three_on() {
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let own = place.path().join("cto");
    fs::copy(crate::program(), &own).unwrap();
    let house = House::new(&own);
    for stage in ["stage3", "stage4", "stage5"] {
        let refused = house.cto(&["validate", stage, "--json"]);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "temporary_program");
    }
    let shown = house.cto(&["validate", "stage1", "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_untouched(&house);
}

#[test]
fn nobody_approves_for_a_real_engine() {
    let house = house();
    for stage in ["stage4", "stage5"] {
        let refused = house.cto(&["validate", stage, "--engine", "fake", "--json"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "needs_an_approval");
    }
    assert!(house.run_dirs().is_empty());
}

#[test]
fn stage_one_is_proven_for_a_lane_and_gone_when_the_lane_changes() {
    let house = house();
    admitted(&house);
    let document = validate(&house, "stage1", &["--engine", ENGINE]);
    assert_eq!(
        (document["ok"].as_bool(), failed(&document)),
        (Some(true), vec![]),
        "{document}"
    );
    let proof = document["proof_paths"][0].as_str().unwrap();
    assert!(proof.ends_with("stage1-gate-proof.json"), "{proof}");
    let written: Value = serde_json::from_slice(&fs::read(proof).unwrap()).unwrap();
    assert_eq!(
        (
            &written["runtime_default_activation"],
            &written["process_started"]
        ),
        (&Value::Bool(false), &Value::Bool(false))
    );
    assert_eq!(house.cto(&["verify", "--all"]).code, Some(0));
    let (told, _) = stage_two(&house);
    assert!(
        told.iter()
            .all(|line| line.starts_with("provider_unavailable")),
        "only its program is missing: {told:?}"
    );

    // Another model: admitted, decided, and not what the proof is about.
    for kind in ["model", "decision"] {
        let from = house
            .root()
            .join(format!("elsewhere/{kind}.json"))
            .display()
            .to_string();
        let answer = house.cto(&[
            "admit",
            kind,
            "new",
            "--engine",
            ENGINE,
            "--from",
            &from,
            "--set",
            "model=other",
        ]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    let (told, _) = stage_two(&house);
    assert_eq!(
        told,
        ["stage_not_proven: stage 1 was proven for another lane; changed since: model pair"]
    );
}

/// Of the run that the proof stands on, every file is exchanged in turn from the moment it is sealed
/// until the next run begins: what was sealed is what the proof is about.
#[test]
fn a_proof_names_the_run_that_was_sealed() {
    for name in ["SHA256SUMS", "report.json", "contract.json"] {
        let house = house();
        admitted(&house);
        let is_sealed = |dir: &PathBuf| dir.join("report.json").exists();
        let (document, refused) = std::thread::scope(|scope| {
            let validation = scope.spawn(|| validate(&house, "stage1", &["--engine", ENGINE]));
            while !house.run_dirs().first().is_some_and(is_sealed) && !validation.is_finished() {
                std::thread::sleep(Duration::from_micros(100));
            }
            let refused = house.run_dirs().remove(0);
            let (place, aside) = (refused.join(name), house.root().join("aside"));
            let ours = fs::read(&place).unwrap();
            fs::write(&aside, "something else\n").unwrap();
            fs::rename(&aside, &place).unwrap();
            while house.run_dirs().len() < 2 && !validation.is_finished() {
                std::thread::sleep(Duration::from_micros(100));
            }
            fs::write(&aside, ours).unwrap();
            fs::rename(&aside, &place).unwrap();
            (validation.join().unwrap(), refused)
        });
        assert_eq!(failed(&document), Vec::<&str>::new(), "{name}: {document}");
        let proof = document["proof_paths"][0].as_str().unwrap();
        let proof: Value = serde_json::from_slice(&fs::read(proof).unwrap()).unwrap();
        assert_eq!(
            proof["refused_by_default"]["sums_sha256"],
            sha256_hex(&fs::read(refused.join("SHA256SUMS")).unwrap()),
            "{name}"
        );
    }
}

#[test]
fn a_proof_that_was_touched_or_belongs_to_another_file_is_none() {
    let house = house();
    admitted(&house);
    let document = validate(&house, "stage1", &["--engine", ENGINE]);
    let proof = document["proof_paths"][0].as_str().unwrap().to_owned();
    let bytes = fs::read(&proof).unwrap();
    fs::write(&proof, [&bytes[..], b"\n"].concat()).unwrap();
    assert_eq!(
        stage_two(&house).0,
        ["stage_not_proven: no proof of stage 1 for this lane"]
    );
    fs::write(&proof, &bytes).unwrap();
    let bin = program(&house, "codex 2.0.0");
    let sets = [
        "--set",
        "approval_source=o",
        "--set",
        "review_trigger=later",
    ];
    let answer = house.cto(
        &[
            &[
                "admit",
                "executable",
                "new",
                "--engine",
                ENGINE,
                "--bin",
                &bin,
            ][..],
            &sets,
        ]
        .concat(),
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        stage_two(&house).0,
        ["stage_not_proven: stage 1 was proven for another lane; changed since: executable digest"]
    );
}

#[test]
fn an_ordinary_run_at_stage_one_is_no_proof() {
    let house = house();
    admitted(&house);
    let (_, bundle) = house.run_args(&[
        "run",
        "--engine",
        ENGINE,
        "--allow-engine",
        ENGINE,
        "--json",
    ]);
    assert_eq!(bundle.report()["blockers"][0]["code"], "stage_gate_closed");
    assert_eq!(
        stage_two(&house).0,
        ["stage_not_proven: no proof of stage 1 for this lane"]
    );
}

#[test]
fn fake_has_no_gate_to_prove() {
    assert_eq!(
        house()
            .cto(&["validate", "stage1", "--engine", "fake"])
            .code,
        Some(2)
    );
}

#[test]
fn the_adapter_of_a_provider_is_closed_in_every_way_it_must_be() {
    let house = house();
    let document = validate(&house, "provider-adapter", &[]);
    assert_eq!(
        (document["ok"].as_bool(), failed(&document)),
        (Some(true), vec![]),
        "{document}"
    );
    let names: Vec<&str> = document["checked"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    let want = "model_provider_gate_blocks, unadmitted_pair_blocks, mismatch_blocks, invalid_admission_blocks, \
        decision_missing_blocks, not_decided_blocks, external_blocked_when_local_required, external_approved_needs_all_fields, \
        class_status_mismatch_blocks, credentials_missing_blocks, local_config_missing_blocks, reasoning_only_blocks, \
        delayed_content_allows, fallback_model_refused_on_wire, ways_out_refused_on_wire, credential_cut_on_wire, \
        public_address_passes_on_wire, wrong_digest_blocks, missing_binary_blocks, non_executable_blocks, \
        shell_keyword_is_not_a_provider, provider_timeout_fail_closed, surviving_children_ended, \
        codex_auth_gap_blocks, local_provider_delayed_content_allows_case, qwen_local_openai_compat_allows_case, \
        lifecycle_supervision_accepts_committed_diff, lifecycle_ignores_existing_history, transport_vs_protocol_distinguished, exit_zero_failure_detected, no_commit_false_success_detected, \
        completed_with_critical_findings_rejected, hard_rubric_failure_rejected, config_without_models_default_blocks, \
        absent_provider_evidence_fails, no_raw_prompt_in_argv, cwd_is_not_the_repository, \
        truncated_envelope_is_protocol_failure, \
        no_secret_or_endpoint_in_any_artifact";
    assert_eq!(names.join(", "), want);
    assert!(
        house.run_dirs().is_empty() && !house.state().exists(),
        "the operator's state is untouched"
    );
    assert_eq!(
        house
            .cto(&["validate", "provider-adapter", "--engine", "pi"])
            .code,
        Some(2)
    );
}
