//! A verdict that its seal does not bear out is shown nowhere as a verdict: not by `show`, not in a
//! list, not to a person and not to a program.

use std::fs;

use cto_core::operator::listing::ListedState;
use cto_core::values::verdict::Status;
use cto_harness::bundles::index::{self, Look};
use cto_harness::bundles::runs_root::RunsRoot;
use cto_harness::host::Home;
use cto_testkit::{Bundle, Case, FORGER, Forged, House, ORACLE, TestKey, copy_dir, script, write};
use serde_json::{Value, json};

use crate::fixtures::bundles::{block_index, ids};
use crate::house;

/// A run that failed, and one that passed.
fn ran() -> (House, Bundle, Bundle) {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (_, fail) = house.run(&case, &script(&[write("keep.txt", "x\n")]), &[]);
    let (_, pass) = house.run(&case, ORACLE, &[]);
    assert_eq!(
        (fail.status(), pass.status()),
        ("fail".into(), "pass".into())
    );
    (house, fail, pass)
}

fn pass_it_off(report: &mut Value) {
    report["status"] = "pass".into();
    report["blockers"] = json!([]);
    report["failure_reason"] = Value::Null;
}

type Forgery = fn(&Forged, &Bundle);

/// Every way to make a failure look like a pass without the key that counts.
const FORGERIES: [(&str, Forgery); 7] = [
    ("one word, by hand", |f, _| {
        let text = f.bundle().text("report.json");
        let text = text.replacen("\"status\": \"fail\"", "\"status\": \"pass\"", 1);
        f.put("report.json", text.as_bytes());
    }),
    ("the report", |f, _| {
        f.edit_report(pass_it_off);
    }),
    ("the report, with all digests", |f, _| {
        f.edit_report(pass_it_off).redigest();
    }),
    ("the report, signed by somebody", |f, _| {
        f.edit_report(pass_it_off)
            .redigest()
            .sign(&TestKey::new(FORGER));
    }),
    ("the report, without a signature", |f, _| {
        f.edit_report(pass_it_off).redigest();
        f.remove("attestation.json");
    }),
    ("the report and signature of another run", |f, pass| {
        for name in ["report.json", "attestation.json"] {
            f.put(name, &pass.bytes(name));
        }
    }),
    ("another run, whole", |f, pass| {
        fs::remove_dir_all(&f.dir).unwrap();
        copy_dir(&pass.dir, &f.dir);
    }),
];

/// No place says that this run passed.
fn assert_not_shown(house: &House, run: &str, what: &str) {
    let shown = house.cto(&["show", run]);
    assert!(
        !shown.stdout.starts_with("PASS") && shown.code != Some(0),
        "{what}: {shown:?}"
    );
    assert_ne!(house.cto(&["show", run, "--json"]).code, Some(0), "{what}");
    let listed = house.cto(&["runs", "--json"]);
    let json = listed.json();
    let rows = json["runs"].as_array().unwrap();
    let row = rows.iter().find(|row| row["run_id"] == run).unwrap();
    assert_ne!(row["status"], "pass", "{what}: {row}");
    let table = house.cto(&["runs"]);
    let line = table
        .stdout
        .lines()
        .find(|line| line.contains(run))
        .unwrap();
    assert!(!line.contains("pass "), "{what}: {line}");
    for word in ["replay", "diff", "apply"] {
        assert_ne!(house.cto(&[word, run]).code, Some(0), "{what}: {word}");
    }
}

#[test]
fn a_forged_verdict_is_shown_nowhere() {
    let (house, fail, pass) = ran();
    let saved = house.root().join("saved");
    copy_dir(&fail.dir, &saved);
    for (what, forge) in FORGERIES {
        // Known to the index as it was, or not known at all.
        for is_known in [true, false] {
            let name = if is_known { "known" } else { "new" };
            let what = format!("{what}, {name}");
            fs::remove_dir_all(&fail.dir).unwrap();
            copy_dir(&saved, &fail.dir);
            if is_known {
                assert_eq!(
                    ids(&house.cto(&["runs", "--json", "--status", "fail"])).len(),
                    1
                );
            } else {
                let _ = fs::remove_file(house.state().join("cto.db"));
            }
            forge(&Forged::at(fail.dir.clone()), &pass);
            assert_not_shown(&house, &fail.run_id(), &what);
            let shown = house.cto(&["show", &pass.run_id()]);
            assert!(shown.stdout.starts_with("PASS"), "{what}: {shown:?}");
        }
    }
}

#[test]
fn without_an_index_a_forged_verdict_is_shown_nowhere_either() {
    let (house, fail, pass) = ran();
    block_index(&house);
    Forged::at(fail.dir.clone()).edit_report(pass_it_off);
    assert_not_shown(&house, &fail.run_id(), "no index");
    assert_eq!(
        ids(&house.cto(&["runs", "--json", "--status", "pass"])),
        [pass.run_id()]
    );
}

/// The index is a mirror: a row that was rewritten, digest and all, is not what is shown.
#[test]
fn a_forged_row_of_the_index_is_not_shown() {
    let (house, fail, _) = ran();
    house.cto(&["runs"]);
    let home = Home {
        root: house.state(),
        runs: house.runs_dir(),
    };
    let root = RunsRoot::open(&home).unwrap().unwrap();
    let entry = root.entry(&fail.run_id().parse().unwrap()).unwrap();
    let mut record = index::read(&root, &entry, Look::Seal).unwrap().record;
    let ListedState::Sealed(summary) = &mut record.listed.state else {
        panic!("{record:?}")
    };
    summary.status = Status::Pass;
    summary.blockers.clear();
    summary.failure_reason = None;
    let digest = cto_testkit::sha256_hex(&serde_json::to_vec(&record).unwrap());
    let sum = u64::from_str_radix(&digest[..16], 16).unwrap() as i64;
    let db = rusqlite::Connection::open(house.state().join("cto.db")).unwrap();
    let changed = db
        .execute(
            "UPDATE runs SET status = 'pass', blockers = ',', reason = NULL, sum = ?2 WHERE key = ?1",
            rusqlite::params![record.listed.run_id.sort_key(), sum],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(db);
    let json = house.cto(&["runs", "--json"]).json();
    let rows = json["runs"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["run_id"] == fail.run_id())
        .unwrap();
    assert_eq!(row["status"], "fail", "{row}");
}

/// What stands beside the verdict is bound too.
#[test]
fn events_that_are_not_those_of_the_report_are_not_shown() {
    let (house, fail, pass) = ran();
    fs::copy(
        pass.dir.join("events.normalized.jsonl"),
        fail.dir.join("events.normalized.jsonl"),
    )
    .unwrap();
    let shown = house.cto(&["show", &fail.run_id(), "--events"]);
    assert_ne!(shown.code, Some(0), "{shown:?}");
}

/// A seal that is put back makes the verdict good again, also to a list that had seen it broken.
#[test]
fn a_seal_that_is_put_right_counts_again() {
    let (house, _, pass) = ran();
    let seal = pass.bytes("attestation.json");
    let forged = Forged::at(pass.dir.clone());
    forged.remove("attestation.json");
    let status = |house: &House| {
        let json = house.cto(&["runs", "--json"]).json();
        let rows = json["runs"].as_array().unwrap().clone();
        let row = rows.iter().find(|row| row["run_id"] == pass.run_id());
        row.unwrap()["status"].clone()
    };
    assert_eq!(status(&house), Value::Null);
    forged.put("attestation.json", &seal);
    assert_eq!(status(&house), "pass");
}
