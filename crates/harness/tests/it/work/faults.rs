//! Faults of the machine: killed at any moment, no room, no permission. Never a pass, never a
//! panic.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cto_core::values::verdict::Status;
use cto_testkit::{Answer, Bundle, Case, House, ORACLE, Repo, is_root, script, sleep, write};

use crate::assert_good;
use crate::house;

/// No directory under the runs root may read as a pass unless it is sealed and verifies as one.
fn assert_nothing_false(house: &House, when: &str) {
    for dir in house.run_dirs() {
        let sealed = dir.join("report.json").exists();
        let answer = house.cto(&["verify", &dir.display().to_string(), "--json"]);
        match sealed {
            true => assert_eq!(
                answer.code,
                Some(0),
                "{when}: a sealed bundle does not verify: {answer:?}"
            ),
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
    assert!(
        house.work_entries().is_empty(),
        "{:?}",
        house.work_entries()
    );
}

/// How many events the chain of the run that is not in `before` has, and whether it is sealed.
fn grown(house: &House, before: &[PathBuf]) -> (usize, bool) {
    let Some(dir) = house
        .run_dirs()
        .into_iter()
        .find(|dir| !before.contains(dir))
    else {
        return (0, false);
    };
    let lines = fs::read(dir.join("events.normalized.jsonl"))
        .unwrap_or_default()
        .split(|b| *b == b'\n')
        .count();
    (lines.saturating_sub(1), dir.join("report.json").exists())
}

/// Runs a try of a repository and kills the harness as soon as its chain has so many events, or
/// once it is sealed.
fn kill_at(house: &House, args: &[&str], events: Option<usize>) {
    let before = house.run_dirs();
    let mut child = house.start(args);
    let reached = |(lines, sealed): (usize, bool)| events.map_or(sealed, |events| lines >= events);
    while child.try_wait().unwrap().is_none() && !reached(grown(house, &before)) {
        std::thread::sleep(Duration::from_micros(100));
    }
    let _ = child.kill();
    child.wait().unwrap();
}

/// Processes and mounts that still see a place.
fn still_there(place: &Path) -> Vec<String> {
    let name = place.file_name().unwrap().to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let pids = entries.filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
    pids.filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/mountinfo")).is_ok_and(|text| text.contains(&name))
    })
    .collect()
}

fn entries(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Every event boundary once, from before the first to after the seal. Whatever the moment: closed
/// as interrupted or sealed as a pass, and nothing else is left anywhere.
#[test]
fn killed_at_every_event_boundary() {
    let house = house();
    let tmp = house.root().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let house = house.with("TMPDIR", tmp.to_str().unwrap());
    let repo = Repo::new(&house, "project");
    let slow = house.script(
        "slow",
        &script(&[write("answer.txt", "right\n"), sleep(15)]),
    );
    let test = "grep -qx right answer.txt";
    let args = [
        "try",
        "--repo",
        repo.path(),
        "--task",
        "Make it right",
        "--script",
        &slow,
        "--allow",
        "answer.txt",
        "--test",
        test,
    ];
    let answer = house.cto(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let whole = grown(&house, &[]).0;
    assert!(whole >= 10, "{whole} events");
    let (source, outside) = (repo.bytes(), house.outside());
    for events in (0..=whole).map(Some).chain([None]) {
        let when = format!("killed at event {events:?}");
        let before = house.run_dirs();
        kill_at(&house, &args, events);
        assert!(
            cto_testkit::wait_until(|| still_there(house.root()).is_empty()),
            "{when}: {:?}",
            still_there(house.root())
        );
        assert_nothing_false(&house, &when);
        assert_eq!(house.cto(&["recover"]).code, Some(0), "{when}");
        assert_nothing_false(&house, &when);
        for dir in house
            .run_dirs()
            .into_iter()
            .filter(|dir| !before.contains(dir))
        {
            let bundle = Bundle::at(&dir);
            assert_good(&bundle);
            let verdict = (bundle.status(), bundle.codes());
            let closed = verdict == ("blocked".to_owned(), vec!["interrupted".to_owned()]);
            let sealed =
                verdict == ("pass".to_owned(), Vec::new()) && bundle.event_types().len() == whole;
            assert!(closed || sealed, "{when}: {verdict:?}");
        }
        assert!(
            house.work_entries().is_empty(),
            "{when}: {:?}",
            house.work_entries()
        );
        assert_eq!(
            entries(&house.state().join("open")),
            Vec::<String>::new(),
            "{when}"
        );
        assert_eq!(entries(&tmp), Vec::<String>::new(), "{when}");
        assert_eq!(repo.bytes(), source, "{when}");
        assert_eq!(house.outside(), outside, "{when}");
    }
}

#[test]
fn recovery_itself_may_be_killed() {
    let house = house();
    let dir = crate::evidence::recover::killed_run(&house);
    for number in 0..12u64 {
        let mut child = house.start(&["recover"]);
        std::thread::sleep(Duration::from_millis(number));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_nothing_false(&house, &format!("recovery killed after {number} ms"));
    }
    assert_eq!(house.cto(&["recover"]).code, Some(0));
    let bundle = Bundle::at(dir);
    assert!(
        bundle.has_code("interrupted") && bundle.status() != "pass",
        "{:?}",
        bundle.codes()
    );
    assert_good(&bundle);
}

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        Self::mount_with(at, &format!("size={kilobytes}k,nr_inodes=4k"))
    }

    fn mount_with(at: &Path, option: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", option, "tmpfs"])
            .arg(at)
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(at.to_owned()))
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

/// What a run on a full disk may answer: a typed verdict with a bundle that verifies, or exit 70
/// and a reason.
fn assert_honest(answer: &Answer, runs: &Path, what: &str) {
    assert!(!answer.panicked(), "{what}: {answer:?}");
    match answer.code {
        Some(70) => assert!(
            answer.stdout.contains("\"error\"") && answer.stdout.contains("because"),
            "{what}: {answer:?}"
        ),
        Some(1 | 3) => {
            let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
            assert!(
                bundle.has_code("artifact_write_failure"),
                "{what}: {:?}",
                bundle.codes()
            );
            assert_good(&bundle);
        }
        Some(0) => {}
        other => panic!("{what}: {other:?}: {answer:?}"),
    }
    for entry in fs::read_dir(runs)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| e.path().join("report.json").exists())
    {
        let found = crate::verdict_of(&entry.path());
        let passed = found.status == Some(Status::Pass);
        assert_eq!(
            passed,
            answer.code == Some(0),
            "{what}: {:?}",
            found.problems
        );
    }
}

