//! "Implement X": the tests of the baseline do not load, so nobody knows their names. What ends them
//! early, skips them or expects them to fail must not pass with nothing run. Beside each trick stands
//! its honest twin.

use cto_testkit::{Bundle, House, write};

use crate::checks::cargo_attacks::{LOCK, MANIFEST, OUTER};
use crate::checks::pytest_attacks::pytest_bin;
use crate::fixtures::project::{FIXED, MORE, Project, TESTS, UNITTEST};
use crate::fixtures::rust::with_own_rust;
use crate::house;

/// Not there yet.
const TO_DO: &str = "# to do\n";

const UNITTEST_NEW: Project = Project {
    files: &[
        ("app.py", TO_DO),
        ("test_app.py", TESTS),
        ("test_more.py", MORE),
    ],
    ..UNITTEST
};

const PYTESTS: &str = "from app import double\n\n\ndef test_zero():\n    assert double(0) == 0\n\n\ndef test_two():\n    assert double(2) == 4\n";
const PYMORE: &str = "def test_more():\n    assert True\n";

const PYTEST_NEW: Project = Project {
    runner: "pytest",
    command: "pytest",
    extra: "",
    files: &[
        ("app.py", TO_DO),
        ("test_app.py", PYTESTS),
        ("test_more.py", PYMORE),
        ("conftest.py", ""),
    ],
    fix: ("app.py", FIXED),
};

/// What people are told of a run whose baseline named nothing.
fn not_seen(bundle: &Bundle) -> bool {
    let tests = &bundle.event("verification.completed").unwrap()["tests"];
    tests["not_seen"].is_string()
}

#[test]
fn unittest_skipped_by_the_code_under_test() {
    let house = house();
    let bundle = UNITTEST_NEW.honest(&house, "the function", &[]);
    assert!(!not_seen(&bundle), "test_more was there before");
    let alone = Project {
        files: &[("app.py", TO_DO), ("test_app.py", TESTS)],
        ..UNITTEST_NEW
    };
    let other = crate::house();
    let bundle = alone.honest(&other, "the function, and nothing that ran before", &[]);
    assert!(not_seen(&bundle));
    let page = bundle.text("report.md");
    assert!(page.contains("tests of the baseline NOT SEEN"), "{page}");
    let skip = "import unittest\n\n\ndef double(n):\n    raise unittest.SkipTest('later')\n";
    let one = "import unittest\n\n\ndef double(n):\n    if n:\n        raise unittest.SkipTest('later')\n    return n\n";
    let module = "import unittest\n\nraise unittest.SkipTest('later')\n";
    for (what, code, why) in [
        ("all skipped", skip, "test_app.DoubleTest.test_two: skipped"),
        ("one skipped", one, "test_app.DoubleTest.test_two: skipped"),
        ("the module", module, "test_app.py: skipped as a whole"),
    ] {
        UNITTEST_NEW.told(&house, what, &[("app.py", code)], why);
        alone.told(&other, what, &[("app.py", code)], why);
    }
    // The tests themselves say so: nothing that the change brought about.
    let own = TESTS.replace(
        "    def test_two",
        "    @unittest.skip('needs a network')\n    def test_two",
    );
    let skips = [("app.py", TO_DO), ("test_app.py", leak(own))];
    let project = Project {
        files: leak_files(&skips),
        ..UNITTEST_NEW
    };
    project.honest(&other, "a test that was off", &[]);
}

/// One command of several processes: one that ends early leaves the others.
#[test]
fn a_process_that_ends_before_its_tests() {
    let house = house();
    let project = Project {
        command: "python3 -m unittest test_app && python3 -m unittest test_more",
        ..UNITTEST_NEW
    };
    project.honest(&house, "the function", &[]);
    for (what, code) in [
        ("os._exit", "import os\n\nos._exit(0)\n"),
        ("exec", "import os\n\nos.execv('/bin/true', ['true'])\n"),
        ("sys.exit", "import sys\n\nsys.exit(0)\n"),
    ] {
        let why = "test_app.py: no test of it passed";
        project.told(&house, what, &[("app.py", code)], why);
    }
}

