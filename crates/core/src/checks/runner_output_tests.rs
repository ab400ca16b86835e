use proptest::prelude::*;

use super::*;
use crate::checks::test_ids::Tally;

fn read(runner: Runner, stdout: &str, stderr: &str, witness: &str) -> Vec<(String, u64, u64, u64)> {
    let mut output = RunnerOutput::new(runner);
    // In small pieces, each stream between the other's.
    let (mut out, mut err) = (stdout.as_bytes().chunks(7), stderr.as_bytes().chunks(5));
    loop {
        match (out.next(), err.next()) {
            (None, None) => break,
            (a, b) => {
                output.feed(Voice::Stdout, a.unwrap_or_default());
                output.feed(Voice::Stderr, b.unwrap_or_default());
            }
        }
    }
    let flat = |(
        id,
        Tally {
            passed,
            failed,
            skipped,
        },
    )| (id, passed, failed, skipped);
    output
        .finish(witness.as_bytes())
        .ids
        .into_iter()
        .map(flat)
        .collect()
}

fn row(id: &str, passed: u64, failed: u64, skipped: u64) -> (String, u64, u64, u64) {
    (id.to_owned(), passed, failed, skipped)
}

#[test]
fn cargo_names_its_tests() {
    let stdout = "running 4 tests\ntest tests::a ... ok\ntest tests::b ... FAILED\ntest c ... ignored, slow\nnoisetest d ... ok\n\
        test src/lib.rs - count (line 12) ... ok\ntest src/lib.rs - count (line 30) - compile ... ok\n\
        test result: FAILED. 1 passed; 1 failed; 1 ignored\ntest tests::a ... ok\ntest last ... ok";
    let found = read(
        Runner::Cargo,
        stdout,
        "     Running unittests src/lib.rs (target/x)\n",
        "",
    );
    let want = [
        row("c", 0, 0, 1),
        row("d", 1, 0, 0),
        row("last", 1, 0, 0),
        row("src/lib.rs - count", 1, 0, 0),
        row("src/lib.rs - count - compile", 1, 0, 0),
        row("tests::a", 2, 0, 0),
        row("tests::b", 0, 1, 0),
    ];
    assert_eq!(found, want);
}

#[test]
fn cargo_with_one_thread_and_its_output_shown() {
    let stdout = "test a ... hello\nworld\nok\ntest b ... hello\nFAILED\ntest c ... said without end\ntest d ... x\ntest result: ok.\n";
    let found = read(Runner::Cargo, stdout, "", "");
    assert_eq!(
        found,
        [
            row("a", 1, 0, 0),
            row("b", 0, 1, 0),
            row("c", 1, 0, 0),
            row("d", 1, 0, 0)
        ]
    );
}

#[test]
fn nextest_names_its_tests_once() {
    let stderr = "        PASS [   0.005s] (1/3) demo tests::a\n  TRY 1 FAIL [   0.004s] demo tests::b\n   FLAKY 2/3 [   0.004s] demo tests::b\n        FAIL [   0.004s] demo::it c\n     Summary [   0.01s] 3 tests run\n        FAIL [   0.004s] demo::it c\n        PASS [ nonsense ] x y\n";
    let found = read(Runner::Cargo, "", stderr, "");
    assert_eq!(
        found,
        [
            row("demo tests::a", 1, 0, 0),
            row("demo tests::b", 1, 0, 0),
            row("demo::it c", 0, 1, 0)
        ]
    );
}

#[test]
fn python_by_its_witness() {
    let witness = "passed\tt.T.test_a\nfailed\tt.py::test_p[1]\npassed\tt.py::test_p[1]\npassed\tt.py::test_p[<0x7f>]\nskipped\tt.py::test_s\nfailed\tunittest.loader._FailedTest.t\nodd line\nother\tx\npassed\t\n";
    for runner in [Runner::Unittest, Runner::Pytest] {
        let found = read(runner, "test a ... ok\n", "", witness);
        assert_eq!(
            found,
            [
                row("t.T.test_a", 1, 0, 0),
                row("t.py::test_p", 2, 0, 0),
                row("t.py::test_s", 0, 0, 1)
            ]
        );
    }
    assert!(
        read(Runner::Cargo, "", "", witness).is_empty(),
        "only Python has a witness"
    );
}

