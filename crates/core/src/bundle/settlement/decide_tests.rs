//! One good word, and everything that keeps another from counting.

use ed25519_dalek::SigningKey;

use super::*;
use crate::bundle::approval::sshsig::tests::sign_for;
use crate::bundle::attest::PublicKey;
use crate::bundle::report::{
    ChainHead, Claimed, EngineFacts, Freshness, RunIdentity, Sealing, build_report,
};
use crate::run::event::{LandMode, Origin};
use crate::run::facts::Facts;
use crate::run::judge::{judge, tests::good};
use crate::task::contract::tests::sample;
use crate::task::contract::{Contract, ContractDocument};
use crate::values::blocker::Finding;
use crate::values::ids::RunId;
use crate::values::maybe_known::MaybeKnown;
use crate::values::time::Utc;

pub(in crate::bundle::settlement) const RUN: &str = "20260102T030405Z-demo-k3v9";

pub(in crate::bundle::settlement) fn at(seconds: i64) -> Utc {
    let day = Utc::day("2026-06-15").unwrap().as_millis();
    Utc::from_millis(day + seconds * 1000).unwrap()
}

pub(in crate::bundle::settlement) fn stage5() -> Contract {
    let mut contract = sample();
    contract.lane.stage = Stage::Five;
    contract
}

/// The report of a run of this contract, with these facts.
pub(in crate::bundle::settlement) fn report(contract: Contract, facts: &Facts) -> Report {
    let identity = RunIdentity {
        run_id: RUN.parse().unwrap(),
        case_id: contract.case_id.clone(),
        engine: EngineFacts {
            name: contract.lane.engine.clone(),
            version: None,
            executable_sha256: MaybeKnown::NotLookedAt,
            interpreter: None,
            packages_sha256: None,
            warnings: Vec::new(),
        },
        stage: contract.lane.stage,
        origin: Origin::Operator,
        source_admitted: true,
        harness_version: "0".into(),
        started_at: at(0),
    };
    let document = ContractDocument::Valid(Box::new(contract));
    let judged = judge(document.valid(), facts);
    let sealing = Sealing {
        finished_at: at(10),
        backend_scratch: crate::bundle::report::BackendScratch::default(),
        freshness: Freshness {
            checked_at: at(10),
            artifacts: std::collections::BTreeMap::new(),
        },
        head: ChainHead {
            count: 9,
            head: Digest::of(b"head"),
        },
        claimed: Claimed::default(),
        late: Vec::new(),
        relies_on: Vec::new(),
        continues: None,
        timings: None,
        source: None,
    };
    let sealed = document.seal().unwrap();
    build_report(
        &identity,
        document.valid(),
        &sealed,
        facts,
        &judged,
        sealing,
    )
}

/// A green run at stage 5, and a word that counts for it.
struct Desk {
    run: Report,
    named: Continues,
    record: OutcomeRecord,
    store: Digest,
    key: SigningKey,
    reverts: Option<Continues>,
}

impl Desk {
    fn good() -> Self {
        let run = report(stage5(), &good());
        let named = Continues {
            run_id: run.run_id.clone(),
            sums_sha256: Digest::of(b"sums"),
        };
        let store = Digest::of(b"store");
        let record = OutcomeRecord {
            schema_version: 1,
            run_id: named.run_id.clone(),
            sums_sha256: named.sums_sha256,
            contract_digest: run.contract_digest,
            store_id: store,
            outcome: Outcome::Accepted,
            actor: "me".into(),
            outcome_source: "a key".into(),
            given: Given::Afterwards,
            land: Some(LandMode::Merge),
            reverts: None,
            timestamp: at(20),
        };
        let key = SigningKey::from_bytes(&[7; 32]);
        Self {
            run,
            named,
            record,
            store,
            key,
            reverts: None,
        }
    }

    fn counts(&self) -> Result<(), OutcomeRefused> {
        let bytes = self.record.to_bytes().unwrap();
        self.signed(&bytes, &sign_for(Purpose::Outcome, &self.key, &bytes))
    }

    fn signed(&self, record: &[u8], signature: &str) -> Result<(), OutcomeRefused> {
        let own = SigningKey::from_bytes(&[7; 32]);
        let own = PublicKey::from_bytes(own.verifying_key().as_bytes()).unwrap();
        let read = read_outcome(&Shown { record, signature }, &Signers::only(&own, "me"))?;
        let of = Settles {
            run: &self.run,
            named: &self.named,
            store_id: self.store,
            reverts: self.reverts.as_ref(),
        };
        may_settle(&read, &of)
    }
}