#[test]
fn a_full_disk_gives_a_typed_verdict_or_says_so() {
    if !is_root() {
        return skipped("only root can mount a small file system");
    }
    let mut seen = std::collections::BTreeSet::new();
    // From no room for the directory to enough for all; the engine fills what is left with its own
    // words.
    for (number, kilobytes) in [4, 64, 1024, 1064, 1100, 1160, 1300, 2000, 8000]
        .into_iter()
        .enumerate()
    {
        let house = house();
        let runs = house.root().join("small");
        let Some(_disk) = SmallDisk::mount(&runs, kilobytes) else {
            return skipped("mount is not permitted here");
        };
        let case = house.case(&Case::new("quick"));
        let talk = "[[step]]\ndo = \"shell\"\ncommand = \"head -c 900000 /dev/zero | tr '\\\\0' 'x'; echo\"\n";
        let text = format!("{}{talk}", script(&[write("answer.txt", "right\n")]));
        let path = house.script("talk", &text);
        let answer = house.cto(&[
            "run",
            &case,
            "--script",
            &path,
            "--runs-dir",
            &runs.display().to_string(),
            "--json",
        ]);
        assert_honest(&answer, &runs, &format!("{kilobytes} KiB"));
        seen.insert(answer.code);
        assert!(
            number > 0 || answer.code != Some(0),
            "four kilobytes cannot hold a pass"
        );
    }
    assert!(
        seen.contains(&Some(0)) && seen.contains(&Some(1)) && seen.contains(&Some(70)),
        "{seen:?}"
    );
}

/// A quiet run on file systems that end, one after the other, at each file it writes.
fn on_small_disks(
    options: impl Iterator<Item = String>,
) -> std::collections::BTreeSet<Option<i32>> {
    let mut seen = std::collections::BTreeSet::new();
    for option in options {
        let house = house();
        let runs = house.root().join("small");
        let Some(_disk) = SmallDisk::mount_with(&runs, &option) else {
            return seen;
        };
        let case = house.case(&Case::new("quick"));
        let path = house.script("oracle", ORACLE);
        let answer = house.cto(&[
            "run",
            &case,
            "--script",
            &path,
            "--runs-dir",
            &runs.display().to_string(),
            "--json",
        ]);
        assert_honest(&answer, &runs, &option);
        assert!(
            house.work_entries().is_empty(),
            "{option}: {:?}",
            house.work_entries()
        );
        seen.insert(answer.code);
    }
    seen
}

/// Past the reserve the room grows by little more than a page at a time: the disk is full at each
/// artifact in turn.
#[test]
fn a_disk_that_is_full_at_each_artifact() {
    if !is_root() {
        return skipped("only root can mount a small file system");
    }
    let seen =
        on_small_disks((0..26).map(|step| format!("size={}k,nr_inodes=4k", 1024 + step * 8)));
    assert!(
        seen.is_empty() || seen.contains(&Some(0)) && seen.len() > 1,
        "{seen:?}"
    );
}

/// A file system of so many files ends at the creation of each artifact in turn.
#[test]
fn a_disk_without_inodes_at_each_artifact() {
    if !is_root() {
        return skipped("only root can mount a small file system");
    }
    let seen = on_small_disks(
        (2..46)
            .step_by(2)
            .map(|files| format!("size=64m,nr_inodes={files}")),
    );
    assert!(
        seen.is_empty() || seen.contains(&Some(0)) && seen.len() > 1,
        "{seen:?}"
    );
}

