//! What a run leaves behind for the next stage to stand on: written by the spine, from facts,
//! before the seal.

use std::path::Path;

use cto_core::bundle;
use cto_core::bundle::report::{Reliance, RelianceKind};
use cto_core::gate::GateVerdict;
use cto_core::gate::ladder::stage3::Stage3Proof;
use cto_core::gate::ladder::stage4::Stage4Proof;
use cto_core::gate::ladder::{self, LaneKey, Stage1Proof, StageProof};
use cto_core::proof::stage2::{self, Side};
use cto_core::run::chain;
use cto_core::run::event::{Event, Origin};
use cto_core::task::contract::{Label, Stage};
use cto_core::task::source::CopiedRepo;
use cto_core::values::blocker::{Code, Finding};

use crate::bundles::reader;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::host::failure::{self, Failure};
use crate::host::{Env, Home, OwnProgram};
use crate::plan::Planned;
use crate::run::execution::Stop;
use crate::run::fake_baseline::{self, FakeBaseline};
use crate::supervise::cancel::Cancel;
use crate::task::request::{ProofOrder, Request};

/// What a run owes besides its verdict: the run of `fake` it is compared with, and its proofs.
pub struct Owed<'a> {
    request: &'a Request,
    /// The run of `fake` that a gated engine's stage-2 run is compared with.
    baseline: Option<FakeBaseline>,
}

/// How far a run came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// A gate let it not be planned.
    Gates,
    /// A gate that had let the plan through was found closed.
    LateGate,
    End,
}

impl<'a> Owed<'a> {
    /// Before anything is opened: what must have run already, has.
    pub fn begin(
        planned: &mut Planned,
        request: &'a Request,
        own: &OwnProgram,
        env: &Env,
        home: &Home,
        cancel: &Cancel,
    ) -> Result<Self, Failure> {
        let baseline = baseline(planned, request, own, env, home, cancel)?;
        Ok(Self { request, baseline })
    }

    /// What the run relies on: the proof of the stage before, and its baseline.
    pub fn relies_on(&self, planned: &Planned) -> Vec<Reliance> {
        reliances(planned, self.baseline.as_ref())
    }

    /// Once the run is over and before it is sealed: the proofs, where it shows what they need.
    pub fn write(
        &self,
        bundle: &mut OpenBundle,
        planned: &Planned,
        reached: Reached,
    ) -> Result<(), Stop> {
        match reached {
            Reached::Gates => write_ordered(bundle, self.request, planned),
            Reached::LateGate => Ok(()),
            Reached::End => write_stage2(bundle, self.request, self.baseline.as_ref()),
        }
    }

    /// After the second look at a source, or once a disposable repository is gone: the proof of stage 3 or 4, where
    /// nothing speaks against it so far. What it is worth says the verdict.
    pub fn write_last(
        &self,
        bundle: &mut OpenBundle,
        copied: Option<&CopiedRepo>,
        findings: &mut Vec<Finding>,
    ) {
        let shown = copied.zip(bundle.contract.valid());
        let shown = shown
            .and_then(|(copied, contract)| Stage3Proof::of(contract, copied, &bundle.relies_on));
        let counts = findings.is_empty() && self.request.again.is_none();
        if !counts {
            return;
        }
        let disposable = bundle.contract.valid().and_then(|contract| {
            Stage4Proof::of(contract, &bundle.folded().facts, &bundle.relies_on)
        });
        let written = match (shown, disposable) {
            (Some(proof), _) => bundle.write_json(bundle::STAGE3_PROOF, &proof),
            (None, Some(proof)) => bundle.write_json(bundle::STAGE4_PROOF, &proof),
            (None, None) => return,
        };
        if let Err(error) = written {
            findings.push(Finding {
                code: Code::ArtifactWriteFailure,
                detail: Some(failure::chain(&error)),
            });
        }
    }
}

/// Does this run owe a comparison? Only a case that is run for itself, at the stage that asks for
/// it.
fn owes_baseline(request: &Request) -> bool {
    let asked_for = matches!(request.origin, Origin::Operator | Origin::Ci);
    let compared = request.compared || asked_for;
    request.manifest.is_gated()
        && request.stage == Stage::Two
        && request.label == Label::Case
        && compared
}

/// What it is compared with, had before anything is opened. A baseline that does not pass closes the gate:
/// nothing could stand on it.
fn baseline(
    planned: &mut Planned,
    request: &Request,
    own: &OwnProgram,
    env: &Env,
    home: &Home,
    cancel: &Cancel,
) -> Result<Option<FakeBaseline>, Failure> {
    if planned.plan.is_none() || !owes_baseline(request) {
        return Ok(None);
    }
    let had = fake_baseline::have(request, own, env, home, cancel)?;
    planned.before.push(had.took);
    had.baseline.map_or_else(
        |why| {
            close(planned, why);
            Ok(None)
        },
        |baseline| Ok(Some(baseline)),
    )
}