fn another() -> Continues {
    let run_id: RunId = "20260102T030406Z-demo-k3v9".parse().unwrap();
    Continues {
        run_id,
        sums_sha256: Digest::of(b"other"),
    }
}

#[test]
fn one_whole_word_counts_and_no_other() {
    assert_eq!(Desk::good().counts(), Ok(()));
    type Change = fn(&mut Desk);
    let rows: [(&str, Change, &str); 19] = [
        ("run", |d| d.record.run_id = another().run_id, "another run"),
        (
            "bundle",
            |d| d.record.sums_sha256 = Digest::of(b"x"),
            "another bundle",
        ),
        (
            "contract",
            |d| d.record.contract_digest = Digest::of(b"x"),
            "another contract",
        ),
        (
            "store",
            |d| d.record.store_id = Digest::of(b"x"),
            "another store",
        ),
        (
            "key",
            |d| d.key = SigningKey::from_bytes(&[8; 32]),
            "a key that may not",
        ),
        ("actor", |d| d.record.actor = "you".into(), "somebody else"),
        (
            "clock",
            |d| d.record.timestamp = at(9),
            "before the run had ended",
        ),
        (
            "version",
            |d| d.record.schema_version = 2,
            "contradicts itself",
        ),
        (
            "no way to land",
            |d| d.record.land = None,
            "contradicts itself",
        ),
        (
            "rejected and landed",
            |d| d.record.outcome = Outcome::Rejected,
            "contradicts itself",
        ),
        (
            "takes back what it accepts",
            |d| d.record.reverts = Some(another()),
            "contradicts itself",
        ),
        (
            "takes nothing back",
            |d| d.reverts = Some(another()),
            "something else back",
        ),
        (
            "takes back what nobody landed",
            |d| {
                d.record.outcome = Outcome::Rejected;
                d.record.land = None;
                d.record.reverts = Some(another());
            },
            "something else back",
        ),
        ("stage", |d| d.run.stage = Stage::Four, "not at stage 5"),
        (
            "kind",
            |d| d.run.kind = Kind::Reverification,
            "is not a run",
        ),
        (
            "two blockers",
            |d| d.run.blockers.push(d.run.blockers[0].clone()),
            "other blockers",
        ),
        ("a pass", |d| d.run.status = Status::Pass, "other blockers"),
        ("no blocker", |d| d.run.blockers.clear(), "other blockers"),
        ("no result", |d| d.run.result = None, "no result"),
    ];
    for (name, change, why) in rows {
        let mut desk = Desk::good();
        change(&mut desk);
        let refused = desk.counts().unwrap_err();
        assert!(refused.0.contains(why), "{name}: {refused}");
    }
}

#[test]
fn a_signature_is_for_an_outcome_and_one_spelling_of_it() {
    let desk = Desk::good();
    let bytes = desk.record.to_bytes().unwrap();
    let approved = sign_for(Purpose::Approval, &desk.key, &bytes);
    assert!(desk.signed(&bytes, &approved).is_err(), "another namespace");
    assert!(desk.signed(&bytes, "").is_err(), "unsigned");
    let pretty = json::pretty(&desk.record).unwrap();
    let signature = sign_for(Purpose::Outcome, &desk.key, &pretty);
    assert!(
        desk.signed(&pretty, &signature).is_err(),
        "another spelling"
    );
    let mut other = desk.record.clone();
    other.outcome = Outcome::Rejected;
    let signature = sign_for(Purpose::Outcome, &desk.key, &bytes);
    assert!(
        desk.signed(&other.to_bytes().unwrap(), &signature).is_err(),
        "exchanged"
    );
}

#[test]
fn only_a_run_that_lacks_nothing_else_may_be_settled() {
    assert_eq!(may_be_settled(&Desk::good().run), Ok(()));
    for code in [Code::DirtyEndingTree, Code::SecretLeak, Code::Interrupted] {
        let mut facts = good();
        facts.findings = vec![Finding { code, detail: None }];
        assert!(
            may_be_settled(&report(stage5(), &facts)).is_err(),
            "{code:?}"
        );
    }
}