#[test]
fn a_line_without_end_costs_no_more_than_its_limit() {
    let mut output = RunnerOutput::new(Runner::Cargo);
    for _ in 0..100 {
        output.feed(Voice::Stdout, &[b'x'; 4096]);
    }
    assert!(output.out.line.len() <= MAX_LINE);
    output.feed(Voice::Stdout, b"\ntest a ... ok\n");
    let long = format!("test {} ... ok\n", "n".repeat(MAX_ID * 2));
    output.feed(Voice::Stdout, long.as_bytes());
    let found = output.finish(b"").ids;
    assert_eq!(
        found.keys().map(String::len).collect::<Vec<_>>(),
        [1, MAX_ID]
    );
}

fn runners() -> impl Strategy<Value = Runner> {
    prop_oneof![
        Just(Runner::Unittest),
        Just(Runner::Pytest),
        Just(Runner::Cargo)
    ]
}

/// Words of the formats between bytes of any kind.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"test ".to_vec()),
        Just(b" ... ok\n".to_vec()),
        Just(b" ... ".to_vec()),
        Just(b"(line ".to_vec()),
        Just(b"\nok 1 - ".to_vec()),
        Just(b"    # Subtest: ".to_vec()),
        Just("✔ ▶ ﹣".as_bytes().to_vec()),
        Just(" (1ms)\n".as_bytes().to_vec()),
        Just(b"PASS [".to_vec()),
        Just(b"] (".to_vec()),
        Just(b"passed\t[".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    /// No bytes panic, and how they were cut into pieces means nothing.
    #[test]
    fn any_bytes_are_read(runner in runners(), stdout in noise(), stderr in noise(), witness in noise(), piece in 1usize..9) {
        let mut whole = RunnerOutput::new(runner);
        whole.feed(Voice::Stdout, &stdout);
        whole.feed(Voice::Stderr, &stderr);
        let mut pieces = RunnerOutput::new(runner);
        stdout.chunks(piece).for_each(|part| pieces.feed(Voice::Stdout, part));
        stderr.chunks(piece).for_each(|part| pieces.feed(Voice::Stderr, part));
        prop_assert_eq!(whole.finish(&witness), pieces.finish(&witness));
    }
}

fn whole(runner: Runner, stdout: &str, stderr: &str, witness: &str) -> Whole {
    let mut output = RunnerOutput::new(runner);
    output.feed(Voice::Stderr, stderr.as_bytes());
    output.feed(Voice::Stdout, stdout.as_bytes());
    output.finish(witness.as_bytes()).whole
}

#[test]
fn files_are_heard_as_a_whole() {
    let python = "skipped\tunittest.loader.ModuleSkipped.test_a\nfailed\tunittest.loader._FailedTest.tests.test_b\nunloaded\ttests/test_c.py\nleft\ttest_d.py\n";
    let found = whole(Runner::Unittest, "", "", python).files;
    let want = [
        ("test_a", FileEnd::Skipped),
        ("test_d.py", FileEnd::Skipped),
        ("tests.test_b", FileEnd::NotLoaded),
        ("tests/test_c.py", FileEnd::NotLoaded),
    ];
    let want: FileEnds = want.map(|(name, end)| (name.to_owned(), end)).into();
    assert_eq!(found, want);
}

#[test]
fn programs_of_cargo_are_heard_to_their_result() {
    let result = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let filtered = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s\n";
    let started = "     Running unittests src/lib.rs (target/debug/deps/a-0)\n     Running tests/outer.rs (target/debug/deps/outer-0)\n   Doc-tests a\n";
    for (stdout, stderr, silent, names, empty) in [
        (format!("running 0 tests\n{result}running 1 test\ntest a ... ok\n{result}running 0 tests\n{filtered}"), started, 0, vec![], vec!["unittests src/lib.rs"]),
        (format!("running 1 test\n{result}running 1 test\nrunning 0 tests\n{result}"), started, 1, vec!["tests/outer.rs"], vec!["doc tests of a"]),
        (format!("running 1 test\n{result}running 1 test\n"), started, 2, vec![], vec![]),
        (format!("running 1 test\nrunning 1 test\n{result}"), "", 1, vec![], vec![]),
        (String::new(), "     Running `target/debug/deps/a-0`\nRunning late (x)\n", 0, vec![], vec![]),
        ("{ \"type\": \"suite\", \"event\": \"started\" }\n{ \"type\": \"suite\", \"event\": \"ok\" }\n".into(), "     Running tests/outer.rs (x)\n", 0, vec![], vec![]),
    ] {
        let found = whole(Runner::Cargo, &stdout, stderr, "").programs;
        assert_eq!((found.silent, found.silent_names, found.empty), (silent, names.into_iter().map(str::to_owned).collect(), empty.into_iter().map(str::to_owned).collect()), "{stdout}");
    }
}
