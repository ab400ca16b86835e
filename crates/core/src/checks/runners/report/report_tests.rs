//! Recorded reports of real runners, and what becomes of every beginning of them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::checks::test_ids::whole::{FileEnd, FileEnds};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("recorded/", $name))
    };
}

const RECORDED: [(Runner, &str); 12] = [
    (Runner::Mocha, recorded!("mocha-11-red.json")),
    (Runner::Mocha, recorded!("mocha-12-beside-red.json")),
    (Runner::Jest, recorded!("jest-30-red.json")),
    (Runner::Vitest, recorded!("vitest-4-red.json")),
    (Runner::Vitest, recorded!("vitest-4-left.json")),
    (Runner::Ava, recorded!("ava-6-red.tap")),
    (Runner::Tape, recorded!("tape-5-red.tap")),
    (Runner::Tap, recorded!("tap-16-red.tap")),
    (Runner::Tap, recorded!("tap-21-red.tap")),
    (Runner::Node, recorded!("node-20-red.jsonl")),
    (Runner::Go, recorded!("go-1.19-red.txt")),
    (Runner::Go, recorded!("go-1.19-panic.txt")),
];

fn report(runner: Runner, text: &str) -> Report {
    read(runner, text.as_bytes(), "/tree").unwrap()
}

/// `file: name passed/failed/skipped` of every id.
fn ids(report: &Report) -> Vec<String> {
    let line = |(id, tally): (&String, &crate::checks::test_ids::Tally)| {
        format!("{id} {}/{}/{}", tally.passed, tally.failed, tally.skipped)
    };
    report.counted().iter().map(line).collect()
}

