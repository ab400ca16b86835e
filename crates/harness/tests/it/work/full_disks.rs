//! No room, no inodes, no permission, no processes: a typed verdict, or a plain word that there is
//! none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_core::values::verdict::Status;
use cto_testkit::{Answer, Bundle, Case, ORACLE, is_root, script, skip, write};

use crate::assert_good;
use crate::fixtures::bundles::entries;
use crate::house;

/// A small file system of its own, unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        Self::mount_with(at, &format!("size={kilobytes}k,nr_inodes=4k"))
    }

    pub fn mount_with(at: &Path, option: &str) -> Option<Self> {
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

/// What a run on a full disk may answer: a typed verdict with a bundle that verifies, or exit 70
/// and a reason.
pub(super) fn assert_honest(answer: &Answer, runs: &Path, what: &str) {
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
        return skip("only root can mount a small file system");
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
            return skip("mount is not permitted here");
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
            skip("mount is not permitted here");
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
        return skip("only root can mount a small file system");
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
        return skip("only root can mount a small file system");
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
        return skip("only root can mount a small file system");
    }
    let mut seen = std::collections::BTreeSet::new();
    let rooms = [16, 256, 1200, 1500, 2500, 20_000].map(|k| format!("size={k}k,nr_inodes=4k"));
    let inodes = [4, 12, 30, 60, 90, 4000].map(|files| format!("size=64m,nr_inodes={files}"));
    for option in rooms.into_iter().chain(inodes) {
        let house = house();
        let Some(_disk) = SmallDisk::mount_with(&house.state(), &option) else {
            return skip("mount is not permitted here");
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
        return skip("only root can mount");
    }
    let house = house();
    let Some(_disk) = SmallDisk::mount(&house.state(), 4096) else {
        return skip("mount is not permitted here");
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
    let people = crate::fixtures::people::people();
    if people.len() < 2 {
        skip("only root can become another user, whose processes have a limit");
    }
    for person in people.iter().skip(1) {
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
    if is_root() {
        skip("a closed runs root: root may write everywhere");
    } else {
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
        return skip("only root can mount");
    }
    let house = house();
    let runs = house.root().join("small");
    let Some(_disk) = SmallDisk::mount(&runs, 4096) else {
        return skip("mount is not permitted here");
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
