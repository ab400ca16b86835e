//! Bundles that stand on others: settlements, proofs, approvals. The fixtures are made by hand and
//! signed by the forger, whose key is trusted here: only what they say of each other decides. `compared.rs`: the run of `fake` that
//! stage 2 compares with.

mod compared;

use std::fs;
use std::path::{Path, PathBuf};

use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::verify::{Standing, Verification};
use cto_testkit::{
    Bundle, Case, FORGER, Forged, House, ORACLE, TestKey, copy_dir, script, sha256_hex, write,
};
use serde_json::{Value, json};

use crate::house;

/// A directory of bundles side by side, all signed by the forger.
struct Shelf {
    house: House,
    dir: PathBuf,
    pass: Bundle,
    fail: Bundle,
    blocked: Bundle,
}

impl Shelf {
    fn make() -> Self {
        let house = house();
        let case = house.case(&Case::new("quick"));
        let (_, pass) = house.run(&case, ORACLE, &[]);
        let (_, fail) = house.run(&case, &script(&[write("keep.txt", "x\n")]), &[]);
        let (_, blocked) = house.run_args(&["run", &case, "--engine", "codex", "--json"]);
        let dir = house.root().join("shelf");
        let shelf = Self {
            house,
            dir,
            pass,
            fail,
            blocked,
        };
        for bundle in [&shelf.pass, &shelf.fail] {
            shelf.put(&Forged::copy_of(bundle));
        }
        shelf
    }

    /// Signs a bundle and puts it on the shelf, under the name its report has.
    fn put(&self, forged: &Forged) -> PathBuf {
        let place = self
            .dir
            .join(forged.bundle().report()["run_id"].as_str().unwrap());
        let _ = fs::remove_dir_all(&place);
        copy_dir(&forged.reseal().dir, &place);
        place
    }

    /// A pass of another case, on the shelf too.
    fn other(&self) -> Bundle {
        let case = self.house.case(&Case::new("other"));
        let (_, pass) = self.house.run(&case, ORACLE, &[]);
        Bundle::at(self.put(&Forged::copy_of(&pass)))
    }

    fn sums(&self, bundle: &Bundle) -> String {
        sha256_hex(&fs::read(self.dir.join(bundle.run_id()).join("SHA256SUMS")).unwrap())
    }

    /// A settlement of a run, as the landing of a change will leave it.
    fn settlement(&self, of: &Bundle, outcome: &str) -> Forged {
        let run = Bundle::at(self.dir.join(of.run_id()));
        let id = "20310101T000000Z-quick-settle23";
        let forged = Forged::copy_of(of);
        for name in ["backend/stdout.log", "backend/stderr.log"] {
            let _ = fs::remove_file(forged.dir.join(name));
        }
        let accepted = outcome == "accepted";
        let blockers = if accepted {
            json!([])
        } else {
            json!(["operator_rejected"])
        };
        let status = if accepted { "pass" } else { "fail" };
        forged
            .put("containment.json", &self.blocked.bytes("containment.json"))
            .put("patch.diff", b"");
        forged.put("test.log", b"verification was not reached\n");
        forged.put(
            "report.md",
            format!("# {}: quick\n", status.to_uppercase()).as_bytes(),
        );
        let line = |kind: &str, data: Value| json!({"ts": "2031-01-01T00:00:00.000Z", "run_id": id, "type": kind, "data": data});
        let sentence = "the operator rejected the result";
        let head = run.report()["events"]["head"].as_str().unwrap().to_owned();
        let events = vec![
            line(
                "operator.outcome.recorded",
                json!({"outcome": outcome, "actor": "someone", "given_ahead": false}),
            ),
            line(
                "run.completed",
                json!({"status": status, "blockers": blockers, "findings": []}),
            ),
        ];
        forged.edit_report(|r| {
            let blocked = self.blocked.report();
            for field in [
                "toolchains",
                "workspace_guard",
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
                "forbidden_actions",
            ] {
                r[field] = blocked[field].clone();
            }
            // No plan, so nothing was done with git; no check, so nothing to believe.
            r.as_object_mut().unwrap().remove("git");
            r.as_object_mut().unwrap().remove("belief");
            r["kind"] = "settlement".into();
            r["run_id"] = id.into();
            r["artifacts_dir"] = id.into();
            r["run_artifact_dir"] = id.into();
            r["runtime_workspace_root"] = format!("home:work/{id}").into();
            r["status"] = status.into();
            r["failure_reason"] = if accepted { Value::Null } else { sentence.into() };
            r["blockers"] = if accepted {
                json!([])
            } else {
                json!([{"code": "operator_rejected", "message": sentence, "event": "operator.outcome.recorded"}])
            };
            r["continues"] = json!({"run_id": of.run_id(), "sums_sha256": self.sums(of)});
        });
        forged.chain_from(&head, events);
        forged
    }

