//! What is written down about a run besides its steps: the question, the plan, every gate, what
//! blocked, and why it stopped.

use std::io;
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::report::{EngineFacts, InterpreterFacts};
use cto_core::engine::manifest::{Invocation, Program};
use cto_core::gate::plan::Plan;
use cto_core::gate::{GateReport, GateResult, GateVerdict, LaneFacts, model_result};
use cto_core::run::event::{
    ContractCreated, Event, FlatFacts, GateBlocked, GitUse, Kind, PlanUpdated, RunStarted,
};
use cto_core::run::judge::how_far;
use cto_core::run::rules::Rules;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::again::ChecksDiffer;
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::event_type::EventType;
use cto_core::values::maybe_known::MaybeKnown;

use crate::evidence::{EvidenceError, OpenBundle};
use crate::host::failure::chain;
use crate::plan::Planned;
use crate::run::afterwards::copied_repo;
use crate::run::checks;
use crate::run::execution::Stop;
use crate::screen::progress::Stage;
use crate::task::request::Request;

/// The engine as the report names it. A version nobody has tried is said, not refused.
pub fn engine_facts(request: &Request, planned: &Planned) -> EngineFacts {
    let invocation = request.manifest.invocation.as_ref();
    let version = match invocation.map(|invocation| &invocation.program) {
        None => None,
        Some(Program::Itself) => Some(env!("CARGO_PKG_VERSION").to_owned()),
        Some(Program::Admitted) => planned
            .plan
            .as_ref()
            .and_then(|plan| plan.engine.as_ref())
            .and_then(|e| e.version.clone()),
    };
    let untested =
        invocation.filter(|own| planned.plan.is_some() && own.is_untested(version.as_deref()));
    let warning = |own: &Invocation| {
        let which = version.as_deref().unwrap_or("that is not known");
        format!(
            "version {which} was never tried with this harness; tried were {}",
            own.tested_versions.join(", ")
        )
    };
    EngineFacts {
        name: request.manifest.id.clone(),
        executable_sha256: planned
            .contract
            .valid()
            .map_or(MaybeKnown::NotLookedAt, |contract| {
                contract.lane.executable_sha256
            }),
        interpreter: interpreter(planned),
        packages_sha256: planned
            .contract
            .valid()
            .and_then(|contract| contract.lane.packages_sha256),
        warnings: untested.map(warning).into_iter().collect(),
        version,
    }
}

/// What runs the engine's file: the words of its admission, with the digest that the contract binds.
fn interpreter(planned: &Planned) -> Option<InterpreterFacts> {
    let sha256 = planned.contract.valid()?.lane.interpreter_sha256?;
    let record = planned.lane.known()?.executable.known()?;
    Some(InterpreterFacts {
        name: record.interpreter.clone(),
        version: (record.interpreter_sha256 == Some(sha256))
            .then(|| record.interpreter_version.clone())
            .flatten(),
        sha256,
    })
}

