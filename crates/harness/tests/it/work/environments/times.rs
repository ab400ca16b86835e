//! Never stale: what a tool made of other bytes is made again, and what it made of these is not.
//! Proven with make, whose rules are times and nothing else, over output that the operator names;
//! in both kinds of workspace, with output that is copied and output below an overlay.

use std::fs;
use std::process::Command;

use cto_testkit::{shell, write};

use super::*;

/// `make test` is green where `out/result` says `right`, which is made of two files and a directory.
const MAKEFILE: &str = "test: out/result out/list\n\tgrep -qx right out/result\n\tgrep -qx parts/a out/list\n\n\
out/result: answer.txt header.txt\n\tcat answer.txt header.txt > out/result\n\techo made >> made.log\n\n\
out/list: parts\n\tls -d parts/* > out/list\n\techo listed >> made.log\n";

/// What `make` has made is there, and as many other files as asked for.
pub(super) fn built(house: &House, files: usize) -> Repo {
    let repo = Repo::new(house, "built");
    for (path, text) in [
        (".gitignore", "*.log\n/out/\n"),
        ("Makefile", MAKEFILE),
        ("answer.txt", "right\n"),
        ("header.txt", "one\n"),
        ("notes.txt", "old\n"),
        ("parts/a", "a\n"),
        ("parts/b", "b\n"),
    ] {
        repo.write(path, text);
    }
    repo.commit("a project");
    for file in [
        "answer.txt",
        "header.txt",
        "parts/a",
        "parts/b",
        "parts",
        "Makefile",
    ] {
        age(&repo, file, 1_000);
    }
    install(&repo, "out", files);
    make(&repo);
    repo
}

pub(super) fn make(repo: &Repo) {
    let made = Command::new("make")
        .arg("-s")
        .current_dir(&repo.dir)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::remove_file(repo.at("made.log")).unwrap_or_default();
}

/// Makes a file older by some seconds.
pub(super) fn age(repo: &Repo, path: &str, seconds: u64) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
    fs::File::open(repo.at(path))
        .unwrap()
        .set_modified(then)
        .unwrap();
}

fn every_way(each: impl Fn(&str, &House, usize)) {
    for kind in KINDS {
        for (files, carried) in SIZES {
            each(&format!("{kind}, {carried}"), &house_with(kind), files);
        }
    }
}

const WITH: [&str; 4] = ["--input", "out", "--test", "make -s test"];

#[test]
fn what_was_made_of_these_bytes_is_not_made_again() {
    every_way(|what, house, files| {
        let repo = built(house, files);
        let test = "make -s test && test ! -e made.log";
        let steps = [
            write("notes.txt", "new\n"),
            shell("make -s test && test ! -e made.log"),
        ];
        let more = ["--input", "out", "--test", test];
        let (answer, bundle) = attempt(house, &repo, &steps, &more);
        assert_passed(&answer, &bundle, what);
        assert_eq!(bundle.changed_files(), ["notes.txt"], "{what}");
        // Once more, with what the first run kept.
        let (answer, bundle) = attempt(house, &repo, &steps, &more);
        assert_passed(&answer, &bundle, what);
    });
}

#[test]
fn a_change_of_equal_size_a_header_a_deletion_and_a_rename_are_seen() {
    every_way(|what, house, files| {
        let repo = built(house, files);
        for (change, steps) in [
            ("equal size", vec![write("answer.txt", "wrong\n")]),
            (
                "a header",
                vec![
                    write(
                        "Makefile",
                        &MAKEFILE.replace("grep -qx right", "! grep -qx two"),
                    ),
                    write("header.txt", "two\n"),
                ],
            ),
            ("a deletion", vec![shell("rm parts/a")]),
            ("a rename", vec![shell("mv parts/a parts/c")]),
        ] {
            let (answer, bundle) = attempt(house, &repo, &steps, &WITH);
            assert_eq!(
                answer.code,
                Some(1),
                "{what}: {change} is hidden: {}",
                bundle.text("test.log")
            );
            assert_eq!(bundle.codes(), ["verification_failed"], "{what}: {change}");
            crate::assert_good(&bundle);
        }
    });
}

#[test]
fn a_commit_that_is_not_checked_out_is_not_taken_for_what_is() {
    every_way(|what, house, files| {
        let repo = built(house, files);
        // HEAD is red; the work tree is green, older than what was made of it, and left out.
        repo.write("answer.txt", "wrong\n");
        repo.commit("a bug");
        repo.write("answer.txt", "right\n");
        age(&repo, "answer.txt", 500);
        make(&repo);
        let more = [&WITH[..], &["--from-head"]].concat();
        for round in ["first", "again"] {
            let (answer, bundle) = attempt(house, &repo, &[write("notes.txt", "n\n")], &more);
            assert_eq!(
                answer.code,
                Some(1),
                "{what}, {round}: {}",
                bundle.text("test.log")
            );
            // The owner builds once more: what is kept of HEAD is older than that.
            fs::remove_file(repo.at("out/result")).unwrap();
            make(&repo);
        }
    });
}

#[test]
fn a_control_is_red_over_what_was_made_before_it() {
    every_way(|what, house, files| {
        let repo = built(house, files);
        let patch = house.root().join("control.patch");
        let text = "--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+wrong\n";
        fs::write(&patch, text).unwrap();
        let more = [&WITH[..], &["--control", patch.to_str().unwrap()]].concat();
        let (answer, bundle) = attempt(house, &repo, &[write("notes.txt", "n\n")], &more);
        assert_passed(&answer, &bundle, what);
        assert_eq!(
            bundle.report()["verification_control"]["red"],
            true,
            "{what}"
        );
    });
}

