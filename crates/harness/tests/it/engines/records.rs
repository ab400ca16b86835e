//! Admissions on the command line: written, checked, kept, and what a run makes of them.

use std::fs;
use std::path::{Path, PathBuf};

use cto_core::records::{ModelAdmission, Record, TargetAdmission, read};
use cto_testkit::{Bundle, House};
use serde_json::{Value, json};

use crate::fixtures::admission::{ENGINE, admitted, file, model, program};
use crate::house;

const SECRET: &str = "sk-abcdefghijklmnopqrstuvwx0123";

fn url_file(house: &House) -> String {
    let path = house.root().join("elsewhere/url");
    fs::write(&path, "http://127.0.0.1:9/v1-only-here\n").unwrap();
    path.display().to_string()
}

fn stage_two(house: &House, more: &[&str]) -> (Vec<String>, Bundle) {
    let args = [
        &[
            "run",
            "--engine",
            ENGINE,
            "--allow-engine",
            ENGINE,
            "--stage",
            "2",
            "--json",
        ][..],
        more,
    ]
    .concat();
    let (answer, bundle) = house.run_args(&args);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let codes = bundle.report()["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| b["code"].as_str().unwrap().to_owned())
        .collect();
    (codes, bundle)
}

fn copies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records")
}

#[test]
fn records_of_an_existing_world_are_valid_as_they_are() {
    let house = house();
    for (kind, name) in [
        ("target", "target.json"),
        ("model", "model-hosted.json"),
        ("model", "model-local.json"),
    ] {
        let answer = house.cto(&[
            "admit",
            kind,
            "check",
            copies().join(name).to_str().unwrap(),
            "--json",
        ]);
        assert_eq!(
            (answer.code, answer.json()["ok"].as_bool()),
            (Some(0), Some(true)),
            "{name}: {answer:?}"
        );
    }
    // The originals lie beside the project on the machine they come from, and nowhere else.
    let originals = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/seeds/workspace/.sot/03-PROTOCOLS");
    for entry in fs::read_dir(originals).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let valid = |good: bool| assert!(good, "{name}");
        match (
            name.contains("MODEL-PROVIDER-ADMISSION") && name.ends_with(".json"),
            name.contains("TARGET") && name.ends_with(".json"),
        ) {
            (true, _) => valid(is_valid::<ModelAdmission>(&entry.path())),
            (_, true) => valid(is_valid::<TargetAdmission>(&entry.path())),
            _ => {}
        }
    }
}

fn is_valid<T: Record>(path: &Path) -> bool {
    read::<T>(&fs::read(path).unwrap()).is_ok()
}

