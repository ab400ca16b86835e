//! Runners are known as people write them: through variables, wrappers, scripts and Makefiles. A pass
//! through each of them is proven, and an early exit through each of them is none.

use cto_testkit::{Bundle, House, Repo, write};

use super::super::{repository, tried};
use crate::fixtures::project::{BUG, FIXED};
use crate::fixtures::runners::has_go;
use crate::house;

const TESTS: &str = "import unittest\n\nfrom app import double\n\n\nclass DoubleTest(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(double(0), 0)\n\n    def test_two(self):\n        self.assertEqual(double(2), 4)\n";
const MAKEFILE: &str = "PY ?= python3\n\n.PHONY: test sub\ntest: lint\n\t@$(PY) -m unittest $(ARGS)\n\nlint:\n\ttest -f app.py\n\nsub:\n\tcd . && $(MAKE) test\n";
const JUSTFILE: &str = "all:\n    make test\n";

#[track_caller]
fn assert_pass(bundle: &Bundle, word: &str, what: &str) {
    let why = format!(
        "{what}: {} {}",
        bundle.report()["blockers"],
        bundle.text("test.log")
    );
    assert_eq!(bundle.status(), "pass", "{why}");
    assert_eq!(bundle.report()["belief"]["word"], word, "{why}");
}

fn python(house: &House) -> Repo {
    repository(
        house,
        "recognised",
        &[
            ("app.py", BUG),
            ("test_app.py", TESTS),
            ("Makefile", MAKEFILE),
            ("justfile", JUSTFILE),
        ],
    )
}

#[test]
fn through_what_people_write_before_them() {
    let house = house();
    let repo = python(&house);
    let leaves = format!("import os\nos._exit(0)\n{BUG}");
    for command in [
        "A=1 python3 -m unittest",
        "env A=1 timeout 300 nice python3 -W ignore -m unittest",
        "cd . && python3 -m unittest -v",
        "sh -c 'python3 -m unittest'",
        "make test",
        "make -s sub",
    ] {
        let bundle = tried(
            &house,
            &repo,
            &[write("app.py", FIXED)],
            &["--test", command],
        );
        assert_pass(&bundle, "proven", command);
        let found = &bundle.json("contract.json")["recognised"][0]["found"];
        assert_eq!(found[0]["runner"], "unittest", "{command}");
    }
    for command in ["A=1 python3 -m unittest", "make test"] {
        let bundle = tried(
            &house,
            &repo,
            &[write("app.py", &leaves)],
            &["--test", command],
        );
        assert_eq!(bundle.codes(), ["verification_untrusted"], "{command}");
    }
}

/// What selects tests or stops early is widened for the control alone.
#[test]
fn a_selection_and_an_early_stop_are_trusted() {
    let house = house();
    let repo = python(&house);
    for (command, control) in [
        ("python3 -m unittest -f", "python3 -m unittest "),
        ("python3 -m unittest -k two", "python3 -m unittest "),
        (
            "python3 -m unittest test_app.DoubleTest.test_two",
            "python3 -m unittest ",
        ),
    ] {
        let bundle = tried(
            &house,
            &repo,
            &[write("app.py", FIXED)],
            &["--test", command],
        );
        assert_pass(&bundle, "proven", command);
        let done = bundle.event("verification.completed").unwrap();
        assert_eq!(done["checks"][0]["command"], command);
        assert_eq!(done["control"]["checks"][0]["command"], control);
    }
}

/// A change that makes the command into another one is named, and what the control showed is worth less.
#[test]
fn a_change_of_what_a_command_does_is_named() {
    let house = house();
    let repo = python(&house);
    let makefile = MAKEFILE.replace("-m unittest", "-m unittest -v");
    let steps = [write("app.py", FIXED), write("Makefile", &makefile)];
    let bundle = tried(&house, &repo, &steps, &["--test", "make test"]);
    assert_pass(&bundle, "partly", "altered");
    let done = bundle.event("verification.completed").unwrap();
    assert_eq!(done["recognised_otherwise"][0], "make test");
    let page = bundle.text("report.md");
    assert!(
        page.contains("the change altered what this command does"),
        "{page}"
    );
    let comment = format!("# a comment\n{MAKEFILE}");
    let steps = [write("app.py", FIXED), write("Makefile", &comment)];
    let bundle = tried(&house, &repo, &steps, &["--test", "make test"]);
    assert_pass(&bundle, "proven", "a comment");
}

/// Where nothing shows which runner it is, somebody says so.
#[test]
fn a_runner_can_be_named() {
    let house = house();
    let repo = repository(
        &house,
        "recognised",
        &[
            ("app.py", BUG),
            ("test_app.py", TESTS),
            ("check", "#!/bin/sh\nexec python3 -m unittest\n"),
        ],
    );
    let fix = [write("app.py", FIXED)];
    let bundle = tried(&house, &repo, &fix, &["--test", "sh ./check"]);
    assert_pass(&bundle, "partly", "nobody knows");
    let named = ["--test", "sh ./check", "--runner", "unittest"];
    let bundle = tried(&house, &repo, &fix, &named);
    assert_pass(&bundle, "proven", "named");
    let leaves = format!("import os\nos._exit(0)\n{BUG}");
    let bundle = tried(&house, &repo, &[write("app.py", &leaves)], &named);
    assert_eq!(bundle.codes(), ["verification_untrusted"]);
    let (answer, _) = (
        house.cto(&[
            "try", "--task", "x", "--allow", ".", "--test", "true", "--runner", "make",
        ]),
        (),
    );
    assert_eq!(answer.code, Some(2), "{answer:?}");
}

/// `ok` of a package that left before its tests ended is none.
#[test]
fn go_is_heard() {
    if !has_go() {
        return;
    }
    let house = house();
    let bug = "package app\n\nfunc Double(n int) int { return n }\n";
    let repo = repository(
        &house,
        "recognised",
        &[
            ("go.mod", "module example.com/app\n\ngo 1.19\n"),
            ("app.go", bug),
            (
                "app_test.go",
                "package app\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif Double(0) != 0 {\n\t\tt.Fatal(\"zero\")\n\t}\n}\n\nfunc TestTwo(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal(\"two\")\n\t}\n}\n",
            ),
        ],
    );
    let fixed = bug.replace("return n", "return 2 * n");
    let command = ["--test", "go test ./..."];
    let bundle = tried(&house, &repo, &[write("app.go", &fixed)], &command);
    assert_pass(&bundle, "proven", "go");
    let ids = bundle.json("test-ids.json");
    let named = ids["commands"][0]["baseline"].as_object().unwrap();
    assert!(named.contains_key("example.com/app: TestTwo"), "{named:?}");
    let leaves = format!(
        "package app\n\nimport \"os\"\n\nfunc init() {{ os.Exit(0) }}\n\n{}",
        &bug[13..]
    );
    let bundle = tried(&house, &repo, &[write("app.go", &leaves)], &command);
    assert_eq!(
        bundle.codes(),
        ["verification_untrusted"],
        "{}",
        bundle.text("test.log")
    );
}
