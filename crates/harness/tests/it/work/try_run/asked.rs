//! What a try may be asked for, and what it answers.

use std::fs;

use cto_testkit::{Repo, script, write};

use super::{assert_refused, fix, try_with};
use crate::assert_good;
use crate::house;

#[test]
fn a_try_passes_on_a_copy_and_leaves_the_source_alone() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let before = repo.bytes();
    let (answer, bundle) = try_with(&house, &repo, &fix(), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(repo.bytes(), before);
    let report = bundle.report();
    assert_eq!(
        (report["label"].as_str(), report["stage"].as_u64()),
        (Some("try"), Some(3))
    );
    assert_eq!(
        report["not_applicable"]["stage_proof"],
        "a try proves no stage"
    );
    assert_eq!(
        report["allowed_mutation_scope"],
        "copied local repository fixture only"
    );
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    let source = bundle.json("source.json");
    assert_eq!(source["record"]["class"], "owned_local");
    assert_eq!(
        source["source_head_before"],
        repo.git(&["rev-parse", "HEAD"])
    );
    assert_eq!(source["tree"], repo.git(&["rev-parse", "HEAD^{tree}"]));
    for (field, want) in [
        ("source_repository_mutated", false),
        ("copied_fixture_start_clean", true),
        ("copied_fixture_end_clean", true),
    ] {
        assert_eq!(source[field], want, "{field}");
    }
    for aspect in ["head", "status", "fingerprint"] {
        assert_eq!(
            source[format!("source_{aspect}_before")],
            source[format!("source_{aspect}_after")],
            "{aspect}"
        );
    }
    let contract = bundle.json("contract.json");
    assert_eq!(contract["mutation_mode"], "copied-repo");
    assert_eq!(contract["objective"], "Make the answer right");
    assert_eq!(contract["source"]["head"], source["source_head_before"]);
    assert!(
        !bundle.has("stage3-copied-repo-proof.json"),
        "a try proves no stage"
    );
    assert!(answer.json()["next"].as_str().unwrap().contains("apply"));
    assert!(house.work_entries().is_empty());
    assert_good(&bundle);
}

#[test]
fn allowed_paths_mean_files_directories_or_everything() {
    let house = house();
    let repo = Repo::new(&house, "scope");
    let steps = script(&[write("answer.txt", "right\n"), write("src/new.txt", "x\n")]);
    for (allow, code) in [
        (&["--allow", "answer.txt", "--allow", "src"][..], 0),
        (&["--allow", "."], 0),
        (&["--allow", "answer.txt"], 1),
        (&["--allow", ".", "--forbid", "src"], 1),
    ] {
        let (answer, bundle) = try_with(&house, &repo, &steps, allow);
        assert_eq!(answer.code, Some(code), "{allow:?}: {answer:?}");
        assert_good(&bundle);
    }
}

#[test]
fn what_is_no_repository_is_refused_with_a_bundle() {
    let house = house();
    let plain = Repo {
        dir: house.root().join("plain"),
    };
    fs::create_dir(&plain.dir).unwrap();
    let unborn = Repo {
        dir: house.root().join("unborn"),
    };
    fs::create_dir(&unborn.dir).unwrap();
    unborn.git(&["init", "-q"]);
    let bare = Repo {
        dir: house.root().join("bare"),
    };
    fs::create_dir(&bare.dir).unwrap();
    bare.git(&["init", "-q", "--bare"]);
    let other = Repo::of_format(&house, "other", "sha256");
    other.git(&["config", "extensions.objectFormat", "sha512"]);
    let missing = Repo {
        dir: house.root().join("missing"),
    };
    for repo in [&plain, &unborn, &bare, &other, &missing] {
        let bundle = assert_refused(&house, repo, &[], "source_not_admitted");
        assert!(!bundle.has("source.json"));
        assert_eq!(bundle.json("contract.json")["start_tree"], "not_seen");
    }
}

#[test]
fn a_closed_gate_keeps_the_source_unseen() {
    let house = house();
    // Nothing of it exists: a look would say so.
    let missing = house.root().join("missing");
    let args = [
        "try",
        "--repo",
        missing.to_str().unwrap(),
        "--task",
        "x",
        "--allow",
        "a",
        "--test",
        "true",
    ];
    let (answer, bundle) = house.run_args(&[&args[..], &["--engine", "pi", "--json"]].concat());
    assert_eq!(answer.code, Some(3));
    assert_eq!(bundle.codes(), ["engine_gate_closed"]);
    let contract = bundle.json("contract.json");
    assert_eq!(
        (&contract["source"]["head"], &contract["start_tree"]),
        (&"not_seen".into(), &"not_seen".into())
    );
    let gates = bundle.json("gates.json");
    let state = gates["gates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|gate| gate["gate"] == "source-state")
        .unwrap();
    assert_eq!(state["result"], "not_seen");
    assert!(!bundle.has("source.json"));
    assert_good(&bundle);
}

#[test]
fn bad_words_are_usage_errors() {
    let house = house();
    let repo = Repo::new(&house, "usage");
    let file = house.script("fix", &fix());
    let base = ["try", "--repo", repo.path(), "--script", &file];
    for (more, want) in [
        (
            &["--task", " ", "--allow", "a", "--test", "true"][..],
            "empty_task",
        ),
        (
            &["--task", "x", "--allow", "../a", "--test", "true"],
            "bad_path",
        ),
        (
            &["--task", "x", "--allow", "/etc", "--test", "true"],
            "bad_path",
        ),
        (&["--task", "x", "--allow", "a"], "--test"),
        (&["--task", "x", "--test", "true"], "--allow"),
        (&["--allow", "a", "--test", "true"], "--task"),
        (
            &[
                "--task",
                "x",
                "--allow",
                "a",
                "--test",
                "true",
                "--control",
                "/nonexistent",
            ],
            "unreadable_control",
        ),
    ] {
        let answer = house.cto(&[&base[..], more].concat());
        assert_eq!(answer.code, Some(2), "{more:?}: {answer:?}");
        assert!(answer.stderr.contains(want), "{more:?}: {}", answer.stderr);
    }
    let answer = house.cto(&[
        "try",
        "--repo",
        repo.path(),
        "--task",
        "x",
        "--allow",
        "a",
        "--test",
        "true",
    ]);
    assert!(
        answer.code == Some(2) && answer.stderr.contains("script_missing"),
        "{answer:?}"
    );
    assert!(house.run_dirs().is_empty());
}

#[test]
fn a_patch_file_can_be_played() {
    let house = house();
    let repo = Repo::new(&house, "patched");
    repo.write("answer.txt", "right\n");
    let patch = house.root().join("fix.patch");
    fs::write(&patch, repo.git(&["diff"]) + "\n").unwrap();
    repo.git(&["checkout", "-q", "answer.txt"]);
    let played = ["--script", patch.to_str().unwrap()];
    let (answer, bundle) = try_with(&house, &repo, "", &played);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("backend/stderr.log")
    );
}

