//! The index is a mirror: whatever happens to it or behind its back, the answer is that of the
//! bundles.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_core::operator::listing::{Filter, Listed};
use cto_core::values::verdict::Status;
use cto_harness::bundles::index::{self, IndexError, Listing, Question};
use cto_harness::host::Home;
use cto_testkit::{Bundle, Case, House, ORACLE, is_root, script, write};
use rusqlite::Connection;

use crate::evidence::runs::{block_index, ids};
use crate::house;
use crate::passed;

fn home(house: &House) -> Home {
    Home {
        root: house.state(),
        runs: house.runs_dir(),
    }
}

fn db(house: &House) -> PathBuf {
    house.state().join("cto.db")
}

fn ask(home: &Home, filter: &Filter, reindex: bool) -> Listing {
    index::list(
        home,
        &Question {
            filter,
            limit: 100_000,
            reindex,
        },
        &mut |_| {},
    )
    .unwrap()
}

fn names(runs: &[Listed]) -> Vec<String> {
    runs.iter().map(|run| run.run_id.to_string()).collect()
}

/// What the bundles say, read past any index: from a state home that cannot have one.
fn truth(house: &House, filter: &Filter) -> Vec<Listed> {
    let home = Home {
        root: "/dev/null/no-state".into(),
        runs: house.runs_dir(),
    };
    let listing = ask(&home, filter, false);
    assert_eq!(listing.bypassed.is_some(), house.runs_dir().exists());
    listing.runs
}

fn filters() -> [Filter; 4] {
    [
        Filter::default(),
        Filter {
            status: Some(Status::Fail),
            ..Filter::default()
        },
        Filter {
            case: Some("beta".parse().unwrap()),
            ..Filter::default()
        },
        Filter {
            status: Some(Status::Pass),
            case: Some("alpha".parse().unwrap()),
            ..Filter::default()
        },
    ]
}

/// Asks the index everything, and compares with the bundles. Says why it was passed by, if it was.
fn assert_true(house: &House, what: &str) -> Option<IndexError> {
    assert_true_for(house, &filters(), what)
}

fn assert_true_for(house: &House, filters: &[Filter], what: &str) -> Option<IndexError> {
    let mut bypassed = None;
    for filter in filters {
        let listing = ask(&home(house), filter, false);
        assert_eq!(listing.runs, truth(house, filter), "{what}: {filter:?}");
        assert_eq!(listing.total, listing.runs.len(), "{what}: {filter:?}");
        bypassed = bypassed.or(listing.bypassed);
    }
    bypassed
}

/// A sealed pass and five planted runs, all in the index.
fn indexed() -> (House, Bundle) {
    let (house, bundle) = passed();
    for (number, case) in ["alpha", "beta", "alpha", "beta", "alpha"]
        .iter()
        .enumerate()
    {
        house.plant(
            &bundle,
            &format!("2026010{}T000000Z-{case}-aaaa2222", number + 1),
            |report| {
                if number % 2 == 1 {
                    report["status"] = "fail".into();
                }
            },
        );
    }
    assert!(assert_true(&house, "at first").is_none());
    (house, bundle)
}

/// Puts the index back as it was.
fn restore(house: &House, bytes: &[u8]) {
    drop_index(house);
    fs::write(db(house), bytes).unwrap();
}

/// The whole index as one file.
fn saved(house: &House) -> Vec<u8> {
    Connection::open(db(house))
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    fs::read(db(house)).unwrap()
}

fn drop_index(house: &House) {
    for file in ["cto.db", "cto.db-wal", "cto.db-shm"] {
        let _ = fs::remove_file(house.state().join(file));
    }
}

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

fn cut(file: &Path, length: u64) {
    fs::File::options()
        .write(true)
        .open(file)
        .unwrap()
        .set_len(length)
        .unwrap();
}

