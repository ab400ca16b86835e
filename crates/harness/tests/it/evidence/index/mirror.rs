//! The index follows the directory of runs, whoever changes it and however many at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use cto_core::operator::listing::Filter;
use cto_harness::bundles::index::{self, Question};
use cto_harness::host::Home;
use cto_testkit::{Case, House, ORACLE};
use rusqlite::Connection;

use super::{
    ask, assert_true, assert_true_for, db, drop_index, filters, home, indexed, names, truth,
};
use crate::fixtures::bundles::ids;
use crate::house;
use crate::passed;

#[test]
fn a_run_enters_itself_and_deleting_the_index_loses_nothing() {
    let (house, bundle) = passed();
    let rows = |house: &House| -> i64 {
        Connection::open(db(house))
            .unwrap()
            .query_row("SELECT count(*) FROM runs", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(rows(&house), 1, "the run was not entered");
    assert_eq!(
        fs::metadata(db(&house)).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let before = house.cto(&["runs", "--json"]);
    for file in [
        &["cto.db"][..],
        &["cto.db-wal"],
        &["cto.db", "cto.db-wal", "cto.db-shm"],
    ] {
        for name in file {
            let _ = fs::remove_file(house.state().join(name));
        }
        assert_eq!(
            house.cto(&["runs", "--json"]).stdout,
            before.stdout,
            "without {file:?}"
        );
        assert_eq!(rows(&house), 1, "not filled again without {file:?}");
    }
    assert_eq!(ids(&before), [bundle.run_id()]);
}

#[test]
fn what_others_do_in_the_runs_root_is_seen_at_once() {
    let (house, bundle) = indexed();
    let runs = house.runs_dir();
    let at = |name: &str| runs.join(name);
    let step = |what: &str| assert!(assert_true(&house, what).is_none(), "{what}");
    house.plant(&bundle, "20250101T000000Z-beta-aaaa2222", |report| {
        report["status"] = "fail".into()
    });
    step("added");
    fs::remove_dir_all(at("20260102T000000Z-beta-aaaa2222")).unwrap();
    step("removed");
    fs::rename(at("20260101T000000Z-alpha-aaaa2222"), at("away")).unwrap();
    step("renamed away");
    fs::rename(at("away"), at("20260101T000000Z-alpha-aaaa2222")).unwrap();
    step("renamed back");
    let swapped = house.plant(&bundle, "20240101T000000Z-alpha-aaaa2222", |_| {});
    step("another one");
    fs::rename(&swapped, at("old")).unwrap();
    house.plant(&bundle, "20240101T000000Z-alpha-aaaa2222", |report| {
        report["status"] = "fail".into()
    });
    step("another directory under the same name");
    fs::remove_file(swapped.join("report.json")).unwrap();
    step("a report removed");
    fs::rename(at("old").join("report.json"), swapped.join("report.json")).unwrap();
    step("a report put back");
    fs::write(swapped.join("report.json"), "{}").unwrap();
    step("a report torn");
    house.plant(&bundle, "20240101T000000Z-alpha-aaaa2222", |report| {
        report["origin"] = "ci".into()
    });
    step("a report written again");
    fs::remove_dir_all(&runs).unwrap();
    step("all gone");
}

/// A sealed bundle must not change; one that did is shown as it is now, whatever the filter.
#[test]
fn an_edited_report_is_seen_in_every_filter() {
    let (house, _) = indexed();
    let report = house
        .runs_dir()
        .join("20260101T000000Z-alpha-aaaa2222/report.json");
    let text = fs::read_to_string(&report).unwrap();
    let times = fs::metadata(&report).unwrap().modified().unwrap();
    fs::write(
        &report,
        text.replace("\"status\": \"pass\"", "\"status\": \"fail\""),
    )
    .unwrap();
    // Same length, same modification time, same inode: the change time tells.
    fs::File::options()
        .write(true)
        .open(&report)
        .unwrap()
        .set_modified(times)
        .unwrap();
    assert!(assert_true(&house, "edited in place").is_none());
}

/// Bundles that came from elsewhere, on a machine that never ran anything.
#[test]
fn somebody_elses_bundles_are_indexed_as_well() {
    let (house, bundle) = passed();
    let state = house.root().join("fresh/state").display().to_string();
    let runs = house.runs_dir().display().to_string();
    let answer = house.cto(&["runs", "--json", "--home", &state, "--runs-dir", &runs]);
    assert_eq!(
        (ids(&answer), answer.stderr.as_str()),
        (vec![bundle.run_id()], "")
    );
    assert!(Path::new(&state).join("cto.db").is_file());
    assert_eq!(
        fs::metadata(&state).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn two_runs_roots_do_not_mix() {
    let (house, bundle) = indexed();
    let other = house.root().join("other-runs");
    fs::create_dir(&other).unwrap();
    let same = "20260102T000000Z-beta-aaaa2222";
    fs::rename(
        house.plant(&bundle, "20230101T000000Z-beta-aaaa2222", |_| {}),
        other.join("20230101T000000Z-beta-aaaa2222"),
    )
    .unwrap();
    fs::create_dir(other.join(same)).unwrap();
    let elsewhere = Home {
        runs: other.clone(),
        ..home(&house)
    };
    for _ in 0..2 {
        let listed = ask(&elsewhere, &Filter::default(), false);
        assert_eq!(
            names(&listed.runs),
            [same, "20230101T000000Z-beta-aaaa2222"]
        );
        assert!(listed.bypassed.is_none() && listed.runs[0].summary().is_none());
        assert!(assert_true(&house, "beside another root").is_none());
        assert_eq!(
            ask(&elsewhere, &Filter::default(), true).total,
            2,
            "filled again alone"
        );
    }
    // A root under another name is the same root; a link that now leads elsewhere is not.
    let link = house.root().join("link");
    symlink(&other, &link).unwrap();
    let linked = Home {
        runs: link.clone(),
        ..home(&house)
    };
    assert_eq!(ask(&linked, &Filter::default(), false).total, 2);
    fs::remove_file(&link).unwrap();
    symlink(house.runs_dir(), &link).unwrap();
    assert_eq!(
        names(&ask(&linked, &Filter::default(), false).runs),
        names(&truth(&house, &Filter::default()))
    );
    let roots = |house: &House| -> i64 {
        Connection::open(db(house))
            .unwrap()
            .query_row("SELECT count(*) FROM roots", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(roots(&house), 2);
    fs::remove_dir_all(&other).unwrap();
    let third = house.root().join("third");
    fs::create_dir(&third).unwrap();
    assert_eq!(
        ask(
            &Home {
                runs: third,
                ..home(&house)
            },
            &Filter::default(),
            false
        )
        .total,
        0
    );
    assert_eq!(roots(&house), 2, "a root that is gone was not forgotten");
}

/// Beyond a thousand runs, names are read only when the root's own times changed.
#[test]
fn a_large_root_is_right_before_and_after_its_times_can_be_trusted() {
    let (house, bundle) = passed();
    let runs = house.runs_dir();
    let name = |number: usize| {
        format!(
            "20250101T{:02}{:02}{:02}Z-alpha-aaaa2222",
            number / 3600,
            number / 60 % 60,
            number % 60
        )
    };
    let add = |number: usize, status: &str| {
        house.plant(&bundle, &name(number), |report| {
            report["status"] = status.into()
        });
    };
    (0..1_200).for_each(|number| add(number, if number % 3 == 0 { "fail" } else { "pass" }));
    let check = |what: &str| {
        assert!(
            assert_true_for(&house, &filters()[1..2], what).is_none(),
            "{what}"
        )
    };
    let token = || -> Option<String> {
        Connection::open(db(&house))
            .unwrap()
            .query_row("SELECT token FROM roots", [], |row| row.get(0))
            .unwrap()
    };
    check("young");
    assert_eq!(
        token(),
        None,
        "times of a root that just changed were trusted"
    );
    add(1_200, "fail");
    check("added while young");
    // An old one without a report: no name changes when it is sealed.
    let kept = fs::read(runs.join(name(6)).join("report.json")).unwrap();
    fs::remove_file(runs.join(name(6)).join("report.json")).unwrap();
    ask(&home(&house), &Filter::default(), true);
    std::thread::sleep(Duration::from_millis(2_300));
    check("settled");
    assert!(
        token().is_some(),
        "times of a root that rests were not trusted"
    );
    fs::write(runs.join(name(6)).join("report.json"), kept).unwrap();
    check("sealed without a new name");
    add(1_201, "fail");
    check("added to a settled root");
    std::thread::sleep(Duration::from_millis(2_300));
    check("settled again");
    fs::remove_dir_all(runs.join(name(3))).unwrap();
    fs::rename(runs.join(name(10)), runs.join("away")).unwrap();
    add(10, "fail");
    check("old ones removed and replaced in a settled root");
    assert!(assert_true(&house, "at the end").is_none());
    fs::remove_dir_all(runs.join(name(12))).unwrap();
    let filter = &filters()[1];
    let few = index::list(
        &home(&house),
        &Question {
            filter,
            limit: 3,
            reindex: false,
        },
        &mut |_| {},
    )
    .unwrap();
    let all = truth(&house, filter);
    assert_eq!(
        (few.runs.as_slice(), few.total),
        (&all[..3], all.len()),
        "one that is gone and not shown was counted"
    );
}

#[test]
fn many_runs_at_once_are_all_entered_or_found() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let good = house.script("good", ORACLE);
    let mut children: Vec<_> = (0..8)
        .map(|_| house.start(&["run", &case, "--script", &good]))
        .collect();
    // Somebody keeps asking meanwhile.
    for _ in 0..5 {
        assert_eq!(house.cto(&["runs", "--json"]).code, Some(0));
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(
        ids(&house.cto(&["runs", "--json", "--status", "pass"])).len(),
        8
    );
    assert!(assert_true(&house, "after all").is_none());
}

#[test]
fn many_lists_at_once_agree() {
    let (house, bundle) = indexed();
    let home = home(&house);
    for round in 0..6 {
        drop_index(&house);
        house.plant(
            &bundle,
            &format!("2025010{}T000000Z-beta-aaaa2222", round + 1),
            |_| {},
        );
        let want = truth(&house, &Filter::default());
        std::thread::scope(|scope| {
            let ask = || ask(&home, &Filter::default(), false).runs;
            let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            for one in all {
                assert_eq!(one.join().unwrap(), want);
            }
        });
    }
    assert!(assert_true(&house, "after all").is_none());
}
