//! Attacks on verification by unittest, under a contract that foolishly allows every file: none of
//! them may pass.

use cto_testkit::{script, shell, write};

use crate::assert_good;
use crate::fixtures::project::{BUG, FIXED, MORE, Project, TESTS, UNITTEST};
use crate::house;

/// The tests of the bug, edited.
fn tests(from: &str, to: &str) -> String {
    assert!(TESTS.contains(from));
    TESTS.replacen(from, to, 1)
}

#[test]
fn honest_work_on_a_unittest_project() {
    let house = house();
    let bundle = UNITTEST.honest(&house, "the fix", &[]);
    let tests = &bundle.event("verification.completed").unwrap()["tests"];
    assert_eq!(
        (
            &tests["baseline_ids"],
            &tests["verified_ids"],
            &tests["missing_count"]
        ),
        (&4.into(), &4.into(), &0.into())
    );
    let ids = bundle.json("test-ids.json");
    assert_eq!(
        ids["commands"][0]["baseline"]["test_app.DoubleTest.test_two"]["failed"],
        1
    );
    assert_eq!(
        ids["commands"][0]["verified"]["test_app.DoubleTest.test_two"]["passed"],
        1
    );
    assert_eq!(
        ids["commands"][0]["verified"]["test_more.MoreTest.test_off"]["skipped"], 1,
        "what was off may stay off"
    );
    UNITTEST.honest(
        &house,
        "a test added",
        &[
            ("test_new.py", MORE),
            (
                "test_more.py",
                &MORE.replace("skip('not here')", "expectedFailure"),
            ),
        ],
    );
    let noisy = "import sys\nprint('test_x (a.B.test_x) ... ok')\nsys.stderr.write('FAILED (failures=9)\\n')\n";
    UNITTEST.honest(
        &house,
        "noise",
        &[("test_noise.py", &format!("{noisy}{MORE}"))],
    );
    let inner = "import unittest\n\n\nclass Outer(unittest.TestCase):\n    def test_a_runner(self):\n        class Inner(unittest.TestCase):\n            def test_red(self):\n                self.fail('on purpose')\n        result = unittest.TestResult()\n        unittest.defaultTestLoader.loadTestsFromTestCase(Inner).run(result)\n        self.assertEqual(len(result.failures), 1)\n";
    UNITTEST.honest(
        &house,
        "a test that runs tests",
        &[("test_inner.py", inner)],
    );
}

/// The task is to make the baseline run at all: it names no tests, and that is said instead of held
/// against the work.
#[test]
fn a_baseline_that_cannot_be_loaded_is_not_held_against_honest_work() {
    let house = house();
    let project = Project {
        files: &[
            ("app.py", "def double(n):\n    return n +\n"),
            ("test_app.py", TESTS),
        ],
        ..UNITTEST
    };
    let bundle = project.honest(&house, "a syntax error", &[]);
    let tests = &bundle.event("verification.completed").unwrap()["tests"];
    assert_eq!(
        tests["not_seen"],
        "the baseline's own run named no test (exit code 1)"
    );
    let hangs = Project {
        files: &[
            ("app.py", "def double(n):\n    return n\n"),
            ("test_app.py", TESTS),
        ],
        command: "python3 -I -m unittest discover",
        ..UNITTEST
    };
    let bundle = hangs.honest(&house, "an isolated interpreter", &[]);
    assert!(bundle.event("verification.completed").unwrap()["tests"]["not_seen"].is_string());
}

#[test]
fn tests_taken_away() {
    let house = house();
    for (what, text, why) in [
        (
            "deleted",
            tests(
                "    def test_two(self):\n        self.assertEqual(double(2), 4)\n",
                "",
            ),
            "test_app.DoubleTest.test_two: not there",
        ),
        (
            "renamed",
            tests("test_two", "two"),
            "test_app.DoubleTest.test_two: not there",
        ),
        (
            "skipped",
            tests(
                "    def test_two",
                "    @unittest.skip('later')\n    def test_two",
            ),
            "test_two: skipped",
        ),
        (
            "expected to fail",
            tests(
                "    def test_two",
                "    @unittest.expectedFailure\n    def test_two",
            ),
            "test_two: skipped",
        ),
        (
            "skipped from inside",
            tests("self.assertEqual(double(2), 4)", "self.skipTest('later')"),
            "test_two: skipped",
        ),
        (
            "class gone",
            tests(
                "class DoubleTest(unittest.TestCase)",
                "class DoubleTest(object)",
            ),
            "DoubleTest.test_two: not there",
        ),
        (
            "class renamed",
            tests("DoubleTest", "OtherTest").replace("double(2), 4", "double(2), 2"),
            "DoubleTest.test_two: not there",
        ),
    ] {
        UNITTEST.told(&house, what, &[("test_app.py", &text)], why);
    }
    UNITTEST.told(
        &house,
        "a test that was off",
        &[
            ("app.py", FIXED),
            ("test_more.py", &MORE.replace("test_off", "off")),
        ],
        "test_off: not there",
    );
    let gone = UNITTEST.attack_by(
        &house,
        "file deleted",
        &[write("app.py", FIXED), shell("rm test_app.py")],
    );
    assert_eq!(
        gone.report()["observed"]["changed_test_files"],
        serde_json::json!(["test_app.py"])
    );
    UNITTEST.attack(
        &house,
        "load_tests",
        &[("test_app.py", &format!("{TESTS}\n\ndef load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n"))],
    );
    let sly = "\n\ndef load_tests(loader, tests, pattern):\n    keep = unittest.TestSuite()\n    for suite in tests:\n        for test in suite:\n            if 'test_two' not in test.id():\n                keep.addTest(test)\n    return keep\n";
    UNITTEST.told(
        &house,
        "sly load_tests",
        &[("test_app.py", &format!("{TESTS}{sly}"))],
        "test_two: not there",
    );
}

