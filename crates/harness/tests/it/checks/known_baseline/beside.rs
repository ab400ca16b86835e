//! A baseline that runs while the change's own code runs: what that code can take from it, it does not
//! lose for good, and no other change is compared with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cto_testkit::{Answer, Bundle, House, Repo, script, shell, write};

use super::{TEST, kept, repository, verification};
use crate::fixtures::project::{BUG, FIXED};
use crate::{assert_good, house};

/// A directory that checks are shown, and in which somebody outside says when they may go on.
struct Signal(PathBuf);

impl Signal {
    fn new(house: &House) -> Self {
        let dir = house.root().join("signal");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("tool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        Self(dir)
    }

    /// Python that waits for it.
    fn wait(&self) -> String {
        let go = self.0.join("go");
        format!("import os, time\nwhile not os.path.exists({go:?}): time.sleep(0.05)\n")
    }

    /// Says it as soon as so many things with such a name are there.
    fn given_with<R>(
        &self,
        house: &House,
        (count, name): (usize, &str),
        act: impl FnOnce() -> R,
    ) -> R {
        let over = AtomicBool::new(false);
        let work = house.state().join("work");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) && count_of(&work, name) < count {
                    std::thread::sleep(Duration::from_millis(20));
                }
                fs::write(self.0.join("go"), "").unwrap();
            });
            let done = act();
            over.store(true, Ordering::Relaxed);
            done
        })
    }
}

fn count_of(work: &Path, start: &str) -> usize {
    let runs = fs::read_dir(work).into_iter().flatten().flatten();
    let entries = runs.flat_map(|run| fs::read_dir(run.path()).into_iter().flatten().flatten());
    let names = entries.map(|entry| entry.file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with(start))
        .count()
}

fn at_once(house: &House, repo: &Repo, steps: &str, more: &[&str]) -> (Answer, Bundle) {
    let asked = [&["--test", TEST, "--allow", ".", "--jobs", "3"], more].concat();
    house.try_on(repo, steps, &asked)
}

/// The baseline hangs beside the change, as it does where the change takes the whole machine, and the
/// change takes away a test that it did not come to.
#[test]
fn a_baseline_cut_short_beside_the_change_runs_again_alone() {
    let house = house();
    let signal = Signal::new(&house);
    let repo = repository(&house, "cut-short");
    let slow = format!(
        "import unittest, app\n\n\nclass Slow(unittest.TestCase):\n    def test_it(self):\n        if app.double(2) != 4:\n            exec({:?})\n",
        signal.wait()
    );
    repo.write("app.py", BUG);
    repo.write("test_slow.py", &slow);
    let late = "import unittest\n\n\nclass Late(unittest.TestCase):\n    def test_late(self):\n        pass\n";
    repo.write("test_zlate.py", late);
    repo.commit("hangs where the bug is");
    let steps = script(&[write("app.py", FIXED), shell("rm test_zlate.py")]);
    let shown = signal.0.display().to_string();
    let more = ["--toolchain", &shown, "--test-timeout", "15"];
    let (answer, bundle) = signal.given_with(&house, (1, "baseline-baseline-alone"), || {
        at_once(&house, &repo, &steps, &more)
    });
    let log = bundle.text("test.log");
    assert_eq!(answer.code, Some(1), "{answer:?} {log}");
    assert_eq!(bundle.codes(), ["verification_untrusted"], "{log}");
    let missing = verification(&bundle)["tests"]["missing"].to_string();
    assert!(missing.contains("test_late"), "{missing}");
    assert_good(&bundle);
    // Only the one that counts is told of.
    let checks = verification(&bundle)["baseline_checks"].clone();
    assert_eq!(checks.as_array().unwrap().len(), 1, "{checks}");
    assert_ne!(checks[0]["end"]["kind"], "timed_out", "{checks}");
}

/// Compared with this change, and with no other.
#[test]
fn a_baseline_beside_which_the_change_ran_is_not_kept() {
    let house = house();
    let signal = Signal::new(&house);
    let repo = repository(&house, "beside");
    let shown = signal.0.display().to_string();
    // Check, control and baseline go on when each of them has begun.
    let waits = format!("{FIXED}\n{}time.sleep(1)\n", signal.wait());
    repo.write("app.py", &waits);
    repo.commit("waits");
    let steps = script(&[write("app.py", &format!("{waits}\n# Said again.\n"))]);
    let more = ["--toolchain", &shown];
    let (answer, bundle) = signal.given_with(&house, (3, "scratch-"), || {
        at_once(&house, &repo, &steps, &more)
    });
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&bundle);
    assert!(kept(&house).is_empty());
    // Alone it is.
    let asked = [&["--test", TEST, "--allow", ".", "--jobs", "1"], &more[..]].concat();
    let (answer, _) = house.try_on(&repo, &steps, &asked);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(kept(&house).len(), 1);
}