#[test]
fn a_control_patch_must_turn_the_test_red() {
    let house = house();
    let repo = Repo::new(&house, "controlled");
    let control = house.root().join("control.patch");
    let patch =
        |line: &str| format!("--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+{line}\n");
    for (line, code) in [("wrong", 0), ("right\n+more", 1)] {
        fs::write(
            &control,
            patch(line).replace(
                "@@ -1 +1 @@",
                if line == "wrong" {
                    "@@ -1 +1 @@"
                } else {
                    "@@ -1 +1,2 @@"
                },
            ),
        )
        .unwrap();
        let (answer, bundle) = try_with(
            &house,
            &repo,
            &fix(),
            &["--control", control.to_str().unwrap()],
        );
        assert_eq!(
            answer.code,
            Some(code),
            "{answer:?} {}",
            bundle.text("test.log")
        );
    }
}

#[test]
fn a_failed_workspace_can_be_kept() {
    let house = house();
    let repo = Repo::new(&house, "kept");
    let (answer, _) = try_with(
        &house,
        &repo,
        &script(&[write("answer.txt", "still wrong\n")]),
        &["--keep"],
    );
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let kept = answer.json()["workspace"].as_str().unwrap().to_owned();
    assert_eq!(
        fs::read_to_string(format!("{kept}/answer.txt")).unwrap(),
        "still wrong\n"
    );
    let (passed, _) = try_with(&house, &repo, &fix(), &["--keep"]);
    assert_eq!(
        (passed.code, &passed.json()["workspace"]),
        (Some(0), &serde_json::Value::Null)
    );
    assert_eq!(house.work_entries().len(), 1, "only the failed one is kept");
}

/// A change that breaks something and takes its test away, and a patch that turns what is left red.
#[test]
fn whoever_names_a_patch_or_another_runner_does_not_lose_the_tests_of_the_baseline() {
    let house = house();
    let repo = Repo::new(&house, "calc");
    let sums = |sub: &str| {
        format!("def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return {sub}\n")
    };
    let tests = |more: &str| {
        format!(
            "import unittest\n\nimport calc\n\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n{more}"
        )
    };
    let taken = "\n    def test_sub(self):\n        self.assertEqual(calc.sub(3, 2), 1)\n";
    repo.write("calc.py", &sums("a - b"));
    repo.write("test_calc.py", &tests(taken));
    repo.commit("sums");
    let control = house.root().join("control.patch");
    let red = "--- a/calc.py\n+++ b/calc.py\n@@ -1,5 +1,5 @@\n def add(a, b):\n-    return a + b\n+    return 7\n \n \n def sub(a, b):\n";
    fs::write(&control, red).unwrap();
    let control = control.to_str().unwrap();
    let cheat = script(&[
        write("calc.py", &sums("a * b")),
        write("test_calc.py", &tests("")),
    ]);
    let honest = script(&[write("calc.py", &sums("-(b - a)"))]);
    let base = ["--allow", ".", "--test", "python3 -m unittest"];
    for (said, believed) in [
        (&[][..], "proven"),
        (&["--control", control], "proven"),
        (&["--runner", "go"], "proven"),
        (&["--runner", "pytest"], "proven"),
    ] {
        let words = [&base[..], said].concat();
        let (answer, bundle) = house.try_on(&repo, &cheat, &words);
        assert_eq!(answer.code, Some(1), "{said:?}: {answer:?}");
        assert_eq!(bundle.codes(), ["verification_untrusted"], "{said:?}");
        let why = bundle.report()["blockers"][0]["detail"].to_string();
        assert!(why.contains("test_sub: not there"), "{said:?}: {why}");
        assert_good(&bundle);
        let (answer, bundle) = house.try_on(&repo, &honest, &words);
        assert_eq!(answer.code, Some(0), "{said:?}: {answer:?}");
        assert_eq!(bundle.report()["belief"]["word"], believed, "{said:?}");
        assert_good(&bundle);
    }
}