/// What was asked for and what every gate said to it.
pub fn question(bundle: &mut OpenBundle, request: &Request, planned: &Planned) -> Result<(), Stop> {
    let since = Instant::now();
    let gates = &planned.gates;
    bundle.write_gates(gates.clone())?;
    if let Some(copied) = copied_repo(planned) {
        bundle.write_json(bundle::SOURCE, &copied)?;
    }
    if let Some(probe) = &planned.probe {
        bundle.write_json(bundle::MODEL_PROBE, probe)?;
    }
    if let Some(refusal) = &planned.refusal {
        bundle.write(bundle::MODEL_REFUSAL, format!("{refusal}\n").as_bytes())?;
    }
    let notes = planned.provider.iter().flat_map(|provider| &provider.notes);
    notes.for_each(|note| bundle.warn(note.clone()));
    bundle.write(
        &format!("backend/{}-gate.log", request.manifest.id),
        gate_log(&bundle.gates).as_bytes(),
    )?;
    let first = request.again.as_ref();
    if let Some(first) = first {
        // Words of the first contract stay what they are, as those of this one do.
        bundle.quote(&first.contract)?;
    }
    bundle.emit(Event::RunStarted(RunStarted {
        kind: match first {
            Some(_) => Kind::Reverification,
            None => Kind::Run,
        },
        reverifies: first.map(|first| first.reverifies.clone()),
        checks_differ: first
            .zip(bundle.contract.valid())
            .map(|(first, again)| ChecksDiffer::between(&first.contract, again)),
        origin: request.origin,
        case_id: request.case.id.clone(),
        engine: request.manifest.id.clone(),
        stage: request.stage,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        rules: Rules::NEWEST.number(),
        flat: flat(bundle, request, planned).map(Box::new),
    }))?;
    let carried = |event: EventType| {
        gates
            .blocked()
            .filter_map(|gate| gate.code)
            .filter(|c| c.info().event == event)
            .collect::<Vec<_>>()
    };
    let carries = |gate: &&GateResult| {
        gate.code
            .is_some_and(|code| code.info().event == EventType::TaskContractCreated)
    };
    let carried_detail = gates
        .blocked()
        .find(carries)
        .and_then(|gate| gate.detail.clone());
    bundle.emit(Event::TaskContractCreated(ContractCreated {
        valid: bundle.contract.valid().is_some(),
        task_digest: bundle.sealed_contract.task_digest,
        contract_digest: bundle.sealed_contract.contract_digest,
        blockers: carried(EventType::TaskContractCreated),
        detail: carried_detail,
    }))?;
    for before in &planned.before {
        bundle.trace_before(before)?;
    }
    for gate in gates
        .gates
        .iter()
        .filter(|gate| gate.result != GateVerdict::NotSeen)
    {
        let outcome = if gate.result == GateVerdict::Blocked {
            TraceOutcome::Refused
        } else {
            TraceOutcome::Ok
        };
        bundle.trace(
            &format!("gate.{}", gate.gate),
            outcome,
            since,
            gate.detail.clone(),
        )?;
    }
    Ok(())
}

/// What the report says in fields of the engine's name, where its manifest has such.
fn flat(bundle: &OpenBundle, request: &Request, planned: &Planned) -> Option<FlatFacts> {
    let prefix = request.manifest.flat_fields.clone()?;
    let facts = planned.lane.known();
    let of_contract = bundle.contract.valid().map(|contract| &contract.lane.model);
    let pair = match of_contract {
        Some(pair) => pair.clone(),
        None => facts.and_then(LaneFacts::pair_to_record),
    };
    let (model_provider, model) = pair.map(|pair| (pair.provider, pair.model)).unzip();
    let invocation = request.manifest.invocation.as_ref();
    Some(FlatFacts {
        prefix,
        model_provider,
        model,
        model_admission_status: facts.map(|facts| model_result(facts).0),
        runtime_model_provider: invocation
            .and_then(|own| own.model.as_ref()?.runtime_provider.clone()),
    })
}

/// The plan, once every gate let it through.
pub fn plan(bundle: &mut OpenBundle, plan: &Plan, git: GitUse) -> Result<(), Stop> {
    bundle.emit(Event::PlanUpdated(PlanUpdated {
        summary: plan.summary(),
        containment: plan.containment,
        approval_required: plan.contract.approval_required,
        toolchains: plan
            .toolchains
            .iter()
            .map(|toolchain| toolchain.record.clone())
            .collect(),
        guard: plan.guard_plan(),
        git: Some(git),
        environments: plan.environment_uses(),
    }))?;
    Ok(())
}

/// A gate that had let the plan through, found closed when it was tried: `gates.json` says so.
pub fn close_gate(
    bundle: &mut OpenBundle,
    gate: &str,
    code: Code,
    detail: String,
) -> Result<(), Stop> {
    let mut gates = bundle.gates.clone();
    for row in gates.gates.iter_mut().filter(|row| row.gate == gate) {
        row.result = GateVerdict::Blocked;
        row.code = Some(code);
        row.detail = Some(detail.clone());
    }
    Ok(bundle.write_gates(gates)?)
}

