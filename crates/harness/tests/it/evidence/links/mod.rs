//! Bundles that stand on others: settlements, proofs, approvals. The fixtures are made by hand and
//! signed by the forger, whose key is trusted here: only what they say of each other decides.
//! `compared.rs`: the run of `fake` that stage 2 compares with. `settled.rs`: what the operator said of a run,
//! `forge.rs` such a run and such a word, `written.rs` by the code that writes them.

mod compared;
mod forge;
mod settled;
mod written;

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
