//! Validators, and what a proof is worth.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use cto_testkit::{Bundle, House, sha256_hex};
use serde_json::Value;

use crate::fixtures::admission::{admitted, program};
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
    assert!(
        names.contains(&"stage1") && names.contains(&"stage2"),
        "{names:?}"
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
