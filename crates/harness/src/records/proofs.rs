//! Proofs of earlier stages, found in the runs root. Each is a bundle that was verified here and
//! now: nothing rests on an index.

use std::path::Path;

use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::bundle::report::Report;
use cto_core::gate::ladder::{Candidate, LaneKey, RefusedRun, Stage1Proof, StageProof, proof_of};
use cto_core::run::event::Origin;
use cto_core::task::contract::{Contract, ContractDocument, Stage};
use cto_core::values::ids::{EngineId, RunId};
use cto_core::values::json;
use cto_core::verify::Standing;

use crate::bundles::reader;
use crate::bundles::verifier;
use crate::evidence::keys::KeyStore;
use crate::host::Home;

/// The newest proof of every stage and lane of this engine. What cannot be read or verified proves
/// nothing.
pub fn proofs(engine: &EngineId, home: &Home, by: Origin) -> Vec<StageProof> {
    let (Ok(runs), Ok(trust)) = (reader::all_runs(home), KeyStore::of(home).trust()) else {
        return Vec::new();
    };
    let mut found: Vec<StageProof> = Vec::new();
    for dir in runs.iter().rev().map(|run| home.runs.join(run.as_str())) {
        let Some((stage, lane)) = looks_like_one(&dir).filter(|(_, lane)| lane.engine == *engine)
        else {
            continue;
        };
        if !found
            .iter()
            .any(|proof| proof.stage == stage && proof.lane == lane)
        {
            found.extend(proof_at(&dir, home, &trust, by));
        }
    }
    found
}

/// Cheap, and decides nothing: only whether the bundle is worth a verification.
fn looks_like_one(dir: &Path) -> Option<(Stage, LaneKey)> {
    if ![bundle::STAGE1_PROOF, bundle::STAGE2_COMPARISON]
        .iter()
        .any(|name| dir.join(name).is_file())
    {
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
    let stage1: Option<Stage1Proof> = found
        .documents
        .get(bundle::STAGE1_PROOF)
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
        },
        by,
    )
}
