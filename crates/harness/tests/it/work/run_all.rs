//! `cto run --all`: ordinary runs side by side, and one answer about all of them.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use cto_testkit::{Answer, Bundle, Case, House, script, sleep, wait_until, write};
use serde_json::Value;

use crate::assert_good;
use crate::house;

fn bundles(answer: &Answer) -> Vec<Bundle> {
    let json = answer.json();
    json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|run| run["bundle"].as_str().map(Bundle::at))
        .collect()
}

fn field<'a>(runs: &'a Value, name: &str) -> Vec<&'a str> {
    runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run[name].as_str().unwrap_or("-"))
        .collect()
}

/// A directory of cases, for `--cases`.
fn directory(house: &House, cases: &[Case]) -> String {
    cases.iter().for_each(|case| drop(house.case(case)));
    house.root().join("cases").display().to_string()
}

fn failing(name: &str) -> Case {
    Case::new(name).file(
        "scripts/oracle.toml",
        &script(&[write("answer.txt", "wrong again\n")]),
    )
}

fn blocked(name: &str) -> Case {
    Case::new(name).extra("toolchains = [\"no-such-tool\"]")
}

#[test]
fn every_built_in_case_passes_side_by_side() {
    let house = house();
    let answer = house.cto(&["run", "--all", "--jobs", "3", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stderr.is_empty(), "{answer:?}");
    let json = answer.json();
    assert_eq!(
        (
            json["schema_version"].as_u64(),
            json["command"].as_str(),
            json["jobs"].as_u64()
        ),
        (Some(1), Some("run"), Some(3))
    );
    assert_eq!(
        field(&json, "case_id"),
        cto_harness::task::cases::built_in_names()
    );
    assert_eq!(
        field(&json, "status").into_iter().collect::<BTreeSet<_>>(),
        BTreeSet::from(["pass"])
    );
    assert!(
        json["cost"]["wall_ms"].as_u64() > Some(0)
            && json["cost"]["children_cpu_ms"].as_u64() > Some(0),
        "{}",
        json["cost"]
    );
    let ids: BTreeSet<&str> = field(&json, "run_id").into_iter().collect();
    assert_eq!(
        (ids.len(), house.run_dirs().len()),
        (5, 5),
        "each has a bundle of its own"
    );
    bundles(&answer).iter().for_each(assert_good);
    assert!(house.work_entries().is_empty());
}

#[test]
fn the_table_fits_a_terminal_and_says_what_it_cost() {
    let house = house();
    let dir = directory(
        &house,
        &[Case::new("good"), failing("poor"), blocked("stuck")],
    );
    let answer = house.cto(&["run", "--all", "--cases", &dir, "-j", "2"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let table = answer.stdout.split("\nbundles").next().unwrap();
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    let words: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!((words[1][0], words[1][1]), ("good", "pass"));
    assert_eq!(words[2][..3], ["poor", "fail", "verification_failed"]);
    assert_eq!(words[3][..3], ["stuck", "blocked", "toolchain_unavailable"]);
    assert!(
        table.contains("1 pass, 1 blocked, 1 fail: ")
            && table.contains("% of it in child processes"),
        "{table}"
    );
    // What the table calls a run is enough to find it.
    assert_eq!(house.cto(&["show", words[2].last().unwrap()]).code, Some(0));
    assert_eq!(
        answer.stderr.lines().count(),
        3,
        "one line a case where nobody watches: {}",
        answer.stderr
    );
}

#[test]
fn the_worst_end_is_the_exit_code() {
    for (cases, code) in [
        (vec![Case::new("a"), Case::new("b")], 0),
        (vec![Case::new("a"), blocked("b")], 3),
        (vec![Case::new("a"), blocked("b"), failing("c")], 1),
    ] {
        let house = house();
        let dir = directory(&house, &cases);
        let answer = house.cto(&["run", "--all", "--cases", &dir, "--json"]);
        assert_eq!(
            (answer.code, answer.json()["exit_code"].as_i64()),
            (Some(code), Some(code.into())),
            "{answer:?}"
        );
    }
}

#[test]
fn a_harness_that_cannot_do_its_job_is_worse_than_a_failure() {
    let house = house();
    let dir = directory(&house, &[Case::new("a"), failing("b")]);
    let file = house.root().join("elsewhere/file");
    fs::write(&file, "").unwrap();
    let answer = house.cto(&[
        "run",
        "--all",
        "--cases",
        &dir,
        "--json",
        "--runs-dir",
        &file.display().to_string(),
    ]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    let json = answer.json();
    assert!(
        json["runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|run| run["error"]["exit_code"] == 70),
        "{json}"
    );
    let text = house.cto(&[
        "run",
        "--all",
        "--cases",
        &dir,
        "--runs-dir",
        &file.display().to_string(),
    ]);
    assert!(
        text.code == Some(70)
            && text.stdout.contains("ERROR")
            && text.stderr.contains("error[state_unwritable]"),
        "{text:?}"
    );
}

#[test]
fn several_cases_by_name() {
    let house = house();
    let own = house.case(&Case::new("own"));
    let answer = house.cto(&["run", "sh-word-count", &own, "sh-word-count", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        field(&answer.json(), "case_id"),
        ["sh-word-count", "own", "sh-word-count"]
    );
    assert_eq!(house.run_dirs().len(), 3);
}

#[test]
fn one_script_for_all_of_them() {
    let house = house();
    let answer = house.cto(&["run", "--all", "--script", "nop", "--jobs", "2", "--json"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(
        field(&answer.json(), "reason")
            .into_iter()
            .collect::<BTreeSet<_>>(),
        BTreeSet::from(["no_diff"])
    );
    let answer = house.cto(&["run", "--all", "--engine", "codex", "--json"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(
        field(&answer.json(), "reason")
            .into_iter()
            .collect::<BTreeSet<_>>(),
        BTreeSet::from(["engine_gate_closed"])
    );
}

#[test]
fn what_cannot_be_asked_for_runs_nothing() {
    let house = house();
    let dir = directory(
        &house,
        &[Case::new("a"), Case::new("b").file("scripts/odd.toml", "")],
    );
    for args in [
        &["run", "--all", "sh-word-count"][..],
        &["run", "--all", "--jobs", "0"],
        &["run", "--all", "--jobs", "65"],
        &["run", "--all", "--verbose"],
        &["run", "sh-word-count", "r1-string-slugify", "--verbose"],
        &["run", "sh-word-count", "nope"],
        &["run", "--all", "--cases", &dir, "--script", "odd"],
        &["run", "--all", "--engine", "nope"],
    ] {
        let answer = house.cto(args);
        assert_eq!(answer.code, Some(2), "{args:?}: {answer:?}");
    }
    let status = Command::new("mkfifo")
        .arg(house.root().join("cases/b/workspace/pipe"))
        .status()
        .unwrap();
    assert!(status.success());
    let answer = house.cto(&["run", "--all", "--cases", &dir]);
    assert!(
        answer.code == Some(2) && answer.stderr.contains("error[unreadable_case]"),
        "{answer:?}"
    );
    assert!(house.run_dirs().is_empty());
}

/// Ctrl-C while two are under way and two wait.
#[test]
fn an_interruption_seals_every_run_and_starts_no_other() {
    let house = house();
    let slow = |name: &str| {
        Case::new(name).file(
            "scripts/oracle.toml",
            &script(&[write("answer.txt", "right\n"), sleep(60_000)]),
        )
    };
    let dir = directory(&house, &[slow("a"), slow("b"), slow("c"), slow("d")]);
    let mut command = house.command(&["run", "--all", "--cases", &dir, "--jobs", "2", "--json"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = |dir: &std::path::PathBuf| {
        fs::read_to_string(dir.join("events.normalized.jsonl"))
            .is_ok_and(|text| text.contains("engine.file_change"))
    };
    assert!(
        wait_until(|| house.run_dirs().iter().filter(|dir| started(dir)).count() == 2),
        "two runs never started"
    );
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let json = answer.json();
    assert_eq!(json["interrupted"], true);
    assert_eq!(field(&json, "reason"), ["interrupted"; 4]);
    let begun: Vec<_> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["started"].as_bool().unwrap())
        .collect();
    assert_eq!(begun, [true, true, false, false]);
    assert_eq!(house.run_dirs().len(), 2);
    for bundle in bundles(&answer) {
        assert_eq!(bundle.codes(), ["interrupted"]);
        assert_good(&bundle);
    }
    assert!(house.work_entries().is_empty());
    assert_eq!(fs::read_dir(house.state().join("open")).unwrap().count(), 0);
}

/// Runs of one process share no uid: where the harness is root, one jail cannot use up another's
/// processes.
#[test]
fn jails_side_by_side_are_different_users() {
    let house = house();
    let dir = directory(&house, &[Case::new("a"), Case::new("b")]);
    let answer = house.cto(&["run", "--all", "--cases", &dir, "--jobs", "2", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let uid = |bundle: &Bundle| {
        let report = bundle.json("containment.json").to_string();
        let from = report
            .find("host uid ")
            .map(|at| at + "host uid ".len())
            .unwrap();
        report[from..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let uids: BTreeSet<String> = bundles(&answer).iter().map(uid).collect();
    assert_eq!(
        uids.len(),
        if cto_testkit::is_root() { 2 } else { 1 },
        "{uids:?}"
    );
}

/// What a single verdict says out loud, the table does not swallow.
#[test]
fn a_pass_that_rests_on_less_says_so() {
    let house = house();
    let dir = directory(
        &house,
        &[
            Case::new("a").control("{ none = \"no way to tell\" }"),
            Case::new("b"),
        ],
    );
    let answer = house.cto(&["run", "--all", "--cases", &dir]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert!(
        lines[1].contains("checks partly") && !lines[2].contains("partly"),
        "{}",
        answer.stdout
    );
}
