//! The attack table: how checks are made to lie, as data, tried with real runners. Beside each row its
//! honest twin passes. One test a kit, so that they run beside each other.
//!
//! `CTO_ATTACKS` says which rows: unset, a spread (every attack, every kit, both scopes); `all`; or their
//! names, in lines. `CTO_ATTACKS_REPORT` names a file that is told how each row ended, for
//! `scripts/prove-matrix`.
//!
//! - `table.rs` the data and its rows; `lab.rs` tries one; `page.rs` writes `docs/attacks.md`
//! - a row that is `open` should be stopped and is not: it must be marked so until it is
//! - a row that `waits` is honest work that is not believed enough yet: told, not failed

mod lab;
mod page;
mod table;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lab::Lab;
use table::{Row, Scope, Table};

/// Which rows are tried.
enum Asked {
    Spread,
    All,
    Named(BTreeSet<String>),
}

impl Asked {
    fn here() -> Self {
        match std::env::var("CTO_ATTACKS").ok().as_deref() {
            None | Some("") => Self::Spread,
            Some("all") => Self::All,
            Some(names) => Self::Named(names.lines().map(str::to_owned).collect()),
        }
    }

    fn rows(&self, table: &Table) -> BTreeSet<String> {
        match self {
            Self::Spread => spread(table),
            Self::All => table.rows().map(Row::id).collect(),
            Self::Named(names) => names.clone(),
        }
    }
}

/// Every attack once, in turn with another kit and scope; what is refused before any check costs little
/// and comes now and then; of everyday commands every eighth.
fn spread(table: &Table) -> BTreeSet<String> {
    let mut chosen = BTreeSet::new();
    for (number, attack) in table.attacks().enumerate() {
        let (refused, tried): (Vec<&Row>, Vec<&Row>) =
            attack.rows.iter().partition(|row| row.is_refused());
        chosen.insert(tried[number % tried.len()].id());
        if !refused.is_empty() && number % 8 == 0 {
            chosen.insert(refused[number % refused.len()].id());
        }
    }
    let ready = table.everyday.iter().filter(|row| row.waits.is_none());
    chosen.extend(ready.step_by(8).map(Row::id));
    // Whoever adds an attack moves the others: no kit and no scope goes without.
    for (kit, scope) in (table.kits.keys()).flat_map(|kit| Scope::BOTH.map(|scope| (kit, scope))) {
        let of = |row: &&Row| row.kit == *kit && row.scope == scope;
        if !table
            .rows()
            .filter(of)
            .any(|row| chosen.contains(&row.id()))
        {
            chosen.extend(table.rows().find(of).map(Row::id));
        }
    }
    chosen
}

/// Tries what is asked for of one kit.
fn try_kit(name: &str) {
    let (table, asked) = (Table::read(), Asked::here());
    let chosen = asked.rows(&table);
    let rows: Vec<&Row> = table
        .rows()
        .filter(|row| row.kit == name && chosen.contains(&row.id()))
        .collect();
    if rows.is_empty() {
        return;
    }
    if !Lab::is_possible(&table.kits[name]) {
        return;
    }
    // A proof asks for rows alone; everybody else for their twins too.
    let proving = std::env::var_os("CTO_ATTACKS_REPORT").is_some();
    let mut twins: Vec<(String, Row)> = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows.iter().filter(|_| !proving) {
        let Some(twin) = &row.twin else { continue };
        let key = (row.scope.word(), serde_json::to_string(twin).unwrap());
        if seen.insert(key) {
            twins.push((format!("twin of {}", row.id()), (*row).clone()));
        }
    }
    let problems = Mutex::new(Vec::new());
    let add = |problem: Option<String>| {
        let mut all = problems.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(problem);
    };
    let (next, count) = (AtomicUsize::new(0), rows.len() + twins.len());
    // In the suite other tests use the other cores.
    let threads = match asked {
        Asked::Spread => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let lab = Lab::open(&table.kits[name]);
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    add(match rows.get(at) {
                        Some(row) => lab.try_row(row),
                        None => lab.try_twin(&twins[at - rows.len()].0, &twins[at - rows.len()].1),
                    });
                }
            });
        }
    });
    let problems = problems
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    assert!(
        problems.is_empty() || proving,
        "{} of {count} rows of {name}:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

macro_rules! kits {
    ($($kit:ident),*) => {
        $(#[test]
        fn $kit() {
            try_kit(stringify!($kit));
        })*

        /// A kit without a test of its own would never be tried.
        #[test]
        fn every_kit_is_tried() {
            let named: BTreeSet<&str> = [$(stringify!($kit)),*].into();
            let kits = Table::read().kits;
            assert_eq!(named, kits.keys().map(String::as_str).collect());
        }
    };
}

kits!(
    unittest, pytest, cargo, node, make, npm, mocha, jest, vitest, go
);

#[test]
fn the_table_is_broad() {
    let table = Table::read();
    let count = |of: &dyn Fn(&Row) -> bool| table.rows().filter(|row| of(row)).count();
    assert!(table.attacks().count() >= 25);
    assert!(count(&|_| true) >= 200);
    let names: BTreeSet<String> = table.rows().map(Row::id).collect();
    assert_eq!(names.len(), count(&|_| true), "two rows of one name");
    // The spread has every attack, every kit and both scopes.
    let chosen = spread(&table);
    let of = |row: &&Row| chosen.contains(&row.id());
    for attack in table.attacks() {
        assert!(attack.rows.iter().any(|row| of(&row)), "{}", attack.name);
    }
    for kit in table.kits.keys() {
        for scope in Scope::BOTH {
            let fits = |row: &&Row| row.kit == *kit && row.scope == scope;
            assert!(table.rows().filter(of).any(|row| fits(&row)), "{kit}");
        }
    }
}

/// Names of all rows, for whoever keeps lists of them.
pub fn names() -> BTreeSet<String> {
    Table::read().rows().map(Row::id).collect()
}
