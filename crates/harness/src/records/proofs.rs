//! Proofs of earlier stages, found in the runs root. Each is a bundle that was verified here and
//! now. What an earlier look found points at bundles (`proof_pointers.rs`) and proves nothing: without
//! it, or where it points at nothing that proves, every run is looked at, and the answer is the same.

use std::path::Path;

use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::bundle::report::Report;
use cto_core::gate::ladder::stage5::Stage5Proof;
use cto_core::gate::ladder::{
    Candidate, LaneKey, PROVEN_BY, RefusedRun, Stage1Proof, StageProof, proof_of,
};
use cto_core::run::event::Origin;
use cto_core::task::contract::{Contract, ContractDocument, Stage};
use cto_core::values::ids::{EngineId, RunId};
use cto_core::values::json;
use cto_core::verify::Standing;

use super::proof_pointers::{self, Pointer};
use crate::bundles::reader;
use crate::bundles::settlements;
use crate::bundles::verifier;
use crate::evidence::keys::KeyStore;
use crate::host::Home;

/// The newest proof of every stage and lane of this engine. What cannot be read or verified proves
/// nothing.
pub fn proofs(engine: &EngineId, home: &Home, by: Origin) -> Vec<StageProof> {
    let mut found: Vec<StageProof> = Vec::new();
    each_candidate(engine, home, |stage, lane, dir, trust| {
        let is_known = |proof: &StageProof| proof.stage == stage && proof.lane == *lane;
        if !found.iter().any(is_known) {
            found.extend(proof_at(dir, home, trust, by));
        }
    });
    found
}

/// The proof that a lane needs.
pub struct Wanted<'a> {
    pub stage: u8,
    /// As far as it is known: its containment may depend on a tree that nobody looked at yet.
    pub lane: &'a LaneKey,
    pub by: Origin,
}

impl Wanted<'_> {
    fn fits(&self, lane: &LaneKey) -> bool {
        lane.engine == self.lane.engine && lane.changed(self.lane).is_empty()
    }
}

/// The newest proof of one stage for this lane, under every containment that has one. Where there is
/// none, the newest of another lane of the engine: what changed since is to be named.
pub fn proofs_for(wanted: &Wanted<'_>, home: &Home) -> Vec<StageProof> {
    let pointed = pointed_at(wanted, home);
    if !pointed.is_empty() {
        return pointed;
    }
    let (mut found, mut other): (Vec<StageProof>, Option<StageProof>) = (Vec::new(), None);
    each_candidate(&wanted.lane.engine, home, |stage, lane, dir, trust| {
        if stage.number() != wanted.stage {
            return;
        }
        match wanted.fits(lane) {
            true if found.iter().all(|proof| proof.lane != *lane) => {
                found.extend(proof_at(dir, home, trust, wanted.by));
            }
            false if other.is_none() && found.is_empty() => {
                other = proof_at(dir, home, trust, wanted.by);
            }
            true | false => {}
        }
    });
    for proof in &found {
        proof_pointers::put(home, &Pointer::of(proof, wanted.by));
    }
    match found.is_empty() {
        true => other.into_iter().collect(),
        false => found,
    }
}

/// What earlier looks point at, verified now.
fn pointed_at(wanted: &Wanted<'_>, home: &Home) -> Vec<StageProof> {
    let Ok(trust) = KeyStore::of(home).trust() else {
        return Vec::new();
    };
    let fits = |pointer: &Pointer| {
        pointer.stage.number() == wanted.stage
            && pointer.by == wanted.by
            && wanted.fits(&pointer.lane)
    };
    let pointers = proof_pointers::all(home, &wanted.lane.engine).into_iter();
    let dirs = pointers
        .filter(fits)
        .map(|pointer| home.runs.join(pointer.run_id.as_str()));
    let proofs = dirs.filter_map(|dir| proof_at(&dir, home, &trust, wanted.by));
    proofs
        .filter(|proof| proof.stage.number() == wanted.stage && wanted.fits(&proof.lane))
        .collect()
}

