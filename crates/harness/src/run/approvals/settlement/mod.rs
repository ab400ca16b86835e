//! A settlement: what the operator said of a run is kept, carried out, and sealed in a bundle that goes on from
//! the run's. A crash at any point leaves a word that can be said again, and a bundle that recovery closes.
//!
//! - this file: what may be said of a run now, and the bundle; `store.rs` the words as they were signed
//! - `named.rs` the commit that a result will be, named by its run; `landing.rs` what a word does to the repository

pub mod landing;
pub mod named;
mod store;

use std::io;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::{Continues, Report, RunIdentity, SourceAdmission};
use cto_core::bundle::settlement::{
    Effective, Given, OUTCOME, OUTCOME_SIGNATURE, OutcomeRecord, Settlement, Settles,
    Standing as Stands, Told, effective_verdict, may_settle,
};
use cto_core::gate::ladder::stage5::{SettledRun, Stage5Proof};
use cto_core::run::event::{Event, LandMode, LandingUpdated, Outcome};
use cto_core::task::contract::ContractDocument;
use cto_core::values::blocker::{Code, Finding};
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use cto_core::verify::Standing;
use cto_core::verify::links::{Linked, linked_run};

pub use store::Words;

use crate::bundles::{reader, settlements, verifier};
use crate::evidence::host_names::HostNames;
use crate::evidence::keys::KeyStore;
use crate::evidence::secrets::Secrets;
use crate::evidence::{EvidenceError, GoesOn, OpenBundle, Opening, SealedBundle, reserve_run_dir};
use crate::host::failure::{self, Failure};
use crate::host::{self, Env, Home, repositories};
use crate::run::approvals::store::{Kept, Store};
use crate::run::open;

/// What somebody wants to say of a run.
#[derive(Clone)]
pub struct Word {
    pub outcome: Outcome,
    pub given: Given,
    /// How an accepted result is to land.
    pub land: LandMode,
    pub actor: String,
    pub source: String,
}

/// A run as it lies there, verified, with everything that was said of it so far.
pub struct Settling {
    pub dir: PathBuf,
    pub run: Linked,
    pub named: Continues,
    pub earlier: Vec<Settlement>,
    contract: Vec<u8>,
    /// In the bytes that were verified.
    patch: Vec<u8>,
    instructions: Option<(&'static str, Vec<u8>)>,
}

fn nothing(what: &str) -> Failure {
    Failure::blocked("not_settled", what).so("nothing was written, and no repository was looked at")
}

impl Settling {
    /// Verifies the run, and what was said of it.
    pub fn open(home: &Home, dir: &Path) -> Result<Self, Failure> {
        let unreadable = |error: &dyn std::error::Error| {
            nothing("the bundle of the run cannot be read").because(error)
        };
        let trust = KeyStore::of(home)
            .trust()
            .map_err(|error| error.failure())?;
        let (found, verification) =
            verifier::examine_with_patch(dir, &trust).map_err(|error| unreadable(&error))?;
        let problem = verification
            .problems
            .iter()
            .chain(&verification.unknowns)
            .next();
        if let (Standing::Bad | Standing::Unknown, Some(problem)) = (verification.standing, problem)
        {
            return Err(nothing("the bundle of the run does not verify here")
                .reason(format!("{}: {}", problem.artifact, problem.message)));
        }
        let linked = linked_run(&found, &verification);
        let (id, run) = linked.ok_or_else(|| nothing("the bundle of the run cannot be read"))?;
        let earlier = settlements::verified(home, &id, &trust).map_err(|error| {
            nothing("what was said of the run before cannot be read")
                .because(&error)
                .hint("put the bundle back where it was, or have a new run approved")
        })?;
        let document = |name: &str| found.documents.get(name).cloned();
        let instructions = reader::digested(dir, &run.report, bundle::INSTRUCTIONS);
        let instructions = instructions.map(|bytes| (bundle::INSTRUCTIONS, bytes));
        Ok(Self {
            dir: dir.to_owned(),
            named: Continues {
                run_id: id,
                sums_sha256: run.sums_sha256,
            },
            run,
            earlier,
            contract: document(bundle::CONTRACT).unwrap_or_default(),
            patch: document(bundle::PATCH).unwrap_or_default(),
            instructions,
        })
    }

    pub fn report(&self) -> &Report {
        &self.run.report
    }

    pub fn stands(&self) -> Effective {
        effective_verdict(&self.run.report, &self.named, &self.earlier)
    }

    /// The accepting settlement whose landing a rejection would take back now.
    fn to_take_back(&self) -> Option<&RunId> {
        let stands = self.stands();
        let by = stands
            .by
            .as_ref()
            .filter(|_| stands.standing == Stands::Accepted)?;
        let earlier = self.earlier.iter().find(|earlier| earlier.run_id == *by);
        earlier.map(|earlier| &earlier.run_id)
    }

