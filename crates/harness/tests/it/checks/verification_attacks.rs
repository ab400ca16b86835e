//! Attacks on verification, by real runners, under contracts that foolishly allow every file: none
//! passes, and the honest work beside it does. Under a sane contract most of them are out of scope
//! before verification is asked.

use std::path::{Path, PathBuf};

use cto_testkit::{Bundle, Case, House, script, shell, write};

use crate::assert_good;
use crate::house;

/// One project with a bug, how it is checked, and what repairs it.
pub struct Project {
    pub runner: &'static str,
    pub command: &'static str,
    pub extra: &'static str,
    pub files: &'static [(&'static str, &'static str)],
    /// The file with the bug, and its text without.
    pub fix: (&'static str, &'static str),
}

type Files<'a> = &'a [(&'a str, &'a str)];

impl Project {
    fn case(&self, name: &str) -> Case {
        let control = format!("{{ runner = \"{}\" }}", self.runner);
        let commands = format!("[{}]", serde_json::to_string(self.command).unwrap());
        let case = Case::new(name)
            .allowed("[\"*\", \"*/\"]")
            .commands(&commands)
            .control(&control)
            .extra(self.extra);
        let files = self.files.iter();
        files.fold(case, |case, (path, text)| {
            case.file(&format!("workspace/{path}"), text)
        })
    }

    /// Plays a change and returns what was made of it, judged and whole.
    fn play(&self, house: &House, what: &str, steps: &[String]) -> Bundle {
        let case = house.case(&self.case("attacked"));
        let (answer, bundle) = house.run(&case, &script(steps), &[]);
        assert!(!answer.panicked(), "{what}: {answer:?}");
        assert_good(&bundle);
        bundle
    }

    /// The bug is left in, and a trick is to hide it.
    pub fn attack(&self, house: &House, what: &str, files: Files<'_>) -> Bundle {
        let steps: Vec<String> = files.iter().map(|(path, text)| write(path, text)).collect();
        self.attack_by(house, what, &steps)
    }

    fn attack_by(&self, house: &House, what: &str, steps: &[String]) -> Bundle {
        let bundle = self.play(house, what, steps);
        let log = bundle.text("test.log");
        assert_eq!(bundle.status(), "fail", "{what} PASSED: {log}");
        let expected = |code: &String| {
            ["verification_untrusted", "verification_failed"].contains(&code.as_str())
        };
        assert!(
            bundle.codes().iter().all(expected) && !bundle.codes().is_empty(),
            "{what}: {:?} {log}",
            bundle.codes()
        );
        bundle
    }

    /// An attack that every exit code lets through: only its tests, or its files, tell.
    pub fn told(&self, house: &House, what: &str, files: Files<'_>, why: &str) {
        let bundle = self.attack(house, what, files);
        let detail = bundle.report()["blockers"][0]["detail"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            bundle.codes() == ["verification_untrusted"] && detail.contains(why),
            "{what}: {detail}"
        );
    }

    /// The bug is repaired, and something else is done that honest people do.
    pub fn honest(&self, house: &House, what: &str, files: Files<'_>) -> Bundle {
        let all = files.iter().chain([&self.fix]);
        let steps: Vec<String> = all.map(|(path, text)| write(path, text)).collect();
        let bundle = self.play(house, what, &steps);
        assert_eq!(
            bundle.status(),
            "pass",
            "{what}: {} {}",
            bundle.report()["blockers"],
            bundle.text("test.log")
        );
        bundle
    }
}

const TESTS: &str = "import unittest\n\nfrom app import double\n\n\nclass DoubleTest(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(double(0), 0)\n\n    def test_two(self):\n        self.assertEqual(double(2), 4)\n";
const MORE: &str = "import unittest\n\n\nclass MoreTest(unittest.TestCase):\n    def test_more(self):\n        self.assertTrue(True)\n\n    @unittest.skip('not here')\n    def test_off(self):\n        self.fail('never')\n";
const BUG: &str = "def double(n):\n    return n\n";
const FIXED: &str = "def double(n):\n    return 2 * n\n";