#[test]
fn files_without_tests_and_files_that_do_not_load_are_heard() {
    let text = concat!(
        r#"{"file":"/tree/a.test.mjs","names":["/tree/a.test.mjs"],"outcome":"passed"}"#,
        "\n",
        r#"{"file":"/tree/test/b.js","names":["test/b.js"],"outcome":"failed"}"#,
        "\n",
        r#"{"file":"/tree/c.test.js","names":["reads a.test.js"],"outcome":"passed"}"#,
        "\n",
        r#"{"end":true}"#
    );
    let files = [("1.start", r#"{"runner":"node"}"#), ("1.report", text)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let want = [
        ("a.test.mjs", FileEnd::NoTest),
        ("test/b.js", FileEnd::NotLoaded),
    ];
    let want: FileEnds = want.map(|(name, end)| (name.to_owned(), end)).into();
    assert_eq!(hear(&files.into(), "/tree").files(), want);
}

#[test]
fn doubles_are_counted_and_carry_their_file() {
    let want = |sep: &str, file: &str| {
        [
            format!("{file}more.test.js: more{sep}adds 1/0/0"),
            format!("{file}sums.test.js: sums{sep}adds 2/0/0"),
            format!("{file}sums.test.js: sums{sep}is wrong 0/1/0"),
            format!("{file}sums.test.js: sums{sep}leaves 1/0/0"),
            format!("{file}sums.test.js: sums{sep}waits 0/0/1"),
        ]
    };
    for (runner, text, sep) in [
        (Runner::Mocha, recorded!("mocha-11-red.json"), " "),
        (Runner::Mocha, recorded!("mocha-12-beside-red.json"), " "),
        (Runner::Jest, recorded!("jest-30-red.json"), " > "),
        (Runner::Vitest, recorded!("vitest-4-red.json"), " > "),
        (Runner::Node, recorded!("node-20-red.jsonl"), " > "),
    ] {
        let report = report(runner, text);
        assert_eq!(ids(&report), want(sep, "test/"), "{runner}");
        assert!(report.broken.is_empty() && report.without_tests.is_empty());
    }
}

#[test]
fn tap_of_three_runners() {
    assert_eq!(
        ids(&report(Runner::Ava, recorded!("ava-6-red.tap"))),
        [
            "more › adds 1/0/0",
            "sums › adds 1/0/0",
            "sums › is wrong 0/1/0",
            "sums › later 0/0/1",
            "sums › leaves 1/0/0",
            "sums › waits 0/0/1"
        ]
    );
    assert_eq!(
        ids(&report(Runner::Tape, recorded!("tape-5-red.tap"))),
        [
            "adds 1/0/0",
            "is wrong 0/1/0",
            "later 0/0/1",
            "leaves 1/0/0"
        ]
    );
    for text in [recorded!("tap-16-red.tap"), recorded!("tap-21-red.tap")] {
        assert_eq!(
            ids(&report(Runner::Tap, text)),
            [
                "test/sums.js: adds 1/0/0",
                "test/sums.js: is wrong 0/1/0",
                "test/sums.js: later 0/0/1",
                "test/sums.js: leaves 1/0/0",
                "test/sums.js: waits 0/0/1",
            ]
        );
    }
    let empty = "# Subtest: test/sums.js\n    1..0 # no tests found\nok 1 - test/sums.js # SKIP no tests found\n\n# { total: 1, pass: 0, skip: 1 }\n# time=23.1ms\n";
    assert_eq!(report(Runner::Tap, empty).without_tests, ["test/sums.js"]);
    let two = report(
        Runner::Ava,
        "TAP version 13\nok 1 - sums › adds\nok 2 - more › x\n\n1..2\n",
    );
    assert!(
        two.without_file_before_title()
            .counted()
            .contains_key("adds")
    );
}

#[test]
fn go_names_packages_and_what_began() {
    assert_eq!(
        ids(&report(Runner::Go, recorded!("go-1.19-red.txt"))),
        [
            "example.org/fx/more: TestAdds 1/0/0",
            "example.org/fx: ExampleAdd 1/0/0",
            "example.org/fx: TestAdds 1/0/0",
            "example.org/fx: TestAdds/one 1/0/0",
            "example.org/fx: TestAdds/two_words 1/0/0",
            "example.org/fx: TestIsWrong 0/1/0",
            "example.org/fx: TestLeaves 1/0/0",
            "example.org/fx: TestPar 1/0/0",
            "example.org/fx: TestPrint 1/0/0",
            "example.org/fx: TestWaits 0/0/1",
        ]
    );
    let panicked = report(Runner::Go, recorded!("go-1.19-panic.txt"));
    assert!(
        panicked
            .tests
            .iter()
            .any(|test| test.name == "TestIsWrong" && test.outcome == Outcome::Failed)
    );
    assert_eq!(panicked.without_tests, ["example.org/fx/other"]);
    let build = "FAIL\texample.org/fx/broken [setup failed]\nFAIL\n";
    assert_eq!(report(Runner::Go, build).broken, ["example.org/fx/broken"]);
    let cut = "=== RUN   TestAdds\n--- PASS: TestAdds (0.00s)\n";
    assert_eq!(read(Runner::Go, cut.as_bytes(), ""), Err(Unreadable::NoEnd));
    let printed =
        "=== RUN   TestA\n--- PASS: TestB (0.00s)\n--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.1s\n";
    assert_eq!(ids(&report(Runner::Go, printed)), ["x: TestA 1/0/0"]);
    let pieces: String = printed
        .lines()
        .map(|line| {
            serde_json::json!({"Package": "x", "Output": format!("{line}\n")}).to_string() + "\n"
        })
        .collect();
    assert_eq!(ids(&report(Runner::Go, &pieces)), ["x: TestA 1/0/0"]);
    let none = "testing: warning: no tests to run\nPASS\nok  \tx\t0.1s [no tests to run]\n";
    assert_eq!(report(Runner::Go, none).without_tests, ["x"]);
}

/// The code under test ends its process with exit code 0.
#[test]
fn leaving_early_is_seen() {
    let go = "ok  \texample.org/fx\t0.019s\n=== RUN   TestAdds\n--- PASS: TestAdds (0.00s)\nPASS\nok  \texample.org/fx/more\t0.005s\n";
    assert_eq!(
        report(Runner::Go, go).broken,
        ["example.org/fx left before its tests ended"]
    );
    let ava = read(Runner::Ava, recorded!("ava-3-left.tap").as_bytes(), "");
    assert_eq!(
        ava,
        Err(Unreadable::Contradiction(
            "6 tests planned, 3 reported".into()
        ))
    );
    let ava_1 = "TAP version 13\n# more › adds\nok 1 - more › adds\n# 3 tests remaining in test/sums.js\nnot ok 2 - 3 tests remaining in test/sums.js\n\n1..1\n# fail 2\n";
    assert_eq!(report(Runner::Ava, ava_1).broken.len(), 2);
    let cut = "TAP version 13\nok 1 - sums › waits # SKIP\nnot ok 2 - sums › later # TODO\n";
    assert_eq!(
        read(Runner::Ava, cut.as_bytes(), ""),
        Err(Unreadable::NoEnd)
    );
    assert_eq!(read(Runner::Tape, b"", ""), Err(Unreadable::NoEnd));
    assert_eq!(
        report(Runner::Vitest, recorded!("vitest-4-left.json")).broken,
        ["test/more.test.js", "test/sums.test.js"]
    );
    let node = report(Runner::Node, recorded!("node-20-left.jsonl"));
    assert_eq!(node.without_tests, ["test/sums.test.js"]);
    assert_eq!(ids(&node), ["test/more.test.js: more > adds 1/0/0"]);
}

/// No beginning of a report counts as one, but for text without a frame, where no package is half told.
#[test]
fn a_part_is_no_report() {
    for (runner, text) in RECORDED {
        let whole = report(runner, text);
        let ends = text.char_indices().map(|(at, _)| at);
        for end in ends.filter(|end| end % 7 == 0 || *end + 90 > text.len()) {
            let part = read(runner, &text.as_bytes()[..end], "/tree");
            let Ok(part) = part else { continue };
            match runner {
                // Whole packages, or every test and only sums missing.
                Runner::Go => assert!(part.tests.len() <= whole.tests.len()),
                _ => assert_eq!(part.tests, whole.tests, "{runner} at {end}"),
            }
        }
    }
}

#[test]
fn counts_that_contradict_the_tests() {
    let mocha = recorded!("mocha-11-red.json").replace("\"failures\": 1", "\"failures\": 0");
    assert!(matches!(
        read(Runner::Mocha, mocha.as_bytes(), ""),
        Err(Unreadable::Contradiction(_))
    ));
    let jest =
        recorded!("jest-30-red.json").replace("\"numTotalTests\": 6", "\"numTotalTests\": 9");
    assert!(matches!(
        read(Runner::Jest, jest.as_bytes(), ""),
        Err(Unreadable::Contradiction(_))
    ));
    let cut_short = recorded!("jest-30-red.json")
        .replace("\"wasInterrupted\": false", "\"wasInterrupted\": true");
    assert_eq!(
        read(Runner::Jest, cut_short.as_bytes(), ""),
        Err(Unreadable::NoEnd)
    );
}

#[test]
fn a_mark_without_a_report_is_unfinished() {
    let start = |runner: &str| {
        format!("{{\"runner\":\"{runner}\",\"version\":\"1\",\"argv\":[],\"cwd\":\"/tree\"}}")
            .into_bytes()
    };
    let files = BTreeMap::from([
        ("1-a.start".to_owned(), start("mocha")),
        ("2-b.start".to_owned(), start("jest")),
        (
            "2-b.report".to_owned(),
            recorded!("jest-30-red.json").as_bytes().to_vec(),
        ),
        ("3-c.start".to_owned(), start("ava")),
        (
            "3-c.report".to_owned(),
            b"TAP version 13\nok 1 - a\n".to_vec(),
        ),
        ("4-d.report".to_owned(), b"{}".to_vec()),
        ("5-e.start".to_owned(), b"nonsense".to_vec()),
        ("6-f.start.part".to_owned(), b"".to_vec()),
    ]);
    let heard = hear(&files, "/tree");
    assert_eq!(heard.runs.len(), 3);
    assert_eq!(
        heard.runs().unfinished,
        [
            "mocha began and left no report",
            "ava left a report that does not count: it has no end: the runner was stopped before it was done",
            "\"4-d.report\" lies among the reports, and no runner left it",
            "\"5-e.start\" lies among the reports, and no runner left it",
        ]
    );
    assert_eq!((heard.runs().began, heard.counted().len()), (3, 5));
}

proptest! {
    /// Any bytes are read to their end, whatever the runner.
    #[test]
    fn any_bytes_are_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..200), lines in "(ok|not ok|1\\.\\.|# |    |---|\\.\\.\\.|<testcase|=== RUN   |--- PASS: |\\{| |\n|[0-9]|a){0,40}") {
        for runner in Runner::ALL {
            let _ = read(runner, &bytes, "/tree");
            let _ = read(runner, lines.as_bytes(), "");
        }
    }
}

