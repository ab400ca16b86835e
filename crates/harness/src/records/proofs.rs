//! Proofs of earlier stages, found in the runs root. Each is a bundle that was verified here and now: nothing
//! rests on an index.

use std::path::Path;

use cto_core::bundle;
use cto_core::contract::ContractDocument;
use cto_core::ids::EngineId;
use cto_core::json;
use cto_core::ladder::{Candidate, Stage1Proof, StageProof, proof_of};
use cto_core::report::Report;
use cto_core::verify::Standing;

use crate::host::Home;
use crate::keys::KeyStore;
use crate::reader;
use crate::verifier;

/// Every proof of this engine. What cannot be read or verified proves nothing.
pub fn proofs(engine: &EngineId, home: &Home) -> Vec<StageProof> {
    let (Ok(runs), Ok(trust)) = (reader::all_runs(home), KeyStore::of(home).trust()) else { return Vec::new() };
    let dirs = runs.iter().map(|run| home.runs.join(run.as_str()));
    let marked = dirs.filter(|dir| [bundle::STAGE1_PROOF, bundle::STAGE2_COMPARISON].iter().any(|name| dir.join(name).is_file()));
    marked.filter(|dir| is_of(dir, engine)).filter_map(|dir| proof_at(&dir, &trust)).collect()
}

/// Cheap, and decides nothing: the verified bytes are asked again.
fn is_of(dir: &Path, engine: &EngineId) -> bool {
    reader::report(dir).is_ok_and(|report| report.backend == *engine)
}

fn proof_at(dir: &Path, trust: &cto_core::attest::Trust) -> Option<StageProof> {
    let (found, verification) = verifier::examine(dir, trust).ok()?;
    if verification.standing != Standing::Good {
        return None;
    }
    let report: Report = json::read(found.documents.get(bundle::REPORT)?).ok()?;
    let (ContractDocument::Valid(contract), _) = ContractDocument::read(found.documents.get(bundle::CONTRACT)?).ok()? else {
        return None;
    };
    let artifacts = found.files.iter().map(|(name, file)| (name.clone(), file.sha256)).collect();
    let stage1: Option<Stage1Proof> = found.documents.get(bundle::STAGE1_PROOF).and_then(|bytes| json::read(bytes).ok());
    proof_of(&Candidate { report: &report, contract: &contract, artifacts: &artifacts, stage1: stage1.as_ref() })
}
