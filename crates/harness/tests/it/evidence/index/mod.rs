//! The index is a mirror: whatever happens to it or behind its back, the answer is that of the
//! bundles.

mod damage;
mod mirror;

use std::fs;
use std::path::PathBuf;

use cto_core::operator::listing::{Filter, Listed};
use cto_core::values::verdict::Status;
use cto_harness::bundles::index::{self, IndexError, Listing, Question};
use cto_harness::host::Home;
use cto_testkit::{Bundle, House};
use rusqlite::Connection;

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
    for name in ["cto.db", "cto-harness.db"] {
        for end in ["", "-wal", "-shm"] {
            let file = house.state().join(format!("{name}{end}"));
            let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
        }
    }
}
