//! The must-fail control beside the check: the same answer and the same evidence as one after the
//! other, and nothing of it where the check is red.

use std::fs;
use std::process::Stdio;

use cto_testkit::{Answer, Bundle, House, Repo, script, wait_until, write};

use super::{fix, try_with};
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
