//! Names, places and counts of failing tests.

use std::collections::BTreeSet;

use super::*;
use crate::checks::test_ids::{Outcome, Runs};

const FILES: [TestFile<'_>; 3] = [
    TestFile {
        path: "test/sums.test.js",
        text: "const x = require('x');\nit('a', () => {});\n",
    },
    TestFile {
        path: "test.js",
        text: "import test from 'ava';\n",
    },
    TestFile {
        path: "pkg/sums_test.go",
        text: "package pkg_test\n\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n",
    },
];

/// A file that every runner would take for its own.
fn of(runner: Runner, path: &'static str, imports: bool) -> TestFile<'static> {
    let text = match (runner, imports) {
        (Runner::Go, _) => FILES[2].text,
        (Runner::Mocha | Runner::Jest, false) => "it('a', () => {});\n",
        (Runner::Mocha | Runner::Jest, true) => "import x from 'x';\nit('a', () => {});\n",
        (Runner::Node, false) => "const test = require('node:test');\n",
        (Runner::Node, true) => "import test from 'node:test';\n",
        (Runner::Vitest, _) => "import { test } from 'vitest';\n",
        (Runner::Ava, false) => "const test = require('ava');\n",
        (Runner::Ava, true) => "import test from 'ava';\n",
        (Runner::Tap, false) => "const test = require('tap');\n",
        (Runner::Tap, true) => "import test from 'tap';\n",
        (Runner::Tape, false) => "const test = require('tape');\n",
        (Runner::Tape, true) => "import test from 'tape';\n",
        (Runner::Unittest | Runner::Pytest | Runner::Cargo, _) => "",
    };
    TestFile { path, text }
}

fn reporting() -> impl Iterator<Item = Runner> {
    let reports = |runner: &Runner| runner.is_javascript() || *runner == Runner::Go;
    Runner::ALL.into_iter().filter(reports)
}

fn texts(kit: &ReportedKit) -> Vec<(String, String)> {
    let pair = |edit: &Edit| match edit {
        Edit::Create { path, text } => (path.clone(), text.clone()),
        Edit::Append { path, text } => (path.to_string(), text.clone()),
    };
    kit.edits.iter().map(pair).collect()
}

fn names(kit: &ReportedKit) -> Vec<String> {
    let names = kit.places.iter().flat_map(|place| place.names.clone());
    names.collect()
}

#[test]
fn nothing_but_the_runners_own_words_is_fixed() {
    for runner in reporting() {
        let files = [
            of(runner, "test/a.test.ts", true),
            of(runner, "b_test.go", false),
        ];
        let kit = |nonce| reported_kit(runner, nonce, &files).unwrap();
        let (one, two) = (names(&kit("n1")), names(&kit("n2")));
        let unique: BTreeSet<&String> = one.iter().chain(&two).collect();
        assert_eq!(unique.len(), one.len() + two.len(), "{runner}");
        assert_eq!(one, names(&kit("n1")), "{runner}");
        for (_, text) in texts(&kit("n1")) {
            assert!(
                !text.to_lowercase().contains("cto")
                    && !text.contains("control")
                    && !text.contains("must fail"),
                "{text}"
            );
            assert!(
                !text.contains("$1") && !text.contains("$2") && !text.contains("A."),
                "{runner} {text}"
            );
        }
    }
    for runner in [Runner::Unittest, Runner::Pytest, Runner::Cargo] {
        assert_eq!(reported_kit(runner, "n", &FILES), None);
    }
}

#[test]
fn each_file_has_what_it_uses_in_its_own_way() {
    let find = |runner, file| texts(&reported_kit(runner, "n", &[file]).unwrap());
    let required = &find(Runner::Ava, of(Runner::Ava, "test/sums.test.js", false))[0];
    assert!(
        required.0 == "test/sums.test.js"
            && required.1.contains("require('ava')")
            && !required.1.contains("import")
    );
    let imported = find(Runner::Ava, FILES[1]);
    assert!(imported[0].1.contains(" from 'ava';") && !imported[0].1.contains("require"));
    assert_eq!(
        imported.len(),
        1,
        "a file that is looked for by its whole name has none beside it"
    );
    let beside = &find(Runner::Mocha, FILES[0])[1];
    assert!(
        beside.0.starts_with("test/")
            && beside.0.ends_with(".test.js")
            && beside.1.contains("typeof it")
    );
    let go = find(Runner::Go, FILES[2]);
    assert!(go[1].0.starts_with("pkg/") && go[1].0.ends_with("_test.go"));
    assert!(
        go[1]
            .1
            .starts_with("package pkg_test\n\nimport \"testing\"\n")
            && !go[0].1.contains("package")
    );
    let typed = find(Runner::Node, of(Runner::Node, "a.test.ts", true));
    assert!(typed[0].1.contains("(t: any, done: any) =>") && !typed[0].1.contains("(t) =>"));
    assert!(typed[1].1.starts_with("// @ts-nocheck\n"));
}

#[test]
fn tests_of_another_runner_and_helpers_are_left_alone() {
    for (runner, text) in [
        (
            Runner::Jest,
            "const test = require('node:test');\ntest('a', () => {});",
        ),
        (Runner::Mocha, "exports.x = 1;"),
        (Runner::Node, "it('a', () => {});"),
        (Runner::Tape, "import test from 'tap';"),
        (Runner::Go, "package x\n"),
    ] {
        let path = "test/x.test.js";
        assert_eq!(
            reported_kit(runner, "n", &[TestFile { path, text }]),
            None,
            "{runner}"
        );
    }
}

#[test]
fn of_many_files_each_has_a_part_and_every_kind_comes_twice() {
    let paths: Vec<String> = (0..30).map(|n| format!("test/{n}.test.js")).collect();
    let files: Vec<TestFile<'_>> = paths
        .iter()
        .map(|path| TestFile { path, ..FILES[0] })
        .collect();
    let kit = reported_kit(Runner::Jest, "n", &files).unwrap();
    let in_place: Vec<&Place> = kit.places.iter().filter(|place| !place.is_own).collect();
    assert_eq!(in_place.len(), 30);
    assert!(in_place.iter().all(|place| !place.names.is_empty()));
    let added: usize = in_place.iter().map(|place| place.names.len()).sum();
    assert!(added >= 2 * rows(Runner::Jest).len() && added < 4 * rows(Runner::Jest).len());
    assert_eq!(kit.places.len(), 31, "one file of its own in a directory");
}

/// A run that named these tests.
fn heard(tests: &[(String, Outcome)]) -> Heard {
    let mut heard = Heard {
        runs: Runs {
            began: 1,
            ..Runs::default()
        },
        ..Heard::default()
    };
    for (id, outcome) in tests {
        heard.ids.entry(id.clone()).or_default().add(*outcome);
    }
    heard
}

#[test]
fn one_silent_row_is_no_proof() {
    let kit = reported_kit(Runner::Mocha, "n", &FILES[..1]).unwrap();
    let (place, own) = (&kit.places[0], &kit.places[1]);
    let of_place = |place: &Place, outcome| -> Vec<(String, Outcome)> {
        let id = |name: &String| (format!("{}: around > {name}", place.path), outcome);
        place.names.iter().map(id).collect()
    };
    let count = |tests: &[(String, Outcome)]| {
        let count = kit.count(&[heard(tests)]);
        (count.expected, count.reported)
    };
    let all = place.names.len() as u64;
    let red = of_place(place, Outcome::Failed);
    assert_eq!(
        count(&red),
        (all, Some(all)),
        "its own file was not looked for"
    );
    for outcome in [Outcome::Passed, Outcome::Skipped] {
        let mut lies = red.clone();
        lies[3].1 = outcome;
        assert_eq!(count(&lies), (all, Some(all - 1)), "{outcome:?}");
        lies.remove(3);
        assert_eq!(count(&lies), (all, Some(all - 1)), "not there");
    }
    let mut twice = red.clone();
    twice.push((red[3].0.clone(), Outcome::Passed));
    assert_eq!(count(&twice), (all, Some(all - 1)));
    let mut with_own = red.clone();
    with_own.push(of_place(own, Outcome::Failed).remove(0));
    assert_eq!(
        count(&with_own),
        (all + own.names.len() as u64, Some(all + 1)),
        "found, so all of its file are due"
    );
    let passed_over = [("test/sums.test.js: a".to_owned(), Outcome::Passed)];
    assert_eq!(count(&passed_over), (all, Some(0)), "its other tests ran");
    assert_eq!(count(&[]), (all, Some(0)), "nothing ran");
    let deaf = kit.count(&[Heard::default()]);
    assert_eq!(deaf.reported, None, "no runner was heard");
}

/// A compiler of types must not be what turns a test file red.
#[test]
fn no_line_of_a_typed_file_is_compiled_for_its_types() {
    let file = of(Runner::Jest, "test/sums.test.ts", true);
    let kit = reported_kit(Runner::Jest, "nonce", &[file]).unwrap();
    for edit in &kit.edits {
        let (Edit::Append { text, .. } | Edit::Create { text, .. }) = edit;
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let code = |line: &&str| !line.starts_with("//");
        assert!(lines.iter().any(code), "{text}");
        for (before, line) in lines.iter().zip(&lines[1..]) {
            assert!(!code(line) || *before == "// @ts-ignore", "{line}");
        }
    }
}

#[test]
fn nothing_is_added_behind_the_plan_of_a_whole_file() {
    let kit = |text: &'static str| {
        let planned = TestFile {
            path: "test/planned.js",
            text,
        };
        let free = of(Runner::Tap, "other/free.js", false);
        reported_kit(Runner::Tap, "n", &[planned, free]).unwrap()
    };
    let adds = |text| {
        texts(&kit(text))
            .iter()
            .any(|(path, _)| path == "test/planned.js")
    };
    for planned in [
        "const t = require('tap')\nt.plan(2)\nt.test('a', t => {})\n",
        "import t from 'tap'\nt.test('a', t => {})\nt.end()\n",
        "const main = () => {\n  const t = require('tap')\n  t.plan(1)\n}\nmain()\n",
    ] {
        assert!(!adds(planned), "{planned}");
    }
    for free in [
        "const t = require('tap')\nt.test('a', t => {\n  t.plan(1)\n  t.end()\n})\n",
        "const { test } = require('tap')\ntest('a', t => t.end())\n",
    ] {
        assert!(adds(free), "{free}");
    }
    let only = TestFile {
        path: "test/planned.js",
        text: "const t = require('tap')\nt.plan(1)\n",
    };
    assert_eq!(reported_kit(Runner::Tap, "n", &[only]), None);
}
