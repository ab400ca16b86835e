//! The must-fail control and the baseline beside the check: the same answer and the same evidence as
//! one after the other, and nothing of it where the check is red. And how long each of it took.

use std::fs;
use std::process::Stdio;

use cto_testkit::{Answer, Bundle, House, Repo, script, shell, wait_until, write};

use super::{fix, try_with};
use crate::fixtures::project::{BUG, FIXED, TESTS, UNITTEST};
use crate::{assert_good, house};

/// A control that sleeps, and a check that does not: only the control's copy has the file.
const SLEEPY: &str = "test ! -e sleepy || sleep 600; grep -qx right answer.txt";

fn sleepy_control(house: &House) -> String {
    let patch = house.root().join("sleepy.patch");
    let text = "--- /dev/null\n+++ b/sleepy\n@@ -0,0 +1 @@\n+yes\n";
    fs::write(&patch, text).unwrap();
    patch.display().to_string()
}

#[test]
fn two_at_a_time_leave_what_one_after_the_other_leaves() {
    let house = house();
    let repo = Repo::new(&house, "beside");
    let patch = house.root().join("control.patch");
    let text = "--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+wrong\n";
    fs::write(&patch, text).unwrap();
    let frames = |jobs: &str| {
        let asked = [
            "--control",
            patch.to_str().unwrap(),
            "--setup",
            "true",
            "--jobs",
            jobs,
        ];
        let (answer, bundle) = try_with(&house, &repo, &fix(), &asked);
        assert_eq!(answer.code, Some(0), "{jobs}: {answer:?}");
        assert_good(&bundle);
        // The words of each frame; tokens, numbers of milliseconds and the nonce differ by design.
        let log = bundle.text("test.log");
        let lines = log.lines().filter(|line| line.starts_with("$ "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (alone, beside) = (frames("1"), frames("2"));
    assert!(alone.len() >= 4, "{alone:?}");
    assert_eq!(alone, beside);
}

#[test]
fn a_red_check_waits_for_no_control() {
    let house = house();
    let repo = Repo::new(&house, "red");
    let control = sleepy_control(&house);
    let still_wrong = script(&[write("answer.txt", "still wrong\n")]);
    let asked = ["--control", &control, "--test", SLEEPY, "--jobs", "2"];
    // The control sleeps for longer than a test may take.
    let (answer, bundle) = try_with(&house, &repo, &still_wrong, &asked);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(bundle.codes(), ["verification_failed"]);
    assert!(!bundle.text("test.log").contains("must-fail control"));
    assert!(
        !bundle
            .text("containment.json")
            .contains("must-fail control")
    );
    assert_good(&bundle);
}

#[test]
fn whoever_asks_it_to_stop_ends_both() {
    let house = house();
    let repo = Repo::new(&house, "stopped");
    let control = sleepy_control(&house);
    let asked = [
        "--control",
        &control,
        "--test",
        SLEEPY,
        "--jobs",
        "2",
        "--json",
    ];
    let mut command = house.try_command(&repo, &fix(), &asked);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The check is green at once, and then the control is waited for.
    let begun = || {
        let logs = house.run_dirs().into_iter().map(|dir| dir.join("test.log"));
        logs.map(|log| fs::read_to_string(log).unwrap_or_default())
            .any(|log| log.contains(SLEEPY))
    };
    assert!(wait_until(begun), "the checks never began");
    std::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
    assert_eq!(bundle.codes(), ["interrupted"]);
    assert!(house.work_entries().is_empty());
    assert_good(&bundle);
}

/// A project with a bug, in a repository.
fn python(house: &House, name: &str, also: &[(&str, &str)]) -> Repo {
    let repo = Repo::new(house, name);
    for (path, text) in UNITTEST.files.iter().chain(also) {
        repo.write(path, text);
    }
    repo.commit("a bug");
    repo
}

const PYTHON: [&str; 4] = ["--test", "python3 -m unittest", "--allow", "."];

#[test]
fn a_baseline_beside_the_check_leaves_what_one_after_it_leaves() {
    let house = house();
    let repo = python(&house, "baseline", &[]);
    let left = |jobs: &str| {
        let asked = ["--setup", "true", "--fresh-baseline", "--jobs", jobs];
        let steps = script(&[write("app.py", FIXED)]);
        let asked = [&PYTHON[..], &asked].concat();
        let (answer, bundle) = try_with(&house, &repo, &steps, &asked);
        assert_eq!(answer.code, Some(0), "{jobs}: {answer:?}");
        assert_good(&bundle);
        let log = bundle.text("test.log");
        let frames = log.lines().filter(|line| line.starts_with("[cto:"));
        // Without tokens and milliseconds.
        let frames = frames.map(|line| line.split_once(' ').unwrap().1.to_owned());
        let frames: Vec<String> = frames
            .map(|line| {
                line.rsplit_once(',')
                    .map_or(line.clone(), |(line, _)| line.to_owned())
            })
            .collect();
        let jails = bundle.json("containment.json");
        let jails = jails["processes"].as_array().unwrap().iter();
        let jails: Vec<String> = jails.map(|jail| jail["process"].to_string()).collect();
        (
            frames,
            jails,
            bundle.json("test-ids.json")["commands"].clone(),
        )
    };
    let alone = left("1");
    assert!(
        alone.0.iter().any(|frame| frame.ends_with("baseline]")),
        "{alone:?}"
    );
    for jobs in ["2", "3", "9"] {
        assert_eq!(left(jobs), alone, "{jobs}");
    }
}

#[test]
fn a_red_check_waits_for_its_baseline_to_say_what_it_was_before() {
    let house = house();
    // Only the baseline sleeps, so that the check ends before it: the change takes the file away.
    let sleepy = "import os, time\nif os.path.exists('sleepy'):\n    time.sleep(3)\n";
    let also = [("sleepy", "yes\n"), ("test_sleepy.py", sleepy)];
    for jobs in ["2", "3"] {
        let repo = python(&house, &format!("red-{jobs}"), &also);
        let still_wrong = script(&[shell("rm sleepy"), write("app.py", &format!("{BUG}\n"))]);
        let asked = [&PYTHON[..], &["--jobs", jobs]].concat();
        let (answer, bundle) = try_with(&house, &repo, &still_wrong, &asked);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert_eq!(bundle.codes(), ["verification_failed"]);
        for name in ["test.log", "containment.json"] {
            let text = bundle.text(name);
            assert!(text.contains("baseline"), "{name}: {text}");
        }
        let done = bundle.event("verification.completed").unwrap();
        assert_eq!(done["baseline_checks"].as_array().unwrap().len(), 1);
        // A red one is not kept.
        assert!(!house.state().join("cache/baselines").exists());
        assert!(house.work_entries().is_empty());
        assert_good(&bundle);
    }
}

/// A change that makes its own checks short does not cut the baseline short: what takes longer there
/// than thirty seconds and some is compared all the same.
#[test]
fn a_baseline_has_the_time_of_the_contract() {
    let house = house();
    let slow = "import time, unittest\n\n\nclass SlowTest(unittest.TestCase):\n    def test_a_slow(self):\n        time.sleep(40)\n\n    def test_then(self):\n        pass\n";
    let repo = python(&house, "slow", &[("test_a_slow.py", slow)]);
    let quick = slow
        .replace("time.sleep(40)", "pass")
        .replace("test_then", "then");
    for jobs in ["1", "3"] {
        let steps = script(&[write("app.py", FIXED), write("test_a_slow.py", &quick)]);
        let asked = [&PYTHON[..], &["--jobs", jobs]].concat();
        let (answer, bundle) = try_with(&house, &repo, &steps, &asked);
        assert_eq!(answer.code, Some(1), "{jobs}: {answer:?}");
        assert_eq!(bundle.codes(), ["verification_untrusted"], "{jobs}");
        let tests = &bundle.event("verification.completed").unwrap()["tests"];
        assert_eq!(
            tests["missing"][0],
            "test_a_slow.SlowTest.test_then: not there"
        );
        assert_good(&bundle);
    }
}

#[test]
fn a_report_has_the_time_of_each_step() {
    let house = house();
    let repo = python(&house, "times", &[("test_other.py", TESTS)]);
    let steps = script(&[write("app.py", FIXED)]);
    let asked = [&PYTHON[..], &["--setup", "true", "--jobs", "2"]].concat();
    let (answer, bundle) = try_with(&house, &repo, &steps, &asked);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
    let times = &bundle.report()["timings"];
    let steps = times["steps"].as_array().unwrap().iter();
    let names: Vec<&str> = steps.map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "plan", "copy", "setup", "engine", "measure", "checks", "control", "baseline",
            "loading", "seal"
        ]
    );
    let number = |name: &str| times[name].as_u64().unwrap();
    assert!(number("own_ms") > 0, "{times}");
    assert!(number("own_ms") < number("total_ms"), "{times}");
    let line = format!("in all {} ms", number("total_ms"));
    assert!(bundle.text("report.md").contains(&line));
    let shown = house.cto(&["show", &bundle.run_id()]);
    assert!(!shown.stdout.contains(&line), "{shown:?}");
    let shown = house.cto(&["show", "-v", &bundle.run_id()]);
    assert!(shown.stdout.contains(&line), "{shown:?}");
}
