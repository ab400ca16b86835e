//! The harness killed at any moment: never a pass, never a bundle that says something false.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_testkit::{Bundle, Case, House, Repo, script, sleep, write};

use crate::assert_good;
use crate::fixtures::bundles::entries;
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
    let dir = crate::fixtures::bundles::killed_run(&house);
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

/// Links to programs, which lie beside the runs for as long as a command does.
#[test]
fn what_a_killed_exec_leaves_is_swept() {
    let house = house();
    let bin = house.root().join("home/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::copy("/bin/true", bin.join("mine")).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let house = house.with("PATH", &path);
    let work = house.state().join("work");
    let mut child = house.start(&["exec", "--", "sleep", "60"]);
    let is_shelf = |name: &String| {
        let parts = fs::read_dir(work.join(name)).into_iter().flatten();
        let mut parts = parts.flatten().map(|part| part.path());
        parts.any(|part| part.join("mine").is_symlink())
    };
    while !house.work_entries().iter().any(is_shelf) {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(house.work_entries().iter().any(is_shelf));
    let swept = house.cto(&["recover"]);
    assert_eq!(swept.code, Some(0), "{swept:?}");
    assert_eq!(house.work_entries(), Vec::<String>::new());
}
