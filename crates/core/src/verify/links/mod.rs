//! Bundles that rely on others: a settlement on its run, a pass on proofs, approvals and requests. `again.rs`: a
//! patch that is judged again. `approval.rs`: what a person said. `compared.rs`: the run of `fake` that stage 2 compares with.
//! `settlement.rs`: what the operator said of a run. `stages.rs`: proofs of later stages.

mod again;
mod approval;
mod compared;
mod settlement;
mod stages;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{FoundBundle, Standing, Verification, Verifier};
use crate::bundle;
use crate::bundle::approval::Answer;
use crate::bundle::report::{Reliance, RelianceKind, Report};
use crate::run::event::Kind;
use crate::task::contract::{Contract, ContractDocument};
use crate::task::source::CopiedRepo;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json;
use crate::values::verdict::Status;

const CHECK: &str = "links";

/// What a verified bundle offers to bundles that rely on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linked {
    pub standing: Standing,
    pub status: Option<Status>,
    pub kind: Kind,
    pub sums_sha256: Digest,
    pub contract_digest: Digest,
    /// The end of its chain.
    pub head: Digest,
    pub artifacts: BTreeMap<String, Digest>,
    /// What it says of itself, and was asked for.
    pub report: Box<Report>,
    pub contract: Option<Box<Contract>>,
    /// Its looks at the repository it copied, and the answer it used.
    pub looks: Option<Box<CopiedRepo>>,
    pub approval: Option<Box<Answer>>,
}

/// Verified bundles by run id.
pub type Links = BTreeMap<RunId, Linked>;

/// A record somebody made before the run, as far as this verifier reads it.
#[derive(Deserialize)]
struct RelyRecord {
    contract_digest: Digest,
    approval_granted: bool,
}

/// The file a record is kept in.
pub fn record_name(kind: RelianceKind, id: &str) -> String {
    let word = match kind {
        RelianceKind::Proof => "proof",
        RelianceKind::Approval => "approval",
        RelianceKind::Request => "request",
    };
    format!("{}{word}-{id}.json", bundle::RELIED_DIR)
}

/// Runs whose bundles are needed to check this one.
pub(super) fn wanted(report: &Report) -> BTreeSet<RunId> {
    let proofs = report
        .relies_on
        .iter()
        .filter(|reliance| reliance.kind == RelianceKind::Proof);
    let proofs = proofs.filter_map(|reliance| proof_of(reliance).map(|(run, _)| run));
    let continued = report
        .continues
        .iter()
        .map(|continues| continues.run_id.clone());
    let told = report.settlement.iter();
    let taken_back = told.filter_map(|told| told.reverts.clone());
    let judged = report
        .reverifies
        .iter()
        .map(|reverifies| reverifies.run_id.clone());
    proofs
        .chain(continued)
        .chain(taken_back)
        .chain(judged)
        .filter(|run| *run != report.run_id)
        .collect()
}

/// What others may know of a bundle once it was verified.
pub fn linked_run(found: &FoundBundle, verification: &Verification) -> Option<(RunId, Linked)> {
    let report: Report = json::read(found.documents.get(bundle::REPORT)?).ok()?;
    let contract = found.documents.get(bundle::CONTRACT);
    let contract = contract.and_then(|bytes| ContractDocument::read(bytes).ok());
    let document = |name: &str| found.documents.get(name).map(Vec::as_slice);
    let looks = document(bundle::SOURCE).and_then(|bytes| json::read(bytes).ok());
    let mut relied = report.relies_on.iter();
    let approval = relied.find(|on| on.kind == RelianceKind::Approval);
    let approval = approval
        .and_then(|on| document(&record_name(on.kind, &on.id)))
        .and_then(|bytes| json::read(bytes).ok());
    let linked = Linked {
        standing: verification.standing,
        status: verification.status,
        kind: report.kind,
        sums_sha256: found.files.get(bundle::SUMS)?.sha256,
        contract_digest: report.contract_digest,
        head: report.events.head,
        artifacts: found
            .files
            .iter()
            .map(|(name, file)| (name.clone(), file.sha256))
            .collect(),
        contract: contract.and_then(|(document, _)| match document {
            ContractDocument::Valid(contract) => Some(contract),
            ContractDocument::Invalid(_) => None,
        }),
        looks: looks.map(Box::new),
        approval: approval.map(Box::new),
        report: Box::new(report),
    };
    Some((linked.report.run_id.clone(), linked))
}

