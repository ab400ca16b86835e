use super::*;
use crate::checks::test_ids::Runs;
use crate::checks::test_ids::whole::{FileEnds, Programs, Whole};
use crate::checks::test_ids::{Tally, TestIds};
use crate::run::event::{Check, CheckKind, ProcessEnd};
use crate::task::tests_may_change::TestChange;
use crate::values::digest::Digest;

const PLAIN: &str = "def test_a(): pass";
const SKIPS: &str = "@skip\ndef test_a(): pass";

fn ids(rows: &[(&str, (u64, u64, u64))]) -> TestIds {
    let tally = |(passed, failed, skipped)| Tally {
        passed,
        failed,
        skipped,
    };
    let each = rows.iter();
    each.map(|(id, counts)| ((*id).to_owned(), tally(*counts)))
        .collect()
}

fn ends(rows: &[(&str, FileEnd)]) -> Whole {
    let files: FileEnds = rows
        .iter()
        .map(|(name, end)| ((*name).to_owned(), *end))
        .collect();
    Whole {
        files,
        ..Whole::default()
    }
}

/// A red baseline that named nothing, and a command that did not choose.
fn document(runner: Runner, command: &str, files: &[(&str, bool, &str)]) -> TestIdDocument {
    let file = |(path, changed, text): &(&str, bool, &str)| {
        TestFile::of(runner, TreePath::new(*path), *changed, text.as_bytes())
    };
    TestIdDocument {
        schema_version: 1,
        runners: Vec::new(),
        runner,
        baseline_not_run: None,
        baseline: vec![Check {
            kind: CheckKind::Visible,
            command: command.into(),
            end: ProcessEnd::Exited { code: 1 },
            duration_ms: 1,
            lacks: Vec::new(),
        }],
        commands: vec![CommandTests {
            baseline_runs: Runs::default(),
            verified_runs: Runs::default(),
            command: command.into(),
            baseline: TestIds::new(),
            verified: TestIds::new(),
            baseline_whole: Whole::default(),
            verified_whole: Whole::default(),
        }],
        files: Some(files.iter().map(file).collect()),
    }
}

fn lost(document: &TestIdDocument) -> Vec<String> {
    document.compared(Digest::of(b""), &[]).missing
}