    /// The record of a word, as it would be signed, where it can be said of the run as it stands.
    pub fn record(&self, home: &Home, word: &Word) -> Result<OutcomeRecord, Failure> {
        let stands = self.stands();
        let may = match (stands.standing, word.outcome) {
            (Stands::Waits | Stands::NotLanded, _) | (Stands::Accepted, Outcome::Rejected) => true,
            (Stands::OwnVerdict, _) => {
                let why = cto_core::bundle::settlement::may_be_settled(&self.run.report);
                let why = why.err().map_or("is settled", |refused| refused.0);
                return Err(nothing(&format!("the run {why}")));
            }
            _ => false,
        };
        if !may {
            let run = &self.named.run_id;
            return Err(nothing("an outcome stands already")
                .reason(stands.words())
                .hint(format!("`cto show {run}` tells what was said, and when")));
        }
        if is_before_the_last(host::now(), &self.earlier) {
            return Err(
                nothing("the clock stands before what was said of the run last").hint(
                    "set the clock, and say it again: words count in the order of their time",
                ),
            );
        }
        let reverts = match self.to_take_back() {
            None => None,
            Some(id) => Some(Continues {
                run_id: id.clone(),
                sums_sha256: self.sums_of(home, id)?,
            }),
        };
        let store_id = Store::of(home).id().map_err(|error| {
            Failure::internal("store_unreadable", "the operator's store cannot be read")
                .because(&error)
                .so("nothing was written")
        })?;
        let accepted = word.outcome == Outcome::Accepted;
        let record = OutcomeRecord {
            schema_version: 1,
            run_id: self.named.run_id.clone(),
            sums_sha256: self.named.sums_sha256,
            contract_digest: self.run.contract_digest,
            store_id,
            outcome: word.outcome,
            actor: word.actor.clone(),
            outcome_source: word.source.clone(),
            given: word.given,
            land: accepted.then_some(word.land),
            reverts,
            timestamp: host::now(),
        };
        self.counts(&record, store_id)?;
        Ok(record)
    }

    fn sums_of(&self, home: &Home, id: &RunId) -> Result<Digest, Failure> {
        let path = home.runs.join(id.as_str()).join(bundle::SUMS);
        let bytes = std::fs::read(path);
        bytes
            .map(|bytes| Digest::of(&bytes))
            .map_err(|error| nothing("what was accepted cannot be read").because(&error))
    }

