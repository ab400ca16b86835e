//! The lists of `scripts/prove-matrix` fit the source: every text to take out is there exactly
//! once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cto_core::proof::matrix;
use regex::Regex;

use super::rows;

/// Reads a list as `scripts/prove-matrix` does: rustfmt may break a line anywhere and may put a
/// comma before a closing bracket.
fn pattern(text: &str) -> Regex {
    let mut letters = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .peekable();
    let mut pieces = Vec::new();
    while let Some(letter) = letters.next() {
        let closes = |next: &char| ")]}".contains(*next);
        if letter == ',' && letters.peek().is_some_and(closes) {
            continue;
        }
        let comma = if closes(&letter) { r",?[ \n]*" } else { "" };
        pieces.push(format!("{comma}{}", regex::escape(&letter.to_string())));
    }
    Regex::new(&pieces.join(r"[ \n]*")).unwrap()
}

/// Names of the rows in a list, after every mutation of it was found in its file.
fn rows_of(list: &str) -> Vec<BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("scripts/prove-matrix.d").join(list);
    let table: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let mutations = table["mutation"].as_array().unwrap();
    let rows = mutations.iter().map(|mutation| {
        let word = |key: &str| mutation[key].as_str().unwrap();
        let (file, find) = (word("file"), word("find"));
        let source = fs::read_to_string(root.join(file)).unwrap();
        let count = pattern(find).find_iter(&source).count();
        assert_eq!(count, 1, "{file}: {find:?}");
        assert_ne!(find, word("replace"));
        let rows = mutation["rows"].as_array().unwrap().iter();
        rows.map(|row| row.as_str().unwrap().to_owned()).collect()
    });
    rows.collect()
}

#[test]
fn every_row_has_a_check_that_can_be_taken_out() {
    let proven: BTreeSet<String> = rows_of("mutations.toml").into_iter().flatten().collect();
    let all: BTreeSet<String> = rows().into_iter().map(|row| row.name).collect();
    assert_eq!(proven, all);
}

/// Not every row of the hostile kit has one, but whatever the list names is a row of the kit.
#[test]
fn defences_that_can_be_taken_out() {
    let kit = matrix::attack_matrix().unwrap().rows;
    let kit: BTreeSet<String> = kit.into_iter().map(|row| row.name).collect();
    let lists = rows_of("hostile.toml");
    assert!(lists.len() >= 10, "{}", lists.len());
    for rows in lists {
        assert!(rows.is_subset(&kit), "{rows:?}");
    }
}

/// What keeps checks honest, and rows of the attack table.
#[test]
fn checks_that_can_be_taken_out() {
    let all = crate::checks::attacks::names();
    let lists = rows_of("checks.toml");
    assert!(lists.len() >= 10, "{}", lists.len());
    for rows in lists {
        let unknown: Vec<&String> = rows.difference(&all).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn line_breaks_and_trailing_commas_make_no_difference() {
    let pattern = pattern("push(Blocker::new(code, [one, two]))");
    for (source, fits) in [
        ("push(Blocker::new(code, [one, two]))", true),
        (
            "push(Blocker::new(\n    code,\n    [\n        one,\n        two,\n    ],\n))",
            true,
        ),
        ("push(Blocker::new(code, [one, two, three]))", false),
        ("push(Blocker::new(code [one, two]))", false),
    ] {
        assert_eq!(pattern.is_match(source), fits, "{source}");
    }
}
