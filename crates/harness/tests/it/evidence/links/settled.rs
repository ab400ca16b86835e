//! Settlements: the signed word of a run that lacks nothing else, and everything that keeps one from counting.

use std::fs;
use std::process::Command;

use cto_core::bundle::report::{Continues, Report};
use cto_core::bundle::settlement::{Settlement, Standing as Stands, effective_verdict};
use cto_core::values::digest::Digest;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;
use cto_testkit::{Bundle, FORGER, Forged, TestKey};
use serde_json::{Value, json};

use super::Shelf;
use super::forge::{ID, OUTCOME, SIGNATURE, render, signed};

#[test]
fn a_settlement_goes_on_from_a_run_that_waits() {
    let shelf = Shelf::make();
    let run = shelf.waiting(&shelf.pass);
    let found = shelf.verify(&shelf.dir.join(run.run_id()));
    assert_eq!(found.standing, Standing::Good, "{:#?}", found.problems);
    assert_eq!(found.status, Some(Status::Blocked));
    for outcome in ["accepted", "rejected"] {
        shelf.stands(outcome, &shelf.good(&run, outcome), Standing::Good, "");
    }
    let mut refused = shelf.word(&run, "accepted");
    refused.landed = Some("refused");
    let refused = shelf.settles(&run, &refused, "operator", "outcome@cto-harness");
    shelf.stands("refused by the target", &refused, Standing::Good, "");
    shelf.stands(
        "a run that waits cannot pass by itself",
        &{
            let forged = Forged::copy_of(&run);
            forged.edit_report(|r| {
                r["status"] = "pass".into();
                r["failure_reason"] = Value::Null;
                r["blockers"] = json!([]);
            });
            forged.edit_event("run.completed", |data| {
                data["status"] = "pass".into();
                data["blockers"] = json!([]);
            });
            render(&forged);
            forged
        },
        Standing::Bad,
        "the facts say blocked",
    );
}

#[test]
fn only_the_word_of_this_run_by_its_own_signer_counts() {
    let shelf = Shelf::make();
    let run = shelf.waiting(&shelf.pass);
    let (own, other) = ("outcome@cto-harness", "approval@cto-harness");
    let word = shelf.word(&run, "accepted");
    let of = |change: fn(&mut Value)| {
        let mut word = shelf.word(&run, "accepted");
        change(&mut word.record);
        shelf.settles(&run, &word, "operator", own)
    };
    let alone = shelf.good(&run, "accepted");
    const ELSEWHERE: &str = "20200101T000000Z-quick-abcdefgh";
    alone.edit_report(|r| r["continues"]["run_id"] = ELSEWHERE.into());
    // The page of the settlement names the run too.
    let page = alone.bundle().text("report.md");
    alone.put(
        "report.md",
        page.replace(&run.run_id(), ELSEWHERE).as_bytes(),
    );
    let exchanged = shelf.good(&run, "accepted");
    let bytes = cto_core::values::json::canonical(&shelf.word(&run, "rejected").record).unwrap();
    exchanged.put(OUTCOME, &bytes);
    exchanged.put(
        SIGNATURE,
        signed(&shelf.key("operator"), own, &bytes).as_bytes(),
    );
    let unsigned = shelf.good(&run, "accepted");
    unsigned.put(SIGNATURE, b"");
    let without = shelf.good(&run, "accepted");
    without.remove(SIGNATURE);
    let nothing = shelf.good(&run, "accepted");
    nothing.edit_report(|r| drop(r.as_object_mut().unwrap().remove("continues")));
    let as_run = shelf.good(&run, "accepted");
    as_run.edit_report(|r| r["kind"] = "run".into());
    let not_landed = {
        let mut word = shelf.word(&run, "accepted");
        word.landed = None;
        shelf.settles(&run, &word, "operator", own)
    };
    let old_rules = shelf.good(&run, "accepted");
    let head = run.report()["events"]["head"].as_str().unwrap().to_owned();
    let mut events = old_rules.bundle().events();
    events[0]["data"]["rules"] = 8.into();
    old_rules.chain_from(&head, events);
    let proof = shelf.good(&run, "accepted");
    proof.put("stage5-owned-repo-proof.json", b"{}\n");
    for (what, forged, standing, why) in [
        (
            "its run is not there",
            alone,
            Standing::Unknown,
            "which was not found",
        ),
        (
            "another word than the chain's",
            exchanged,
            Standing::Bad,
            "is not the outcome that the chain tells of",
        ),
        (
            "unsigned",
            unsigned,
            Standing::Bad,
            "it is no SSH signature",
        ),
        (
            "no signature",
            without,
            Standing::Bad,
            "is missing although a run is settled",
        ),
        (
            "another key",
            shelf.settles(&run, &word, "stranger", own),
            Standing::Unknown,
            "a key that is not known here",
        ),
        (
            "another namespace",
            shelf.settles(&run, &word, "operator", other),
            Standing::Bad,
            "for another purpose",
        ),
        (
            "another run",
            of(|w| w["run_id"] = "20200101T000000Z-quick-abcdefgh".into()),
            Standing::Bad,
            "said of another run",
        ),
        (
            "another bundle",
            of(|w| w["sums_sha256"] = "0".repeat(64).into()),
            Standing::Bad,
            "another bundle of that name",
        ),
        (
            "another contract",
            of(|w| w["contract_digest"] = "0".repeat(64).into()),
            Standing::Bad,
            "another contract",
        ),
        (
            "another actor",
            of(|w| w["actor"] = "you".into()),
            Standing::Bad,
            "somebody else than it names",
        ),
        (
            "before the run",
            of(|w| w["timestamp"] = "2020-01-01T00:00:00.000Z".into()),
            Standing::Bad,
            "before the run had ended",
        ),
        (
            "no way to land",
            of(|w| drop(w.as_object_mut().unwrap().remove("land"))),
            Standing::Bad,
            "contradicts itself",
        ),
        (
            "continues nothing",
            nothing,
            Standing::Bad,
            "continues nothing",
        ),
        (
            "a run that only records an outcome",
            as_run,
            Standing::Bad,
            "without being a settlement",
        ),
        (
            "accepted and never landed",
            not_landed,
            Standing::Bad,
            "the facts say",
        ),
        (
            "rules of before",
            old_rules,
            Standing::Bad,
            "cannot follow Fresh",
        ),
        (
            "a proof that nothing shows",
            proof,
            Standing::Bad,
            "stage5-owned-repo-proof.json",
        ),
    ] {
        shelf.stands(what, &forged, standing, why);
    }
}

