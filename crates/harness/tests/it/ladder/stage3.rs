//! Stage 3: a case on a copy of somebody's own repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cto_testkit::{Forged, House};
use serde_json::{Value, json};

use super::{CASE, assert_forged, repo_of_case, run_at, source_record};
use crate::fixtures::lasting::lasting_house;
use crate::{assert_bad, assert_good, house};

fn rung(house: &House, stage: usize) -> Value {
    let ladder = house.cto(&["ladder", "--engine", "fake", "--json"]).json();
    ladder["engines"][0]["rungs"][stage - 1].clone()
}

#[test]
fn a_case_on_a_copy_of_your_repository_proves_stage_three() {
    let house = house();
    let repo = repo_of_case(&house, "mine");
    let record = source_record(&house, &repo, |_| ());
    assert_eq!(rung(&house, 3)["standing"], "unproven");
    let four = run_at(&house, "4", &[]);
    assert!(four.has_code("stage_not_proven"), "{:?}", four.codes());

    let before = repo.bytes();
    let bundle = run_at(&house, "3", &["--source", &record]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    assert_eq!(repo.bytes(), before, "not a byte of it changed");
    assert_good(&bundle);
    let proof = bundle.json("stage3-copied-repo-proof.json");
    for (field, want) in [
        ("stage", json!(3)),
        ("source_repository_mutated", json!(false)),
        ("copied_fixture_start_clean", json!(true)),
        ("copied_fixture_end_clean", json!(true)),
        ("stands_on", Value::Null),
        (
            "allowed_mutation_scope",
            json!("copied local repository fixture only"),
        ),
        ("runtime_default_activation", json!(false)),
    ] {
        assert_eq!(proof[field], want, "{field}");
    }
    assert_eq!(proof["source_head_before"], proof["source_head_after"]);
    let contract = bundle.json("contract.json");
    assert_eq!(contract["mutation_mode"], "copied-repo");
    assert_eq!(contract["approval_required"], false);
    let place = repo.dir.canonicalize().unwrap();
    let told = bundle.anywhere(place.to_str().unwrap());
    assert!(
        told.is_empty(),
        "it tells where the repository lies: {told:?}"
    );

    for (field, value) in [
        (
            "source",
            json!({"owner": "us", "ownership_evidence": "I made it", "class": "owned_local"}),
        ),
        ("source_head_after", json!("0000")),
        (
            "stands_on",
            json!({"kind": "proof", "id": "x", "sha256": "0".repeat(64)}),
        ),
    ] {
        let forged = Forged::copy_of(&bundle);
        forged.edit("stage3-copied-repo-proof.json", |proof| {
            proof[field] = value
        });
        assert_forged(&forged, "is not what the looks at the source show");
    }

    assert_eq!(rung(&house, 3)["standing"], "proven");
    let proven = |house: &House| {
        let bundle = run_at(house, "4", &[]);
        assert!(bundle.has_code("approval_missing"), "{:?}", bundle.codes());
        let gates = bundle.json("gates.json")["gates"].clone();
        let mut gates = gates.as_array().unwrap().iter();
        let asked = gates.find(|gate| gate["gate"] == "stage-proof").unwrap();
        let proven = asked["result"] == "pass";
        assert_eq!(bundle.has_code("stage_not_proven"), !proven);
        proven
    };
    assert!(proven(&house), "by what points at it");
    let pointers = house.state().join("cache/proofs/fake");
    assert_eq!(fs::read_dir(&pointers).unwrap().count(), 1);
    fs::remove_dir_all(&pointers).unwrap();
    assert!(proven(&house), "and without");
    assert_eq!(fs::read_dir(&pointers).unwrap().count(), 1, "found again");

    // What points proves nothing: the bundle is gone, or says something else.
    let aside = house.root().join("aside");
    fs::rename(&bundle.dir, &aside).unwrap();
    assert!(!proven(&house));
    fs::rename(&aside, &bundle.dir).unwrap();
    assert!(proven(&house));
    let file = bundle.dir.join("stage3-copied-repo-proof.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"me\"", "\"us\"")).unwrap();
    assert_bad(&bundle, "another owner in the proof");
    assert!(!proven(&house));
}

#[test]
fn what_is_no_source_of_yours_is_not_copied() {
    let house = house();
    let repo = repo_of_case(&house, "mine");
    let refused = |record: &str, code: &str, says: &str| {
        let before = repo.bytes();
        let bundle = run_at(&house, "3", &["--source", record]);
        let report = bundle.report();
        assert_eq!(bundle.codes(), [code], "{says}");
        let detail = report["blockers"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{detail}");
        assert_eq!(report["process_started"], false);
        assert!(!bundle.has("stage3-copied-repo-proof.json"));
        assert_eq!(repo.bytes(), before);
        assert_good(&bundle);
    };
    let record = |change: fn(&mut Value)| source_record(&house, &repo, change);
    refused(
        "/nonexistent/record.json",
        "source_not_admitted",
        "is not there",
    );
    refused(
        &record(|r| r["class"] = json!("external")),
        "source_not_admitted",
        "class",
    );
    refused(
        &record(|r| r["owner"] = json!("")),
        "source_not_admitted",
        "owner",
    );
    refused(
        &record(|r| r["also"] = json!(1)),
        "source_not_admitted",
        "record",
    );
    let gone = record(|r| r["path"] = json!("/nonexistent/repo"));
    refused(&gone, "source_not_admitted", "no such directory");
    let open = record(|_| ());
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&open, "source_not_admitted", "could have been written");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o600)).unwrap();
    repo.write("new.txt", "not committed\n");
    refused(&open, "dirty_starting_tree", "new.txt");
    fs::remove_file(repo.at("new.txt")).unwrap();
    let path = repo.path();
    let written = house.cto(&["admit", "target", "new", "--repo", path, "--json"]);
    assert_eq!(written.json()["record"]["admission_status"], "not_admitted");
    refused(&open, "source_not_admitted", "target admission");
}

#[test]
fn flags_of_a_stage_are_refused_at_another() {
    let house = house();
    let repo = repo_of_case(&house, "mine");
    let record = source_record(&house, &repo, |_| ());
    for args in [
        ["--source", record.as_str(), "--stage", "2"],
        ["--source", record.as_str(), "--stage", "5"],
        ["--target", record.as_str(), "--stage", "3"],
    ] {
        let answer = house.cto(&[&["run", CASE][..], &args].concat());
        assert_eq!(answer.code, Some(2), "{answer:?}");
    }
    let bundle = run_at(&house, "3", &[]);
    assert_eq!(bundle.codes(), ["source_not_admitted"]);
}

#[test]
fn the_validator_shows_stage_three() {
    let Some(house) = lasting_house() else { return };
    let document = house.cto(&["validate", "stage3", "--json"]).json();
    assert_eq!(document["ok"], true, "{document}");
    let checks = document["checked"].as_array().unwrap();
    for name in [
        "refused_by_default",
        "engine_fixes_the_fixture",
        "source_unmutated",
        "source_is_not_a_target",
        "copy_clean_start",
        "copy_clean_end",
        "dirty_starting_tree_closed",
    ] {
        assert!(checks.iter().any(|check| check["name"] == name), "{name}");
    }
}