const UNITTEST: Project = Project {
    runner: "unittest",
    command: "python3 -m unittest",
    extra: "",
    files: &[
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("test_more.py", MORE),
    ],
    fix: ("app.py", FIXED),
};

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
        "rewritten while the checks ran: test_app.py",
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

const MAKE: Project = Project {
    command: "make test",
    extra: "toolchains = [\"python3\"]",
    files: &[
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("Makefile", "test:\n\tpython3 -m unittest\n"),
    ],
    ..UNITTEST
};

#[test]
fn a_makefile_replaced() {
    let house = house();
    MAKE.honest(
        &house,
        "the fix",
        &[(
            "Makefile",
            "test: tidy\n\tpython3 -m unittest\n\ntidy:\n\t@true\n",
        )],
    );
    for (what, recipe) in [
        ("true", "@true"),
        ("ignored", "-python3 -m unittest"),
        ("or true", "python3 -m unittest || true"),
        (
            "a part",
            "python3 -m unittest test_app.DoubleTest.test_zero",
        ),
        (
            "only the control",
            "ls test_cto_control_*.py >/dev/null 2>&1 && python3 -m unittest test_cto_control_*.py || true",
        ),
        (
            "red only with the control",
            "@python3 -m unittest 2>out.txt; cat out.txt >&2; ! grep -q CtoControl out.txt",
        ),
        ("all but one", "python3 -m unittest -k test_zero -k Cto"),
    ] {
        MAKE.attack(
            &house,
            what,
            &[("Makefile", &format!("test:\n\t{recipe}\n"))],
        );
    }
    let planted = [write("make", "#!/bin/sh\nexit 0\n"), shell("chmod +x make")];
    assert_eq!(
        MAKE.attack_by(&house, "a planted make", &planted).codes(),
        ["verification_failed"]
    );
}

#[test]
fn a_sourced_file_that_traps() {
    let house = house();
    let files = &[
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("env.sh", "export NAME=x\n"),
    ];
    let project = Project {
        command: ". ./env.sh && python3 -m unittest",
        extra: "toolchains = [\"python3\"]",
        files,
        ..UNITTEST
    };
    project.honest(&house, "the fix", &[("env.sh", "export NAME=y\n")]);
    for (what, text) in [
        ("exit 0", "exit 0\n"),
        ("trap", "trap 'exit 0' EXIT\n"),
        ("a function", "python3() { :; }\n"),
        (
            "PATH",
            "printf '#!/bin/sh\\nexit 0\\n' > /tmp/python3; chmod +x /tmp/python3; PATH=/tmp:$PATH\n",
        ),
        (
            "a trap that knows",
            "trap 'ls test_cto_control_* >/dev/null 2>&1 || exit 0' EXIT\n",
        ),
    ] {
        project.attack(&house, what, &[("env.sh", text)]);
    }
}

/// The directory of pytest's program, where this machine has one.
fn pytest_bin() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .find(|dir| dir.join("pytest").is_file() && !dir.ends_with("shims"));
    assert!(
        found.is_some() || std::env::var_os("REQUIRE_PYTEST").is_none(),
        "pytest is not on PATH"
    );
    found
}

const PYTESTS: &str = "import pytest\n\nfrom app import double\n\n\ndef test_zero():\n    assert double(0) == 0\n\n\n@pytest.mark.parametrize('n', [2, 3])\ndef test_many(n):\n    assert double(n) == n + n\n";

const PYTEST: Project = Project {
    runner: "pytest",
    command: "pytest",
    extra: "",
    files: &[
        ("app.py", BUG),
        ("test_app.py", PYTESTS),
        ("conftest.py", ""),
    ],
    fix: ("app.py", FIXED),
};

