//! Faults of the machine: killed at any moment, no room, no permission. Never a pass, never a panic.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cto_core::verdict::Status;
use cto_testkit::{Answer, Bundle, Case, House, is_root, script, sleep, write};

use crate::{assert_good, house};

/// No directory under the runs root may read as a pass unless it is sealed and verifies as one.
fn assert_nothing_false(house: &House, when: &str) {
    for dir in house.run_dirs() {
        let sealed = dir.join("report.json").exists();
        let answer = house.cto(&["verify", &dir.display().to_string(), "--json"]);
        match sealed {
            true => assert_eq!(answer.code, Some(0), "{when}: a sealed bundle does not verify: {answer:?}"),
            false => assert_eq!(answer.code, Some(3), "{when}: {answer:?}"),
        }
    }
}

#[test]
fn killed_at_any_moment_nothing_reads_as_a_pass() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let steps = [sleep(8), write("answer.txt", "right\n"), sleep(8)];
    let slow = house.script("slow", &script(&steps));
    let mut finished = 0;
    for number in 0..25u64 {
        // From before the lock is taken to after the seal, denser where a run spends its time.
        let delay = Duration::from_millis(number * 7);
        let mut child = house.start(&["run", &case, "--script", &slow]);
        std::thread::sleep(delay);
        child.kill().unwrap();
        finished += u32::from(child.wait().unwrap().success());
    }
    assert_nothing_false(&house, "before recovery");
    let answer = house.cto(&["recover"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_nothing_false(&house, "after recovery");
    let mut passes = 0;
    for dir in house.run_dirs() {
        let bundle = Bundle::at(dir);
        assert_good(&bundle);
        match bundle.status().as_str() {
            "pass" => passes += 1,
            "blocked" => assert!(bundle.has_code("interrupted"), "{:?}", bundle.codes()),
            other => panic!("{other}: {:?}", bundle.codes()),
        }
    }
    assert!(passes >= finished, "a finished pass was lost");
    assert!(house.work_entries().is_empty(), "{:?}", house.work_entries());
}

/// Kills when the chain has grown to a given number of lines: every event boundary once.
#[test]
fn killed_at_every_event_boundary() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let slow = house.script("slow", &script(&[write("answer.txt", "right\n"), sleep(15)]));
    for lines in 0..12 {
        let before = house.run_dirs();
        let mut child = house.start(&["run", &case, "--script", &slow]);
        let count = || {
            let new = house.run_dirs().into_iter().find(|dir| !before.contains(dir));
            new.map_or(0, |dir| {
                fs::read(dir.join("events.normalized.jsonl")).unwrap_or_default().split(|b| *b == b'\n').count() - 1
            })
        };
        while child.try_wait().unwrap().is_none() && count() < lines {
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = child.kill();
        child.wait().unwrap();
        assert_nothing_false(&house, &format!("killed at event {lines}"));
        assert_eq!(house.cto(&["recover"]).code, Some(0), "killed at event {lines}");
        assert_nothing_false(&house, &format!("recovered from event {lines}"));
    }
}

#[test]
fn recovery_itself_may_be_killed() {
    let house = house();
    let dir = crate::recover::killed_run(&house);
    for number in 0..12u64 {
        let mut child = house.start(&["recover"]);
        std::thread::sleep(Duration::from_millis(number));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_nothing_false(&house, &format!("recovery killed after {number} ms"));
    }
    assert_eq!(house.cto(&["recover"]).code, Some(0));
    let bundle = Bundle::at(dir);
    assert!(bundle.has_code("interrupted") && bundle.status() != "pass", "{:?}", bundle.codes());
    assert_good(&bundle);
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let option = format!("size={kilobytes}k,nr_inodes=4k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tmpfs"]).arg(at).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn skipped(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// What a run on a full disk may answer: a typed verdict with a bundle that verifies, or exit 70 and a reason.
fn assert_honest(answer: &Answer, runs: &Path, what: &str) {
    assert!(!answer.panicked(), "{what}: {answer:?}");
    match answer.code {
        Some(70) => assert!(answer.stdout.contains("\"error\"") && answer.stdout.contains("because"), "{what}: {answer:?}"),
        Some(1 | 3) => {
            let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
            assert!(bundle.has_code("artifact_write_failure"), "{what}: {:?}", bundle.codes());
            assert_good(&bundle);
        }
        Some(0) => {}
        other => panic!("{what}: {other:?}: {answer:?}"),
    }
    for entry in fs::read_dir(runs).into_iter().flatten().flatten().filter(|e| e.path().join("report.json").exists()) {
        let found = crate::verdict_of(&entry.path());
        let passed = found.status == Some(Status::Pass);
        assert_eq!(passed, answer.code == Some(0), "{what}: {:?}", found.problems);
    }
}

#[test]
fn a_full_disk_gives_a_typed_verdict_or_says_so() {
    if !is_root() {
        return skipped("only root can mount a small file system");
    }
    let mut seen = std::collections::BTreeSet::new();
    // From no room for the directory to enough for all; the engine fills what is left with its own words.
    for (number, kilobytes) in [4, 64, 1024, 1064, 1100, 1160, 1300, 2000, 8000].into_iter().enumerate() {
        let house = house();
        let runs = house.root().join("small");
        let Some(_disk) = SmallDisk::mount(&runs, kilobytes) else { return skipped("mount is not permitted here") };
        let case = house.case(&Case::new("quick"));
        let talk = "[[step]]\ndo = \"shell\"\ncommand = \"head -c 900000 /dev/zero | tr '\\\\0' 'x'; echo\"\n";
        let text = format!("{}{talk}", script(&[write("answer.txt", "right\n")]));
        let path = house.script("talk", &text);
        let answer = house.cto(&["run", &case, "--script", &path, "--runs-dir", &runs.display().to_string(), "--json"]);
        assert_honest(&answer, &runs, &format!("{kilobytes} KiB"));
        seen.insert(answer.code);
        assert!(number > 0 || answer.code != Some(0), "four kilobytes cannot hold a pass");
    }
    assert!(seen.contains(&Some(0)) && seen.contains(&Some(1)) && seen.contains(&Some(70)), "{seen:?}");
}

#[test]
fn a_runs_root_that_cannot_be_written_gives_no_bundle() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let file = house.root().join("elsewhere/file");
    fs::write(&file, "").unwrap();
    let locked = house.root().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    let mut places = vec![file.join("runs"), PathBuf::from("/proc/nowhere")];
    if !is_root() {
        places.push(locked.clone());
    }
    for place in places {
        let answer = house.cto(&["run", &case, "--runs-dir", &place.display().to_string()]);
        assert_eq!(answer.code, Some(70), "{}: {answer:?}", place.display());
        assert!(answer.stderr.contains("nothing ran") && answer.stdout.is_empty(), "{answer:?}");
    }
    assert_eq!(fs::read_dir(&locked).unwrap().count(), 0);
    assert!(house.work_entries().is_empty());
}

#[test]
fn a_read_only_file_system_gives_no_bundle() {
    if !is_root() {
        return skipped("only root can mount");
    }
    let house = house();
    let runs = house.root().join("small");
    let Some(_disk) = SmallDisk::mount(&runs, 4096) else { return skipped("mount is not permitted here") };
    let made_read_only = Command::new("mount").args(["-o", "remount,ro"]).arg(&runs).status().unwrap();
    assert!(made_read_only.success());
    let case = house.case(&Case::new("quick"));
    let answer = house.cto(&["run", &case, "--runs-dir", &runs.display().to_string()]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    assert!(answer.stderr.contains("runs_root_unwritable") && answer.stderr.contains("nothing ran"), "{answer:?}");
    assert!(house.work_entries().is_empty());
}