#[test]
fn nothing_but_a_run_that_waits_is_settled() {
    let shelf = Shelf::make();
    let pass = Bundle::at(shelf.dir.join(shelf.pass.run_id()));
    let fail = Bundle::at(shelf.dir.join(shelf.fail.run_id()));
    for (what, run) in [("a pass", &pass), ("a failed run", &fail)] {
        for outcome in ["accepted", "rejected"] {
            let why = "so that nobody has to accept it";
            shelf.stands(what, &shelf.good(run, outcome), Standing::Bad, why);
        }
    }
    let red = shelf.at_stage_5(&shelf.fail, &[]);
    let settled = shelf.good(&red, "accepted");
    shelf.stands(
        "other blockers",
        &settled,
        Standing::Bad,
        "has other blockers",
    );
    let run = shelf.waiting(&shelf.pass);
    let settled = shelf.good(&run, "accepted");
    let (place, log) = (shelf.dir.join(run.run_id()), run.bytes("test.log"));
    fs::write(place.join("test.log"), "x").unwrap();
    shelf.stands("its run is bad", &settled, Standing::Bad, "which is bad");
    fs::write(place.join("test.log"), log).unwrap();
    let replayed = shelf.good(&run, "accepted");
    let sums = shelf.sums(&red);
    replayed.edit_report(|r| r["continues"] = json!({"run_id": red.run_id(), "sums_sha256": sums}));
    let why = "prev is not the hash of the line before";
    shelf.stands("replayed onto another run", &replayed, Standing::Bad, why);
}

#[test]
fn two_words_that_contradict_each_other_are_no_pass() {
    let shelf = Shelf::make();
    let run = shelf.waiting(&shelf.pass);
    let report = |bundle: &Bundle| -> Report { serde_json::from_value(bundle.report()).unwrap() };
    let own = Continues {
        run_id: run.run_id().parse().unwrap(),
        sums_sha256: Digest::of(&run.bytes("SHA256SUMS")),
    };
    let settlement = |outcome: &str, id: &str| {
        let mut told = Settlement::of(&report(&shelf.good(&run, outcome).bundle())).unwrap();
        told.run_id = id.parse().unwrap();
        told
    };
    let accepted = settlement("accepted", ID);
    let rejected = settlement("rejected", "20310101T000001Z-quick-settle23");
    let now = |said: &[Settlement]| effective_verdict(&report(&run), &own, said);
    assert_eq!(now(&[]).standing, Stands::Waits);
    assert_eq!(now(std::slice::from_ref(&accepted)).status, Status::Pass);
    assert_eq!(
        now(std::slice::from_ref(&rejected)).standing,
        Stands::Rejected
    );
    let both = now(&[rejected, accepted]);
    assert_eq!(
        (both.standing, both.status),
        (Stands::Contradicted, Status::Fail)
    );
}

#[test]
fn python_and_ssh_keygen_come_to_the_same() {
    let shelf = Shelf::make();
    let run = shelf.waiting(&shelf.pass);
    let signers = shelf.house.root().join("signers");
    fs::write(&signers, shelf.signers()).unwrap();
    let key = shelf.house.root().join("forger.pem");
    fs::write(&key, TestKey::new(FORGER).public_pem()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/verify.py");
    let check = |forged: &Forged| {
        let place = shelf.put(forged);
        let output = Command::new("python3")
            .args([script, "--key"])
            .arg(&key)
            .arg("--signers")
            .arg(&signers)
            .arg(&place)
            .output()
            .unwrap();
        fs::remove_dir_all(place).unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let (own, other) = ("outcome@cto-harness", "approval@cto-harness");
    let (code, text) = check(&shelf.good(&run, "accepted"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("me accepted the result of"), "{text}");
    let word = shelf.word(&run, "accepted");
    let mut elsewhere = shelf.word(&run, "accepted");
    elsewhere.record["run_id"] = "20200101T000000Z-quick-abcdefgh".into();
    let unsigned = shelf.good(&run, "accepted");
    unsigned.remove(SIGNATURE);
    let exchanged = shelf.good(&run, "accepted");
    let bytes = cto_core::values::json::canonical(&shelf.word(&run, "rejected").record).unwrap();
    exchanged.put(OUTCOME, &bytes);
    exchanged.put(
        SIGNATURE,
        signed(&shelf.key("operator"), own, &bytes).as_bytes(),
    );
    for (what, forged) in [
        ("another key", shelf.settles(&run, &word, "stranger", own)),
        (
            "another namespace",
            shelf.settles(&run, &word, "operator", other),
        ),
        (
            "another run",
            shelf.settles(&run, &elsewhere, "operator", own),
        ),
        ("unsigned", unsigned),
        ("another word", exchanged),
    ] {
        let (code, text) = check(&forged);
        assert_eq!(code, Some(1), "{what}: {text}");
    }
}