fn proof_of(reliance: &Reliance) -> Option<(RunId, Option<&str>)> {
    match reliance.id.split_once('/') {
        None => Some((reliance.id.parse().ok()?, None)),
        Some((run, artifact)) => Some((run.parse().ok()?, Some(artifact))),
    }
}

impl Verifier<'_> {
    pub(super) fn links(&mut self, report: &Report) {
        self.continues(report);
        let mut seen = BTreeSet::new();
        for reliance in &report.relies_on {
            if !seen.insert((record_name(reliance.kind, &reliance.id), reliance.sha256)) {
                self.problem(
                    CHECK,
                    bundle::REPORT,
                    format!("relies on {:?} twice", reliance.id),
                );
            }
            match reliance.kind {
                RelianceKind::Proof => self.proof(report, reliance),
                RelianceKind::Approval | RelianceKind::Request => self.record(report, reliance),
            }
        }
    }

    fn proof(&mut self, report: &Report, reliance: &Reliance) {
        let Some((run, artifact)) = proof_of(reliance) else {
            return self.problem(
                CHECK,
                bundle::REPORT,
                format!("the proof {:?} is not a run id", reliance.id),
            );
        };
        let Some(linked) = self.links.get(&run).cloned() else {
            return self.unknown(
                CHECK,
                bundle::REPORT,
                format!("relies on {run}, which was not found"),
            );
        };
        let found = match artifact {
            None => Some(&linked.sums_sha256),
            Some(artifact) => linked.artifacts.get(artifact),
        };
        if found != Some(&reliance.sha256) {
            self.problem(
                CHECK,
                bundle::REPORT,
                format!(
                    "relies on something else than what {} holds now",
                    reliance.id
                ),
            );
        }
        // Stage 1 is proven by a run that was not let through.
        let ended = if artifact == Some(bundle::STAGE1_PROOF) {
            Status::Blocked
        } else {
            Status::Pass
        };
        self.stands_on(report, &run, &linked, ended);
    }

    /// No bundle is better than those it relies on.
    fn stands_on(&mut self, report: &Report, run: &RunId, linked: &Linked, ended: Status) {
        match linked.standing {
            Standing::Bad => self.problem(
                CHECK,
                bundle::REPORT,
                format!("relies on {run}, which is bad"),
            ),
            Standing::Unknown => self.unknown(
                CHECK,
                bundle::REPORT,
                format!("relies on {run}, which is unknown"),
            ),
            Standing::Good if report.status == Status::Pass && linked.status != Some(ended) => {
                let instead = if ended == Status::Pass {
                    "did not pass"
                } else {
                    "was not blocked"
                };
                self.problem(
                    CHECK,
                    bundle::REPORT,
                    format!("is a pass, but relies on {run}, which {instead}"),
                );
            }
            Standing::Good => {}
        }
    }

    /// A request or approval travels with the bundle and is about this very contract.
    fn record(&mut self, report: &Report, reliance: &Reliance) {
        let name = record_name(reliance.kind, &reliance.id);
        let Some(file) = self.found.files.get(&name) else {
            return self.unknown(
                CHECK,
                &name,
                "the run relied on it, and it is not in the bundle",
            );
        };
        if file.sha256 != reliance.sha256 {
            return self.problem(CHECK, &name, "is not the record the report relies on");
        }
        match json::read::<RelyRecord>(self.bytes(&name)) {
            Err(error) => self.problem(CHECK, &name, error.to_string()),
            Ok(record) if record.contract_digest != report.contract_digest => {
                self.problem(CHECK, &name, "is about another contract");
            }
            Ok(record) if reliance.kind == RelianceKind::Approval && !record.approval_granted => {
                self.problem(CHECK, &name, "grants nothing");
            }
            Ok(_) if reliance.kind == RelianceKind::Approval => {
                self.approval_record(report, reliance);
            }
            Ok(_) => {}
        }
    }
}