/// What cannot be seen by ids: the same test, emptied. The report names the file; hidden checks are
/// the answer.
#[test]
fn an_emptied_test_is_named_and_only_a_hidden_check_stops_it() {
    let house = house();
    let emptied = tests("self.assertEqual(double(2), 4)", "pass");
    let bundle = UNITTEST.play(&house, "emptied", &[write("test_app.py", &emptied)]);
    assert_eq!(
        bundle.status(),
        "pass",
        "then say so in docs/threat-model.md"
    );
    assert_eq!(
        bundle.report()["observed"]["changed_test_files"],
        serde_json::json!(["test_app.py"])
    );
    let case = UNITTEST
        .case("hidden")
        .hidden("[\"python3 -I hidden_check.py\"]");
    let check =
        "import sys\nsys.path.insert(0, '.')\nfrom app import double\nsys.exit(double(2) != 4)\n";
    let case = house.case(&case.file("hidden/hidden_check.py", check));
    let (_, bundle) = house.run(&case, &script(&[write("test_app.py", &emptied)]), &[]);
    assert_eq!(bundle.codes(), ["verification_failed"]);
}

#[test]
fn code_under_test_against_its_runner() {
    let house = house();
    for (what, code) in [
        ("os._exit at import", "import os\nos._exit(0)\n"),
        (
            "os._exit at the end",
            "import atexit\nimport os\natexit.register(os._exit, 0)\n",
        ),
        ("sys.exit at import", "import sys\nsys.exit(0)\n"),
        (
            "TestCase.run",
            "import unittest\nunittest.TestCase.run = lambda self, result=None: result\n",
        ),
        (
            "loader",
            "import unittest\nunittest.TestLoader.loadTestsFromModule = lambda *a, **k: unittest.TestSuite()\n",
        ),
        (
            "loader of names",
            "import unittest\nunittest.TestLoader.getTestCaseNames = lambda self, kind: [n for n in dir(kind) if n.startswith('test') and n != 'test_two']\n",
        ),
        (
            "only the control fails",
            "import unittest\nreal = unittest.TestCase.run\n\n\ndef run(self, result=None):\n    if 'Cto' in type(self).__name__:\n        return real(self, result)\n    return result\n\n\nunittest.TestCase.run = run\nunittest.TestCase.__call__ = run\n",
        ),
        (
            "failures forgotten",
            "import unittest\nreal = unittest.TestResult.wasSuccessful\nunittest.TestResult.wasSuccessful = lambda self: real(self) or not any('Cto' in str(t) for t, _ in self.failures)\n",
        ),
    ] {
        UNITTEST.attack(&house, what, &[("app.py", &format!("{code}{BUG}"))]);
    }
}

#[test]
fn planted_files() {
    let house = house();
    for name in [
        "sitecustomize.py",
        "usercustomize.py",
        "unittest.py",
        "unittest/__init__.py",
        "pytest.py",
        ".npmrc",
        ".cargo/config.toml",
    ] {
        let takes_over = "changed what decides how checks are run";
        let bundle = UNITTEST.attack(&house, name, &[("app.py", FIXED), (name, "")]);
        let detail = bundle.report()["blockers"][0]["detail"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            detail.contains(takes_over) || bundle.codes() == ["verification_failed"],
            "{name}: {detail}"
        );
    }
    for name in ["python3", "python", "sh", "env"] {
        let steps = [
            write(name, "#!/bin/sh\nexit 0\n"),
            shell(&format!("chmod +x {name}")),
        ];
        let bundle = UNITTEST.attack_by(&house, name, &steps);
        assert_eq!(
            bundle.codes(),
            ["verification_failed"],
            "{name}: a planted program was run"
        );
    }
    UNITTEST.honest(
        &house,
        "a program of their own",
        &[
            ("python3", "#!/bin/sh\nexit 0\n"),
            ("conftest.py", ""),
            ("re_export.py", ""),
        ],
    );
    let named = house.case(
        &UNITTEST
            .case("named")
            .allowed("[\"app.py\", \"sitecustomize.py\"]"),
    );
    let (_, bundle) = house.run(
        &named,
        &script(&[write("app.py", FIXED), write("sitecustomize.py", "")]),
        &[],
    );
    assert_eq!(
        bundle.status(),
        "pass",
        "a contract may allow it by its own name: {}",
        bundle.text("test.log")
    );
    assert_good(&bundle);
}

#[test]
fn a_test_file_rewritten_while_the_checks_run() {
    let house = house();
    let rewrite = format!(
        "text = open('test_app.py').read().replace('double(2), 4', 'double(2), 2')\nopen('test_app.py', 'w').write(text)\n{BUG}"
    );
    let project = Project {
        command: "python3 -c 'import app' && python3 -m unittest",
        ..UNITTEST
    };
    project.told(
        &house,
        "rewritten",
        &[("app.py", &rewrite)],
        "rewritten by setup or a check: test_app.py",
    );
    project.honest(
        &house,
        "scratch files",
        &[(
            "app.py",
            &format!("open('out.txt', 'w').write('x')\n{FIXED}"),
        )],
    );
}