/// The whole state home on a disk of its own: workspaces, keys, index and bundles.
#[test]
fn a_state_home_without_room_or_inodes() {
    if !is_root() {
        return skipped("only root can mount a small file system");
    }
    let mut seen = std::collections::BTreeSet::new();
    let rooms = [16, 256, 1200, 1500, 2500, 20_000].map(|k| format!("size={k}k,nr_inodes=4k"));
    let inodes = [4, 12, 30, 60, 90, 4000].map(|files| format!("size=64m,nr_inodes={files}"));
    for option in rooms.into_iter().chain(inodes) {
        let house = house();
        let Some(_disk) = SmallDisk::mount_with(&house.state(), &option) else {
            return skipped("mount is not permitted here");
        };
        let case = house.case(&Case::new("quick"));
        let answer = house.cto(&[
            "run",
            &case,
            "--script",
            &house.script("oracle", ORACLE),
            "--json",
        ]);
        assert!(!answer.panicked(), "{option}: {answer:?}");
        match answer.code {
            Some(70) => assert!(
                answer.stdout.contains("because") || answer.stderr.contains("because"),
                "{option}: {answer:?}"
            ),
            Some(0 | 1 | 3) => {
                let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
                assert_good(&bundle);
                assert_eq!(
                    answer.code == Some(0),
                    bundle.status() == "pass",
                    "{option}"
                );
            }
            other => panic!("{option}: {other:?}: {answer:?}"),
        }
        for dir in house
            .run_dirs()
            .into_iter()
            .filter(|dir| dir.join("report.json").exists())
        {
            assert_eq!(
                crate::verdict_of(&dir).status == Some(Status::Pass),
                answer.code == Some(0),
                "{option}"
            );
        }
        seen.insert(answer.code);
    }
    assert!(
        seen.contains(&Some(0)) && seen.contains(&Some(70)),
        "{seen:?}"
    );
}

#[test]
fn a_read_only_state_home_says_so_and_runs_nothing() {
    if !is_root() {
        return skipped("only root can mount");
    }
    let house = house();
    let Some(_disk) = SmallDisk::mount(&house.state(), 4096) else {
        return skipped("mount is not permitted here");
    };
    assert!(
        Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(house.state())
            .status()
            .unwrap()
            .success()
    );
    let case = house.case(&Case::new("quick"));
    let answer = house.cto(&["run", &case]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    assert!(
        answer.stderr.contains("because") && answer.stderr.contains("Read-only"),
        "{answer:?}"
    );
    assert_eq!(entries(&house.state()), Vec::<String>::new());
}

/// A harness that may start few processes, or none. Root is refused nothing, so this needs somebody
/// else.
#[test]
fn a_harness_without_processes_gives_a_typed_verdict_or_says_so() {
    for person in crate::jail::contained::people().iter().skip(1) {
        let dir = person.at("outside/quick");
        Case::new("quick").write(&dir);
        for processes in ["1", "2", "3", "5", "8"] {
            let home = person
                .at(&format!("home/{processes}"))
                .display()
                .to_string();
            let mut command = Command::new("prlimit");
            command.arg(format!("--nproc={processes}"));
            let inner = person.command(&["--home", &home, "run", dir.to_str().unwrap(), "--json"]);
            command
                .arg(inner.get_program())
                .args(inner.get_args())
                .env_clear();
            command
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", person.at("home"))
                .current_dir(person.at("ws"));
            let answer = Answer::of(&command.output().unwrap());
            assert!(!answer.panicked(), "{processes}: {answer:?}");
            match answer.code {
                Some(0 | 1 | 3) => {
                    let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
                    assert_good(&bundle);
                    assert_eq!(
                        answer.code == Some(0),
                        bundle.status() == "pass",
                        "{processes}"
                    );
                }
                Some(70) => assert!(answer.stdout.contains("because"), "{processes}: {answer:?}"),
                other => panic!("{processes}: {other:?}: {answer:?}"),
            }
        }
    }
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
        assert!(
            answer.stderr.contains("nothing ran") && answer.stdout.is_empty(),
            "{answer:?}"
        );
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
    let Some(_disk) = SmallDisk::mount(&runs, 4096) else {
        return skipped("mount is not permitted here");
    };
    let made_read_only = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(&runs)
        .status()
        .unwrap();
    assert!(made_read_only.success());
    let case = house.case(&Case::new("quick"));
    let answer = house.cto(&["run", &case, "--runs-dir", &runs.display().to_string()]);
    assert_eq!(answer.code, Some(70), "{answer:?}");
    assert!(
        answer.stderr.contains("runs_root_unwritable") && answer.stderr.contains("nothing ran"),
        "{answer:?}"
    );
    assert!(house.work_entries().is_empty());
}
