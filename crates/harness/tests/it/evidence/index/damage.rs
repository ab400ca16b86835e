//! A damaged, foreign, locked or missing index changes no answer.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use cto_core::operator::listing::{Filter, Listed};
use cto_harness::bundles::index::IndexError;
use cto_testkit::{Case, ORACLE, files_below, is_root, script, skip, write};
use rusqlite::Connection;

use super::{ask, assert_true, db, drop_index, filters, home, indexed, restore, saved, truth};
use crate::fixtures::bundles::{block_index, ids};
use crate::house;
use crate::passed;

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
    let elsewhere: [(&str, Change); 4] = [
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
    let other = house.state().join("cto-harness.db");
    for (what, change) in elsewhere {
        drop_index(&house);
        change(&db(&house));
        let before = files_below(&house.state());
        assert!(assert_true(&house, what).is_none(), "{what}");
        assert!(other.is_file(), "{what}: no index under another name");
        let after = files_below(&house.state());
        let theirs = |files: &[(String, String)]| {
            let ours = |name: &str| name.starts_with("cto-harness.db");
            let theirs = files.iter().filter(|(name, _)| !ours(name));
            theirs.cloned().collect::<Vec<_>>()
        };
        assert_eq!(theirs(&after), theirs(&before), "{what}: touched");
        drop_index(&house);
        change(&other);
        change(&db(&house));
        assert!(
            matches!(assert_true(&house, what), Some(IndexError::NotOurs(_))),
            "{what}, under both names"
        );
        let answer = house.cto(&["runs", "--json"]);
        assert!(
            answer.stderr.contains("is not an index of this program"),
            "{what}: {answer:?}"
        );
        for place in [&db(&house), &other] {
            let _ = fs::remove_file(place).or_else(|_| fs::remove_dir(place));
        }
    }
}

#[test]
fn an_index_of_another_shape_is_filled_again() {
    let (house, _) = indexed();
    let whole = saved(&house);
    for sql in [
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 1",
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
        assert_eq!(version, 3, "{sql}");
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
        "UPDATE runs SET again = '20260101T000000Z-alpha-aaaa2222 the same checks'",
        "UPDATE runs SET again = 'no run'",
        "UPDATE runs SET sum = 0",
        "UPDATE runs SET key = '20260105T000000Z-zzzz2222-gamma' WHERE key LIKE '2026010_T%-alpha' AND key LIKE '20260101%'",
        "UPDATE runs SET key = 'nonsense' WHERE key LIKE '20260101%'",
        "DELETE FROM runs WHERE status = 'fail'",
        "DELETE FROM runs",
        "DELETE FROM roots",
        "INSERT INTO runs SELECT root, '20300101T000000Z-zzzz2222-alpha', inode, own, state, status, case_id, engine, stage, \
         origin, started, blockers, kind, finished, reason, stamp, seal, again, sum FROM runs LIMIT 1",
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
        return skip("root may write everywhere");
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