#[test]
fn pytest_skipped_or_expected_to_fail() {
    let Some(_) = pytest_bin() else { return };
    let house = house();
    let bundle = PYTEST_NEW.honest(&house, "the function", &[]);
    assert!(
        !not_seen(&bundle),
        "a file that does not load hides no other"
    );
    let body = |line: &str| format!("import pytest\n\n\ndef double(n):\n    {line}\n");
    let (skip, xfail) = (body("pytest.skip('later')"), body("pytest.xfail('later')"));
    let module = "import pytest\n\npytest.skip('later', allow_module_level=True)\n";
    let raised = "import unittest\n\nraise unittest.SkipTest('later')\n";
    let half = "import pytest\n\n\ndef double(n):\n    if n:\n        pytest.skip('later')\n    return n\n";
    let skipped = "skipped, and nothing in its file says so";
    let whole = "test_app.py: skipped as a whole";
    for (what, code, why) in [
        ("skip", skip.as_str(), skipped),
        ("xfail", xfail.as_str(), skipped),
        ("one of them", half, "test_app.py::test_two: skipped"),
        ("skip of the module", module, whole),
        ("SkipTest", raised, whole),
    ] {
        PYTEST_NEW.told(&house, what, &[("app.py", code)], why);
    }
    let wrong = "def double(n):\n    return n\n";
    let marks = "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        if 'two' in item.name:\n            item.add_marker(pytest.mark.MARK)\n";
    for (what, hooks, why) in [
        (
            "not collected",
            "collect_ignore = ['test_app.py']\n".to_owned(),
            "test_app.py: no test of it passed",
        ),
        ("marked to skip", marks.replace("MARK", "skip"), skipped),
        ("marked to fail", marks.replace("MARK", "xfail"), skipped),
    ] {
        let files = [("app.py", wrong), ("conftest.py", hooks.as_str())];
        PYTEST_NEW.told(&house, what, &files, why);
    }
    // Hooks that were there before, and words of the tests themselves, are the project's own.
    let slow = "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        if item.name == 'test_zero':\n            item.add_marker(pytest.mark.skip)\n";
    let hooked = [
        ("app.py", TO_DO),
        ("test_app.py", PYTESTS),
        ("conftest.py", slow),
    ];
    let own = PYTESTS.replace("def test_zero", "@pytest.mark.xfail\ndef test_zero");
    let own = format!("import pytest\n{own}");
    let own = [
        ("app.py", TO_DO),
        ("test_app.py", PYTESTS),
        ("test_own.py", leak(own)),
    ];
    for files in [hooked, own] {
        let project = Project {
            files: leak_files(&files),
            ..PYTEST_NEW
        };
        project.honest(&crate::house(), "what the project leaves out", &[]);
    }
}

const INNER: &str = "#[test]\nfn nothing() {}\n";

const CARGO_NEW: Project = Project {
    runner: "cargo",
    command: "cargo test --offline --tests",
    extra: "",
    files: &[
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        (".gitignore", "/target\n"),
        ("src/lib.rs", "// to do\n"),
        ("tests/outer.rs", OUTER),
        ("tests/inner.rs", INNER),
    ],
    fix: (
        "src/lib.rs",
        "pub fn double(n: u32) -> u32 {\n    2 * n\n}\n",
    ),
};

