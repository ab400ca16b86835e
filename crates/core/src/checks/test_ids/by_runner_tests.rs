//! Several runners in one document, and tests whose names stand in their files.

use super::*;
use crate::checks::test_ids::lost::TestFile;
use crate::checks::test_ids::whole::{FileEnd, FileEnds, Whole};
use crate::checks::test_ids::{CommandTests, Runs, Tally, TestIds};
use crate::values::digest::Digest;

const PASSED: Tally = Tally {
    passed: 1,
    failed: 0,
    skipped: 0,
};
const SKIPPED: Tally = Tally {
    passed: 0,
    failed: 0,
    skipped: 1,
};

/// One command, heard by its own report, whose baseline could not load `broken`.
fn command(verified: &[(&str, Tally)], broken: &str) -> CommandTests {
    let ids = verified.iter();
    let broken = Some(broken).filter(|name| !name.is_empty());
    let ends = broken.map(|name| (name.to_owned(), FileEnd::NotLoaded));
    let files: FileEnds = ends.into_iter().collect();
    CommandTests {
        command: "x".into(),
        baseline: TestIds::new(),
        verified: ids.map(|(id, tally)| ((*id).to_owned(), *tally)).collect(),
        baseline_runs: Runs::default(),
        verified_runs: Runs {
            began: 1,
            ..Runs::default()
        },
        baseline_whole: Whole {
            files,
            ..Whole::default()
        },
        verified_whole: Whole::default(),
    }
}

fn lost(runners: &[&[Runner]], commands: Vec<CommandTests>, files: &[(&str, &str)]) -> Vec<String> {
    let mut document = TestIdDocument {
        schema_version: 1,
        runner: runners[0][0],
        baseline_not_run: None,
        baseline: Vec::new(),
        commands,
        files: None,
        runners: (runners.iter())
            .map(|of| of.iter().copied().collect())
            .collect(),
    };
    let file = |(path, text): &(&str, &str)| {
        let path = TreePath::new(*path);
        TestFile::of(document.runner_of(&path), path, false, text.as_bytes())
    };
    document.files = Some(files.iter().map(file).collect());
    document.compared(Digest::of(b""), &[]).missing
}

#[test]
fn every_runner_is_held_to_its_own_files() {
    let (python, js, go) = (
        ("test_a.py", "def test_a(): pass"),
        ("new.test.js", "test('one')"),
        ("a_test.go", "func TestA(t *testing.T) {}"),
    );
    let one = || command(&[("new.test.js: one", SKIPPED)], "new.test.js");
    let quiet = || command(&[("test_a.py::test_a", PASSED)], "");
    let want = [
        "new.test.js: no test of it passed",
        "new.test.js: one: skipped, and nothing in its file says so",
    ];
    for first in [Runner::Pytest, Runner::Go] {
        let runners: &[&[Runner]] = &[&[first], &[Runner::Jest]];
        let found = lost(runners, vec![quiet(), one()], &[python, js, go]);
        assert_eq!(found, want, "{first}");
    }
    let runners: &[&[Runner]] = &[&[Runner::Jest]];
    assert_eq!(lost(runners, vec![one()], &[js]), want);
}

#[test]
fn tests_of_a_package_that_was_not_built_come_by_their_names() {
    let text = "package a\n\nfunc TestAdd(t *testing.T) {}\n\nfunc TestMul(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\n";
    let tagged = format!("//go:build slow\n\n{text}");
    let skips = text.replace("{}", "{ t.Skip() }");
    for (path, text, want) in [
        ("a/a_test.go", text, &["m/a: TestAdd: not there"][..]),
        ("a/a_test.go", &tagged, &[]),
        ("a/a_test.go", &skips, &[]),
        ("a/a_windows_test.go", text, &[]),
    ] {
        let ran = command(&[("m/a: TestMul", PASSED), ("m/b: TestAdd", PASSED)], "m/a");
        let found = lost(&[&[Runner::Go]], vec![ran], &[(path, text)]);
        assert_eq!(found, want, "{path} {text}");
    }
}
