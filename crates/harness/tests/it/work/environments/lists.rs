//! A change that asks for something that is not installed says nothing about the code: blocked, with
//! what is missing and which list asks for it. A module of the repository's own is the change's to
//! keep, and what a change prints makes nothing green.

use std::path::Path;
use std::process::Command;

use cto_testkit::{shell, skip, write};

use super::*;

const TEST: &str = "/usr/bin/python3 -m unittest -q test_app";

fn project(house: &House) -> Repo {
    let repo = repo_ignoring(house, "listed");
    for (path, text) in [
        (
            "pyproject.toml",
            "[project]\nname = \"app\"\nversion = \"1\"\n",
        ),
        (
            "app.py",
            "import near\n\n\ndef answer():\n    return near.ANSWER\n",
        ),
        ("near.py", "ANSWER = 1\n"),
        (
            "test_app.py",
            "import unittest\nfrom app import answer\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(answer(), 1)\n",
        ),
        ("go.mod", "module listed\n\ngo 1.18\n"),
        ("a.go", "package listed\n"),
    ] {
        repo.write(path, text);
    }
    repo.commit("a project");
    repo
}

fn asks_for(name: &str) -> String {
    let text = format!("[project]\nname = \"app\"\nversion = \"1\"\ndependencies = [\"{name}\"]\n");
    write("pyproject.toml", &text)
}

#[test]
fn a_module_that_a_changed_list_asks_for_blocks_where_it_is_missing() {
    let house = house_with("copy");
    let repo = project(&house);
    let import = write(
        "app.py",
        "import nosuchpkg.part\n\n\ndef answer():\n    return 1\n",
    );
    let mut rows = vec![(
        vec![asks_for("nosuchpkg"), import],
        TEST,
        "nosuchpkg",
        "pyproject.toml",
    )];
    if Path::new("/usr/bin/node").exists() {
        let steps = vec![
            write(
                "package.json",
                "{\"dependencies\": {\"nosuchpkg\": \"1\"}}\n",
            ),
            write("a.js", "require('nosuchpkg/lib');\n"),
        ];
        rows.push((steps, "node a.js", "nosuchpkg", "package.json"));
    }
    if Command::new("/usr/bin/go")
        .arg("version")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        let steps = vec![
            write(
                "go.mod",
                "module listed\n\ngo 1.18\n\nrequire example.com/nosuch v1.0.0\n",
            ),
            write(
                "a.go",
                "package listed\n\nimport _ \"example.com/nosuch\"\n",
            ),
        ];
        rows.push((steps, "go vet ./...", "example.com/nosuch", "go.mod"));
    }
    for (steps, test, module, listed) in rows {
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", test]);
        let log = bundle.text("test.log");
        assert_eq!(bundle.status(), "blocked", "{test}: {answer:?} {log}");
        assert_eq!(bundle.codes(), ["toolchain_unavailable"], "{test}: {log}");
        let why = bundle.report()["blockers"].to_string();
        for word in [module, listed, "the environment is the one from before"] {
            assert!(why.contains(word), "{test}: {why}");
        }
        assert_eq!(bundle.report()["tests_passed"], false);
        crate::assert_good(&bundle);
        // Whoever makes it a list that did not change is found out.
        let forged = cto_testkit::Forged::copy_of(&bundle);
        forged.edit_event("verification.completed", |event| {
            event["missing_modules"][0]["lists"] = serde_json::json!(["uv.lock"]);
        });
        crate::assert_bad(&forged.reseal().bundle(), "a list that did not change");
        // So is whoever names a module that the patch does not ask for. Older rules did not look.
        let forged = cto_testkit::Forged::copy_of(&bundle);
        forged.edit_event("verification.completed", |event| {
            event["missing_modules"][0]["modules"] = serde_json::json!(["other"]);
        });
        forged.edit_report(|report| {
            let detail = report["blockers"][0]["detail"].as_str().unwrap();
            let detail = detail.replace(&format!("find {module},"), "find other,");
            report["blockers"][0]["detail"] = detail.into();
        });
        let found = crate::assert_bad(&forged.reseal().bundle(), "another module");
        let said = format!("{:?}", found.problems);
        assert!(said.contains("the patch does not ask for"), "{said}");
    }
}

#[test]
fn everything_else_that_is_missing_is_the_changes_fault() {
    let house = house_with("copy");
    let repo = project(&house);
    let broken = write("app.py", "def answer():\n    return 2\n");
    let import = || {
        write(
            "app.py",
            "import nosuchpkg\n\n\ndef answer():\n    return 1\n",
        )
    };
    for (what, steps) in [
        ("no list", vec![import()]),
        (
            "a list of another language",
            vec![import(), write("package.json", "{\"x\": 1}\n")],
        ),
        (
            "a module of its own is gone",
            vec![asks_for("x"), shell("rm near.py")],
        ),
        ("only broken", vec![asks_for("x"), broken.clone()]),
        (
            "a list that changed otherwise",
            vec![import(), asks_for("another")],
        ),
        (
            "a list that takes it away",
            vec![
                write(
                    "app.py",
                    "import colections\n\n\ndef answer():\n    return 1\n",
                ),
                shell("sed -i '/version/d' pyproject.toml"),
            ],
        ),
    ] {
        let (answer, bundle) = attempt(&house, &repo, &steps, &["--test", TEST]);
        assert_eq!(answer.code, Some(1), "{what}: {answer:?}");
        assert_eq!(bundle.codes(), ["verification_failed"], "{what}");
    }
    // What a suite says at every run is no reason, and words make nothing green, and nothing that is
    // green blocked.
    let says = "echo \"ModuleNotFoundError: No module named 'nosuchpkg'\"";
    let red = format!("{TEST} || {{ {says}; false; }}");
    let (answer, bundle) = attempt(&house, &repo, &[asks_for("x"), broken], &["--test", &red]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(bundle.codes(), ["verification_failed"]);
    let green = format!("{says}; {TEST}");
    let (answer, bundle) = attempt(&house, &repo, &[asks_for("x")], &["--test", &green]);
    assert_passed(&answer, &bundle, "said by a green test");
    if !Path::new("/usr/bin/node").exists() {
        skip("there is no node: its words were not tried");
    }
}