/// No room, no descriptor, room for half of a name: fewer names are not fewer tests. What happens here
/// to the untouched copy alone, a full disk does to whatever runs at that time.
#[test]
fn names_of_tests_that_cannot_be_written_are_not_forgotten() {
    for (what, limit) in [
        ("no room", "(resource.RLIMIT_FSIZE, (1, hard))"),
        (
            "room for half a name",
            "(resource.RLIMIT_FSIZE, (size + 7, hard))",
        ),
        ("no descriptor", "(resource.RLIMIT_NOFILE, (0, hard))"),
    ] {
        let house = house();
        let repo = repository(&house, "no-room");
        let which = limit.trim_start_matches('(').split(',').next().unwrap();
        let lean = format!(
            "import os, resource, unittest\n\n\nclass Lean(unittest.TestCase):\n    def test_it(self):\n        if os.path.exists('lean'):\n            place = os.environ['CTO_TEST_IDS']\n            size = os.path.getsize(place) if os.path.exists(place) else 0\n            hard = resource.getrlimit({which})[1]\n            resource.setrlimit{limit}\n"
        );
        repo.write("lean", "x\n");
        repo.write("test_lean.py", &lean);
        let late = "import unittest\n\n\nclass Late(unittest.TestCase):\n    def test_late(self):\n        pass\n";
        repo.write("test_zlate.py", late);
        repo.commit("nothing can be written behind it");
        let steps = script(&[shell("rm lean test_zlate.py")]);
        let asked = ["--test", TEST, "--allow", ".", "--jobs", "1"];
        let (answer, bundle) = house.try_on(&repo, &steps, &asked);
        assert_ne!(answer.code, Some(0), "{what}: {answer:?}");
        assert!(
            bundle.has_code("artifact_write_failure"),
            "{what}: {:?} {}",
            bundle.codes(),
            bundle.text("test.log")
        );
        assert_good(&bundle);
        assert!(kept(&house).is_empty(), "{what}");
        // Who takes nothing away fails for it too: nobody knows what the baseline has.
        let steps = script(&[shell("rm lean")]);
        let (answer, _) = house.try_on(&repo, &steps, &asked);
        assert_ne!(answer.code, Some(0), "{what}: {answer:?}");
    }
}

/// A suite about full disks takes its own room away for a while, and a mock stands where `os` was.
#[test]
fn a_test_that_lowers_a_limit_for_itself_costs_nothing() {
    let house = house();
    let repo = repository(&house, "limits");
    let lowered = "import os, resource, unittest\nfrom unittest import mock\n\n\nclass Lowered(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.before = resource.getrlimit(resource.RLIMIT_FSIZE)\n        resource.setrlimit(resource.RLIMIT_FSIZE, (0, cls.before[1]))\n\n    @classmethod\n    def tearDownClass(cls):\n        resource.setrlimit(resource.RLIMIT_FSIZE, cls.before)\n\n    def test_it(self):\n        pass\n\n\nclass Mocked(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.mocks = [mock.patch('os.open'), mock.patch('os.write')]\n        for one in cls.mocks:\n            one.start()\n\n    @classmethod\n    def tearDownClass(cls):\n        for one in cls.mocks:\n            one.stop()\n\n    def test_it(self):\n        pass\n";
    repo.write("test_lowered.py", lowered);
    repo.commit("a suite about limits");
    let steps = script(&[write("app.py", &format!("{FIXED}\n# Said again.\n"))]);
    let asked = ["--test", TEST, "--allow", ".", "--jobs", "1"];
    let (answer, bundle) = house.try_on(&repo, &steps, &asked);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
    );
    let named = bundle.text("test-ids.json");
    for test in ["Lowered.test_it", "Mocked.test_it"] {
        assert!(named.contains(test), "{test}: {named}");
    }
    assert_good(&bundle);
}
