//! The settlement that is written: kept word, bundle, proof and the verdict that counts, by the code that commands
//! use; only the run is forged.

use std::fs;
use std::path::PathBuf;

use cto_core::bundle::settlement::{Given, Standing as Stands};
use cto_core::run::event::{LandMode, LandingStep, LandingUpdated, Outcome};
use cto_core::values::digest::Digest;
use cto_core::values::verdict::Status;
use cto_harness::evidence::{EvidenceError, SealedBundle};
use cto_harness::host::failure::Failure;
use cto_harness::host::{Env, Home};
use cto_harness::run::approvals::settlement::{Landing, Settling, Word, Words, settle};
use cto_harness::run::approvals::store::Kept;
use cto_testkit::{Bundle, FORGER, TestKey, copy_dir};

use super::Shelf;
use super::forge::signed;

/// A green run at stage 5 in a house that trusts its forger, and somebody who may say something of it.
struct Desk {
    shelf: Shelf,
    run: Bundle,
    home: Home,
}

impl Desk {
    fn new() -> Self {
        let shelf = Shelf::make();
        let key = shelf.house.root().join("forger.pem");
        fs::write(&key, TestKey::new(FORGER).public_pem()).unwrap();
        let public = shelf.key("operator").with_extension("pub");
        for words in [
            ["keys", "trust", key.to_str().unwrap()].as_slice(),
            &["keys", "approver", "me", public.to_str().unwrap()],
        ] {
            assert_eq!(shelf.house.cto(words).code, Some(0), "{words:?}");
        }
        let run = shelf.waiting(&shelf.pass);
        let place = shelf.house.runs_dir().join(run.run_id());
        fs::remove_dir_all(&place).unwrap();
        copy_dir(&run.dir, &place);
        let home = Home {
            root: shelf.house.state(),
            runs: shelf.house.runs_dir(),
        };
        let run = Bundle::at(place);
        Self { shelf, run, home }
    }

    fn landed(&self, step: LandingStep) -> Landing {
        let commit = self.run.report()["result"]["commit"]
            .as_str()
            .unwrap()
            .to_owned();
        Landing::Updates(vec![LandingUpdated {
            step,
            mode: LandMode::Merge,
            old_commit: None,
            new_commit: (step == LandingStep::Landed).then_some(commit),
            detail: (step == LandingStep::Refused).then(|| "a merge is unfinished".into()),
        }])
    }

    fn say(
        &self,
        outcome: Outcome,
        land: impl FnOnce() -> Result<Landing, EvidenceError>,
    ) -> Result<SealedBundle, Failure> {
        let word = Word {
            outcome,
            given: Given::Afterwards,
            land: LandMode::Merge,
            actor: "me".into(),
            source: "a key".into(),
        };
        let settling = Settling::open(&self.home, &self.run.dir)?;
        let words = Words::hold(&self.home, &settling.named.run_id)
            .unwrap()
            .unwrap();
        let record = settling.record(&self.home, &word)?;
        let bytes = record.to_bytes().unwrap();
        let signature = signed(&self.shelf.key("operator"), "outcome@cto-harness", &bytes);
        let kept = Kept {
            record: String::from_utf8(bytes).unwrap(),
            signature,
        };
        let env = Env::of_process();
        let place = (&self.home, &env);
        settle(place, &words, &settling, (&record, &kept), |_| land())
    }

    fn stands(&self) -> Stands {
        Settling::open(&self.home, &self.run.dir)
            .unwrap()
            .stands()
            .standing
    }