#[test]
fn half_a_surrogate_in_a_name_is_no_broken_report() {
    let mocha = |title: &str| {
        let test = format!(r#"{{"fullTitle": "{title}", "file": "/r/a.js"}}"#);
        format!(
            r#"{{"stats": {{"passes": 1, "failures": 0}}, "tests": [{test}], "passes": [{test}], "failures": []}}"#
        )
    };
    for (title, name) in [
        (r"a \ud83d", "a \u{fffd}"),
        (r"\udc00 b \ud83d\ude00", "\u{fffd} b \u{1f600}"),
        (r"\\ud83d", r"\ud83d"),
        (r"\ud83d\n\uD83D", "\u{fffd}\n\u{fffd}"),
    ] {
        let report = read(Runner::Mocha, mocha(title).as_bytes(), "/r").unwrap();
        assert_eq!(report.tests[0].name, name, "{title}");
    }
    let node = r#"{"file": "/r/a.js", "names": ["x\udfff"], "outcome": "passed"}"#;
    let lines = format!("{node}\n{{\"end\":true}}\n");
    assert_eq!(
        read(Runner::Node, lines.as_bytes(), "/r")
            .unwrap()
            .tests
            .len(),
        1
    );
    let cut = r#"{"stats": {"passes": 1, "failures": 0}, "tests": [{"fullTitle": "\ud83d"#;
    assert_eq!(
        read(Runner::Mocha, cut.as_bytes(), ""),
        Err(Unreadable::NoEnd)
    );
}
