//! What could make a word count twice, for something else, or not at all: racing commands, a journal that cannot be
//! ended, bundles that are gone, and the place where somebody types.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cto_testkit::Answer;
use serde_json::Value;

use super::stage5::Owner;

impl Owner {
    fn shown(&self, id: &str) -> Value {
        self.desk.house.cto(&["show", id, "--json"]).json()
    }
}

/// Holds a command up where it takes the words of a run, and lets another one say something meanwhile: what was
/// read before the words were taken is old by then.
#[test]
fn a_word_rests_on_what_stands_once_it_is_its_turn() {
    let owner = Owner::new();
    let run = owner.waiting(&[]);
    let (id, key) = (run.run_id(), owner.desk.key.to_str().unwrap().to_owned());
    let desk = owner.desk.house.state().join("operator/outcomes").join(&id);
    fs::create_dir_all(&desk).unwrap();
    let (lock, aside) = (desk.join("lock"), desk.join("held-up"));
    let made = Command::new("mkfifo")
        .args(["-m", "600"])
        .arg(&lock)
        .status();
    assert!(made.unwrap().success());
    let words = ["outcome", &id, "accept", "--key", &key, "--json"];
    let mut second = owner.desk.house.command(&words);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped());
    let second = second.spawn().unwrap();
    // Whoever opens a pipe to write waits for a reader.
    let channel = format!("/proc/{}/wchan", second.id());
    let since = Instant::now();
    while !fs::read_to_string(&channel).is_ok_and(|at| at.contains("wait_for_partner"))
        && since.elapsed() < Duration::from_secs(20)
    {
        sleep(Duration::from_millis(50));
    }
    fs::rename(&lock, &aside).unwrap();
    let first = owner.cto(&["outcome", &id, "accept"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let reader = fs::File::open(&aside).unwrap();
    let second = Answer::of(&second.wait_with_output().unwrap());
    drop(reader);
    assert_eq!(owner.shown(&id)["effective"]["standing"], "accepted");
    assert_eq!(second.json()["error"]["code"], "not_settled", "{second:?}");
    assert_eq!(owner.repo.git(&["status", "--porcelain"]), "");
}

/// A landing was killed and the repository is away, so that nobody knows which side it ended on: nothing is said
/// of the run before that is known.
#[test]
fn while_a_landing_cannot_be_ended_nothing_is_said_of_its_run() {
    let owner = Owner::new();
    let run = owner.waiting(&[]);
    let (id, old) = (run.run_id(), owner.head());
    let key = owner.desk.key.to_str().unwrap().to_owned();
    let journals = owner.desk.house.state().join("journal");
    let is_there = || {
        let entries = fs::read_dir(&journals).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .any(|path| path.extension().is_some_and(|end| end == "json"))
    };
    let words = ["outcome", &id, "accept", "--key", &key];
    let mut child = owner.desk.house.start(&words);
    while !is_there() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_there(), "killed in the midst of it");
    let (top, away) = (
        owner.repo.path().to_owned(),
        owner.desk.house.root().join("away"),
    );
    fs::rename(&top, &away).unwrap();
    for word in ["reject", "accept"] {
        let said = owner.cto(&["outcome", &id, word]);
        assert_eq!(
            said.json()["error"]["code"],
            "not_settled",
            "{word}: {said:?}"
        );
    }
    assert_eq!(owner.shown(&id)["effective"]["standing"], "waits");
    fs::rename(&away, &top).unwrap();
    let recovered = owner.desk.house.cto(&["recover", "--json"]);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert_eq!(owner.repo.git(&["status", "--porcelain"]), "");
    let accepted = owner.cto(&["outcome", &id, "accept"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let landed = owner
        .repo
        .git(&["rev-list", "--count", &format!("{old}..")]);
    assert_eq!(landed, "1");
}

#[test]
fn what_was_said_stays_said_when_runs_are_pruned_or_bundles_are_gone() {
    let owner = Owner::new();
    let run = owner.waiting(&[]);
    let (id, before) = (run.run_id(), owner.repo.bytes());
    let rejected = owner.cto(&["outcome", &id, "reject"]);
    let settlement = owner.settlement(&rejected);
    let prune = ["runs", "prune", "--status", "fail", "--yes", "--json"];
    let pruned = owner.desk.house.cto(&prune);
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert!(
        settlement.dir.is_dir(),
        "what was said of a run goes with it, not before"
    );
    assert_eq!(owner.shown(&id)["effective"]["standing"], "rejected");
    // Whoever can write the runs directory takes it away, or changes a byte.
    let aside = owner.desk.house.root().join("aside");
    fs::rename(&settlement.dir, &aside).unwrap();
    let refused = |why: &str| {
        let said = owner.cto(&["outcome", &id, "accept"]);
        assert_eq!(
            said.json()["error"]["code"],
            "not_settled",
            "{why}: {said:?}"
        );
        assert!(said.json()["error"]["hint"].is_string(), "{why}: {said:?}");
        assert_eq!(owner.repo.bytes(), before, "{why}");
    };
    refused("gone");
    let untold = owner.shown(&id)["closeout"]["settlements_untold"].clone();
    assert!(untold.as_str().unwrap().contains(&settlement.run_id()));
    fs::rename(&aside, &settlement.dir).unwrap();
    let outcome = settlement.dir.join("relied/outcome.json");
    let text = fs::read_to_string(&outcome).unwrap();
    fs::write(&outcome, text.replace("rejected", "accepted")).unwrap();
    refused("changed");
    fs::write(&outcome, text).unwrap();
    assert_eq!(owner.shown(&id)["effective"]["standing"], "rejected");
}

/// Where a word is said, and with which variables, is not where it was asked for.
#[test]
fn a_request_is_the_same_wherever_it_is_run_and_settled() {
    let owner = Owner::new();
    let house = &owner.desk.house;
    let here = house.root().join("here");
    fs::create_dir_all(&here).unwrap();
    fs::copy(&owner.target, here.join("t.json")).unwrap();
    let case = here.join("case");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    cto_testkit::copy_dir(&files.join(super::CASE), &case);
    let name = "CTO_HARNESS_FAKE_STAGE5_TARGET_ADMISSION_FILE";
    let words = [
        "request",
        "./case",
        "--stage",
        "5",
        "--work-id",
        "CTO-WORK-049",
        "--json",
    ];
    let mut asked = house.command(&words);
    let asked = asked.current_dir(&here).env(name, "t.json");
    let asked = Answer::of(&asked.output().unwrap());
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let request = asked.json()["request"].clone();
    owner.desk.approve(&request);
    let run = owner.desk.run(&request);
    assert_eq!(run.codes(), ["missing_operator_outcome"]);
    // What was worked on is in the bundle: the case may be another by now.
    fs::remove_dir_all(&case).unwrap();
    let accepted = owner.cto(&["outcome", &run.run_id(), "accept"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
}

/// What a request was asked with lies beside it and is not signed.
#[test]
fn an_approval_lets_nothing_start_that_needs_none() {
    let owner = Owner::new();
    let request = owner.request(&[]);
    owner.desk.approve(&request);
    let place = owner.desk.file(&request, "asked-with.json");
    let mut asked: Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
    asked["task"]["stage"] = serde_json::json!(2);
    asked["task"]["target"] = Value::Null;
    fs::write(&place, serde_json::to_vec(&asked).unwrap()).unwrap();
    let run = owner.desk.run(&request);
    assert_eq!(run.codes(), ["approval_mismatch"]);
    assert_eq!(run.report()["process_started"], false);
    assert!(!owner.desk.file(&request, "used.json").exists());
}
