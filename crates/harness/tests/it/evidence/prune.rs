//! `cto runs prune`: shows before it acts, and never takes what could still matter.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use cto_harness::bundles::prune::{self, PruneError};
use cto_harness::host::Home;
use cto_testkit::{Answer, Bundle, Case, House, files_below, script, sleep, wait_until, write};
use serde_json::{Value, json};

use crate::evidence::recover::killed_run;
use crate::evidence::runs::ids;
use crate::house;
use crate::passed;

fn went(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.json()["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect()
}

fn kept(answer: &Answer, run_id: &str) -> Option<String> {
    let json = answer.json();
    let row = json["protected"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["run_id"] == run_id)?;
    Some(row["why"].as_str().unwrap().to_owned())
}

/// Three old runs beside a new one; their ids, oldest first.
fn three(house: &House, like: &Bundle) -> [String; 3] {
    [
        "20200101T000000Z-quick-aaaa2222",
        "20200102T000000Z-quick-aaaa2222",
        "20200103T000000Z-quick-aaaa2222",
    ]
    .map(|id| {
        house.plant(like, id, |report| {
            if id.contains("0102T") {
                report["status"] = "fail".into();
            }
        });
        id.to_owned()
    })
}

#[test]
fn nothing_goes_unless_told_and_then_exactly_what_was_shown() {
    let (house, bundle) = passed();
    let old = three(&house, &bundle);
    let before = files_below(&house.runs_dir());
    let shown = house.cto(&["runs", "prune", "--older-than", "30d", "--json"]);
    assert_eq!(went(&shown), old);
    assert_eq!(
        (&shown.json()["dry_run"], &shown.json()["total"]),
        (&json!(true), &json!(4))
    );
    let text = house.cto(&["runs", "prune", "--older-than", "30d"]);
    assert_eq!(text.code, Some(0));
    for want in ["3 of 4 runs would go", "--yes", &old[0]] {
        assert!(text.stdout.contains(want), "{want}: {}", text.stdout);
    }
    assert_eq!(
        files_below(&house.runs_dir()),
        before,
        "a look removed something"
    );

    let done = house.cto(&["runs", "prune", "--older-than", "30d", "--yes", "--json"]);
    assert_eq!(
        (went(&done), &done.json()["dry_run"]),
        (old.to_vec(), &json!(false))
    );
    assert!(
        done.json()["runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["removed"] == true)
    );
    assert_eq!(ids(&house.cto(&["runs", "--json"])), [bundle.run_id()]);
    assert_eq!(house.cto(&["verify", "last"]).code, Some(0));
    assert!(
        house.work_entries().is_empty(),
        "{:?}",
        house.work_entries()
    );
    assert!(
        house
            .cto(&["runs", "prune", "--older-than", "30d"])
            .stdout
            .contains("Nothing to remove")
    );
}

#[test]
fn every_rule_and_their_sum() {
    let (house, bundle) = passed();
    let old = three(&house, &bundle);
    let all: Vec<String> = old.iter().cloned().chain([bundle.run_id()]).collect();
    let size = |at: &Path| fs::symlink_metadata(at).unwrap().blocks() * 512;
    let bytes = |answer: &Answer| answer.json()["bytes"].as_u64().unwrap();
    let one = house.runs_dir().join(&old[0]);
    let one = size(&one) + size(&one.join("report.json")) + size(&one.join("SHA256SUMS"));
    let total = bytes(&house.cto(&["runs", "prune", "--keep-last", "9", "--json"]));
    let table: Vec<(Vec<String>, &[String])> = vec![
        (vec!["--keep-last".into(), "2".into()], &all[..2]),
        (vec!["--status".into(), "fail".into()], &old[1..2]),
        (vec!["--status".into(), "blocked".into()], &[]),
        (vec!["--max-size".into(), format!("{total}")], &[]),
        (
            vec!["--max-size".into(), format!("{}", total - 1)],
            &old[..1],
        ),
        (
            vec!["--max-size".into(), format!("{}", total - one - 1)],
            &old[..2],
        ),
        (vec!["--max-size".into(), "0".into()], &all),
        (
            vec![
                "--max-size".into(),
                "0".into(),
                "--keep-last".into(),
                "1".into(),
            ],
            &old,
        ),
        (
            vec![
                "--older-than".into(),
                "1w".into(),
                "--status".into(),
                "pass".into(),
                "--keep-last".into(),
                "2".into(),
            ],
            &old[..1],
        ),
    ];
    for (rules, want) in table {
        let args: Vec<&str> = ["runs", "prune", "--json"]
            .into_iter()
            .chain(rules.iter().map(String::as_str))
            .collect();
        assert_eq!(went(&house.cto(&args)), want, "{rules:?}");
    }
    for (args, want) in [
        (&[][..], "no rule given"),
        (&["--yes"], "no rule given"),
        (&["--older-than", "soon"], "7d"),
        (&["--max-size", "5GB"], "5G"),
        (&["--status", "old"], "blocked"),
        (&["--keep-last", "-1"], "-1"),
    ] {
        let answer = house.cto(&[&["runs", "prune"], args].concat());
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
        assert!(answer.stderr.contains(want), "{args:?}: {}", answer.stderr);
    }
    assert_eq!(ids(&house.cto(&["runs", "--json"])).len(), 4);
}

/// Prunes everything it can, and says what became of one run.
fn survives(house: &House, run_id: &str, why: &str) {
    let looked = house.cto(&["runs", "prune", "--max-size", "0", "--json"]);
    assert_eq!(kept(&looked, run_id).as_deref(), Some(why), "{looked:?}");
    let done = house.cto(&["runs", "prune", "--max-size", "0", "--yes", "--json"]);
    assert!(
        !went(&done).contains(&run_id.to_owned()),
        "{run_id} was taken"
    );
    assert!(
        house.runs_dir().join(run_id).symlink_metadata().is_ok(),
        "{run_id} is gone"
    );
}

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

#[test]
fn what_an_interrupted_removal_left_is_cleared_later() {
    let (house, _) = passed();
    let leave = || {
        for place in [house.state().join("work"), house.runs_dir()] {
            let dir = place.join(".pruned-20200101T000000Z-quick-aaaa2222-xyz");
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
        return;
    };
    if device(far.path()) == device(house.root()) {
        return;
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
