//! A green run at stage 5 and settlements of it, forged from a pass; the word is signed by a real `ssh-keygen`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cto_core::bundle::approval::signers::Signers;
use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::bundle::report::Report;
use cto_core::bundle::report_md::render_report;
use cto_core::gate::GateReport;
use cto_core::gate::eligibility::decide_backend;
use cto_core::task::contract::{ContractDocument, Stage};
use cto_core::verify::Standing;
use cto_testkit::{Bundle, FORGER, Forged, TestKey, sha256_hex};
use serde_json::{Value, json};

use super::Shelf;

pub(super) const ID: &str = "20310101T000000Z-quick-settle23";
pub(super) const OUTCOME: &str = "relied/outcome.json";
pub(super) const SIGNATURE: &str = "relied/outcome.json.sig";

/// What is said of a run.
pub(super) struct Word {
    pub record: Value,
    pub landed: Option<&'static str>,
}

impl Shelf {
    /// A green run at stage 5, forged from a pass: nobody has accepted it.
    pub(super) fn waiting(&self, of: &Bundle) -> Bundle {
        self.at_stage_5(of, &["missing_operator_outcome"])
    }

    pub(super) fn at_stage_5(&self, of: &Bundle, codes: &[&str]) -> Bundle {
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
        let old = of.report()["contract_digest"].as_str().unwrap().to_owned();
        let new = sealed.contract_digest.to_hex();
        let log = of.text("test.log").replace(&old, &new);
        forged.put("test.log", log.as_bytes());
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
                let kind = event["type"].as_str().unwrap().to_owned();
                let data = &mut event["data"];
                match kind.as_str() {
                    "run.started" => data["stage"] = 5.into(),
                    "task.contract.created" => {
                        data["contract_digest"] = json!(sealed.contract_digest);
                        data["task_digest"] = json!(sealed.task_digest);
                    }
                    "verification.completed" => {
                        data["log_sha256"] = sha256_hex(log.as_bytes()).into();
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

    pub(super) fn key(&self, name: &str) -> PathBuf {
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

    pub(super) fn signers(&self) -> String {
        let key = fs::read_to_string(self.key("operator").with_extension("pub")).unwrap();
        let names = "approval@cto-harness,outcome@cto-harness";
        format!("me namespaces=\"{names}\" {key}")
    }

    pub(super) fn trust(&self) -> Trust {
        let mut trust = Trust::default();
        let forger = PublicKey::from_text(&TestKey::new(FORGER).public_pem()).unwrap();
        trust.named(&forger, "the forger");
        trust.with_signers(Signers::read(&self.signers()).unwrap())
    }

    pub(super) fn word(&self, run: &Bundle, outcome: &str) -> Word {
        let accepted = outcome == "accepted";
        let mut record = json!({
            "schema_version": 1, "run_id": run.run_id(), "sums_sha256": self.sums(run),
            "contract_digest": run.report()["contract_digest"], "store_id": "5".repeat(64),
            "outcome": outcome, "actor": "me", "outcome_source": "a key", "given": "afterwards",
            "timestamp": run.report()["run_finished_at"],
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
    pub(super) fn settles(&self, run: &Bundle, word: &Word, key: &str, namespace: &str) -> Forged {
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
        let when = run.report()["run_finished_at"].clone();
        let blockers: Vec<&str> = code.iter().map(|(code, _)| *code).collect();
        let line =
            |kind: &str, data: Value| json!({"ts": when, "run_id": ID, "type": kind, "data": data});
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

    pub(super) fn good(&self, run: &Bundle, outcome: &str) -> Forged {
        self.settles(
            run,
            &self.word(run, outcome),
            "operator",
            "outcome@cto-harness",
        )
    }

    #[track_caller]
    pub(super) fn stands(&self, what: &str, forged: &Forged, standing: Standing, why: &str) {
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

pub(super) fn render(forged: &Forged) {
    let report: Report = serde_json::from_value(forged.bundle().report()).unwrap();
    forged.put("report.md", render_report(&report).as_bytes());
}

pub(super) fn signed(key: &Path, namespace: &str, record: &[u8]) -> String {
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
