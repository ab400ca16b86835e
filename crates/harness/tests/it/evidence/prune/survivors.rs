//! What no prune takes: runs that live, that are referred to, that cannot be read or that changed.

use std::fs;
use std::os::unix::fs::symlink;

use cto_harness::bundles::prune::{self, PruneError};
use cto_harness::host::Home;
use cto_testkit::{Case, files_below, script, sleep, wait_until, write};
use serde_json::{Value, json};

use super::{kept, survives, three, went};
use crate::fixtures::bundles::ids;
use crate::fixtures::bundles::killed_run;
use crate::house;
use crate::passed;

#[test]
fn an_unsealed_run_stays() {
    let house = house();
    let dir = killed_run(&house);
    let before = files_below(&dir);
    survives(
        &house,
        &dir.file_name().unwrap().to_string_lossy(),
        "unsealed",
    );
    assert_eq!(files_below(&dir), before);
}

#[test]
fn a_live_run_stays_and_ends_well() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let slow = house.script(
        "slow",
        &script(&[write("answer.txt", "right\n"), sleep(1_500)]),
    );
    let mut child = house.start(&["run", &case, "--script", &slow]);
    let is_live = || house.cto(&["runs", "--json"]).json()["runs"][0]["state"] == "live";
    assert!(wait_until(is_live), "never live");
    let run_id = ids(&house.cto(&["runs", "--json"])).remove(0);
    survives(&house, &run_id, "live");
    assert!(child.wait().unwrap().success());
}

/// Between its seal and its end a run still reads its own bundle.
#[test]
fn a_sealed_run_whose_writer_holds_it_stays() {
    let (house, bundle) = passed();
    let lock = cto_harness::evidence::RunLock::take(&bundle.dir)
        .unwrap()
        .unwrap();
    survives(&house, &bundle.run_id(), "live");
    drop(lock);
    assert_eq!(
        went(&house.cto(&["runs", "prune", "--max-size", "0", "--json"])),
        [bundle.run_id()]
    );
}

#[test]
fn what_cannot_be_read_stays() {
    let (house, bundle) = passed();
    let broken = house.plant(&bundle, "20200101T000000Z-quick-aaaa2222", |_| {});
    fs::write(broken.join("report.json"), "{\"status\": \"pass\"}").unwrap();
    let other = house.plant(&bundle, "20200102T000000Z-quick-aaaa2222", |report| {
        report["run_id"] = bundle.run_id().into()
    });
    survives(&house, "20200101T000000Z-quick-aaaa2222", "unreadable");
    survives(
        &house,
        other.file_name().unwrap().to_str().unwrap(),
        "unreadable",
    );
}

#[test]
fn what_another_bundle_refers_to_stays() {
    let (house, bundle) = passed();
    let [base, first, plain] = three(&house, &bundle);
    house.plant(&bundle, "20210101T000000Z-quick-aaaa2222", |report| {
        report["relies_on"] =
            json!([{"kind": "proof", "id": base, "sha256": bundle.report()["task_digest"]}]);
        report["continues"] =
            json!({"run_id": first, "sums_sha256": bundle.report()["task_digest"]});
    });
    let looked = house.cto(&["runs", "prune", "--max-size", "0", "--json"]);
    for id in [&base, &first] {
        assert_eq!(
            kept(&looked, id).as_deref(),
            Some("referred_to"),
            "{looked:?}"
        );
    }
    let by: Vec<Value> = looked.json()["protected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["by"].clone())
        .collect();
    assert_eq!(by, ["20210101T000000Z-quick-aaaa2222"; 2]);
    assert!(went(&looked).contains(&plain));
}

/// A run without a report yet may already rest on another.
#[test]
fn what_an_unsealed_run_mentions_stays() {
    let (house, bundle) = passed();
    let open = house.runs_dir().join("20210101T000000Z-quick-aaaa2222");
    fs::create_dir(&open).unwrap();
    fs::write(
        open.join("contract.json"),
        format!("{{\"baseline\": \"{}/report.json\"}}", bundle.run_id()),
    )
    .unwrap();
    survives(&house, &bundle.run_id(), "referred_to");
}

#[test]
fn a_link_is_neither_followed_nor_removed() {
    let (house, bundle) = passed();
    let id = "20200101T000000Z-quick-aaaa2222";
    let archive = house.root().join("archive");
    fs::create_dir(&archive).unwrap();
    fs::rename(house.plant(&bundle, id, |_| {}), archive.join(id)).unwrap();
    symlink(archive.join(id), house.runs_dir().join(id)).unwrap();
    survives(&house, id, "link");
    assert!(archive.join(id).join("report.json").is_file(), "followed");
}

#[test]
fn what_is_no_run_directory_stays() {
    let (house, bundle) = passed();
    let runs = house.runs_dir();
    fs::create_dir_all(runs.join("notes/20200101T000000Z-quick-aaaa2222")).unwrap();
    fs::copy(
        bundle.dir.join("report.json"),
        runs.join("notes/report.json"),
    )
    .unwrap();
    fs::write(runs.join("20200101T000000Z-quick-aaaa2222"), "a file").unwrap();
    fs::create_dir(runs.join("20200101T000000Z-QUICK-aaaa2222")).unwrap();
    assert_eq!(
        went(&house.cto(&["runs", "prune", "--max-size", "0", "--yes", "--json"])),
        [bundle.run_id()]
    );
    let mut left: Vec<String> = house
        .run_dirs()
        .iter()
        .map(|dir| dir.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "20200101T000000Z-QUICK-aaaa2222",
            "20200101T000000Z-quick-aaaa2222",
            "notes"
        ]
    );
}

/// Chosen, but changed before it could be taken: it stays.
#[test]
fn a_run_that_changed_since_it_was_chosen_stays() {
    let (house, bundle) = passed();
    let home = Home {
        root: house.state(),
        runs: house.runs_dir(),
    };
    let chosen = prune::candidates(&home).unwrap().remove(0);
    let report = bundle.text("report.json");
    fs::write(
        bundle.dir.join("report.json"),
        report.replace("\"status\": \"pass\"", "\"status\": \"fail\""),
    )
    .unwrap();
    assert!(matches!(
        prune::remove(&home, &chosen),
        Err(PruneError::Changed)
    ));
    fs::write(bundle.dir.join("report.json"), &report).unwrap();
    let away = house.root().join("away");
    fs::rename(&bundle.dir, &away).unwrap();
    assert!(
        prune::remove(&home, &chosen).is_ok(),
        "gone is gone, whoever was quicker"
    );
    symlink(&away, &bundle.dir).unwrap();
    assert!(matches!(
        prune::remove(&home, &chosen),
        Err(PruneError::Changed)
    ));
    fs::remove_file(&bundle.dir).unwrap();
    fs::rename(&away, &bundle.dir).unwrap();
    let lock = cto_harness::evidence::RunLock::take(&bundle.dir).unwrap();
    assert!(matches!(
        prune::remove(&home, &chosen),
        Err(PruneError::Changed)
    ));
    drop(lock);
    prune::remove(&home, &chosen).unwrap();
    assert!(!bundle.dir.exists());
}