#[test]
fn whatever_lies_in_its_place_is_replaced_or_left_alone_but_never_believed() {
    type Change = fn(&Path);
    let rebuilt: [(&str, Change); 9] = [
        ("nothing", |db| fs::remove_file(db).unwrap()),
        ("an empty file", |db| fs::write(db, "").unwrap()),
        ("text", |db| {
            fs::write(
                db,
                "this is not a database, but it is longer than the header of one\n".repeat(40),
            )
            .unwrap()
        }),
        ("a short file", |db| {
            fs::write(db, "SQLite format 3\0").unwrap()
        }),
        ("a torn file", |db| {
            cut(db, fs::metadata(db).unwrap().len() * 2 / 3)
        }),
        ("half a page", |db| cut(db, 700)),
        ("zeros", |db| fs::write(db, vec![0; 65_536]).unwrap()),
        ("a hole", |db| {
            let mut bytes = fs::read(db).unwrap();
            let middle = bytes.len() / 8192 * 4096;
            bytes[middle..].fill(0);
            fs::write(db, bytes).unwrap();
        }),
        ("noise", |db| {
            let mut bytes = fs::read(db).unwrap();
            bytes
                .iter_mut()
                .enumerate()
                .skip(100)
                .for_each(|(at, byte)| *byte = (at * 7919 % 251) as u8);
            fs::write(db, bytes).unwrap();
        }),
    ];
    let (house, _) = indexed();
    let whole = saved(&house);
    for (what, change) in rebuilt {
        restore(&house, &whole);
        change(&db(&house));
        assert!(assert_true(&house, what).is_none(), "{what}: not rebuilt");
        assert!(assert_true(&house, what).is_none(), "{what}: not of use");
    }
    let bypassed: [(&str, Change); 4] = [
        ("a directory", |db| fs::create_dir(db).unwrap()),
        ("a link", |db| symlink("/nonexistent/cto.db", db).unwrap()),
        ("a pipe", |db| {
            nix::unistd::mkfifo(db, nix::sys::stat::Mode::S_IRWXU).unwrap()
        }),
        ("another program's database", |db| {
            Connection::open(db)
                .unwrap()
                .execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
                .unwrap();
        }),
    ];
    for (what, change) in bypassed {
        drop_index(&house);
        change(&db(&house));
        assert!(
            matches!(assert_true(&house, what), Some(IndexError::NotOurs(_))),
            "{what}"
        );
        let answer = house.cto(&["runs", "--json"]);
        assert!(
            answer.stderr.contains("is not an index of this program"),
            "{what}: {answer:?}"
        );
        if what.contains("database") {
            let theirs: i64 = Connection::open(db(&house))
                .unwrap()
                .query_row("SELECT x FROM theirs", [], |r| r.get(0))
                .unwrap();
            assert_eq!(theirs, 1, "somebody else's data was touched");
        }
        let _ = fs::remove_file(db(&house)).or_else(|_| fs::remove_dir(db(&house)));
    }
}

#[test]
fn an_index_of_another_shape_is_filled_again() {
    let (house, _) = indexed();
    let whole = saved(&house);
    for sql in [
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 0",
        "DROP INDEX by_case",
        "DROP TABLE runs",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER hide AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        "ALTER TABLE runs RENAME COLUMN sum TO total",
    ] {
        restore(&house, &whole);
        Connection::open(db(&house))
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        assert!(assert_true(&house, sql).is_none(), "{sql}");
        let tables: i64 = Connection::open(db(&house))
            .unwrap()
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE sql NOT NULL",
                [],
                |r| r.get(0),
            )
            .unwrap();
        assert_eq!(tables, 4, "{sql}");
        let version: i64 = Connection::open(db(&house))
            .unwrap()
            .query_row("PRAGMA user_version", [], |r| r.get(0))
            .unwrap();
        assert_eq!(version, 1, "{sql}");
    }
}

/// A database finds torn pages, not changed values: every row is checked by its own digest, and
/// names by the disk.
#[test]
fn a_row_that_says_something_else_is_not_believed() {
    let (house, _) = indexed();
    let whole = saved(&house);
    for sql in [
        "UPDATE runs SET status = 'pass' WHERE status = 'fail'",
        "UPDATE runs SET status = 'fail'",
        "UPDATE runs SET case_id = 'beta'",
        "UPDATE runs SET status = NULL",
        "UPDATE runs SET reason = 'nothing to see'",
        "UPDATE runs SET started = started - 1000000000",
        "UPDATE runs SET state = 2",
        "UPDATE runs SET state = 9",
        "UPDATE runs SET own = 0",
        "UPDATE runs SET root = root + 1",
        "UPDATE runs SET stage = 300",
        "UPDATE runs SET blockers = ',secret_leak,'",
        "UPDATE runs SET blockers = 'no such code'",
        "UPDATE runs SET stamp = NULL",
        "UPDATE runs SET sum = 0",
        "UPDATE runs SET key = '20260105T000000Z-zzzz2222-gamma' WHERE key LIKE '2026010_T%-alpha' AND key LIKE '20260101%'",
        "UPDATE runs SET key = 'nonsense' WHERE key LIKE '20260101%'",
        "DELETE FROM runs WHERE status = 'fail'",
        "DELETE FROM runs",
        "DELETE FROM roots",
        "INSERT INTO runs SELECT root, '20300101T000000Z-zzzz2222-alpha', inode, own, state, status, case_id, engine, stage, \
         origin, started, blockers, kind, finished, reason, stamp, sum FROM runs LIMIT 1",
        "UPDATE roots SET token = 'forged'",
    ] {
        restore(&house, &whole);
        Connection::open(db(&house))
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        assert!(assert_true(&house, sql).is_none(), "{sql}");
    }
}