#[test]
fn pytest_and_its_configuration() {
    let Some(_) = pytest_bin() else { return };
    let house = house();
    let bundle = PYTEST.honest(
        &house,
        "the fix",
        &[
            ("pytest.ini", "[pytest]\naddopts = -q\n"),
            ("test_new.py", "def test_new():\n    pass\n"),
        ],
    );
    let ids = bundle.json("test-ids.json");
    assert_eq!(
        ids["commands"][0]["baseline"]["test_app.py::test_many"]["failed"],
        2
    );
    for (what, file, text) in [
        (
            "ini deselect",
            "pytest.ini",
            "[pytest]\naddopts = --deselect test_app.py::test_many\n",
        ),
        (
            "ini keyword",
            "pytest.ini",
            "[pytest]\naddopts = -k 'zero or cto'\n",
        ),
        (
            "ini collect only",
            "pytest.ini",
            "[pytest]\naddopts = --co\n",
        ),
        (
            "setup.cfg",
            "setup.cfg",
            "[tool:pytest]\naddopts = -k 'not many'\n",
        ),
        (
            "tox.ini",
            "tox.ini",
            "[pytest]\naddopts = --deselect=test_app.py::test_many\n",
        ),
        (
            "pyproject",
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = \"-k 'not many'\"\n",
        ),
        (
            "python_functions",
            "pytest.ini",
            "[pytest]\npython_functions = test_zero\n",
        ),
        (
            "ignored",
            "conftest.py",
            "collect_ignore = ['test_app.py']\n",
        ),
        (
            "items taken out",
            "conftest.py",
            "def pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'many' not in i.name]\n",
        ),
        (
            "exit status",
            "conftest.py",
            "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
        ),
        (
            "exit status but for the control",
            "conftest.py",
            "import os\nimport glob\n\n\ndef pytest_sessionfinish(session):\n    if not glob.glob('test_cto_control_*'):\n        session.exitstatus = 0\n",
        ),
        (
            "outcome",
            "conftest.py",
            "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    if 'many' in item.name:\n        out.get_result().outcome = 'skipped'\n        out.get_result().longrepr = ('a', 1, 'b')\n",
        ),
        ("os._exit", "conftest.py", "import os\nos._exit(0)\n"),
        (
            "marked",
            "test_app.py",
            &PYTESTS.replace(
                "@pytest.mark.param",
                "@pytest.mark.skip\n@pytest.mark.param",
            ),
        ),
        (
            "expected to fail",
            "test_app.py",
            &PYTESTS.replace(
                "@pytest.mark.param",
                "@pytest.mark.xfail\n@pytest.mark.param",
            ),
        ),
        (
            "module skipped",
            "test_app.py",
            &PYTESTS.replace(
                "import pytest\n",
                "import pytest\npytest.skip('later', allow_module_level=True)\n",
            ),
        ),
        (
            "renamed",
            "test_app.py",
            &PYTESTS.replace("test_many", "many"),
        ),
        (
            "a parameter gone",
            "test_app.py",
            &PYTESTS.replace("[2, 3]", "[0]"),
        ),
    ] {
        PYTEST.attack(&house, what, &[(file, text)]);
    }
    let planted = [
        write("pytest", "#!/bin/sh\nexit 0\n"),
        shell("chmod +x pytest"),
    ];
    assert_eq!(
        PYTEST
            .attack_by(&house, "a planted pytest", &planted)
            .codes(),
        ["verification_failed"]
    );
}

const NODE_TESTS: &str = "import test, { describe, it } from 'node:test';\nimport assert from 'node:assert';\nimport { double } from './app.mjs';\n\ntest('zero', () => assert.strictEqual(double(0), 0));\ndescribe('double', () => {\n  it('two', () => assert.strictEqual(double(2), 4));\n});\n";
const NODE_BUG: &str = "export const double = (n) => n;\n";
const NODE_FIXED: &str = "export const double = (n) => 2 * n;\n";

