//! A pass says that the checks loaded the change, and how far their green is believed. Beside each
//! trick stands its honest twin.

use cto_testkit::{Bundle, Case, Forged, script, shell, write};
use serde_json::{Value, json};

use super::{repository, tried};
use crate::fixtures::people::houses;
use crate::fixtures::project::{BUG, FIXED};
use crate::{assert_bad, assert_good, house};

const TESTS: &str = "import unittest\n\nfrom app import double\n\n\nclass DoubleTest(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(double(0), 0)\n";
/// The same, with imports that begin elsewhere.
fn tests_in(dir: &str) -> String {
    format!("import sys\nsys.path.insert(0, {dir:?})\n{TESTS}")
}

#[track_caller]
fn assert_codes(bundle: &Bundle, codes: &[&str]) {
    let why = format!(
        "{} {}",
        bundle.report()["blockers"],
        bundle.text("test.log")
    );
    assert_eq!(bundle.codes(), codes, "{why}");
    let want = if codes.is_empty() { "pass" } else { "blocked" };
    assert_eq!(bundle.status(), want, "{why}");
}

fn word(bundle: &Bundle) -> String {
    let report = bundle.report();
    report["belief"]["word"]
        .as_str()
        .unwrap_or("absent")
        .to_owned()
}

fn files(bundle: &Bundle) -> (u64, u64) {
    let belief = &bundle.report()["belief"];
    let count = |name: &str| belief[name].as_u64().unwrap();
    (count("files_seen"), count("files"))
}

#[test]
fn a_command_that_cannot_fail_is_no_pass() {
    for house in houses() {
        let repo = repository(
            &house,
            "nothing",
            &[("app.py", BUG), ("note.txt", "wrong\n")],
        );
        let fix = [write("app.py", FIXED)];
        for command in ["true", "python3 -c pass", "test -d ."] {
            let bundle = tried(&house, &repo, &fix, &["--test", command]);
            assert_codes(&bundle, &["change_not_checked", "verification_unproven"]);
            assert_eq!(word(&bundle), "none");
            let page = bundle.text("report.md");
            assert!(!page.contains("fail where they must"), "{page}");
            let accepted = ["--test", command, "--unchecked", "it is only tried"];
            let bundle = tried(&house, &repo, &fix, &accepted);
            assert_codes(&bundle, &[]);
            assert_eq!(word(&bundle), "none");
            let page = bundle.text("report.md");
            assert!(
                page.contains("nothing shows that they could have failed"),
                "{page}"
            );
            assert!(page.contains("it is only tried"), "{page}");
            let contract = bundle.json("contract.json");
            assert_eq!(contract["unchecked"], "it is only tried");
        }
        let bundle = tried(
            &house,
            &repo,
            &[write("note.txt", "right\n")],
            &["--test", "grep -qx right note.txt"],
        );
        assert_codes(&bundle, &[]);
        assert_eq!((word(&bundle).as_str(), files(&bundle)), ("partly", (1, 1)));
        let result = bundle.bytes("attestations/test-result.json");
        assert!(!result.is_empty());
    }
}

/// One red command answers for itself alone.
#[test]
fn every_command_is_believed_for_itself() {
    let house = house();
    let repo = repository(&house, "each", &[("app.py", BUG), ("test_app.py", TESTS)]);
    let fix = [write("app.py", FIXED)];
    let suite = ["--test", "python3 -m unittest"];
    let bundle = tried(&house, &repo, &fix, &suite);
    assert_codes(&bundle, &[]);
    assert_eq!((word(&bundle).as_str(), files(&bundle)), ("proven", (1, 1)));
    let both = [&suite[..], &["--test", "true"]].concat();
    let bundle = tried(&house, &repo, &fix, &both);
    assert_codes(&bundle, &["verification_unproven"]);
    let lines = bundle.report()["verification"].clone();
    assert_eq!(
        (&lines[0]["belief"], &lines[1]["belief"]),
        (&json!("proven"), &json!("none"))
    );
    let linted = [&suite[..], &["--test", "python3 -m py_compile app.py"]].concat();
    let bundle = tried(&house, &repo, &fix, &linted);
    assert_codes(&bundle, &[]);
    let lines = bundle.report()["verification"].clone();
    assert_eq!(
        (&lines[0]["belief"], &lines[1]["belief"]),
        (&json!("proven"), &json!("partly"))
    );
    assert_eq!(word(&bundle), "proven");
}

