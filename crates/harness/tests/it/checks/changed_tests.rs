//! Tests that a task renames, moves, merges or removes: said ahead they may be missing, and nothing
//! else can say it. Names with a part that changes by itself are found again.

use cto_testkit::{Bundle, House, Repo, script, shell, write};

use crate::fixtures::people::houses;
use crate::fixtures::project::{BUG, FIXED, Project, TESTS, UNITTEST};
use crate::{assert_good, house};

fn repository(house: &House) -> Repo {
    let repo = Repo::new(house, "renaming");
    repo.write("app.py", BUG);
    repo.write("test_app.py", TESTS);
    repo.commit("the beginning");
    house.hand_over(&repo.dir);
    repo
}

fn tried(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> (Bundle, String) {
    let asked = [&["--allow", ".", "--test", "python3 -m unittest"][..], more].concat();
    let (answer, bundle) = house.try_on(repo, &script(steps), &asked);
    assert!(!answer.panicked(), "{answer:?}");
    assert_good(&bundle);
    (bundle, answer.stdout)
}

fn renamed() -> Vec<String> {
    let tests = TESTS.replace("test_two", "test_double_of_two");
    vec![write("app.py", FIXED), write("test_app.py", &tests)]
}

#[test]
fn a_task_says_which_tests_it_changes() {
    for house in houses() {
        let repo = repository(&house);
        let id = "test_app.DoubleTest.test_two";
        let (without, _) = tried(&house, &repo, &renamed(), &[]);
        assert_eq!(without.codes(), ["verification_untrusted"]);
        let detail = without.report()["blockers"][0]["detail"].to_string();
        assert!(detail.contains("--changed-test"), "{detail}");
        for (asked, reason) in [
            (id.to_owned(), ""),
            (
                format!("{id}=called by what it does"),
                " (called by what it does)",
            ),
            (
                "test_app.*.test_two=called by what it does".to_owned(),
                " (called by what it does)",
            ),
        ] {
            let more = ["--changed-test", &asked];
            let (bundle, _) = tried(&house, &repo, &renamed(), &more);
            assert_eq!(bundle.status(), "pass", "{}", bundle.text("test.log"));
            let report = bundle.report();
            let tests = &report["belief"]["tests"];
            assert_eq!(tests["changed"][0], format!("{id}: not there{reason}"));
            let contract = bundle.json("contract.json");
            assert!(contract["tests_may_change"][0]["id"].is_string());
            let page = bundle.text("report.md");
            assert!(page.contains(&format!("{id}: not there{reason}")), "{page}");
            assert!(page.contains("tests that may change"), "{page}");
            let shown = house.cto(&["show", &bundle.run_id()]).stdout;
            assert!(shown.contains("may change: test_app."), "{shown}");
            assert_ne!(
                without.json("report.json")["task_digest"],
                report["task_digest"],
                "it is part of the task"
            );
        }
        // Another test than the one that was named.
        let more = ["--changed-test", "test_app.DoubleTest.test_zero"];
        let (bundle, _) = tried(&house, &repo, &renamed(), &more);
        assert_eq!(bundle.codes(), ["verification_untrusted"]);
    }
}

#[test]
fn words_that_name_no_test_are_refused() {
    let house = house();
    let repo = repository(&house);
    for text in ["", "*", "**=all of them", "test_app.X="] {
        let repo_dir = repo.dir.display().to_string();
        let words = [
            "try",
            "--repo",
            &repo_dir,
            "--allow",
            ".",
            "--test",
            "true",
            "--changed-test",
            text,
            "do it",
        ];
        let answer = house.cto(&words);
        assert_eq!(answer.code, Some(2), "{text:?}: {answer:?}");
    }
}

/// Whatever an engine writes, says or leaves: the list was sealed before it started.
#[test]
fn an_engine_adds_nothing_to_the_list() {
    let house = house();
    let allow = "tests_may_change = [\"test_app.*\"]\n";
    for (what, more) in [
        ("a case file", write("case.toml", allow)),
        (
            "a contract",
            write("contract.json", "{\"tests_may_change\": [{\"id\": \"*\"}]}"),
        ),
        ("settings", write(".cto/config.toml", allow)),
        ("a variable", shell("export CTO_CHANGED_TEST='test_app.*'")),
    ] {
        let steps = [renamed(), vec![more]].concat();
        let bundle = UNITTEST.play(&house, what, &steps);
        assert_eq!(bundle.codes(), ["verification_untrusted"], "{what}");
        let contract = bundle.json("contract.json");
        assert!(contract["tests_may_change"].is_null(), "{what}");
    }
}

#[test]
fn names_with_a_time_are_found_again() {
    let house = house();
    let clock = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { double } from './app.mjs';\ntest(`at ${Date.now()}`, () => assert.strictEqual(double(0), 0));\ntest(`on ${new Date().toISOString()}`, () => assert.strictEqual(double(2), 4));\n";
    let files: &'static [(&'static str, &'static str)] = Box::leak(Box::new([
        ("app.mjs", "export const double = (n) => n;\n"),
        ("app.test.mjs", clock),
    ]));
    let project = Project {
        runner: "node",
        command: "node --test",
        extra: "",
        files,
        fix: ("app.mjs", "export const double = (n) => 2 * n;\n"),
    };
    let bundle = project.honest(&house, "the fix", &[]);
    let tests = bundle.report()["belief"]["tests"].clone();
    assert_eq!(
        tests["renamed"],
        serde_json::json!(["app.test.mjs: at …", "app.test.mjs: on …"])
    );
    let page = bundle.text("report.md");
    assert!(page.contains("matched by a part of their names"), "{page}");
    let fewer = clock.replace("test(`at", "if (false) test(`at");
    project.told(
        &house,
        "one of them gone",
        &[("app.test.mjs", &fewer), ("app.mjs", project.fix.1)],
        "not there",
    );
}