    fn verify(&self, dir: &Path) -> Verification {
        let mut trust = Trust::default();
        trust.named(
            &PublicKey::from_text(&TestKey::new(FORGER).public_pem()).unwrap(),
            "the forger",
        );
        cto_harness::bundles::verifier::verify_dir(dir, &trust).unwrap()
    }

    #[track_caller]
    fn expect(&self, what: &str, forged: &Forged, standing: Standing, why: &str) {
        let place = self.put(forged);
        let found = self.verify(&place);
        let said: Vec<String> = found
            .problems
            .iter()
            .chain(&found.unknowns)
            .map(|p| format!("{}: {}", p.artifact, p.message))
            .collect();
        assert_eq!(found.standing, standing, "{what}: {said:#?}");
        assert!(said.join("\n").contains(why), "{what}: {said:#?}");
        fs::remove_dir_all(place).unwrap();
    }
}

#[test]
fn a_settlement_goes_on_from_its_run() {
    let shelf = Shelf::make();
    shelf.expect(
        "accepted",
        &shelf.settlement(&shelf.pass, "accepted"),
        Standing::Good,
        "",
    );
    shelf.expect(
        "rejected",
        &shelf.settlement(&shelf.pass, "rejected"),
        Standing::Good,
        "",
    );

    let alone = shelf.settlement(&shelf.pass, "accepted");
    alone.edit_report(|r| r["continues"]["run_id"] = "20200101T000000Z-quick-abcdefgh".into());
    shelf.expect(
        "its run is not there",
        &alone,
        Standing::Unknown,
        "which was not found",
    );

    let other = shelf.settlement(&shelf.pass, "accepted");
    other.edit_report(|r| r["continues"]["sums_sha256"] = "0".repeat(64).into());
    shelf.expect(
        "another bundle of that name",
        &other,
        Standing::Bad,
        "continues another bundle than the one called",
    );

    let replayed = shelf.settlement(&shelf.pass, "accepted");
    replayed.edit_report(|r| {
        r["continues"] =
            json!({"run_id": shelf.fail.run_id(), "sums_sha256": shelf.sums(&shelf.fail)})
    });
    shelf.expect(
        "replayed onto another run",
        &replayed,
        Standing::Bad,
        "prev is not the hash of the line before",
    );

    let failed = shelf.settlement(&shelf.fail, "accepted");
    shelf.expect(
        "a failed run accepted",
        &failed,
        Standing::Bad,
        "which did not pass",
    );

    let nothing = shelf.settlement(&shelf.pass, "accepted");
    nothing.edit_report(|r| drop(r.as_object_mut().unwrap().remove("continues")));
    shelf.expect(
        "continues nothing",
        &nothing,
        Standing::Bad,
        "is a settlement and continues nothing",
    );

    let run = shelf.settlement(&shelf.pass, "accepted");
    run.edit_report(|r| r["kind"] = "run".into());
    shelf.expect(
        "a run that only records an outcome",
        &run,
        Standing::Bad,
        "only the chain of a settlement begins with an outcome",
    );

    let itself = shelf.settlement(&shelf.pass, "accepted");
    itself.edit_report(|r| r["continues"]["run_id"] = r["run_id"].clone());
    shelf.expect(
        "continues itself",
        &itself,
        Standing::Unknown,
        "which was not found",
    );
}