#[test]
fn a_record_is_written_shown_changed_and_its_history_kept() {
    let house = house();
    let from = file(&house, "m.json", &model());
    let new = |more: &[&str]| {
        house.cto(
            &[
                &[
                    "admit", "model", "new", "--engine", "pi", "--from", &from, "--json",
                ][..],
                more,
            ]
            .concat(),
        )
    };
    let first = new(&[]).json();
    assert!(
        first["previous"].is_null()
            && first["path"]
                .as_str()
                .unwrap()
                .ends_with("records/pi/model.json"),
        "{first}"
    );
    let second = new(&[
        "--set",
        "model=other-model",
        "--set",
        "aliases=a",
        "--set",
        "aliases=b",
    ])
    .json();
    assert_eq!(second["record"]["aliases"], json!(["a", "b"]));
    let before: Value =
        serde_json::from_slice(&fs::read(second["previous"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(before["model"], "qwen3.6-35b-a3b");
    let shown = house
        .cto(&["admit", "model", "show", "--engine", "pi", "--json"])
        .json();
    assert_eq!(
        (
            shown["record"]["model"].as_str(),
            shown["history"].as_array().unwrap().len()
        ),
        (Some("other-model"), 1)
    );
    assert_eq!(
        house
            .cto(&["admit", "decision", "show", "--engine", "pi"])
            .code,
        Some(2)
    );
    assert_eq!(
        house
            .cto(&["admit", "model", "check", "--engine", "pi"])
            .code,
        Some(0)
    );
}

#[test]
fn what_a_record_may_not_hold_is_named_and_never_echoed() {
    let house = house();
    let mut bad = model();
    bad["approval_source"] = SECRET.into();
    bad["api_token"] = SECRET.into();
    bad["model"] = "qwеn".into();
    let from = file(&house, "bad.json", &bad);
    for args in [
        vec!["admit", "model", "check", &from],
        vec!["admit", "model", "check", &from, "--json"],
        vec!["admit", "model", "new", "--engine", "pi", "--from", &from],
    ] {
        let answer = house.cto(&args);
        assert!(matches!(answer.code, Some(1 | 2)), "{answer:?}");
        let said = format!("{}{}", answer.stdout, answer.stderr);
        for field in ["approval_source", "api_token", "model"] {
            assert!(said.contains(field), "{field}: {said}");
        }
        assert!(!said.contains(SECRET), "{said}");
    }
    let long = format!("{SECRET}=x");
    for set in [
        long.as_str(),
        "nonsense",
        "approval_source=sk-abcdefghijklmnopqrstuvwx0123",
    ] {
        let from = file(&house, "m.json", &model());
        let answer = house.cto(&[
            "admit", "model", "new", "--engine", "pi", "--from", &from, "--set", set,
        ]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(!format!("{answer:?}").contains(SECRET), "{answer:?}");
    }
    assert!(!house.state().join("records/pi/model.json").exists());
}

#[test]
fn a_program_is_asked_in_a_jail_and_admitted_only_as_the_engine_it_says_it_is() {
    let house = house();
    let good = program(&house, "codex 1.2.3");
    let new = |bin: &str| {
        let sets = [
            "--set",
            "approval_source=the owner",
            "--set",
            "review_trigger=later",
            "--json",
        ];
        house.cto(
            &[
                &[
                    "admit",
                    "executable",
                    "new",
                    "--engine",
                    ENGINE,
                    "--bin",
                    bin,
                ][..],
                &sets,
            ]
            .concat(),
        )
    };
    let record = new(&good).json()["record"].clone();
    assert_eq!(
        (
            record["version"].as_str(),
            record["identity_output"].as_str()
        ),
        (Some("codex 1.2.3"), Some("codex 1.2.3"))
    );
    program(&house, "something else");
    let plain = file(&house, "plain", &json!(1));
    for bin in [
        good.as_str(),
        "codex",
        "case",
        "/nowhere/codex",
        plain.as_str(),
        "/tmp",
    ] {
        let answer = new(bin);
        assert_eq!(
            (answer.code, answer.json()["error"]["code"].as_str()),
            (Some(3), Some("executable_not_admitted")),
            "{bin}"
        );
    }
}

#[test]
fn a_build_report_says_where_the_file_came_from() {
    let house = house();
    let bin = program(&house, "codex 1.2.3");
    let report = json!({
        "source_url": "https://example.org/x.git", "pinned_commit": "7959ac917cdeb0983b4aaa20bb9f42021747fed8",
        "build_command": "make", "tool_versions": {"make": "4"}, "build_timestamp": "2026-06-01", "source_tree_dirty": true,
    });
    let new = |report: &Value| {
        let from = file(&house, "build.json", report);
        let sets = [
            "--set",
            "approval_source=o",
            "--set",
            "review_trigger=later",
            "--build-report",
            &from,
            "--json",
        ];
        house.cto(
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
        )
    };
    let record = new(&report).json()["record"].clone();
    assert_eq!(
        (&record["source_tree_dirty"], &record["build_command"]),
        (&json!(true), &json!("make"))
    );
    let mut other = report.clone();
    other["executable_sha256"] = json!(cto_core::values::digest::Digest::of(b"other"));
    assert_eq!(
        new(&other).json()["error"]["code"],
        "executable_not_admitted"
    );
    other["executable_sha256"] = json!("short");
    assert_eq!(new(&other).json()["error"]["code"], "build_report_invalid");
}

#[test]
fn nothing_on_record_blocks_everything_at_once_and_leaves_its_mark() {
    let house = house();
    let (codes, bundle) = stage_two(&house, &[]);
    assert_eq!(
        codes,
        [
            "provider_decision_closed",
            "model_not_admitted",
            "executable_not_admitted",
            "stage_not_proven"
        ]
    );
    let note =
        fs::read_to_string(bundle.dir.join("backend/provider-model-not-admitted.txt")).unwrap();
    assert!(note.starts_with("missing_admission"), "{note}");
    assert_eq!(bundle.report()["process_started"], false);
    assert_eq!(house.cto(&["verify", "last"]).code, Some(0));
}

#[test]
fn a_lane_with_everything_on_record_still_needs_its_base_url_and_its_proof() {
    let house = house();
    admitted(&house);
    let (codes, bundle) = stage_two(&house, &[]);
    assert_eq!(
        codes,
        ["provider_local_config_unavailable", "stage_not_proven"]
    );
    assert!(
        bundle
            .dir
            .join("backend/provider-local-config-unavailable.txt")
            .is_file()
    );
    let url = url_file(&house);
    let (codes, bundle) = stage_two(&house, &["--base-url-file", &url]);
    assert_eq!(codes, ["stage_not_proven"]);
    let contract: Value =
        serde_json::from_slice(&fs::read(bundle.dir.join("contract.json")).unwrap()).unwrap();
    assert_eq!(
        contract["lane"]["model"],
        json!({"provider": "qwen-local", "model": "qwen3.6-35b-a3b"})
    );
    assert_eq!(
        bundle.anywhere("v1-only-here"),
        Vec::<String>::new(),
        "the base URL is nowhere"
    );
}

#[test]
fn what_was_asked_for_is_compared_byte_by_byte() {
    let house = house();
    admitted(&house);
    let url = url_file(&house);
    for (flag, value, word) in [
        ("--model", "Qwen3.6-35b-a3b", "upper and lower case"),
        ("--model", "qwen3.6-35b-a3b ", "white space"),
        ("--model", "qwеn3.6-35b-a3b", "look alike"),
        ("--model-provider", "openai", "different names"),
    ] {
        let (codes, bundle) = stage_two(&house, &["--base-url-file", &url, flag, value]);
        assert!(
            codes.contains(&"model_not_admitted".to_owned()),
            "{codes:?}"
        );
        let note =
            fs::read_to_string(bundle.dir.join("backend/provider-model-not-admitted.txt")).unwrap();
        assert!(
            note.starts_with("mismatch") && note.contains(word),
            "{note}"
        );
    }
    let (codes, bundle) = stage_two(&house, &["--base-url-file", &url, "--model", SECRET]);
    assert!(
        codes.contains(&"model_not_admitted".to_owned()),
        "{codes:?}"
    );
    assert_eq!(
        bundle.anywhere(SECRET),
        Vec::<String>::new(),
        "a name that is none is not written down"
    );
    fs::write(
        house.root().join("elsewhere/url"),
        format!("http://me:{SECRET}@127.0.0.1:9/v1"),
    )
    .unwrap();
    let (codes, bundle) = stage_two(&house, &["--base-url-file", &url]);
    assert!(
        codes.contains(&"provider_local_config_unavailable".to_owned()),
        "{codes:?}"
    );
    assert_eq!(bundle.anywhere(SECRET), Vec::<String>::new());
}

#[test]
fn the_file_that_is_run_is_the_file_that_was_admitted() {
    let house = house();
    let bin = admitted(&house);
    let url = url_file(&house);
    program(&house, "codex 9.9.9");
    let (codes, _) = stage_two(&house, &["--base-url-file", &url]);
    assert!(
        codes.contains(&"executable_not_admitted".to_owned()),
        "{codes:?}"
    );
    fs::remove_file(&bin).unwrap();
    let (codes, bundle) = stage_two(&house, &["--base-url-file", &url]);
    assert!(
        codes.contains(&"provider_unavailable".to_owned()),
        "{codes:?}"
    );
    assert!(
        bundle
            .dir
            .join("backend/provider-unavailable.txt")
            .is_file()
    );
    let (codes, _) = stage_two(&house, &["--base-url-file", &url, "--bin", "case"]);
    assert!(
        codes.contains(&"executable_not_admitted".to_owned()),
        "{codes:?}"
    );
}

#[test]
fn eligibility_says_what_is_missing_and_who_can_help() {
    let house = house();
    let ask = |more: &[&str]| {
        house.cto(&[&["eligibility", "sh-word-count", "--json"][..], more].concat())
    };
    let good = ask(&[]);
    assert_eq!(
        (
            good.code,
            good.json()["decision"]["selected_backend"].as_str()
        ),
        (Some(0), Some("fake"))
    );
    let no = ask(&["--engine", ENGINE, "--allow-engine", ENGINE, "--stage", "2"]);
    let decision = no.json()["decision"].clone();
    assert_eq!(
        (
            no.code,
            &decision["selected_backend"],
            &decision["escalation_path"]
        ),
        (Some(3), &json!("none"), &json!("operator"))
    );
    let missing: Vec<&str> = decision["missing_gates"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        missing.contains(&"model-admission") && missing.contains(&"stage-proof"),
        "{missing:?}"
    );
    assert!(house.run_dirs().is_empty(), "it runs nothing");
}

#[test]
fn variables_come_after_flags_and_before_the_state_home() {
    let house = house();
    let other = file(&house, "other.json", &{
        let mut value = model();
        value["status"] = "not_admitted".into();
        value
    });
    let house = house.with("CTO_HARNESS_CODEX_MODEL_ADMISSION_FILE", &other);
    let note = |bundle: &Bundle| {
        fs::read_to_string(bundle.dir.join("backend/provider-model-not-admitted.txt")).unwrap()
    };
    admitted(&house);
    assert!(note(&stage_two(&house, &[]).1).starts_with("not_admitted"));
    let missing = house
        .root()
        .join("elsewhere/none.json")
        .display()
        .to_string();
    assert!(
        note(&stage_two(&house, &["--model-admission", &missing]).1)
            .starts_with("missing_admission")
    );
}