fn close(planned: &mut Planned, detail: String) {
    planned.plan = None;
    for row in planned
        .gates
        .gates
        .iter_mut()
        .filter(|row| row.gate == "stage-proof")
    {
        row.result = GateVerdict::Blocked;
        row.code = Some(Code::StageNotProven);
        row.detail = Some(detail.clone());
    }
}

/// What the run relies on: the proof of the stage before, and its baseline.
fn reliances(planned: &Planned, baseline: Option<&FakeBaseline>) -> Vec<Reliance> {
    let before = proof_before(planned)
        .filter(|_| planned.plan.is_some())
        .map(|proof| Reliance {
            kind: RelianceKind::Proof,
            id: format!("{}/{}", proof.run_id, proof.artifact),
            sha256: proof.sha256,
        });
    let baseline = baseline.map(FakeBaseline::reliance);
    before.into_iter().chain(baseline).collect()
}

fn proof_before(planned: &Planned) -> Option<&StageProof> {
    let contract = planned.contract.valid()?;
    let facts = planned.lane.known()?;
    match ladder::find_proof(
        &facts.proofs,
        contract.lane.stage.number() - 1,
        &LaneKey::of(&contract.lane),
    ) {
        ladder::Standing::Proven(proof) => Some(proof),
        ladder::Standing::Demoted(_) | ladder::Standing::Unproven => None,
    }
}

/// Writes the proof that was ordered, where the run bears it out: the stage alone stopped it.
fn write_ordered(
    bundle: &mut OpenBundle,
    request: &Request,
    planned: &Planned,
) -> Result<(), Stop> {
    let Some(ProofOrder::Stage1 { refused }) = &request.proof else {
        return Ok(());
    };
    let codes: Vec<Code> = planned
        .gates
        .blocked()
        .filter_map(|gate| gate.code)
        .collect();
    let Some(contract) = planned.contract.valid() else {
        return Ok(());
    };
    if request.stage == Stage::One && codes == [Code::StageGateClosed] {
        let proof = Stage1Proof::new(
            contract.case_id.clone(),
            LaneKey::of(&contract.lane),
            refused.clone(),
        );
        bundle.write_json(bundle::STAGE1_PROOF, &proof)?;
    }
    Ok(())
}

/// Writes the artifacts of stage 2 once the run is over and before it is sealed.
fn write_stage2(
    bundle: &mut OpenBundle,
    request: &Request,
    baseline: Option<&FakeBaseline>,
) -> Result<(), Stop> {
    if !owes_baseline(request) {
        return Ok(());
    }
    let Some(contract) = bundle.contract.valid().cloned() else {
        return Ok(());
    };
    let argv = request
        .manifest
        .invocation
        .as_ref()
        .map(|invocation| invocation.argv.clone())
        .unwrap_or_default();
    bundle.write_json(
        bundle::STAGE2_NO_TARGET,
        &stage2::no_target(&contract, &argv),
    )?;
    let Some(baseline) = baseline else {
        return Ok(());
    };
    let unreadable = |error: std::io::Error| {
        Stop::Evidence(EvidenceError::cannot_write(
            bundle::STAGE2_COMPARISON,
            &error,
        ))
    };
    let ours = events(bundle.dir(), bundle).map_err(unreadable)?;
    let engine = Side {
        contract: &contract,
        task_digest: bundle.sealed_contract.task_digest,
        events: &ours,
    };
    let fake = Side {
        contract: &baseline.contract,
        task_digest: baseline.report.task_digest,
        events: &baseline.events,
    };
    let compared = stage2::compare_runs(&engine, &fake, &baseline.report, baseline.named())
        .map_err(EvidenceError::from)?;
    Ok(bundle.write_json(bundle::STAGE2_COMPARISON, &compared)?)
}

/// This run's own events, read back as a stranger would read them.
fn events(dir: &Path, bundle: &OpenBundle) -> std::io::Result<Vec<Event>> {
    let start = chain::chain_start(
        &bundle.identity.run_id,
        &bundle.sealed_contract.contract_digest,
    );
    let bytes = reader::document(dir, bundle::EVENTS)?;
    let lines =
        chain::read_chain(&bytes, start, &bundle.identity.run_id).map_err(std::io::Error::other)?;
    Ok(lines.into_iter().map(|line| line.event).collect())
}