#[test]
fn a_test_newly_skipped_in_a_file_that_was_left_alone_is_lost() {
    let why = "test_app.py::test_a: skipped, and nothing in its file says so";
    type Files<'a> = &'a [(&'a str, bool, &'a str)];
    let rows: &[(Files<'_>, (u64, u64, u64), bool)] = &[
        (&[("test_app.py", false, PLAIN)], (0, 0, 0), true),
        (&[("test_app.py", false, PLAIN)], (0, 0, 1), false),
        (&[("test_app.py", false, SKIPS)], (0, 0, 0), false),
        (&[("test_app.py", true, PLAIN)], (0, 0, 0), false),
        (&[("a/test_app.py", false, PLAIN)], (0, 0, 0), true),
        (
            &[
                ("a/test_app.py", false, PLAIN),
                ("b/test_app.py", true, PLAIN),
            ],
            (0, 0, 0),
            false,
        ),
        (
            &[("test_app.py", false, PLAIN), ("conftest.py", false, SKIPS)],
            (0, 0, 0),
            false,
        ),
        (
            &[("test_app.py", false, PLAIN), ("conftest.py", true, SKIPS)],
            (0, 0, 0),
            true,
        ),
        (
            &[
                ("test_app.py", false, PLAIN),
                ("tests/base.py", false, SKIPS),
            ],
            (0, 0, 0),
            false,
        ),
        (
            &[("test_app.py", false, PLAIN), ("app.py", false, SKIPS)],
            (0, 0, 0),
            true,
        ),
        (&[], (0, 0, 0), false),
    ];
    for (files, was, is_lost) in rows {
        let mut one = document(Runner::Pytest, "pytest", files);
        one.commands[0].verified = ids(&[
            ("test_app.py::test_a", (0, 0, 1)),
            ("test_app.py::test_b", (1, 0, 0)),
        ]);
        if *was != (0, 0, 0) {
            one.commands[0].baseline = ids(&[("test_app.py::test_a", *was)]);
        }
        let want: &[&str] = if *is_lost { &[why] } else { &[] };
        assert_eq!(lost(&one), want, "{files:?} {was:?}");
        one.files = None;
        assert_eq!(lost(&one), [""; 0], "up to rules 5");
    }
}

#[test]
fn a_file_that_comes_to_nothing_is_lost() {
    let skipped = "test_app.py: skipped as a whole, and nothing in it says so";
    let unheard = "test_app.py: no test of it passed";
    type Ends<'a> = &'a [(&'a str, FileEnd)];
    let rows: &[(Runner, &str, &str, Ends<'_>, Ends<'_>, &str)] = &[
        (
            Runner::Pytest,
            "pytest",
            PLAIN,
            &[],
            &[("test_app.py", FileEnd::Skipped)],
            skipped,
        ),
        (
            Runner::Unittest,
            "python3 -m unittest",
            PLAIN,
            &[],
            &[("test_app", FileEnd::Skipped)],
            skipped,
        ),
        (
            Runner::Pytest,
            "pytest",
            SKIPS,
            &[],
            &[("test_app.py", FileEnd::Skipped)],
            "",
        ),
        (
            Runner::Pytest,
            "pytest",
            PLAIN,
            &[("test_app.py", FileEnd::Skipped)],
            &[("test_app.py", FileEnd::Skipped)],
            "",
        ),
        (
            Runner::Pytest,
            "pytest",
            PLAIN,
            &[("test_app.py", FileEnd::NotLoaded)],
            &[],
            unheard,
        ),
        (
            Runner::Unittest,
            "python3 -m unittest",
            PLAIN,
            &[("test_app", FileEnd::NotLoaded)],
            &[],
            unheard,
        ),
        (
            Runner::Pytest,
            "pytest",
            SKIPS,
            &[("test_app.py", FileEnd::NotLoaded)],
            &[],
            "",
        ),
        (
            Runner::Pytest,
            "pytest",
            "X = 1",
            &[("test_app.py", FileEnd::NotLoaded)],
            &[],
            "",
        ),
        (
            Runner::Pytest,
            "pytest test_app.py other.py",
            PLAIN,
            &[],
            &[],
            unheard,
        ),
        (
            Runner::Pytest,
            "pytest -k x test_app.py",
            PLAIN,
            &[],
            &[],
            "",
        ),
        (
            Runner::Pytest,
            "python3 -m pytest test_app.py -m slow",
            PLAIN,
            &[],
            &[],
            "",
        ),
        (
            Runner::Pytest,
            "python3 -m pytest test_app.py::test_a",
            PLAIN,
            &[],
            &[],
            unheard,
        ),
        (
            Runner::Unittest,
            "python3 -m unittest test_app && python3 -m unittest other",
            PLAIN,
            &[],
            &[],
            unheard,
        ),
        (
            Runner::Unittest,
            "python3 -m unittest test_app.T.test_a",
            PLAIN,
            &[],
            &[],
            unheard,
        ),
    ];
    for (runner, command, text, before, after, want) in rows {
        let mut one = document(*runner, command, &[("test_app.py", false, text)]);
        one.commands[0].baseline_whole = ends(before);
        one.commands[0].verified_whole = ends(after);
        one.commands[0].verified = ids(&[("other.py::test_x", (1, 0, 0))]);
        let want: Vec<&str> = Some(*want)
            .filter(|want| !want.is_empty())
            .into_iter()
            .collect();
        assert_eq!(lost(&one), want, "{command} {text} {before:?} {after:?}");
        let id = match runner {
            Runner::Pytest => "test_app.py::test_a",
            _ => "test_app.T.test_a",
        };
        one.commands[0].verified = ids(&[(id, (1, 0, 0))]);
        one.commands[0].verified_whole = Whole::default();
        assert_eq!(lost(&one), [""; 0], "one that passed is enough: {command}");
        one.files = Some(vec![TestFile::of(
            *runner,
            TreePath::new("test_app.py"),
            true,
            text.as_bytes(),
        )]);
        one.commands[0].verified = ids(&[("other.py::test_x", (1, 0, 0))]);
        assert_eq!(
            lost(&one),
            [""; 0],
            "a changed one is shown to people: {command}"
        );
    }
}

#[test]
fn who_cannot_be_heard_is_not_accused() {
    let one = document(
        Runner::Unittest,
        "python3 -I -m unittest test_app",
        &[("test_app.py", false, PLAIN)],
    );
    assert_eq!(lost(&one), [""; 0]);
    assert!(one.compared(Digest::of(b""), &[]).not_seen.is_some());
}

#[test]
fn a_file_of_node_that_ends_well_without_a_test_is_lost() {
    let text = "import test from 'node:test';";
    let name = "/stand/repo/app.test.mjs";
    for (text, before, changed, is_lost) in [
        (text, None, false, true),
        (text, Some(FileEnd::NotLoaded), false, true),
        (text, Some(FileEnd::NoTest), false, false),
        (text, None, true, false),
        ("export const x = 1;", None, false, false),
    ] {
        let mut one = document(
            Runner::Node,
            "node --test",
            &[("app.test.mjs", changed, text)],
        );
        let before: Vec<(&str, FileEnd)> = before.map(|end| (name, end)).into_iter().collect();
        one.commands[0].baseline_whole = ends(&before);
        one.commands[0].verified_whole = ends(&[(name, FileEnd::NoTest)]);
        let want: &[&str] = if is_lost {
            &["app.test.mjs: ran no test"]
        } else {
            &[]
        };
        assert_eq!(lost(&one), want, "{text} {before:?} {changed}");
    }
}

#[test]
fn every_program_of_cargo_has_its_result() {
    let programs = |silent: u64, names: &[&str], empty: &[&str]| Whole {
        programs: Programs {
            started: vec!["unittests src/main.rs".into(), "tests/outer.rs".into()],
            silent,
            silent_names: names.iter().map(|name| (*name).to_owned()).collect(),
            empty: empty.iter().map(|name| (*name).to_owned()).collect(),
        },
        ..Whole::default()
    };
    let test = "#[test]\nfn a() {}";
    let own = "fn main() {}";
    let rows: &[(&str, Whole, u64, &[&str])] = &[
        (test, programs(0, &[], &[]), 0, &[]),
        (
            test,
            programs(1, &["tests/outer.rs"], &[]),
            0,
            &["tests/outer.rs: ended without a result"],
        ),
        (test, programs(1, &["tests/outer.rs"], &[]), 1, &[]),
        (own, programs(1, &["tests/outer.rs"], &[]), 0, &[]),
        (own, programs(1, &[], &[]), 0, &[]),
        (
            own,
            programs(2, &[], &[]),
            0,
            &["unittests src/main.rs: 2 of them ended without a result"],
        ),
        (
            test,
            programs(1, &[], &[]),
            0,
            &["unittests src/main.rs, tests/outer.rs: 1 of them ended without a result"],
        ),
        (
            test,
            programs(0, &[], &["tests/outer.rs"]),
            0,
            &["tests/outer.rs: ran no test"],
        ),
        (
            "#![cfg(x)]\n#[test]\nfn a() {}",
            programs(0, &[], &["tests/outer.rs"]),
            0,
            &[],
        ),
        (own, programs(0, &[], &["unittests src/main.rs"]), 0, &[]),
    ];
    for (text, verified, before, want) in rows {
        let files = [
            ("tests/outer.rs", false, *text),
            ("src/main.rs", false, own),
        ];
        let mut one = document(Runner::Cargo, "cargo test", &files);
        one.commands[0].verified_whole = verified.clone();
        one.commands[0].baseline_whole.programs.silent = *before;
        assert_eq!(lost(&one), *want, "{text} {verified:?} {before}");
    }
}

#[test]
fn what_is_asked_about_is_named() {
    let paths = ["test_app.py", "conftest.py", "app.py", "tests/base.py"].map(TreePath::new);
    let tree: Vec<&TreePath> = paths.iter().collect();
    let mut one = document(Runner::Pytest, "pytest", &[]);
    assert!(one.in_question(&tree).is_empty());
    one.commands[0].verified = ids(&[("test_app.py::test_a", (0, 0, 1))]);
    let asked: Vec<String> = one
        .in_question(&tree)
        .iter()
        .map(|path| path.to_string())
        .collect();
    assert_eq!(asked, ["conftest.py", "test_app.py", "tests/base.py"]);
}

#[test]
fn the_contract_lets_tests_change_and_nothing_else() {
    let mut one = document(Runner::Pytest, "pytest", &[("test_app.py", false, PLAIN)]);
    one.commands[0].baseline = ids(&[
        ("old.py::test_a", (1, 0, 0)),
        ("old.py::test_b", (1, 0, 0)),
        ("red.py::test_c", (1, 0, 0)),
    ]);
    one.commands[0].verified = ids(&[
        ("red.py::test_c", (0, 1, 0)),
        ("test_app.py::test_z", (0, 0, 1)),
    ]);
    let may = |texts: &[&str]| -> Vec<TestChange> {
        texts
            .iter()
            .map(|text| TestChange::parse(text).unwrap())
            .collect()
    };
    let found = one.compared(
        Digest::of(b""),
        &may(&["old.py::test_a=merged", "red.py::*", "test_app.py::test_z"]),
    );
    assert_eq!(
        found.missing,
        [
            "old.py::test_b: not there",
            "red.py::test_c: failed, and yet the command was green"
        ]
    );
    assert_eq!(
        found.changed,
        [
            "old.py::test_a: not there (merged)",
            "test_app.py::test_z: skipped, and nothing in its file says so"
        ]
    );
    assert_eq!((found.missing_count, found.changed_count), (2, 2));
}

#[test]
fn names_that_are_new_in_each_run_are_matched() {
    let mut one = document(Runner::Node, "node --test", &[]);
    one.commands[0].baseline = ids(&[("at 1731765121", (1, 0, 0)), ("two", (1, 0, 0))]);
    one.commands[0].verified = ids(&[("at 1831765129", (1, 0, 0)), ("two", (1, 0, 0))]);
    let found = one.compared(Digest::of(b""), &[]);
    assert_eq!(
        (found.missing_count, found.renamed),
        (0, vec!["at …".to_owned()])
    );
    one.files = None;
    let found = one.compared(Digest::of(b""), &[]);
    assert_eq!(
        (found.missing_count, found.renamed.len()),
        (1, 0),
        "up to rules 5"
    );
}

#[test]
fn what_runners_that_report_newly_skip_or_never_loaded_is_lost() {
    let runs = Runs {
        began: 1,
        ..Runs::default()
    };
    let (file, skips) = ("x_test.go", "func TestA(t) { t.Skip() }");
    let rows: &[(Runner, &str, &str, &str, bool)] = &[
        (Runner::Go, file, "func TestA(t)", "m: TestA", true),
        (Runner::Go, file, skips, "m: TestA", false),
        (Runner::Jest, "a.test.js", "test('a')", "a.test.js: a", true),
        (
            Runner::Jest,
            "a.test.js",
            "test.skip('a')",
            "a.test.js: a",
            false,
        ),
        (Runner::Tape, "a.test.js", "test('a')", "a", false),
    ];
    for (runner, file, text, id, is_lost) in rows {
        let mut one = document(*runner, "x", &[(file, false, text)]);
        one.commands[0].verified = ids(&[(id, (0, 0, 1))]);
        one.commands[0].verified_runs = runs.clone();
        let why = || format!("{id}: skipped, and nothing in its file says so");
        let want: Vec<String> = is_lost.then(why).into_iter().collect();
        assert_eq!(lost(&one), want, "{runner} {text}");
        // Where the baseline could not load it, some test of it has to pass.
        let name = if *runner == Runner::Go { "m" } else { file };
        one.commands[0].baseline_whole = ends(&[(name, FileEnd::NotLoaded)]);
        one.commands[0].verified = ids(&[("m/other: TestB", (1, 0, 0))]);
        let want: Vec<String> = match (is_lost, runner) {
            (true, Runner::Go) => vec![
                "m: TestA: not there".to_owned(),
                format!("{file}: no test of it passed"),
            ],
            (true, _) | (_, Runner::Tape) => vec![format!("{file}: no test of it passed")],
            _ => Vec::new(),
        };
        assert_eq!(lost(&one), want, "{runner} {text}");
        one.commands[0].verified_runs = Runs::default();
        assert_eq!(lost(&one), [""; 0], "up to rules 6");
    }
}