/// The events of a run that a gate stopped: one per blocked gate, in the event its code belongs to.
/// What belongs to `run.completed` is returned.
pub fn blocks(bundle: &mut OpenBundle, request: &Request) -> Result<Vec<Finding>, Stop> {
    let mut findings = Vec::new();
    let blocked: Vec<GateResult> = bundle.gates.blocked().cloned().collect();
    for gate in &blocked {
        let Some(code) = gate.code else { continue };
        if let Some(note) = bundle::note_of(code) {
            let detail = gate.detail.as_deref().unwrap_or(code.info().sentence);
            bundle.write(note, format!("{detail}\n").as_bytes())?;
        }
        match code.info().event {
            EventType::VerificationCompleted => {
                let reason = gate
                    .detail
                    .clone()
                    .unwrap_or_else(|| code.info().sentence.to_owned());
                checks::record_not_run(bundle, &reason, vec![code])?;
            }
            EventType::TaskContractCreated => {}
            EventType::RunCompleted => {
                let detail = gate
                    .detail
                    .clone()
                    .unwrap_or_else(|| code.info().sentence.to_owned());
                findings.push(Finding {
                    code,
                    detail: Some(detail),
                });
            }
            _ => bundle.emit(Event::BackendGateBlocked(GateBlocked {
                backend: request.manifest.id.clone(),
                gate: gate.gate.clone(),
                reason: code,
                detail: gate.detail.clone(),
                mutation_mode: bundle
                    .contract
                    .valid()
                    .map(|contract| contract.mutation_mode),
                executed: false,
                flat: bundle
                    .folded()
                    .facts
                    .flat
                    .as_ref()
                    .map(FlatFacts::of_gate)
                    .unwrap_or_default(),
            }))?,
        }
    }
    Ok(findings)
}

fn gate_log(gates: &GateReport) -> String {
    let line = |gate: &GateResult| {
        let verdict = match gate.result {
            GateVerdict::Pass => "pass",
            GateVerdict::Blocked => "BLOCKED",
            GateVerdict::NotApplicable => "not applicable",
            GateVerdict::NotSeen => "not looked at",
        };
        let code = gate
            .code
            .map(|code| format!(" {}", code.as_str()))
            .unwrap_or_default();
        let detail = gate
            .detail
            .as_deref()
            .map(|detail| format!(": {detail}"))
            .unwrap_or_default();
        format!("{:<22} {verdict}{code}{detail}\n", gate.gate)
    };
    gates.gates.iter().map(line).collect()
}

/// What a stop means for the verdict. No road leads around the seal.
pub fn findings(
    bundle: &mut OpenBundle,
    outcome: Result<Vec<Finding>, Stop>,
    stage: &Stage,
) -> Vec<Finding> {
    let stop = match outcome {
        Ok(findings) => return findings,
        Err(stop) => stop,
    };
    let text = match &stop {
        Stop::Cancelled => how_far(&bundle.folded().facts, &stage.cut_short()),
        other => chain(other),
    };
    let _ = bundle.trace(
        "run.stop",
        TraceOutcome::Failed,
        Instant::now(),
        Some(text.clone()),
    );
    let code = match stop {
        Stop::Cancelled => Code::Interrupted,
        Stop::Finding(_, code) => code,
        // Recorded as its own event where it was caught; here only its recording can have failed.
        Stop::LateGate { .. } => Code::Interrupted,
        Stop::Evidence(EvidenceError::Write { .. } | EvidenceError::Open { .. }) => {
            Code::ArtifactWriteFailure
        }
        // A copy for which there is no room is no fault of what ran before it.
        Stop::Workspace(why)
            if matches!(
                why.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ) =>
        {
            Code::ArtifactWriteFailure
        }
        Stop::Evidence(_) | Stop::Git(_) | Stop::Workspace(_) | Stop::Supervise(_) => {
            Code::Interrupted
        }
    };
    vec![Finding {
        code,
        detail: Some(text),
    }]
}
