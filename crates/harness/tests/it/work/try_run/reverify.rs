//! `cto reverify`: the patch of a run judged again without its engine, by the same or other checks. The run
//! itself stays what it was.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{Answer, Bundle, Case, House, ORACLE, Repo, copy_dir, script, wait_until, write};
use serde_json::json;

use super::{TEST, fix};
use crate::{assert_good, house};

/// Nobody wrote that, so that it is red whatever is changed.
const TYPO: &str = "grep -qx rihgt answer.txt";

fn again(house: &House, run: &str, more: &[&str]) -> Answer {
    house.cto(&[&["reverify", run, "--json"][..], more].concat())
}

fn judged(house: &House, run: &str, more: &[&str]) -> (Answer, Bundle) {
    again(house, run, more).with_bundle()
}

/// A right change that failed by a wrong command.
fn failed(house: &House) -> (Repo, Bundle) {
    let repo = Repo::new(house, "project");
    let (answer, bundle) = house.try_on(&repo, &fix(), &["--test", TYPO]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(bundle.codes(), ["verification_failed"]);
    (repo, bundle)
}

fn assert_refused(answer: &Answer, exit: i32, code: &str, what: &str) {
    assert_eq!(answer.code, Some(exit), "{what}: {answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["code"], code, "{what}: {answer:?}");
    assert!(error["so"].is_string(), "{what}: {answer:?}");
    assert!(error["hint"].is_string(), "{what}: {answer:?}");
}

#[test]
fn a_wrong_command_is_mended_and_the_patch_applied_by_who_knows_it() {
    let house = house();
    let (repo, first) = failed(&house);
    let before = repo.bytes();
    let (answer, second) = judged(&house, &first.run_id(), &["--test", TEST]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        second.text("test.log")
    );
    assert_eq!(repo.bytes(), before);
    assert_good(&second);
    let report = second.report();
    assert_eq!(report["kind"], "reverification");
    assert_eq!(report["process_started"], false);
    assert_eq!(report["reverifies"]["run_id"], first.run_id());
    assert_eq!(
        report["checks_differ"],
        json!({"commands": "other", "dropped": [TYPO], "added": [TEST]})
    );
    assert_eq!(
        report["not_applicable"]["stage_proof"],
        "a patch that is judged again proves no stage"
    );
    let types: Vec<String> = second
        .events()
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        types,
        [
            "run.started",
            "task.contract.created",
            "plan.updated",
            "patch.applied",
            "git.diff.checked",
            "verification.completed",
            "run.completed"
        ]
    );
    assert_eq!(second.bytes("patch.diff"), first.bytes("patch.diff"));
    assert_ne!(report["contract_digest"], first.report()["contract_digest"]);
    assert_ne!(report["task_digest"], first.report()["task_digest"]);
    assert_eq!(report["result"]["tree"], first.report()["result"]["tree"]);

    // It is said wherever it is shown, and the first is what it was.
    let told = format!("the patch of {}", first.run_id());
    let show = house.cto(&["show", &second.run_id()]).stdout;
    let words = show.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(&told) && words.contains("other commands"),
        "{show}"
    );
    assert!(words.contains(&format!("not run again: {TYPO}")), "{show}");
    let markdown = house.cto(&["show", &second.run_id(), "--markdown"]).stdout;
    assert!(markdown.contains("judged again"), "{markdown}");
    let page = second.text("report.md");
    assert!(page.contains("judged again without an engine"), "{page}");
    let runs = house.cto(&["runs", "--json"]).json();
    assert_eq!(runs["runs"][0]["reverifies"], first.run_id());
    assert_eq!(runs["runs"][0]["differs"], "other commands");
    assert_eq!(runs["runs"][0]["status"], "pass");
    assert_eq!(runs["runs"][1]["status"], "fail");
    let listed = house.cto(&["runs"]).stdout;
    assert!(listed.contains("again: other commands"), "{listed}");
    assert_good(&first);
    assert!(
        house
            .cto(&["show", &first.run_id()])
            .stdout
            .starts_with("FAIL")
    );
    assert_refused(
        &house.cto(&["reverify", &second.run_id(), "--json"]),
        3,
        "not_judged_again",
        "judged twice",
    );

    let refused = house.cto(&["apply", &second.run_id(), "--json"]);
    assert_refused(&refused, 3, "other_checks", "without a word");
    assert_eq!(repo.bytes(), before);
    let never = house.cto(&["apply", &first.run_id(), "--reverified", "--json"]);
    assert_eq!(never.json()["error"]["code"], "not_a_verified_pass");
    let applied = house.cto(&["apply", &second.run_id(), "--reverified", "--json"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(applied.json()["checks_differ"]["commands"], "other");
    assert_eq!(repo.read("answer.txt"), "right\n");
}

#[test]
fn a_break_stays_red() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let broken = script(&[write("answer.txt", "worse\n")]);
    let (_, first) = house.try_on(&repo, &broken, &[]);
    assert_eq!(first.codes(), ["verification_failed"]);
    for more in [&[][..], &["--test", TEST, "--test", "true"]] {
        let (answer, second) = judged(&house, &first.run_id(), more);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert_eq!(second.codes(), ["verification_failed"]);
        assert_good(&second);
        let apply = house.cto(&["apply", &second.run_id(), "--reverified", "--json"]);
        assert_eq!(apply.json()["error"]["code"], "not_a_verified_pass");
    }
    assert_eq!(repo.read("answer.txt"), "wrong\n");
}

#[test]
fn the_same_or_more_commands_need_no_word_and_a_pass_may_be_judged_again() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let (answer, first) = house.try_on(&repo, &fix(), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // The owner works on meanwhile: what is not committed is no part of it.
    repo.write("src/keep.txt", "edited\n");
    let more = ["--test", TEST, "--test", "grep -q right answer.txt"];
    for (more, commands) in [(&[][..], "same"), (&more, "more")] {
        let (answer, second) = judged(&house, &first.run_id(), more);
        assert_eq!(
            answer.code,
            Some(0),
            "{answer:?} {}",
            second.text("test.log")
        );
        assert_eq!(second.report()["checks_differ"]["commands"], commands);
        let check = ["apply", &second.run_id(), "--check", "--json"];
        let refused = house.cto(&check);
        assert_eq!(refused.json()["error"]["code"], "other_checks");
        let apply = house.cto(&[&check[..], &["--reverified"]].concat());
        assert_eq!(apply.code, Some(0), "{apply:?}");
    }
    // The last try is the run, and the last that can be applied is the one judged last.
    let mut command = house.command(&["reverify", "last", "--json"]);
    let answer = Answer::of(&command.current_dir(&repo.dir).output().unwrap());
    assert_eq!(
        answer.json()["report"]["reverifies"]["run_id"],
        first.run_id()
    );
}

#[test]
fn a_time_limit_an_input_and_a_control_are_mended_and_told() {
    let house = house();
    let repo = Repo::new(&house, "project");
    repo.write(".gitignore", "*.log\ndata/\n");
    repo.commit("ignore");
    repo.write("data/x", "x\n");
    let slow = "sleep 3 && grep -qx right answer.txt";
    let (_, first) = house.try_on(&repo, &fix(), &["--test", slow, "--test-timeout", "1"]);
    assert_eq!(first.codes(), ["timeout"]);
    let (answer, second) = judged(&house, &first.run_id(), &["--test-timeout", "60"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let differ = json!({"commands": "same", "also": ["time limits"]});
    assert_eq!(second.report()["checks_differ"], differ);

    let needs = "test -e data/x && grep -qx right answer.txt";
    let (_, first) = house.try_on(&repo, &fix(), &["--test", needs, "--no-env"]);
    assert_eq!(first.codes(), ["verification_failed"]);
    let control = house.root().join("control.patch");
    let bad = "--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+bad\n";
    fs::write(&control, bad).unwrap();
    let more = ["--no-env", "--input", "data", "--control"];
    let more = [&more[..], &[control.to_str().unwrap()]].concat();
    let (answer, second) = judged(&house, &first.run_id(), &more);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&second);
    let report = second.report();
    assert_eq!(report["checks_differ"]["inputs"], json!(["data"]));
    let now = &report["checks_differ"]["control"];
    assert_eq!(now, "a patch that was named");
    assert_eq!(report["belief"]["word"], "proven");
    // The patch that was named is in no bundle.
    let (_, third) = house.try_on(
        &repo,
        &fix(),
        &["--test", TYPO, "--control", control.to_str().unwrap()],
    );
    let answer = again(&house, &third.run_id(), &["--test", TEST]);
    assert_refused(&answer, 2, "control_missing", "control");
    for (what, more) in [
        ("empty_test", &["--test", " "][..]),
        ("bad_path", &["--input", "/etc"]),
        ("bad_path", &["--input", ".git"]),
    ] {
        let answer = again(&house, &first.run_id(), more);
        assert_eq!(answer.json()["error"]["code"], what, "{answer:?}");
    }
}

#[test]
fn one_that_was_killed_is_closed_and_says_whose_patch_it_was() {
    let house = house();
    let (_, first) = failed(&house);
    let mut child = house.start(&["reverify", &first.run_id(), "--test", "sleep 60"]);
    let mut found = None;
    let checked = wait_until(|| {
        let other = |dir: &PathBuf| *dir != first.dir;
        found = house.run_dirs().into_iter().find(other);
        let events = found
            .as_ref()
            .map(|dir| dir.join("events.normalized.jsonl"));
        let text = events.and_then(|file| fs::read_to_string(file).ok());
        text.is_some_and(|text| text.contains("git.diff.checked"))
    });
    assert!(checked, "it never came to its checks");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(house.cto(&["recover"]).code, Some(0));
    let second = Bundle::at(found.unwrap());
    assert_good(&second);
    assert_eq!(second.codes(), ["interrupted"]);
    assert_eq!(second.report()["kind"], "reverification");
    assert_eq!(second.report()["reverifies"]["run_id"], first.run_id());
}

#[test]
fn only_what_failed_by_its_checks_is_judged_again() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let outside = script(&[write("src/keep.txt", "x\n")]);
    for (what, steps, more) in [
        ("nothing changed", script(&[]), &[][..]),
        ("out of scope", outside, &["--contain", "contained"]),
        ("nothing ran", fix(), &["--test", "no-such-program-here"]),
    ] {
        let (_, bundle) = house.try_on(&repo, &steps, more);
        assert_ne!(bundle.status(), "pass", "{what}");
        let answer = again(&house, &bundle.run_id(), &["--test", "true"]);
        assert_refused(&answer, 3, "not_judged_again", what);
    }
}

#[test]
fn another_commit_or_a_bundle_that_is_not_good_here_is_refused() {
    let house = house();
    let (repo, first) = failed(&house);
    let run = first.run_id();
    let more = ["--test", TEST];

    repo.git(&["commit", "-q", "--allow-empty", "-m", "moved on"]);
    let answer = again(&house, &run, &more);
    assert_refused(&answer, 3, "other_commit", "HEAD moved");
    repo.git(&["checkout", "-q", "HEAD^"]);
    assert_eq!(again(&house, &run, &more).code, Some(0));
    fs::rename(&repo.dir, house.root().join("moved")).unwrap();
    assert_refused(&again(&house, &run, &more), 3, "no_repository", "moved");
    let there = house.root().join("moved").display().to_string();
    let named = [&more[..], &["--repo", &there]].concat();
    assert_eq!(again(&house, &run, &named).code, Some(0), "named");
    fs::rename(&there, &repo.dir).unwrap();

    let elsewhere = house.root().join("elsewhere").join(&run);
    copy_dir(&first.dir, &elsewhere);
    let path = elsewhere.display().to_string();
    assert_refused(&again(&house, &path, &more), 3, "not_verified", "elsewhere");
    let packed = house.cto(&["bundle", "pack", &run, "--json"]).json();
    let file = house
        .root()
        .join("elsewhere")
        .join(packed["file"].as_str().unwrap());
    let file = file.display().to_string();
    assert_refused(&again(&house, &file, &more), 2, "packed_bundle", "packed");
    assert_refused(&again(&house, "last", &more), 2, "no_try_here", "last");

    let patch = String::from_utf8(first.bytes("patch.diff")).unwrap();
    fs::write(
        first.dir.join("patch.diff"),
        patch.replace("+right", "+other"),
    )
    .unwrap();
    assert_refused(&again(&house, &run, &more), 3, "not_verified", "tampered");
    fs::write(first.dir.join("patch.diff"), patch).unwrap();
    assert_eq!(again(&house, &run, &more).code, Some(0));
    assert_eq!(house.cto(&["keys", "rotate", "--json"]).code, Some(0));
    let key = first.json("attestation.json")["signatures"][0]["keyid"].clone();
    let revoked = house.cto(&[
        "keys",
        "revoke",
        key.as_str().unwrap(),
        "--reason",
        "lost",
        "--json",
    ]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_refused(&again(&house, &run, &more), 3, "not_verified", "revoked");
}

#[test]
fn a_run_of_a_case_is_judged_again_where_the_case_is_the_same() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let (_, first) = house.run(&case, &script(&[write("answer.txt", "worse\n")]), &[]);
    assert_eq!(first.codes(), ["verification_failed"]);
    let unknown = again(&house, &first.run_id(), &[]);
    assert_refused(&unknown, 2, "unknown_case", "not built in");
    let (answer, second) = judged(&house, &first.run_id(), &["--case", &case]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(second.report()["kind"], "reverification");
    assert_good(&second);
    let (_, passed) = house.run(&case, ORACLE, &[]);
    let (answer, second) = judged(&house, &passed.run_id(), &["--case", &case]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&second);
    let workspace = PathBuf::from(&case).join("workspace/more.txt");
    fs::write(workspace, "another tree\n").unwrap();
    let other = again(&house, &passed.run_id(), &["--case", &case]);
    assert_refused(&other, 3, "other_case", "another tree");
}
