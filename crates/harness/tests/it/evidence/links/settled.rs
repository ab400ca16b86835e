//! Settlements: a run at stage 5 that lacks nothing but the operator's word, the signed word, and everything that
//! keeps one from counting. The run is forged from a pass, the word is signed by a real `ssh-keygen`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cto_core::bundle::approval::signers::Signers;
use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::bundle::report::{Continues, Report};
use cto_core::bundle::report_md::render_report;
use cto_core::bundle::settlement::{Settlement, Standing as Stands, effective_verdict};
use cto_core::gate::GateReport;
use cto_core::gate::eligibility::decide_backend;
use cto_core::task::contract::{ContractDocument, Stage};
use cto_core::values::digest::Digest;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;
use cto_testkit::{Bundle, FORGER, Forged, TestKey, sha256_hex};
use serde_json::{Value, json};

use super::Shelf;

const ID: &str = "20310101T000000Z-quick-settle23";
const OUTCOME: &str = "relied/outcome.json";
const SIGNATURE: &str = "relied/outcome.json.sig";

/// What is said of a run.
struct Word {
    record: Value,
    landed: Option<&'static str>,
}

impl Shelf {
    /// A green run at stage 5, forged from a pass: nobody has accepted it.
    fn waiting(&self, of: &Bundle) -> Bundle {
        self.at_stage_5(of, &["missing_operator_outcome"])
    }

    fn at_stage_5(&self, of: &Bundle, codes: &[&str]) -> Bundle {
        let forged = Forged::copy_of(of);
        let (document, _) = ContractDocument::read(&of.bytes("contract.json")).unwrap();
        let ContractDocument::Valid(mut contract) = document else {
            panic!("no contract")
        };
        contract.lane.stage = Stage::Five;
        let document = ContractDocument::Valid(contract);
        let sealed = document.seal().unwrap();
        forged.put("contract.json", &sealed.bytes);
        let gates: GateReport = serde_json::from_value(of.json("gates.json")).unwrap();
        let engine = "fake".parse().unwrap();
        let digest = &sealed.contract_digest;
        let decision = decide_backend(&engine, Stage::Five, document.valid(), digest, &gates);
        forged.put(
            "eligibility.json",
            &serde_json::to_vec_pretty(&decision).unwrap(),
        );
        let sentence = "the operator has not accepted or rejected the result";
        forged.edit_report(|r| {
            r["stage"] = 5.into();
            r["allowed_mutation_scope"] = Stage::Five.allowed_mutation_scope().into();
            r["contract_digest"] = json!(sealed.contract_digest);
            r["task_digest"] = json!(sealed.task_digest);
            if codes == ["missing_operator_outcome"] {
                r["status"] = "blocked".into();
                r["failure_reason"] = sentence.into();
                r["blockers"] =
                    json!([{"code": codes[0], "message": sentence, "event": "run.completed"}]);
            }
        });
        forged.edit_events(|events| {
            for event in events.iter_mut() {
                let data = &mut event["data"];
                match event["type"].as_str().unwrap() {
                    "run.started" => data["stage"] = 5.into(),
                    "task.contract.created" => {
                        data["contract_digest"] = json!(sealed.contract_digest);
                        data["task_digest"] = json!(sealed.task_digest);
                    }
                    "run.completed" if codes == ["missing_operator_outcome"] => {
                        data["status"] = "blocked".into();
                        data["blockers"] = json!(codes);
                    }
                    _ => {}
                }
            }
        });
        render(&forged);
        Bundle::at(self.put(&forged))
    }