#[test]
fn no_changed_byte_changes_an_answer() {
    let (house, bundle) = indexed();
    // Unsealed when it was entered, sealed when it is asked for.
    let late = "20260109T000000Z-alpha-aaaa2222";
    fs::create_dir(house.runs_dir().join(late)).unwrap();
    assert!(assert_true(&house, "with an unsealed run").is_none());
    let whole = saved(&house);
    house.plant(&bundle, late, |_| {});
    let questions = filters().map(|filter| (truth(&house, &filter), filter));
    let check = |at: usize, questions: &[(Vec<Listed>, Filter)]| {
        for (want, filter) in questions {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x41;
            restore(&house, &bytes);
            assert_eq!(
                &ask(&home(&house), filter, false).runs,
                want,
                "byte {at}: {filter:?}"
            );
        }
    };
    // What filters look at, wherever it is written: in rows and in the database's own search trees.
    let words = [&b"pass"[..], b"fail", b"alpha", b"beta"];
    let asked =
        (0..whole.len()).filter(|at| words.iter().any(|word| whole[*at..].starts_with(word)));
    asked.for_each(|at| check(at, &questions[1..]));
    // Every byte of the header, and a sample of the others that fits any size.
    let used: Vec<usize> = (100..whole.len()).filter(|at| whole[*at] != 0).collect();
    for at in (0..100).chain(used.iter().copied().step_by(used.len() / 200 + 1)) {
        check(at, &questions[at % 4..][..1]);
    }
}

#[test]
fn a_locked_index_is_passed_by_and_fails_no_run() {
    let (house, bundle) = passed();
    assert!(assert_true(&house, "before").is_none());
    let other = Connection::open(db(&house)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(
        assert_true(&house, "nothing to write").is_none(),
        "a reader needs no lock"
    );
    house.plant(&bundle, "20260101T000000Z-alpha-aaaa2222", |_| {});
    assert!(matches!(
        assert_true(&house, "something to write"),
        Some(IndexError::Database(_))
    ));
    let case = house.case(&Case::new("quick"));
    let (answer, _) = house.run(&case, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(truth(&house, &Filter::default()).len(), 3);
    other.execute_batch("ROLLBACK").unwrap();
    assert!(assert_true(&house, "let go").is_none());
}

#[test]
fn a_broken_index_changes_no_verdict_and_no_exit_code() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (first, _) = house.run(&case, ORACLE, &[]);
    block_index(&house);
    let (second, _) = house.run(&case, ORACLE, &[]);
    let wrong = script(&[write("answer.txt", "wrong\n")]);
    let (third, _) = house.run(&case, &wrong, &[]);
    assert_eq!(
        (first.code, second.code, third.code),
        (Some(0), Some(0), Some(1))
    );
    assert_eq!(first.stderr, second.stderr);
}

#[test]
fn a_home_that_cannot_be_written_still_lists() {
    if is_root() {
        return;
    }
    let (house, bundle) = passed();
    drop_index(&house);
    fs::set_permissions(house.state(), fs::Permissions::from_mode(0o500)).unwrap();
    let answer = house.cto(&["runs", "--json"]);
    fs::set_permissions(house.state(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(ids(&answer), [bundle.run_id()]);
    assert!(
        answer.stderr.contains("the bundles themselves were read"),
        "{answer:?}"
    );
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
    let report = bundle.text("report.json");
    let (id, runs) = (bundle.run_id(), house.runs_dir());
    let name = |number: usize| {
        format!(
            "20250101T{:02}{:02}{:02}Z-alpha-aaaa2222",
            number / 3600,
            number / 60 % 60,
            number % 60
        )
    };
    let add = |number: usize, status: &str| {
        let dir = runs.join(name(number));
        fs::create_dir(&dir).unwrap();
        let text = report
            .replace(&id, &name(number))
            .replace("\"status\": \"pass\"", &format!("\"status\": \"{status}\""));
        fs::write(dir.join("report.json"), text).unwrap();
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