#[test]
fn output_from_the_future_is_not_there() {
    every_way(|what, house, files| {
        let repo = built(house, files);
        let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(3_600);
        let result = fs::File::open(repo.at("out/result")).unwrap();
        result.set_modified(ahead).unwrap();
        let test = "test ! -e out && grep -qx wrong answer.txt";
        let more = ["--input", "out", "--test", test];
        let (answer, bundle) = attempt(house, &repo, &[write("answer.txt", "wrong\n")], &more);
        // Named and not there is said, and nothing of it is shown.
        let used = environment(&bundle, "out");
        assert_eq!(used["carried"], "not", "{what}");
        assert!(
            used["why"].as_str().unwrap().contains("younger than now"),
            "{used}"
        );
        assert_passed(&answer, &bundle, what);
    });
}

#[test]
fn what_a_compiler_keeps_in_an_environment_is_not_from_the_future() {
    for (place, file) in [
        ("node_modules", ".tmp/app.tsbuildinfo"),
        (".tox", ".pkg/dist/app.whl"),
        (".nox", "tests/tmp/built"),
    ] {
        for (files, carried) in SIZES {
            let house = house_with("copy");
            let repo = repo_ignoring(&house, "ahead");
            repo.write(".gitignore", "node_modules\n.tox\n.nox\n");
            repo.commit("ignored");
            install(&repo, place, files);
            let file = format!("{place}/{file}");
            repo.write(&file, "made\n");
            let more = ["--test", "grep -qx right answer.txt"];
            let steps = [write("answer.txt", "right\n")];
            let (answer, bundle) = attempt(&house, &repo, &steps, &more);
            assert_passed(&answer, &bundle, place);
            assert_eq!(environment(&bundle, place)["carried"], carried, "{place}");
            let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(3_600);
            let made = fs::File::open(repo.at(&file)).unwrap();
            made.set_modified(ahead).unwrap();
            let (_, bundle) = attempt(&house, &repo, &steps, &more);
            let used = environment(&bundle, place);
            assert_eq!(used["carried"], "not", "{place}: {used}");
            assert!(used["why"].as_str().unwrap().contains("younger"), "{used}");
        }
    }
}

#[test]
fn compiled_python_beside_its_source_stays_at_home() {
    let house = house_with("copy");
    let repo = Repo::new(&house, "compiled");
    repo.write(".gitignore", "__pycache__/\n*.pyc\n");
    repo.write("app.py", "def answer():\n    return 1\n");
    repo.write("test_app.py", "import unittest\nfrom app import answer\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(answer(), 1)\n");
    repo.commit("a module");
    // Compiled so that Python believes it whatever its source says.
    let compile = "import py_compile; py_compile.compile('app.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)";
    let done = Command::new("/usr/bin/python3")
        .args(["-c", compile])
        .current_dir(&repo.dir)
        .status();
    assert!(done.unwrap().success() && repo.at("__pycache__").is_dir());
    let broken = write("app.py", "def answer():\n    return 2\n");
    let test = "/usr/bin/python3 -m unittest";
    let (answer, bundle) = attempt(&house, &repo, &[broken], &["--test", test]);
    assert_eq!(answer.code, Some(1), "{}", bundle.text("test.log"));
}

#[test]
fn compiled_python_that_is_named_is_not_taken_for_what_changed() {
    // Python asks a file's second and size, and nothing else.
    let house = house_with("copy");
    let repo = Repo::new(&house, "named");
    repo.write(".gitignore", "__pycache__/\n");
    repo.write("app.py", "def answer():\n    return 1\n");
    repo.write("test_app.py", "import unittest\nfrom app import answer\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(answer(), 1)\n");
    repo.commit("a module");
    let test = "/usr/bin/python3 -m unittest";
    let compile = || {
        let done = Command::new("/usr/bin/python3")
            .args(["-m", "unittest", "-q"])
            .current_dir(&repo.dir)
            .env_remove("PYTHONDONTWRITEBYTECODE")
            .output();
        assert!(done.unwrap().status.success() && repo.at("__pycache__").is_dir());
    };
    compile();
    let more = ["--input", "__pycache__", "--test", test];
    let equal_size = write("app.py", "def answer():\n    return 2\n");
    for (what, steps, code) in [
        (
            "a comment",
            vec![write("app.py", "# Why.\ndef answer():\n    return 1\n")],
            0,
        ),
        ("equal size", vec![equal_size], 1),
        ("a deletion", vec![shell("rm app.py")], 1),
    ] {
        let (answer, bundle) = attempt(&house, &repo, &steps, &more);
        assert_eq!(
            answer.code,
            Some(code),
            "{what}: {}",
            bundle.text("test.log")
        );
    }
    // HEAD is broken, and its owner has just compiled what is not; the clock of both is one second.
    repo.write("app.py", "def answer():\n    return 2\n");
    repo.commit("a bug");
    repo.write("app.py", "def answer():\n    return 1\n");
    compile();
    let more = [&more[..], &["--from-head"]].concat();
    let (answer, bundle) = attempt(&house, &repo, &[write("notes", "n\n")], &more);
    assert_eq!(answer.code, Some(1), "{}", bundle.text("test.log"));
}
