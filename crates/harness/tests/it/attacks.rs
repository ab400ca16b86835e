//! Attacks on the jail and on the harness around it, each tried for real: none may succeed.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cto_testkit::{Case, House, script, shell, wait_until};

use super::jail::{alive, people};
use crate::house;

/// Takes from pid 1 what it needs for waiting, makes it wait anew, and stays.
const HOBBLE: &str = "import os, resource, sys, time\n\
    resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))\n\
    if os.fork() == 0:\n\
    \tif os.fork() == 0:\n\
    \t\ttime.sleep(0.1)\n\
    \tos._exit(0)\n\
    os.wait()\n\
    open('hobbled', 'w').close()\n\
    time.sleep(600)\n";

#[test]
fn hindering_pid_1_does_not_outlive_the_harness() {
    for (index, person) in people().into_iter().enumerate() {
        let word = format!("hobbled-{index}-{}", std::process::id());
        let mut command = person.command(&["exec", "--", "python3", "-c", HOBBLE, &word]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(wait_until(|| person.at("ws/hobbled").exists()), "{}: never started", person.name);
        std::thread::sleep(Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(wait_until(|| alive(&word) == 0), "{}: {} left", person.name, alive(&word));
    }
}

#[test]
fn hindering_pid_1_does_not_hold_a_run_beyond_its_limit() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let hobble = shell(&format!("python3 -c \"{HOBBLE}\""));
    let since = Instant::now();
    let mut child = house
        .command(&["run", &case, "--script", &house.script("hobble", &script(&[hobble])), "--timeout", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ended = wait_until(|| child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    assert!(ended && since.elapsed() < Duration::from_secs(20), "still running after {:?}", since.elapsed());
    assert_ne!(child.wait().unwrap().code(), Some(0));
}

/// Python tests with a directory the engine may change, and hidden checks that go into it.
fn python_case(house: &House) -> String {
    let case = Case::new("links")
        .allowed("[\"answer.txt\", \"test_a.py\", \"sub/\"]")
        .commands("[\"python3 -m unittest; true\"]")
        .control("{ runner = \"unittest\" }")
        .hidden("[\"true\"]")
        .file("hidden/sub/deep/check.py", "pass\n")
        .file("workspace/sub/x", "x\n")
        .file("workspace/test_a.py", "import unittest\n");
    house.case(&case)
}

#[test]
fn the_harness_follows_no_link_an_engine_left() {
    let house = house();
    let case = python_case(&house);
    let outside = tempfile::tempdir().unwrap();
    let at = |name: &str| outside.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    fs::create_dir(at("dir")).unwrap();
    let (victim, dir) = (at("victim"), at("dir"));
    for line in [
        format!("rm test_a.py && ln -s {} test_a.py", victim.display()),
        format!("ln -s {} sub/deep", dir.display()),
        format!("mkdir sub/deep && ln -s {} sub/deep/check.py", victim.display()),
        format!("ln -s {} sub/deep", victim.display()),
    ] {
        let (answer, bundle) = house.run(&case, &script(&[shell(&line)]), &[]);
        assert!(!answer.panicked() && bundle.status() != "pass", "{line}: {answer:?}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{line}");
        assert!(is_empty(&dir), "{line}: something was written outside the copy");
        crate::assert_good(&bundle);
    }
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}
