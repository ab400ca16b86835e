//! How `cto matrix` answers: a red row in every form, rows chosen, text in JUnit.

use std::fs;
use std::os::unix::fs::symlink;

use cto_core::proof::matrix::{self, Assertion, MatrixReport, RowVerdict};
use cto_testkit::{House, skip};

use super::{is_empty, parsed, rows, suite, with_tmp};
use crate::house;

/// A host on which the row cannot come out as it must: no `grep`, so another blocker.
fn without_grep(house: &House) -> String {
    let bin = house.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|path| path.is_file());
    symlink(git.unwrap(), bin.join("git")).unwrap();
    bin.display().to_string()
}

#[test]
fn a_red_row_says_what_is_wrong_in_every_form() {
    let (house, tmp) = with_tmp(house());
    if house.cto(&["doctor"]).code != Some(0) {
        return skip("no jail can be built here");
    }
    let path = without_grep(&house);
    let house = house.with("PATH", &path);
    let junit = house.root().join("junit.xml").display().to_string();
    let args = [
        "matrix",
        "--row",
        "engine-failed",
        "--row",
        "stage-gate-closed",
        "--junit",
        &junit,
    ];
    let answer = house.cto(&args);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    for part in [
        "✗  engine-failed",
        "✓  stage-gate-closed",
        "blockers are engine_failed",
        "toolchain_unavailable",
        "RED  1 green, 1 red",
        "--keep",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert_eq!(suite(&junit), (2, 1, 0));
    let report = parsed(
        &house
            .cto(&["matrix", "--row", "engine-failed", "--json"])
            .stdout,
    );
    assert_eq!(
        (report.exit_code, report.rows[0].verdict),
        (1, RowVerdict::Red)
    );
    assert!(
        report.rows[0]
            .wrong()
            .any(|w| w.check == "blocker" && w.found.as_deref() == Some("toolchain_unavailable"))
    );
    assert!(is_empty(&tmp));
}

#[test]
fn rows_are_chosen_by_name_or_by_fixture() {
    let (house, _) = with_tmp(house());
    let named = |names: &[&str]| {
        let mut args = vec!["matrix", "--engine", "codex", "--json"];
        names.iter().for_each(|name| args.extend(["--row", *name]));
        parsed(&house.cto(&args).stdout)
            .rows
            .into_iter()
            .map(|row| row.row)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named(&["timeout"]),
        ["timeout-engine", "timeout-verification"]
    );
    assert_eq!(
        named(&["no-diff", "timeout-engine", "no-diff"]),
        ["no-diff", "timeout-engine"]
    );
    for (args, code) in [
        (vec!["matrix", "--row", "no-such-row"], "unknown_row"),
        (vec!["matrix", "--engine", "nobody"], "unknown_engine"),
        (
            vec!["matrix", "--junit", "/nonexistent/x.xml"],
            "unwritable_file",
        ),
    ] {
        let answer = house.cto(&args);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(
            answer.stderr.contains(code) && answer.stdout.is_empty(),
            "{answer:?}"
        );
    }
    let nowhere = house
        .with("TMPDIR", "/proc/nowhere")
        .cto(&["matrix", "--row", "no-diff"]);
    assert_eq!(nowhere.code, Some(70), "{nowhere:?}");
}

#[test]
fn junit_holds_any_text() {
    let row = rows().remove(0);
    let hostile = "]]> <!-- & \"'\u{0}\u{1b}[31m\u{b}\u{7f}\u{fffe}\u{d7ff}😀\n</failure>";
    let wrong = Assertion {
        check: hostile.into(),
        want: hostile.into(),
        holds: false,
        found: Some(hostile.into()),
    };
    let engine: cto_core::values::ids::EngineId = "fake".parse().unwrap();
    let mut red = matrix::RowOutcome::judged(&row, &engine, vec![wrong]);
    red.row = hostile.into();
    let skipped = matrix::RowOutcome::not_applicable(&row, &engine, hostile);
    let report = MatrixReport::new(engine, vec![red, skipped], 61_001, false);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("junit.xml");
    fs::write(&file, matrix::junit_xml(&report)).unwrap();
    assert_eq!(suite(&file.display().to_string()), (2, 1, 1));
}
