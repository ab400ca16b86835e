//! How a prune removes: links are not followed, an interrupted removal is finished later.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use serde_json::json;

use super::went;
use cto_testkit::skip;

use crate::fixtures::bundles::ids;
use crate::passed;

#[test]
fn links_inside_a_bundle_are_removed_and_not_followed() {
    let (house, bundle) = passed();
    let dear = house.root().join("dear");
    fs::create_dir(&dear).unwrap();
    fs::write(dear.join("letter"), "keep").unwrap();
    symlink(&dear, bundle.dir.join("inside")).unwrap();
    assert_eq!(
        house
            .cto(&["runs", "prune", "--max-size", "0", "--yes"])
            .code,
        Some(0)
    );
    assert!(!bundle.dir.exists() && dear.join("letter").is_file());
}

#[test]
fn what_an_interrupted_removal_left_is_cleared_later() {
    let (house, _) = passed();
    let leave = || {
        for place in [house.state().join("work"), house.runs_dir()] {
            let dir = place.join(".pruned-20200101T000000Z-quick-aaaa2222-xyzxyz");
            fs::create_dir_all(dir.join("backend")).unwrap();
            fs::write(dir.join("report.json"), "{}").unwrap();
        }
        fs::create_dir_all(house.state().join("work/20990101T000000Z-live-aaaa2222")).unwrap();
    };
    let left = || {
        let hidden = house
            .run_dirs()
            .iter()
            .filter(|dir| dir.file_name().unwrap().to_string_lossy().starts_with('.'))
            .count();
        (house.work_entries(), hidden)
    };
    let only_the_workspace = (vec!["20990101T000000Z-live-aaaa2222".to_owned()], 0);
    leave();
    assert_eq!(
        ids(&house.cto(&["runs", "--json"])).len(),
        1,
        "half a run was listed"
    );
    house.cto(&["runs", "prune", "--older-than", "30d"]);
    assert_eq!(
        (left().0.len(), left().1),
        (2, 1),
        "a look removed something"
    );
    assert_eq!(
        house
            .cto(&["runs", "prune", "--older-than", "30d", "--yes"])
            .code,
        Some(0)
    );
    assert_eq!(left(), only_the_workspace);
    leave();
    assert_eq!(house.cto(&["recover"]).code, Some(0));
    assert_eq!(left(), only_the_workspace);
}

#[test]
fn a_runs_root_on_another_file_system_is_pruned_in_place() {
    let shm = Path::new("/dev/shm");
    let (house, bundle) = passed();
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    let Ok(far) = tempfile::Builder::new().prefix("cto-far-").tempdir_in(shm) else {
        return skip("/dev/shm cannot be written");
    };
    if device(far.path()) == device(house.root()) {
        return skip("/dev/shm is on the same file system as the house");
    }
    let id = "20200101T000000Z-quick-aaaa2222";
    let planted = house.plant(&bundle, id, |_| {});
    cto_testkit::copy_dir(&planted, &far.path().join(id));
    let place = far.path().display().to_string();
    let done = house.cto(&[
        "runs",
        "prune",
        "--max-size",
        "0",
        "--yes",
        "--json",
        "--runs-dir",
        &place,
    ]);
    assert_eq!(
        (went(&done), done.json()["runs"][0]["removed"].clone()),
        (vec![id.to_owned()], json!(true))
    );
    assert_eq!(
        fs::read_dir(far.path()).unwrap().count(),
        0,
        "something was left"
    );
    assert!(planted.is_dir() && house.work_entries().is_empty());
}

/// What cannot be taken out is said, run by run, and the exit code says it too.
#[test]
fn a_removal_that_fails_is_typed() {
    let (house, bundle) = passed();
    let work = house.state().join("work");
    fs::remove_dir(&work).unwrap();
    fs::write(&work, "in the way").unwrap();
    let answer = house.cto(&["runs", "prune", "--max-size", "0", "--yes", "--json"]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    let row = answer.json()["runs"][0].clone();
    assert_eq!(
        (&row["removed"], &answer.json()["freed_bytes"]),
        (&json!(false), &json!(0))
    );
    assert!(
        row["error"]
            .as_str()
            .unwrap()
            .contains("cannot be taken out of the runs root"),
        "{row}"
    );
    assert!(bundle.dir.join("report.json").is_file());
    assert!(
        house
            .cto(&["runs", "prune", "--max-size", "0", "--yes"])
            .stdout
            .contains("Removed 0 of 1 runs")
    );
}

#[test]
fn two_prunes_at_once_take_each_run_once() {
    let (house, bundle) = passed();
    for number in 0..30 {
        house.plant(
            &bundle,
            &format!("202001{:02}T000000Z-quick-aaaa2222", number + 1),
            |_| {},
        );
    }
    let mut both: Vec<_> = (0..2)
        .map(|_| house.start(&["runs", "prune", "--older-than", "30d", "--yes"]))
        .collect();
    for child in &mut both {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(ids(&house.cto(&["runs", "--json"])), [bundle.run_id()]);
    assert_eq!(house.cto(&["recover"]).code, Some(0));
    assert!(
        house.work_entries().is_empty(),
        "{:?}",
        house.work_entries()
    );
    assert_eq!(house.cto(&["verify", "last"]).code, Some(0));
}