#[test]
fn a_settlement_is_no_better_than_its_run() {
    let shelf = Shelf::make();
    let settlement = shelf.settlement(&shelf.pass, "accepted");
    let place = shelf.dir.join(shelf.pass.run_id());
    let log = fs::read(place.join("test.log")).unwrap();
    fs::write(place.join("test.log"), "x").unwrap();
    shelf.expect("its run is bad", &settlement, Standing::Bad, "which is bad");
    fs::write(place.join("test.log"), log).unwrap();
    let stranger = Forged::copy_of(&Bundle::at(&place));
    stranger.sign(&TestKey::new(9));
    for name in [
        "attestation.json",
        "attestations/provenance.json",
        "attestations/test-result.json",
    ] {
        fs::write(place.join(name), stranger.bundle().bytes(name)).unwrap();
    }
    shelf.expect(
        "its run is by an unknown key",
        &settlement,
        Standing::Unknown,
        "which is unknown",
    );
}

#[test]
fn a_run_without_a_settlement_cannot_pretend() {
    let shelf = Shelf::make();
    let forged = Forged::copy_of(&shelf.pass);
    forged.edit_report(|r| {
        r["continues"] =
            json!({"run_id": shelf.fail.run_id(), "sums_sha256": shelf.sums(&shelf.fail)})
    });
    shelf.expect(
        "a run that continues",
        &forged,
        Standing::Bad,
        "without being a settlement",
    );
}

/// A pass that says what it relies on.
fn relying(shelf: &Shelf, id: &str, kind: &str, sha256: &str) -> Forged {
    let forged = Forged::copy_of(&shelf.pass);
    let own = "20320101T000000Z-quick-relies23";
    forged.edit_report(|r| {
        for field in ["run_id", "artifacts_dir", "run_artifact_dir"] {
            r[field] = own.into();
        }
        r["runtime_workspace_root"] = format!("home:work/{own}").into();
        r["relies_on"] = json!([{"kind": kind, "id": id, "sha256": sha256}]);
    });
    // The log names its run, and the chain names the log.
    let log = shelf
        .pass
        .text("test.log")
        .replace(&shelf.pass.run_id(), own);
    forged.put("test.log", log.as_bytes());
    let page = forged.bundle().text("report.md");
    let page = page.replace(&shelf.pass.run_id(), own);
    forged.put("report.md", page.as_bytes());
    forged.edit_events(|events| {
        for event in events.iter_mut() {
            event["run_id"] = own.into();
            if event["type"] == "verification.completed" {
                event["data"]["log_sha256"] = sha256_hex(log.as_bytes()).into();
            }
        }
    });
    forged
}

#[test]
fn a_pass_is_no_better_than_its_proofs() {
    let shelf = Shelf::make();
    let (pass, fail) = (shelf.pass.run_id(), shelf.fail.run_id());
    let proof = |id: &str, sha256: &str| relying(&shelf, id, "proof", sha256);
    shelf.expect(
        "whole",
        &proof(&pass, &shelf.sums(&shelf.pass)),
        Standing::Good,
        "",
    );
    let patch = sha256_hex(&shelf.pass.bytes("patch.diff"));
    shelf.expect(
        "an artifact",
        &proof(&format!("{pass}/patch.diff"), &patch),
        Standing::Good,
        "",
    );
    shelf.expect(
        "another artifact",
        &proof(&format!("{pass}/test.log"), &patch),
        Standing::Bad,
        "relies on something else",
    );
    shelf.expect(
        "no artifact",
        &proof(&format!("{pass}/nothing"), &patch),
        Standing::Bad,
        "relies on something else",
    );
    shelf.expect(
        "changed since",
        &proof(&pass, &"0".repeat(64)),
        Standing::Bad,
        "relies on something else",
    );
    shelf.expect(
        "failed",
        &proof(&fail, &shelf.sums(&shelf.fail)),
        Standing::Bad,
        "which did not pass",
    );
    let absent = proof("20200101T000000Z-quick-abcdefgh", &"0".repeat(64));
    shelf.expect(
        "not there",
        &absent,
        Standing::Unknown,
        "which was not found",
    );
    shelf.expect(
        "no run at all",
        &proof("../../etc", &"0".repeat(64)),
        Standing::Bad,
        "is not a run id",
    );
    let twice = proof(&pass, &shelf.sums(&shelf.pass));
    twice.edit_report(|r| {
        let again = r["relies_on"][0].clone();
        r["relies_on"].as_array_mut().unwrap().push(again);
    });
    shelf.expect("twice", &twice, Standing::Bad, "twice");
}

