//! `docs/attacks.md`, written from the table. With `CTO_REGENERATE=1` it is written instead of compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::table::{Attack, Expected, Row, Scope, Table};

const HEAD: &str = "<!-- Written by `just docs` from the tables in crates/harness/tests/it/checks/attacks. -->

# How checks are made to lie

Each attack is played by a scripted engine on a small project with a bug, with real runners, under two scopes: everything may
change, or the file with the bug alone (and what an attack is about). Beside each stands honest work, which passes. `just attacks`
tries all rows, CI a spread of them; `just prove-checks` takes the check behind a row out of the source, and the row turns.
";

/// The page as it should be.
pub fn page(table: &Table) -> String {
    let mut text = HEAD.to_owned();
    let rows: Vec<&Row> = table.rows().collect();
    let kits: BTreeSet<&str> = rows.iter().map(|row| row.kit.as_str()).collect();
    let _ = writeln!(
        text,
        "\n{} attacks over {}: {} rows, {} of them everyday commands.",
        table.attacks().count(),
        kits.into_iter().collect::<Vec<_>>().join(", "),
        rows.len(),
        table.everyday.len()
    );
    for (name, attacks) in &table.parts {
        let _ = writeln!(
            text,
            "\n## {name}\n\n| attack | with | tests may change | code alone may change |\n|---|---|---|---|"
        );
        for attack in attacks {
            lines(&mut text, attack);
        }
    }
    lies(&mut text, table);
    open(&mut text, table);
    everyday(&mut text, table);
    text
}

/// One line for kits that end alike.
fn lines(text: &mut String, attack: &Attack) {
    let mut alike: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for rows in attack.rows.chunks(2) {
        let [all, code] = rows else { continue };
        assert_eq!((all.scope, code.scope), (Scope::All, Scope::Code));
        let ends = (ends(all), ends(code));
        if !order.contains(&ends) {
            order.push(ends.clone());
        }
        alike.entry(ends).or_default().push(&all.kit);
    }
    for ends in order {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            attack.what,
            alike[&ends].join(", "),
            ends.0,
            ends.1
        );
    }
}

fn ends(row: &Row) -> String {
    let end = match &row.expected {
        Expected::Stopped { codes, or, .. } => {
            let quoted = |codes: &[String]| {
                let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
                codes.join(", ")
            };
            match or.is_empty() {
                true => quoted(codes),
                false => format!("{}, or {}", quoted(codes), quoted(or)),
            }
        }
        Expected::Refused(code) => format!("`{code}`"),
        Expected::Lie(_) => "passes".into(),
        Expected::Pass { believed, .. } => format!("passes, believed {believed}"),
    };
    match &row.open {
        Some(_) => format!("must be {end}; **open**"),
        None => end,
    }
}

fn lies(text: &mut String, table: &Table) {
    text.push_str(
        "\n## Lies that stay possible\n\nCode under test and its check share one process or one jail. These pass:\n\n",
    );
    for attack in table.attacks() {
        let mut reasons: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in &attack.rows {
            if let Expected::Lie(why) = &row.expected {
                reasons.entry(why).or_default().insert(&row.kit);
            }
        }
        for (why, kits) in reasons {
            let kits: Vec<&str> = kits.into_iter().collect();
            let _ = writeln!(text, "- {} ({}): {why}.", attack.what, kits.join(", "));
        }
    }
}

fn open(text: &mut String, table: &Table) {
    let mut found: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for attack in table.attacks() {
        for row in &attack.rows {
            if let Some(why) = &row.open {
                let kits = found.entry((&attack.what, why)).or_default();
                kits.insert(&row.kit);
            }
        }
    }
    if found.is_empty() {
        return;
    }
    text.push_str("\n## Open\n\nThese must not pass, and still do:\n\n");
    for ((what, why), kits) in found {
        let kits: Vec<&str> = kits.into_iter().collect();
        let _ = writeln!(text, "- {what} ({}): {why}.", kits.join(", "));
    }
}

fn everyday(text: &mut String, table: &Table) {
    text.push_str(
        "\n## Commands as people type them\n\nEach passes for honest work. What is only partly believed says so in its verdict.\n\n| command | believed |\n|---|---|\n",
    );
    for row in &table.everyday {
        let Expected::Pass { believed, .. } = &row.expected else {
            continue;
        };
        let believed = match &row.waits {
            Some(what) => format!("less than {believed}: waits for {what}"),
            None => believed.clone(),
        };
        let command = row.attack.replace('|', "\\|");
        let _ = writeln!(text, "| `{command}` | {believed} |");
    }
}

/// Fresh, as every generated page; its name makes `just docs` write it.
#[test]
fn the_page_of_attacks_is_tidy() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/attacks.md");
    let page = page(&Table::read());
    if std::env::var_os("CTO_REGENERATE").is_some_and(|value| value == "1") {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == page, "docs/attacks.md is stale; see `just docs`");
}