/// A linter or a compiler has read the change; nothing ran it.
#[test]
fn who_only_reads_the_change_is_believed_in_part() {
    let house = house();
    let repo = repository(&house, "read", &[("app.py", BUG), ("test_app.py", TESTS)]);
    let fix = [write("app.py", FIXED)];
    for command in [
        "python3 -m py_compile app.py",
        // Red by the look of valid lines.
        "! grep -q getattr app.py && grep -q return app.py",
        "python3 -c 'import ast; ast.parse(open(\"app.py\").read())'",
    ] {
        let bundle = tried(&house, &repo, &fix, &["--test", command]);
        assert_codes(&bundle, &[]);
        assert_eq!(word(&bundle), "partly", "{command}");
        let bundle = tried(
            &house,
            &repo,
            &fix,
            &["--test", command, "--require-control"],
        );
        assert_codes(&bundle, &["verification_unproven"]);
    }
    let asked = ["--test", "python3 -m unittest", "--require-control"];
    assert_codes(&tried(&house, &repo, &fix, &asked), &[]);
}

/// The tests import an installed copy: every exit code, the control and every test are in order.
#[test]
fn checks_that_use_an_installed_copy_have_not_seen_the_change() {
    for house in houses() {
        let installed = tests_in("installed");
        let repo = repository(
            &house,
            "wheel",
            &[
                ("src/app.py", BUG),
                ("installed/app.py", BUG),
                ("test_app.py", &installed),
            ],
        );
        let broken = [write("src/app.py", "def double(n):\n    return 'wrong'\n")];
        let suite = ["--test", "python3 -m unittest"];
        let bundle = tried(&house, &repo, &broken, &suite);
        assert_codes(&bundle, &["change_not_checked"]);
        assert_eq!(files(&bundle), (0, 1));
        assert_eq!(bundle.report()["verification_control"]["red"], true);
        // A line in a test or in a configuration beside it does not make it seen.
        let more = [
            broken[0].clone(),
            write("test_app.py", &format!("{installed}\n# More.\n")),
            write("pyproject.toml", "[project]\nname = \"app\"\n"),
        ];
        let bundle = tried(&house, &repo, &more, &[&suite[..], &["--see-all"]].concat());
        assert_codes(&bundle, &["change_not_checked"]);
        assert_eq!(files(&bundle), (1, 3), "the test alone");
        let said = [&suite[..], &["--unchecked", "it is released by hand"]].concat();
        let bundle = tried(&house, &repo, &broken, &said);
        assert_codes(&bundle, &[]);
        assert_eq!(word(&bundle), "partly");
        assert!(bundle.text("report.md").contains("released by hand"));
    }
    let house = house();
    let editable = tests_in("src");
    let repo = repository(
        &house,
        "editable",
        &[("src/app.py", BUG), ("test_app.py", &editable)],
    );
    let honest = [write("src/app.py", FIXED)];
    let bundle = tried(&house, &repo, &honest, &["--test", "python3 -m unittest"]);
    assert_codes(&bundle, &[]);
    assert_eq!(word(&bundle), "proven");
}

/// What was built before is used again; and what is built anew is not.
#[test]
fn a_stale_build_has_not_seen_the_change() {
    let house = house();
    let tests = tests_in("out");
    let files = [
        ("src/app.py", BUG),
        (".gitignore", "out/\n"),
        ("test_app.py", tests.as_str()),
    ];
    let repo = repository(
        &house,
        "stale",
        &[&files[..], &[("kept/app.py", BUG)]].concat(),
    );
    let fix = [write("src/app.py", FIXED)];
    let stale = "mkdir -p out && cp kept/app.py out/app.py && python3 -m unittest";
    let bundle = tried(&house, &repo, &fix, &["--test", stale]);
    assert_codes(&bundle, &["change_not_checked"]);
    let built = "mkdir -p out && cp src/app.py out/app.py && python3 -m unittest";
    let bundle = tried(&house, &repo, &fix, &["--test", built]);
    assert_codes(&bundle, &[]);
    assert_eq!(
        (word(&bundle).as_str(), self::files(&bundle)),
        ("proven", (1, 1))
    );
    // By setup, which runs where the change fails as well.
    let repo = repository(&house, "set-up", &files);
    let copied = ["--setup", "mkdir -p out && cp src/app.py out/app.py"];
    let asked = [&["--test", "python3 -m unittest"][..], &copied].concat();
    assert_codes(&tried(&house, &repo, &fix, &asked), &[]);
}