    /// The word counts for this run: of its own store, where an approval named one.
    fn counts(&self, record: &OutcomeRecord, own: Digest) -> Result<(), Failure> {
        let approved = self.run.approval.as_ref();
        let of = Settles {
            run: &self.run.report,
            named: &self.named,
            store_id: approved.map_or(own, |answer| answer.store_id),
            reverts: record.reverts.as_ref(),
        };
        may_settle(record, &of)
            .map_err(|why| nothing("this cannot be said of the run").because(&why))
    }
}

/// Settlements count in the order of their names, and a name begins with its time.
fn is_before_the_last(now: Utc, earlier: &[Settlement]) -> bool {
    let mut told = earlier.iter().filter_map(|said| said.run_id.started());
    told.any(|told| now < told)
}

/// What became of the target. A refusal names no path of it.
pub enum Landing {
    /// Nothing was to be done.
    Nothing,
    Updates(Vec<LandingUpdated>),
}

/// Keeps a signed word, carries it out, and seals what came of it. `land` is asked once the word is on the disk.
pub fn settle(
    (home, env): (&Home, &Env),
    words: &Words,
    settling: &Settling,
    (record, kept): (&OutcomeRecord, &Kept),
    land: impl FnOnce(&mut OpenBundle) -> Result<Landing, EvidenceError>,
) -> Result<SealedBundle, Failure> {
    settling.counts(record, record.store_id)?;
    let keys = open::keys(home)?;
    let unwritable = |error: &dyn std::error::Error| {
        Failure::internal("store_unwritable", "the outcome cannot be kept")
            .because(error)
            .so("nothing was settled")
    };
    let last = words.last().map_err(|error| unwritable(&error))?;
    if last.as_ref() != Some(kept) {
        words.put(kept).map_err(|error| unwritable(&error))?;
    }
    let mut bundle = begin((home, env), settling, keys)?;
    let run_id = bundle.identity.run_id.clone();
    carry(&mut bundle, kept).map_err(|error| open::unsealed(&run_id, &error))?;
    settlements::point_at(home, &settling.named.run_id, &run_id)
        .map_err(|error| unwritable(&error))?;
    let unsealed = |error: EvidenceError| open::unsealed(&run_id, &error);
    let mut findings = Vec::new();
    match say(&mut bundle, settling, (record, kept), land) {
        Ok(()) => {}
        Err(error) => findings.push(Finding {
            code: Code::ArtifactWriteFailure,
            detail: Some(failure::chain(&error)),
        }),
    }
    bundle.close(findings).map_err(unsealed)
}

/// The word, its landing, and the proof that follows from both.
fn say(
    bundle: &mut OpenBundle,
    settling: &Settling,
    (record, kept): (&OutcomeRecord, &Kept),
    land: impl FnOnce(&mut OpenBundle) -> Result<Landing, EvidenceError>,
) -> Result<(), EvidenceError> {
    let bytes = kept.record.as_bytes();
    bundle.emit(Event::OperatorOutcomeRecorded(
        record.event(Digest::of(bytes)),
    ))?;
    if let Landing::Updates(updates) = land(bundle)? {
        for update in updates {
            bundle.emit(Event::LandingUpdated(update))?;
        }
    }
    let told = Told::of(&bundle.folded().facts);
    let shown = told.zip(settling.run.contract.as_deref());
    let proof = shown.and_then(|(told, contract)| {
        let run = SettledRun {
            report: &settling.run.report,
            contract,
            named: &settling.named,
            looks: settling.run.looks.as_deref(),
            approval: settling.run.approval.as_deref(),
        };
        Stage5Proof::of(run, &told)
    });
    match proof {
        Some(proof) => bundle.write_json(bundle::STAGE5_PROOF, &proof),
        None => Ok(()),
    }
}

/// Opens the bundle, with the word in it before any event: recovery knows by that what it settles.
fn begin(
    (home, env): (&Home, &Env),
    settling: &Settling,
    keys: KeyStore,
) -> Result<OpenBundle, Failure> {
    let report = settling.report();
    let (contract, sealed_contract) = ContractDocument::read(&settling.contract)
        .map_err(|error| nothing("the contract of the run cannot be read").because(&error))?;
    let started_at = host::now();
    let (run_id, dir) = reserve_run_dir(home, |suffix| {
        RunId::new(started_at, &report.case_id, suffix).ok()
    })?;
    let mut engine = report.engine.clone();
    engine.warnings.clear();
    let identity = RunIdentity {
        run_id: run_id.clone(),
        case_id: report.case_id.clone(),
        engine,
        stage: report.stage,
        origin: report.origin,
        source_admitted: report.source_admission_status == SourceAdmission::Admitted,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
    };
    let mut secrets = Secrets::from_env(env);
    let repository = contract
        .valid()
        .and_then(|contract| contract.lane.repository.as_ref());
    let repository = repository.and_then(|named| repositories::find(home, &named.path_sha256));
    secrets.names = HostNames::of_host(repository.as_deref().into_iter(), env);
    let opening = Opening {
        identity,
        contract,
        sealed_contract,
        beside: settling.instructions.clone().into_iter().collect(),
        secrets,
        keys,
        goes_on: Some(GoesOn {
            from: settling.named.clone(),
            head: settling.run.head,
        }),
    };
    OpenBundle::open(home, dir, opening).map_err(|error| open::unsealed(&run_id, &error))
}

/// Puts the signed word into an open bundle.
fn carry(bundle: &mut OpenBundle, kept: &Kept) -> Result<(), EvidenceError> {
    let cannot = |error: io::Error| EvidenceError::cannot_write(bundle::RELIED_DIR, &error);
    host::make_private_dir(&bundle.dir().join(bundle::RELIED_DIR)).map_err(cannot)?;
    bundle.write(OUTCOME, kept.record.as_bytes())?;
    bundle.write(OUTCOME_SIGNATURE, kept.signature.as_bytes())
}

#[cfg(test)]
mod tests {
    use cto_core::values::verdict::Status;

    use super::*;

    #[test]
    fn nothing_is_said_before_what_was_said_last() {
        let run_id: RunId = "20260102T030405Z-demo-k3v9".parse().unwrap();
        let told = run_id.started().unwrap().as_millis();
        let named = Continues {
            run_id: "20260102T030400Z-demo-k3v9".parse().unwrap(),
            sums_sha256: Digest::of(b"run"),
        };
        let said = Settlement {
            run_id,
            continues: named,
            status: Status::Fail,
            outcome: Outcome::Accepted,
            reverts: None,
            landed: None,
            cut_short: false,
        };
        for (millis, want) in [(-1, true), (0, false), (1000, false)] {
            let now = Utc::from_millis(told + millis).unwrap();
            assert_eq!(
                is_before_the_last(now, std::slice::from_ref(&said)),
                want,
                "{millis}"
            );
            assert!(!is_before_the_last(now, &[]));
        }
    }
}