#[test]
fn programs_of_cargo_that_end_early() {
    let house = with_own_rust(house());
    let bundle = CARGO_NEW.honest(&house, "the function", &[]);
    assert!(not_seen(&bundle));
    let body = |line: &str| format!("pub fn double(_n: u32) -> u32 {{\n    {line}\n}}\n");
    let ended = "tests/outer.rs: ended without a result";
    for (what, code) in [
        ("exit", body("std::process::exit(0)")),
        (
            "_exit",
            body("extern \"C\" { fn _exit(code: i32) -> !; }\n    unsafe { _exit(0) }"),
        ),
        (
            "exec",
            body(
                "use std::os::unix::process::CommandExt;\n    let _ = std::process::Command::new(\"/bin/true\").exec();\n    0",
            ),
        ),
    ] {
        CARGO_NEW.told(&house, what, &[("src/lib.rs", &code)], ended);
    }
    // A program with a `main` of its own gives no result that anybody knows.
    let manifest = format!("{MANIFEST}\n[[test]]\nname = \"own\"\nharness = false\n");
    let own = "fn main() {\n    assert_eq!(counting::double(4), 8);\n}\n";
    let mut files: Vec<(&'static str, &'static str)> = CARGO_NEW.files.to_vec();
    files[0].1 = leak(manifest);
    files.push(("tests/own.rs", own));
    let project = Project {
        files: leak_files(&files),
        ..CARGO_NEW
    };
    project.honest(&house, "a harness of its own", &[]);
}

const NODE_TESTS: &str = "import test, { describe, it } from 'node:test';\nimport assert from 'node:assert';\nimport { double } from './app.mjs';\n\ntest('zero', () => assert.strictEqual(double(0), 0));\ndescribe('double', () => {\n  it('two', () => assert.strictEqual(double(2), 4));\n});\n";

const NODE_NEW: Project = Project {
    runner: "node",
    command: "node --test",
    extra: "",
    files: &[
        ("app.mjs", "// to do\n"),
        ("app.test.mjs", NODE_TESTS),
        (
            "more.test.mjs",
            "import test from 'node:test';\ntest('more', () => {});\n",
        ),
    ],
    fix: ("app.mjs", "export const double = (n) => 2 * n;\n"),
};

#[test]
fn files_of_node_that_end_early() {
    let house = house();
    NODE_NEW.honest(&house, "the function", &[]);
    for (what, code) in [
        (
            "at once",
            "process.exit(0);\nexport const double = (n) => n;\n",
        ),
        (
            "in the function",
            "export const double = (n) => process.exit(0);\n",
        ),
        (
            "underneath",
            "process.reallyExit(0);\nexport const double = (n) => n;\n",
        ),
    ] {
        let why = "app.test.mjs: ran no test";
        NODE_NEW.told(&house, what, &[("app.mjs", code)], why);
    }
    // A file without a test of its own is no test that was lost.
    let helper = "import { double } from './app.mjs';\nexport const four = double(2);\n";
    let mut files: Vec<(&'static str, &'static str)> = NODE_NEW.files.to_vec();
    files.push(("help.test.mjs", helper));
    let project = Project {
        files: leak_files(&files),
        ..NODE_NEW
    };
    project.honest(&house, "a file that only helps", &[]);
}

/// A project is data that lives as long as the program; a few are made here.
fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn leak_files(files: &[(&'static str, &'static str)]) -> &'static [(&'static str, &'static str)] {
    Box::leak(files.to_vec().into_boxed_slice())
}

/// The contract may let it: an engine that skips what it should do is then the operator's wish.
#[test]
fn the_contract_may_let_tests_be_skipped() {
    let house: House = house();
    let skip = "import unittest\n\n\ndef double(n):\n    if n:\n        raise unittest.SkipTest('later')\n    return n\n";
    let project = Project {
        extra: "tests_may_change = [\"test_app.*.test_two=not on this machine\"]",
        ..UNITTEST_NEW
    };
    let bundle = project.play(&house, "allowed", &[write("app.py", skip)]);
    assert_eq!(bundle.status(), "pass", "{}", bundle.text("test.log"));
    let belief = bundle.report()["belief"].clone();
    let changed = belief["tests"]["changed"][0].as_str().unwrap().to_owned();
    assert_eq!(
        changed,
        "test_app.DoubleTest.test_two: skipped, and nothing in its file says so (not on this machine)"
    );
}