#[test]
fn documentation_need_not_be_seen_unless_somebody_names_it() {
    let house = house();
    let repo = repository(
        &house,
        "documented",
        &[
            ("app.py", BUG),
            ("test_app.py", TESTS),
            ("README.md", "An app.\n"),
            ("docs/a.rst", "A\n"),
        ],
    );
    let suite = ["--test", "python3 -m unittest"];
    let pages = [write("README.md", "An app!\n"), write("docs/a.rst", "B\n")];
    let bundle = tried(&house, &repo, &pages, &suite);
    assert_codes(&bundle, &[]);
    assert_eq!(word(&bundle), "partly");
    assert_eq!(bundle.report()["belief"]["substance"], "only_documentation");
    let (both, strict) = (
        [pages[0].clone(), write("app.py", FIXED)],
        [&suite[..], &["--require-control"]].concat(),
    );
    let bundle = tried(&house, &repo, &both, &strict);
    assert_codes(&bundle, &[]);
    assert_eq!(files(&bundle), (1, 1), "the page is not counted");
    assert_codes(
        &tried(&house, &repo, &pages, &strict),
        &["verification_unproven"],
    );
    let named = [&suite[..], &["--test", "test -f README.md"]].concat();
    let bundle = tried(&house, &repo, &pages[..1], &named);
    assert!(
        bundle.has_code("change_not_checked"),
        "{:?}",
        bundle.codes()
    );
}

#[test]
fn a_deleted_file_is_put_back_and_fails() {
    let house = house();
    let load = "import runpy, glob\nfor file in sorted(glob.glob('plugins/*.py')):\n    runpy.run_path(file)\n";
    let repo = repository(
        &house,
        "deleted",
        &[
            ("plugins/a.py", "A = 1\n"),
            ("plugins/b.py", "B = 1\n"),
            ("unused.py", "C = 1\n"),
            ("load.py", load),
        ],
    );
    let asked = ["--test", "python3 load.py"];
    let bundle = tried(&house, &repo, &[shell("rm plugins/b.py")], &asked);
    assert_codes(&bundle, &[]);
    let run = bundle.event("verification.completed").unwrap();
    assert_eq!(run["loading"]["files"][0]["put_back"], true);
    let bundle = tried(&house, &repo, &[shell("rm unused.py")], &asked);
    assert!(
        bundle.has_code("change_not_checked"),
        "{:?}",
        bundle.codes()
    );
}

/// Nothing that was taken out of the loading control, or called otherwise, leaves a good bundle.
#[test]
fn a_loading_control_that_was_made_nicer_is_found_out() {
    let house = house();
    let case = Case::new("nicer")
        .allowed("[\"*\", \"*/\"]")
        .commands("[\"python3 -m unittest\"]")
        .control("{ runner = \"unittest\" }")
        .file("workspace/app.py", BUG)
        .file("workspace/test_app.py", TESTS);
    let steps = script(&[
        write("app.py", FIXED),
        write("test_app.py", &format!("{TESTS}\n# More.\n")),
        write("README.md", "An app.\n"),
    ]);
    let (answer, bundle) = house.run(&house.case(&case), &steps, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 7] = [
        ("no rounds", |run| run["rounds"] = json!([])),
        ("no loading control", |run| *run = Value::Null),
        ("a round less", |run| {
            drop(run["rounds"].as_array_mut().unwrap().pop())
        }),
        ("code called documentation", |run| {
            run["files"][1]["not_code"] = "documentation".into();
        }),
        ("a file left out", |run| {
            drop(run["files"].as_array_mut().unwrap().remove(1))
        }),
        ("only documentation", |run| {
            run["substance"] = "only_documentation".into();
        }),
        ("a test decides", |run| {
            run["rounds"][0]["files"] = json!(["test_app.py"]);
        }),
    ];
    for (what, edit) in edits {
        let forged = Forged::copy_of(&bundle);
        forged.edit_event("verification.completed", |done| edit(&mut done["loading"]));
        forged.reseal();
        assert_bad(&forged.bundle(), what);
    }
}