#[test]
fn an_approval_is_about_this_contract() {
    let shelf = Shelf::make();
    let contract = shelf.pass.report()["contract_digest"].clone();
    let with = |kind: &str, record: &Value, named: Option<&str>| {
        let bytes = serde_json::to_vec(record).unwrap();
        let digest = sha256_hex(&bytes);
        let forged = relying(&shelf, "A-1", kind, named.unwrap_or(&digest));
        forged.put(&format!("relied/{kind}-A-1.json"), &bytes);
        forged
    };
    let granted =
        json!({"contract_digest": contract, "approval_granted": true, "actor": "someone"});
    let asked = json!({"contract_digest": contract, "approval_granted": false});
    shelf.expect(
        "an approval without request and signature",
        &with("approval", &granted, None),
        Standing::Bad,
        "without the request",
    );
    shelf.expect(
        "request",
        &with("request", &asked, None),
        Standing::Good,
        "",
    );
    shelf.expect(
        "nothing granted",
        &with("approval", &asked, None),
        Standing::Bad,
        "grants nothing",
    );
    let other = json!({"contract_digest": "0".repeat(64), "approval_granted": true});
    shelf.expect(
        "another contract",
        &with("approval", &other, None),
        Standing::Bad,
        "is about another contract",
    );
    let zeros = "0".repeat(64);
    shelf.expect(
        "another record",
        &with("approval", &granted, Some(&zeros)),
        Standing::Bad,
        "is not the record the report relies on",
    );
    shelf.expect(
        "no record",
        &relying(&shelf, "A-1", "approval", &zeros),
        Standing::Bad,
        "never used",
    );
    shelf.expect(
        "no shape",
        &with("approval", &json!([1]), None),
        Standing::Bad,
        "expected shape",
    );
}

#[test]
fn a_pass_stands_on_a_blocked_run_only_through_its_stage_one_proof() {
    let shelf = Shelf::make();
    let blocked = Forged::copy_of(&shelf.blocked);
    blocked.put("stage1-gate-proof.json", b"{}\n");
    let place = shelf.put(&blocked);
    let id = shelf.blocked.run_id();
    for (artifact, standing, why) in [
        ("stage1-gate-proof.json", Standing::Good, ""),
        ("gates.json", Standing::Bad, "which did not pass"),
    ] {
        let sha256 = sha256_hex(&fs::read(place.join(artifact)).unwrap());
        shelf.expect(
            artifact,
            &relying(&shelf, &format!("{id}/{artifact}"), "proof", &sha256),
            standing,
            why,
        );
    }
    let sums = shelf.sums(&shelf.blocked);
    shelf.expect(
        "the bundle itself",
        &relying(&shelf, &id, "proof", &sums),
        Standing::Bad,
        "which did not pass",
    );
    let passed = Forged::copy_of(&shelf.pass);
    passed.put("stage1-gate-proof.json", b"{}\n");
    let place = shelf.put(&passed);
    let sha256 = sha256_hex(&fs::read(place.join("stage1-gate-proof.json")).unwrap());
    let id = format!("{}/stage1-gate-proof.json", shelf.pass.run_id());
    shelf.expect(
        "a pass that claims to be one",
        &relying(&shelf, &id, "proof", &sha256),
        Standing::Bad,
        "which was not blocked",
    );
}