/// Points at a run that was just sealed, where it holds a proof. Nothing rests on it.
pub fn point_at(home: &Home, run_id: &RunId, by: Origin) {
    let dir = home.runs.join(run_id.as_str());
    if let Some((stage, lane)) = looks_like_one(&dir) {
        let run_id = run_id.clone();
        proof_pointers::put(
            home,
            &Pointer {
                stage,
                lane,
                run_id,
                by,
            },
        );
    }
}

/// Every run of an engine that looks like a proof, the newest first.
fn each_candidate(
    engine: &EngineId,
    home: &Home,
    mut visit: impl FnMut(Stage, &LaneKey, &Path, &Trust),
) {
    let (Ok(runs), Ok(trust)) = (reader::all_runs(home), KeyStore::of(home).trust()) else {
        return;
    };
    for dir in runs.iter().rev().map(|run| home.runs.join(run.as_str())) {
        match looks_like_one(&dir) {
            Some((stage, lane)) if lane.engine == *engine => visit(stage, &lane, &dir, &trust),
            Some(_) | None => {}
        }
    }
}

/// Cheap, and decides nothing: only whether the bundle is worth a verification.
fn looks_like_one(dir: &Path) -> Option<(Stage, LaneKey)> {
    if !PROVEN_BY.iter().any(|(_, name)| dir.join(name).is_file()) {
        return None;
    }
    let contract = contract_of(&reader::document(dir, bundle::CONTRACT).ok()?)?;
    Some((contract.lane.stage, LaneKey::of(&contract.lane)))
}

fn contract_of(bytes: &[u8]) -> Option<Box<Contract>> {
    match ContractDocument::read(bytes).ok()? {
        (ContractDocument::Valid(contract), _) => Some(contract),
        (ContractDocument::Invalid(_), _) => None,
    }
}

/// A run that a gate refused, as it lies there: verified, with its only blocker.
fn refused_run(run_id: &RunId, home: &Home, trust: &Trust) -> Option<RefusedRun> {
    let (found, verification) = verifier::examine(&home.runs.join(run_id.as_str()), trust).ok()?;
    if verification.standing != Standing::Good {
        return None;
    }
    let report: Report = json::read(found.documents.get(bundle::REPORT)?).ok()?;
    match report.blockers.as_slice() {
        [only] if report.run_id == *run_id => Some(RefusedRun {
            run_id: run_id.clone(),
            sums_sha256: found.files.get(bundle::SUMS)?.sha256,
            blocker: only.code,
        }),
        _ => None,
    }
}

/// An accepted result that its operator took back, or wanted to, proves nothing any more. Where nobody can tell what
/// was said, it does not either.
fn was_taken_back(report: &Report, home: &Home, trust: &Trust) -> bool {
    let Some(of) = &report.continues else {
        return false;
    };
    match settlements::verified(home, &of.run_id, trust) {
        Ok(said) => said
            .iter()
            .any(|said| said.reverts.as_ref() == Some(&report.run_id)),
        Err(_) => true,
    }
}

fn proof_at(dir: &Path, home: &Home, trust: &Trust, by: Origin) -> Option<StageProof> {
    let (found, verification) = verifier::examine(dir, trust).ok()?;
    if verification.standing != Standing::Good {
        return None;
    }
    let report: Report = json::read(found.documents.get(bundle::REPORT)?).ok()?;
    let contract = contract_of(found.documents.get(bundle::CONTRACT)?)?;
    let artifacts = found
        .files
        .iter()
        .map(|(name, file)| (name.clone(), file.sha256))
        .collect();
    if was_taken_back(&report, home, trust) {
        return None;
    }
    let stage1: Option<Stage1Proof> = found
        .documents
        .get(bundle::STAGE1_PROOF)
        .and_then(|bytes| json::read(bytes).ok());
    let stage5: Option<Stage5Proof> = found
        .documents
        .get(bundle::STAGE5_PROOF)
        .and_then(|bytes| json::read(bytes).ok());
    let refused = stage1
        .as_ref()
        .and_then(|proof| refused_run(&proof.refused_by_default.run_id, home, trust));
    proof_of(
        &Candidate {
            report: &report,
            contract: &contract,
            artifacts: &artifacts,
            stage1: stage1.as_ref(),
            refused: refused.as_ref(),
            stage5: stage5.as_ref(),
        },
        by,
    )
}