/// What setup or a check writes into measured code is neither what was measured nor what is applied.
#[test]
fn what_was_measured_is_what_is_checked() {
    let house = house();
    let files = [
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("notes.txt", "a\n"),
        ("made.py", "A = 1\n"),
    ];
    let repo = repository(&house, "rewritten", &files);
    let broken = [write("app.py", "def double(n):\n    return 'wrong'\n")];
    let suite = ["--test", "python3 -m unittest"];
    let mend = "test ! -e other.py || printf 'def double(n):\\n    return n\\n' > app.py";
    let with = [&broken[..], &[write("other.py", "B = 1\n")]].concat();
    for more in [["--setup", mend], ["--test", mend]] {
        let bundle = tried(&house, &repo, &with, &[&more[..], &suite].concat());
        let told = bundle.report()["blockers"][0].clone();
        assert_eq!(told["code"], "verification_untrusted", "{more:?} {told}");
        assert!(
            told["detail"].as_str().unwrap().contains("app.py"),
            "{told}"
        );
    }
    // Honest: other files, and code that the same commands write to whatever was changed.
    let fix = [write("app.py", FIXED), write("other.py", "B = 1\n")];
    for (command, rewritten) in [
        (
            "test ! -e other.py || echo b > notes.txt",
            json!(["notes.txt"]),
        ),
        ("echo b > notes.txt", Value::Null),
        ("date +A=%s%N > made.py", Value::Null),
    ] {
        let asked = [&suite[..], &["--test", command]].concat();
        let bundle = tried(&house, &repo, &fix, &asked);
        let told = &bundle.report()["blockers"];
        assert!(
            !bundle.has_code("verification_untrusted"),
            "{command}: {told}"
        );
        let found = &bundle.report()["observed"]["rewritten_files"];
        assert_eq!(*found, rewritten, "{command}");
    }
}

/// What tools leave behind is named, and no part of the change; what is asked for by name is.
#[test]
fn leftovers_are_named_and_left_out() {
    let house = house();
    let repo = repository(&house, "left", &[("app.py", BUG), ("test_app.py", TESTS)]);
    let left = "mkdir -p .pytest_cache/v pkg/__pycache__ && echo 1 > .pytest_cache/v/x && echo 1 > pkg/__pycache__/a.pyc && echo 1 > .coverage && cp app.py app.py.orig";
    let steps = [shell(left), write("app.py", FIXED)];
    let asked = ["--test", "python3 -m unittest", "--allow", "app.py"];
    let (_, bundle) = house.try_on(&repo, &script(&steps), &asked);
    assert_good(&bundle);
    assert_codes(&bundle, &[]);
    assert_eq!(bundle.changed_files(), ["app.py"]);
    let found = bundle.report()["observed"]["leftovers"].clone();
    let names = [
        ".coverage",
        ".pytest_cache/v/x",
        "app.py.orig",
        "pkg/__pycache__/a.pyc",
    ];
    assert_eq!(found, json!(names));
    assert!(bundle.text("report.md").contains("app.py.orig"));
    // Its own name was asked for, or nobody's tool makes it.
    let steps = [shell("cp app.py app.py.orig"), write("app.py", FIXED)];
    let named = [
        &asked[..],
        &["--allow", "app.py.orig", "--unchecked", "kept"],
    ]
    .concat();
    let (_, bundle) = house.try_on(&repo, &script(&steps), &named);
    assert_eq!(bundle.changed_files(), ["app.py", "app.py.orig"]);
    let steps = [shell("echo 1 > other.orig"), write("app.py", FIXED)];
    let (_, bundle) = house.try_on(&repo, &script(&steps), &asked);
    assert_eq!(bundle.codes(), ["disallowed_file_change"]);
}

/// Tests by the names people use, and inside a file, are named to people when they change.
#[test]
fn changed_tests_are_named() {
    let house = house();
    let rust = "pub fn one() -> i32 { 1 }\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn one() { assert_eq!(super::one(), 1) }\n}\n";
    let files = [
        ("app.py", BUG),
        ("test_app.py", TESTS),
        ("web/__tests__/a.js", "1\n"),
        ("lib/a.spec.ts", "1\n"),
        ("src/lib.rs", rust),
        ("src/other.rs", rust),
    ];
    let repo = repository(&house, "named", &files);
    let steps = [
        write("app.py", FIXED),
        write("web/__tests__/a.js", "2\n"),
        write("lib/a.spec.ts", "2\n"),
        write(
            "src/lib.rs",
            &rust.replace("assert_eq!(super::one(), 1)", ""),
        ),
        write("src/other.rs", &rust.replace("{ 1 }", "{ 2 - 1 }")),
    ];
    let bundle = tried(&house, &repo, &steps, &["--test", "python3 -m unittest"]);
    let found = bundle.report()["observed"]["changed_test_files"].clone();
    assert_eq!(
        found,
        json!(["lib/a.spec.ts", "src/lib.rs", "web/__tests__/a.js"])
    );
    for page in ["lib/a.spec.ts", "src/lib.rs", "web/__tests__/a.js"] {
        assert!(bundle.text("report.md").contains(page));
    }
    // A module that the runner would import in the place of Python's own.
    let steps = [write("app.py", FIXED), write("difflib.py", "x = 1\n")];
    let bundle = tried(&house, &repo, &steps, &["--test", "python3 -m unittest"]);
    assert_eq!(bundle.codes(), ["verification_untrusted"]);
}