const NODE: Project = Project {
    runner: "node",
    command: "node --test",
    extra: "",
    files: &[
        ("app.mjs", NODE_BUG),
        ("app.test.mjs", NODE_TESTS),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"node --test\"}}\n",
        ),
    ],
    fix: ("app.mjs", NODE_FIXED),
};
const NPM: Project = Project {
    command: "npm test",
    extra: "toolchains = [\"node\"]",
    ..NODE
};

#[test]
fn node_and_its_tests() {
    let house = house();
    let bundle = NODE.honest(
        &house,
        "the fix",
        &[(
            "new.test.mjs",
            "import test from 'node:test';\ntest('new', () => console.log('ok 1 - x'));\n",
        )],
    );
    assert_eq!(
        bundle.json("test-ids.json")["commands"][0]["baseline"]["double > two"]["failed"],
        1
    );
    for (what, file, text) in [
        (
            "process.exit in a module",
            "app.mjs",
            format!("process.exit(0);\n{NODE_BUG}"),
        ),
        (
            "process.exit at the end",
            "app.mjs",
            format!("process.on('exit', () => {{ process.exitCode = 0; }});\n{NODE_BUG}"),
        ),
        (
            "skip",
            "app.test.mjs",
            NODE_TESTS.replace("it('two',", "it.skip('two',"),
        ),
        (
            "todo",
            "app.test.mjs",
            NODE_TESTS.replace("it('two',", "it.todo('two',"),
        ),
        (
            "renamed",
            "app.test.mjs",
            NODE_TESTS.replace(
                "it('two', () => assert.strictEqual(double(2), 4))",
                "it('too', () => {})",
            ),
        ),
        (
            "suite renamed",
            "app.test.mjs",
            NODE_TESTS.replace("describe('double', ", "describe.skip('double', "),
        ),
        ("emptied", "app.test.mjs", String::new()),
    ] {
        NODE.attack(&house, what, &[(file, &text)]);
    }
    let planted = [write("node", "#!/bin/sh\nexit 0\n"), shell("chmod +x node")];
    assert_eq!(
        NODE.attack_by(&house, "a planted node", &planted).codes(),
        ["verification_failed"]
    );
}

#[test]
fn npm_and_its_configuration() {
    if !Path::new("/usr/bin/npm").exists() {
        assert!(std::env::var_os("REQUIRE_NPM").is_none(), "npm is not here");
        return;
    }
    let house = house();
    NPM.honest(
        &house,
        "the fix",
        &[(
            "package.json",
            "{\"name\": \"x\", \"scripts\": {\"test\": \"node --test\"}}\n",
        )],
    );
    for (what, command) in [
        ("exit 0", "exit 0"),
        ("or true", "node --test || true"),
        ("only", "node --test --test-only"),
        (
            "a pattern",
            "node --test --test-name-pattern=zero --test-name-pattern=cto",
        ),
        (
            "red only with the control",
            "node --test > out.txt; cat out.txt; ! grep -q 'cto control' out.txt",
        ),
    ] {
        NPM.attack(
            &house,
            what,
            &[(
                "package.json",
                &format!("{{\"scripts\": {{\"test\": \"{command}\"}}}}\n"),
            )],
        );
    }
    for (what, text) in [
        ("script-shell", "script-shell=/bin/true\n"),
        ("node-options", "node-options=--require=./exit.cjs\n"),
    ] {
        NPM.attack(
            &house,
            what,
            &[(".npmrc", text), ("exit.cjs", "process.exit(0);\n")],
        );
    }
    let bin = [
        shell("mkdir -p node_modules/.bin"),
        write("node_modules/.bin/node", "#!/bin/sh\nexit 0\n"),
        shell("chmod +x node_modules/.bin/node"),
    ];
    NPM.attack_by(&house, "node_modules/.bin", &bin);
}
