//! `cto doctor --repo`: what the tests of a repository are worth, before anything is tried with them.

use cto_testkit::{Answer, House, Repo};

use crate::house;

fn project(house: &House, name: &str, test: &str) -> Repo {
    let repo = Repo::new(house, name);
    repo.write(
        "greet.py",
        "def greet(name):\n    return 'Hello, ' + name\n",
    );
    repo.write("test_greet.py", test);
    repo.commit("a project");
    repo
}

const GREEN: &str = "import unittest\nfrom greet import greet\n\nclass Greet(unittest.TestCase):\n    def test_comma(self):\n        self.assertEqual(greet('you'), 'Hello, you')\n";

fn look(house: &House, repo: &Repo, more: &[&str]) -> Answer {
    let before = repo.bytes();
    let args = [&["doctor", "--repo", repo.path(), "--json"][..], more].concat();
    let answer = house.cto(&args);
    assert_eq!(answer.stderr, "", "{answer:?}");
    assert_eq!(repo.bytes(), before);
    // Nothing is left that could be taken for a try.
    assert!(house.run_dirs().is_empty(), "{answer:?}");
    assert!(
        house.work_entries().is_empty(),
        "{:?}",
        house.work_entries()
    );
    answer
}

#[test]
fn tests_that_work_and_how_far_they_are_believed() {
    let house = house();
    let repo = project(&house, "works", GREEN);
    for (more, from, belief) in [
        (&[][..], "proposed, from test_greet.py", "proven"),
        (
            &["--test", "sh -c 'python3 test_greet.py'"],
            "typed",
            "partly",
        ),
        (&["--test", "python3 -m unittest || true"], "typed", "none"),
    ] {
        let answer = look(&house, &repo, more);
        let document = answer.json();
        assert_eq!(answer.code, Some(0), "{document}");
        assert_eq!(document["ending"], "works", "{document}");
        assert_eq!(document["from"], from, "{document}");
        assert_eq!(document["belief"], belief, "{more:?}: {document}");
        assert_eq!(document["hint"].is_null(), belief == "proven", "{document}");
        assert!(document["tests"][0]["duration_ms"].as_u64().is_some());
    }
    // What is not committed is no part of it.
    repo.write("greet.py", "broken(\n");
    assert_eq!(look(&house, &repo, &[]).code, Some(0));
    let set = [
        "project",
        "set",
        "--repo",
        repo.path(),
        "--test",
        "python3 -m unittest -v",
    ];
    assert_eq!(house.cto(&set).code, Some(0));
    let shown = house.cto(&["doctor", "--repo", repo.path()]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for words in [
        "WORKS",
        "python3 -m unittest -v  (remembered)",
        "belief",
        "proven",
    ] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    let listed = house.cto(&["runs", "--json"]).json();
    assert_eq!(listed["total"], 0, "{listed}");
}

#[test]
fn tests_that_are_red_and_what_they_said() {
    let house = house();
    let repo = project(&house, "red", &GREEN.replace("Hello, you", "Goodbye"));
    let answer = look(&house, &repo, &[]);
    let document = answer.json();
    assert_eq!(
        (answer.code, &document["ending"]),
        (Some(1), &"red".into()),
        "{document}"
    );
    assert!(document["belief"].is_null());
    assert!(
        document["said"].to_string().contains("FAILED"),
        "{document}"
    );
    assert!(
        document["hint"].to_string().contains("--input"),
        "{document}"
    );
    assert_eq!(document["blockers"][0]["code"], "verification_failed");
}

#[test]
fn a_program_that_is_missing_and_the_flag_that_mends_it() {
    let house = house();
    let repo = project(&house, "lacks", GREEN);
    for test in ["no-such-program-x7 --all", "sh -c 'no-such-program-x7'"] {
        let answer = look(&house, &repo, &["--test", test]);
        let document = answer.json();
        assert_eq!(answer.code, Some(3), "{document}");
        assert_eq!(document["ending"], "blocked", "{document}");
        let codes = document["blockers"].to_string();
        assert!(codes.contains("toolchain_unavailable"), "{test}: {codes}");
        assert!(codes.contains("no-such-program-x7"), "{test}: {codes}");
        assert!(
            document["hint"].to_string().contains("--toolchain"),
            "{document}"
        );
    }
    // A setup that fails, an empty repository, and no repository.
    let answer = look(&house, &repo, &["--setup", "exit 7"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let nothing = Repo::new(&house, "nothing");
    let answer = house.cto(&["doctor", "--repo", nothing.path()]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("--test COMMAND"), "{answer:?}");
    let answer = house.cto(&["doctor", "--repo", house.root().to_str().unwrap()]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert_eq!(house.cto(&["doctor", "--test", "x"]).code, Some(2));
}
