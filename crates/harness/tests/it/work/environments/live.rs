//! The operator works on while a run checks: what ran over a directory that changed does not count,
//! and is run again over one that nobody changes.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{shell, wait_until, write};

use super::times::{age, built, make};
use super::*;

/// Waits for something to appear in a log of the one run there is.
pub fn seen_in_log(house: &House, name: &str, text: &str) -> bool {
    let log = || -> Option<PathBuf> { Some(house.run_dirs().pop()?.join(name)) };
    wait_until(|| {
        let found = log().and_then(|log| fs::read(log).ok()).unwrap_or_default();
        String::from_utf8_lossy(&found).contains(text)
    })
}

#[test]
fn a_check_over_a_directory_that_changed_is_run_again() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = repo_ignoring(&house, "live");
        install(&repo, "node_modules", 2_050);
        // Green at once where the flag is; otherwise it waits, so that the owner can put it there.
        let test = "echo waiting-for-owner; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                    test -e node_modules/flag && break; sleep 0.2; done; grep -qx right answer.txt";
        let steps = script(&[write("answer.txt", "right\n")]);
        let mut child = house.start_try(&repo, &steps, &["--allow", ".", "--test", test]);
        assert!(
            seen_in_log(&house, "test.log", "\nwaiting-for-owner"),
            "{kind}"
        );
        repo.write("node_modules/flag", "the owner was here\n");
        assert!(child.wait().unwrap().success(), "{kind}");
        let bundle = Bundle::at(house.run_dirs().pop().unwrap());
        crate::assert_good(&bundle);
        let done = bundle.event("verification.completed").unwrap();
        assert_eq!(
            done["not_counted"].as_array().map(Vec::len),
            Some(1),
            "{kind}: {done}"
        );
        assert_eq!(
            done["checks"].as_array().map(Vec::len),
            Some(1),
            "{kind}: {done}"
        );
        let notes = bundle.report()["environment_notes"].to_string();
        assert!(
            notes.contains("node_modules/ changed while a command ran"),
            "{notes}"
        );
        assert!(house.work_entries().is_empty(), "{kind}");
        // Whoever takes the run that does not count out of the chain, or puts it in, is found out.
        let forged = cto_testkit::Forged::copy_of(&bundle);
        forged.edit_event("verification.completed", |event| {
            event["not_counted"] = serde_json::json!([]);
        });
        crate::assert_bad(
            &forged.reseal().bundle(),
            "a run that does not count is gone",
        );
    }
}

/// HEAD is red, and so is everything that was made of it. Its owner makes a repair, builds, and
/// takes the repair back, while a process waits for that.
fn built_red(house: &House) -> Repo {
    let repo = built(house, 2_050);
    repo.write("answer.txt", "wrong\n");
    repo.commit("a bug");
    age(&repo, "answer.txt", 500);
    make_of(&repo, "wrong\n");
    repo
}

/// What was made says `text`, and its source says what it said.
fn make_of(repo: &Repo, text: &str) {
    let before = fs::read(repo.at("answer.txt")).unwrap();
    repo.write("answer.txt", "right\n");
    make(repo);
    fs::write(repo.at("answer.txt"), before).unwrap();
    age(repo, "answer.txt", 500);
    repo.write("out/result", &format!("{text}one\n"));
}

const WAIT: &str = "echo waiting-for-owner; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 \
                    21 22 23 24 25 26 27 28 29 30; do test -e out/flag && break; sleep 0.2; done";

#[test]
fn what_an_owner_made_meanwhile_of_other_bytes_makes_nothing_green() {
    for kind in KINDS {
        for (when, log) in [
            ("the check", "test.log"),
            ("the engine", "backend/stdout.log"),
        ] {
            let house = house_with(kind);
            let repo = built_red(&house);
            let (steps, test) = match log {
                "test.log" => (
                    vec![write("notes.txt", "new\n")],
                    format!("{WAIT}; make -s test"),
                ),
                _ => (
                    vec![write("notes.txt", "new\n"), shell(WAIT)],
                    "make -s test".to_owned(),
                ),
            };
            let more = ["--allow", ".", "--input", "out", "--test", &test];
            let mut child = house.start_try(&repo, &script(&steps), &more);
            assert!(
                seen_in_log(&house, log, "waiting-for-owner"),
                "{kind}, {when}"
            );
            make_of(&repo, "right\n");
            repo.write("out/flag", "");
            let code = child.wait().unwrap().code();
            let bundle = Bundle::at(house.run_dirs().pop().unwrap());
            assert_eq!(
                code,
                Some(1),
                "{kind}, during {when}: {}",
                bundle.text("test.log")
            );
            assert!(
                bundle.has_code("verification_failed"),
                "{kind}, during {when}: {:?} {}",
                bundle.codes(),
                bundle.text("test.log")
            );
        }
    }
}