    fn key(&self, name: &str) -> PathBuf {
        let key = self.house.root().join(name);
        if !key.exists() {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "c", "-f"])
                .arg(&key)
                .status();
            assert!(made.unwrap().success());
        }
        key
    }

    fn signers(&self) -> String {
        let key = fs::read_to_string(self.key("operator").with_extension("pub")).unwrap();
        let names = "approval@cto-harness,outcome@cto-harness";
        format!("me namespaces=\"{names}\" {key}")
    }

    fn trust(&self) -> Trust {
        let mut trust = Trust::default();
        let forger = PublicKey::from_text(&TestKey::new(FORGER).public_pem()).unwrap();
        trust.named(&forger, "the forger");
        trust.with_signers(Signers::read(&self.signers()).unwrap())
    }

    fn word(&self, run: &Bundle, outcome: &str) -> Word {
        let accepted = outcome == "accepted";
        let mut record = json!({
            "schema_version": 1, "run_id": run.run_id(), "sums_sha256": self.sums(run),
            "contract_digest": run.report()["contract_digest"], "store_id": "5".repeat(64),
            "outcome": outcome, "actor": "me", "outcome_source": "a key", "given": "afterwards",
            "timestamp": "2031-01-01T00:00:00.000Z",
        });
        if accepted {
            record["land"] = "merge".into();
        }
        Word {
            record,
            landed: accepted.then_some("landed"),
        }
    }

    /// A settlement of a run with this word, as it is signed by this key for this purpose.
    fn settles(&self, run: &Bundle, word: &Word, key: &str, namespace: &str) -> Forged {
        let record = cto_core::values::json::canonical(&word.record).unwrap();
        let signature = signed(&self.key(key), namespace, &record);
        let forged = Forged::copy_of(run);
        for name in ["backend/stdout.log", "backend/stderr.log", "test-ids.json"] {
            let _ = fs::remove_file(forged.dir.join(name));
        }
        forged
            .put("containment.json", &self.blocked.bytes("containment.json"))
            .put("patch.diff", b"")
            .put("test.log", b"verification was not reached\n")
            .put(OUTCOME, &record)
            .put(SIGNATURE, signature.as_bytes());
        let gates = GateReport {
            schema_version: 1,
            gates: Vec::new(),
        };
        forged.put("gates.json", &serde_json::to_vec_pretty(&gates).unwrap());
        let (document, sealed) = ContractDocument::read(&run.bytes("contract.json")).unwrap();
        let digest = &sealed.contract_digest;
        let engine = "fake".parse().unwrap();
        let decision = decide_backend(&engine, Stage::Five, document.valid(), digest, &gates);
        forged.put(
            "eligibility.json",
            &serde_json::to_vec_pretty(&decision).unwrap(),
        );
        let said = &word.record;
        let landing = word.landed.map(|step| {
            let mut landing = json!({"step": step, "mode": "merge"});
            if step == "landed" {
                landing["new_commit"] = run.report()["result"]["commit"].clone();
            }
            landing
        });
        let mut told = json!({"outcome": said["outcome"], "actor": said["actor"],
            "given_ahead": said["given"] == "ahead"});
        if let Some(land) = said.get("land") {
            told["land"] = land.clone();
        }
        if let Some(reverts) = said.get("reverts") {
            told["reverts"] = reverts["run_id"].clone();
        }
        let mut first = told.clone();
        first["rules"] = 9.into();
        first["record_sha256"] = sha256_hex(&record).into();
        if let Some(landing) = &landing {
            told["landing"] = landing.clone();
        }
        let refused = word.landed == Some("refused");
        let (status, code) = match (said["outcome"].as_str().unwrap(), refused) {
            ("accepted", false) => ("pass", None),
            ("accepted", true) => ("fail", Some(("landing_unsupported", "run.completed"))),
            _ => (
                "fail",
                Some(("operator_rejected", "operator.outcome.recorded")),
            ),
        };
        let sentence = match code {
            Some(("landing_unsupported", _)) => "the target's state does not allow a safe landing",
            _ => "the operator rejected the result",
        };
        let blockers: Vec<&str> = code.iter().map(|(code, _)| *code).collect();
        let line = |kind: &str, data: Value| json!({"ts": "2031-01-01T00:00:00.000Z", "run_id": ID, "type": kind, "data": data});
        let mut events = vec![line("operator.outcome.recorded", first)];
        events.extend(landing.map(|landing| line("landing.updated", landing)));
        let done = json!({"status": status, "blockers": blockers, "findings": []});
        events.push(line("run.completed", done));
        forged.edit_report(|r| {
            let blocked = self.blocked.report();
            for field in [
                "toolchains",
                "containment",
                "changed_files",
                "workspace_scratch",
                "allowed_writes_passed",
                "forbidden_paths_passed",
                "verification",
                "verification_control",
                "tests_passed",
                "backend_exit_code",
                "process_started",
                "observed",
                "result",
                "claimed",
            ] {
                r[field] = blocked[field].clone();
            }
            let fields = r.as_object_mut().unwrap();
            for gone in [
                "git",
                "belief",
                "workspace_guard",
                "forbidden_actions",
                "timings",
                "environments",
            ] {
                fields.remove(gone);
            }
            r["kind"] = "settlement".into();
            r["settlement"] = told;
            for field in ["run_id", "artifacts_dir", "run_artifact_dir"] {
                r[field] = ID.into();
            }
            r["runtime_workspace_root"] = format!("home:work/{ID}").into();
            r["run_finished_at"] = "2031-01-01T00:00:00.000Z".into();
            r["status"] = status.into();
            r["failure_reason"] = code.map_or(Value::Null, |_| sentence.into());
            r["blockers"] = code.map_or(
                json!([]),
                |(code, event)| json!([{"code": code, "message": sentence, "event": event}]),
            );
            r["continues"] = json!({"run_id": run.run_id(), "sums_sha256": self.sums(run)});
        });
        forged.chain_from(run.report()["events"]["head"].as_str().unwrap(), events);
        render(&forged);
        forged
    }

    fn good(&self, run: &Bundle, outcome: &str) -> Forged {
        self.settles(
            run,
            &self.word(run, outcome),
            "operator",
            "outcome@cto-harness",
        )
    }

    #[track_caller]
    fn stands(&self, what: &str, forged: &Forged, standing: Standing, why: &str) {
        let place = self.put(forged);
        let trust = self.trust();
        let found = cto_harness::bundles::verifier::verify_dir(&place, &trust).unwrap();
        let both = found.problems.iter().chain(&found.unknowns);
        let said: Vec<String> = both
            .map(|problem| format!("{}: {}", problem.artifact, problem.message))
            .collect();
        assert_eq!(found.standing, standing, "{what}: {said:#?}");
        assert!(said.join("\n").contains(why), "{what}: {said:#?}");
        fs::remove_dir_all(place).unwrap();
    }
}

fn render(forged: &Forged) {
    let report: Report = serde_json::from_value(forged.bundle().report()).unwrap();
    forged.put("report.md", render_report(&report).as_bytes());
}

fn signed(key: &std::path::Path, namespace: &str, record: &[u8]) -> String {
    let mut child = Command::new("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(record).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

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
    alone.edit_report(|r| r["continues"]["run_id"] = "20200101T000000Z-quick-abcdefgh".into());
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
    assert_eq!(now(&[accepted.clone()]).status, Status::Pass);
    assert_eq!(now(&[rejected.clone()]).standing, Stands::Rejected);
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