    /// Good by `cto verify`, which knows everything of this house.
    fn verifies(&self, sealed: &SealedBundle) {
        let id = sealed.report.run_id.to_string();
        let answer = self.shelf.house.cto(&["verify", &id, "--json"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }

    fn shown(&self, words: &[&str]) -> serde_json::Value {
        let mut words = words.to_vec();
        words.push("--json");
        self.shelf.house.cto(&words).json()
    }
}

#[test]
fn an_accepted_result_counts_wherever_the_run_is_shown() {
    let desk = Desk::new();
    let (id, before) = (desk.run.run_id(), Digest::of(&desk.run.bytes("SHA256SUMS")));
    assert_eq!(desk.stands(), Stands::Waits);
    assert_eq!(desk.shown(&["show", &id])["effective"]["standing"], "waits");
    let sealed = desk
        .say(Outcome::Accepted, || Ok(desk.landed(LandingStep::Landed)))
        .unwrap();
    assert_eq!(
        sealed.report.status,
        Status::Pass,
        "{:?}",
        sealed.report.blockers
    );
    desk.verifies(&sealed);
    for words in [["show", &id], ["verify", &id]] {
        let mut shown = desk.shown(&words);
        if words[0] == "verify" {
            shown = shown["bundles"][0].clone();
        }
        assert_eq!(shown["effective"]["status"], "pass", "{shown}");
        assert_eq!(shown["effective"]["by"], sealed.report.run_id.as_str());
    }
    let listed = desk.shown(&["runs"]);
    let rows = listed["runs"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["run_id"] == id.as_str())
        .unwrap();
    assert_eq!(
        (&row["status"], &row["effective"]["status"]),
        (&"blocked".into(), &"pass".into())
    );
    let text = desk.shelf.house.cto(&["verify", &id]).stdout;
    assert!(text.contains("accepted, and landed"), "{text}");
    assert_eq!(
        Digest::of(&desk.run.bytes("SHA256SUMS")),
        before,
        "no sealed bundle changes"
    );
    // Said once; what follows can only take it back.
    assert!(
        desk.say(Outcome::Accepted, || Ok(Landing::Nothing))
            .is_err()
    );
    let back = desk
        .say(Outcome::Rejected, || Ok(desk.landed(LandingStep::Landed)))
        .unwrap();
    desk.verifies(&back);
    assert_eq!(
        back.report.settlement.as_ref().unwrap().reverts,
        Some(sealed.report.run_id)
    );
    assert_eq!(desk.stands(), Stands::Reverted);
    assert!(
        desk.say(Outcome::Rejected, || Ok(Landing::Nothing))
            .is_err()
    );
}

#[test]
fn a_rejected_result_is_rejected_for_good() {
    let desk = Desk::new();
    let sealed = desk
        .say(Outcome::Rejected, || Ok(Landing::Nothing))
        .unwrap();
    assert_eq!(sealed.report.status, Status::Fail);
    desk.verifies(&sealed);
    assert_eq!(desk.stands(), Stands::Rejected);
    for outcome in [Outcome::Accepted, Outcome::Rejected] {
        assert!(desk.say(outcome, || Ok(Landing::Nothing)).is_err());
    }
}

#[test]
fn what_was_refused_or_cut_short_may_be_said_again() {
    let desk = Desk::new();
    let refused = desk
        .say(Outcome::Accepted, || Ok(desk.landed(LandingStep::Refused)))
        .unwrap();
    assert_eq!(
        refused.report.blockers[0].code.as_str(),
        "landing_unsupported"
    );
    desk.verifies(&refused);
    assert_eq!(desk.stands(), Stands::NotLanded);
    let broken = || {
        let full = std::io::Error::from_raw_os_error(28);
        Err(EvidenceError::cannot_write("x", &full))
    };
    let cut = desk.say(Outcome::Accepted, broken).unwrap();
    assert_ne!(cut.report.status, Status::Pass);
    desk.verifies(&cut);
    assert_eq!(desk.stands(), Stands::NotLanded, "half a word says nothing");
    let said = desk
        .say(Outcome::Accepted, || Ok(desk.landed(LandingStep::Landed)))
        .unwrap();
    desk.verifies(&said);
    assert_eq!(desk.stands(), Stands::Accepted);
}

#[test]
fn one_process_at_a_time_says_something() {
    let desk = Desk::new();
    let id = desk.run.run_id().parse().unwrap();
    let held = Words::hold(&desk.home, &id).unwrap();
    assert!(held.is_some() && Words::hold(&desk.home, &id).unwrap().is_none());
    drop(held);
    assert!(Words::hold(&desk.home, &id).unwrap().is_some());
}

/// A settlement that was being written when its writer went: closed as interrupted, and said again.
/// A settlement as its writer left it once its word was told; who it is.
fn left_open(desk: &Desk) -> PathBuf {
    let left = desk.shelf.house.root().join("left");
    let note = left.with_extension("note");
    let sealed = {
        let (runs, left, note) = (desk.home.runs.clone(), left.clone(), note.clone());
        let listed = desk.home.open_runs();
        let newest = move || {
            let entries = fs::read_dir(&runs).unwrap().flatten();
            let open = entries.filter(|entry| !entry.path().join("report.json").exists());
            let open: Vec<_> = open
                .filter(|entry| entry.path().join("run.lock").exists())
                .collect();
            copy_dir(&open[0].path(), &left);
            fs::copy(open[0].path().join("run.lock"), left.join("run.lock")).unwrap();
            fs::copy(listed.join(open[0].file_name()), note).unwrap();
            Ok(Landing::Nothing)
        };
        desk.say(Outcome::Rejected, newest).unwrap()
    };
    let place = desk.home.runs.join(sealed.report.run_id.as_str());
    fs::remove_dir_all(&place).unwrap();
    copy_dir(&left, &place);
    fs::copy(
        &note,
        desk.home.open_runs().join(sealed.report.run_id.as_str()),
    )
    .unwrap();
    place
}

#[test]
fn half_a_word_is_none_and_hinders_nobody() {
    let desk = Desk::new();
    let place = left_open(&desk);
    // Killed while the word was written: nothing tells of it yet.
    fs::write(place.join("relied/outcome.json"), "{\"actor\"").unwrap();
    fs::remove_file(place.join("relied/outcome.json.sig")).unwrap();
    fs::write(place.join("events.normalized.jsonl"), "").unwrap();
    let answer = desk.shelf.house.cto(&["recover", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let closed = Bundle::at(&place);
    assert_eq!(closed.codes(), ["interrupted"]);
    let verified = desk
        .shelf
        .house
        .cto(&["verify", &closed.run_id(), "--json"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(desk.stands(), Stands::Waits);
    let said = desk
        .say(Outcome::Rejected, || Ok(Landing::Nothing))
        .unwrap();
    desk.verifies(&said);
}

#[test]
fn a_settlement_without_a_writer_is_closed_and_says_nothing() {
    let desk = Desk::new();
    let place = left_open(&desk);
    let answer = desk.shelf.house.cto(&["recover", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let closed = Bundle::at(&place);
    assert_eq!(closed.codes(), ["interrupted", "operator_rejected"]);
    let id = closed.run_id();
    let verified = desk.shelf.house.cto(&["verify", &id, "--json"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(desk.stands(), Stands::Waits);
}
