//! The spine: contract → plan → run → measure → verify → judge → seal, front to back, once.

pub mod approvals;
pub mod checks;
pub mod engine;
pub mod execution;
pub mod recover;
pub mod stage_proof;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::report::{EngineFacts, RunIdentity};
use cto_core::engine::manifest::{Invocation, Program};
use cto_core::gate::{self, GateReport, GateVerdict, LaneFacts};
use cto_core::run::event::{
    ContractCreated, Event, GateBlocked, Kind, PlanUpdated, ProcessEnd, RunStarted,
};
use cto_core::run::rules::Rules;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::source::CopiedRepo;
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::event_type::EventType;
use cto_core::values::ids::RunId;
use cto_core::values::seen::Seen;
use cto_core::values::verdict::Status;
use cto_core::workspace::checkout::WorkspaceKind;

use crate::evidence::keys::KeyStore;
use crate::evidence::secrets::Secrets;
use crate::evidence::sign::{SignError, Signer};
use crate::evidence::{EvidenceError, OpenBundle, Opening, SealedBundle, reserve_run_dir};
use crate::host::failure::{Failure, chain};
use crate::host::files;
use crate::host::{self, Env, Home, OwnProgram};
use crate::plan::source;
use crate::plan::{self, Planned};
use crate::run::approvals::{Answer, Approvals};
use crate::run::engine::run_engine;
use crate::run::execution::{Execution, Stop};
use crate::run::stage_proof::Baseline;
use crate::screen::progress::Progress;
use crate::supervise::cancel::Cancel;
use crate::task::request::Request;
use crate::workspace::checkout::Checkout;
use crate::workspace::of_run::{self, Workspace};

/// One governed run, from request to sealed bundle. Approvals come from the operator's store.
pub fn run(
    home: &Home,
    env: &Env,
    request: &Request,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<SealedBundle, Failure> {
    run_asking(&Approvals::store(), home, env, request, cancel, progress)
}

/// The same with another source of approvals.
pub fn run_asking(
    approvals: &Approvals,
    home: &Home,
    env: &Env,
    request: &Request,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<SealedBundle, Failure> {
    let own = OwnProgram::find(home)?;
    home.create()?;
    let keys = KeyStore::of(home);
    Signer::ready(&keys).map_err(|error| cannot_sign(&error))?;
    let answer = approvals.answer(request.origin);
    let mut planned = plan::plan(request, answer.is_some(), env, home, &own);
    let baseline = stage_proof::baseline(&mut planned, request, env, home, cancel)?;
    let contract = planned.contract.clone();
    let sealed_contract = contract.seal().map_err(|e| {
        Failure::internal("contract_unwritable", "the contract cannot be written").because(&e)
    })?;
    let started_at = host::now();
    let (run_id, dir) = reserve_run_dir(home, |suffix| {
        RunId::new(started_at, &request.case.id, suffix).ok()
    })?;
    progress.started(&run_id);
    let identity = RunIdentity {
        run_id: run_id.clone(),
        case_id: request.case.id.clone(),
        engine: engine_facts(request, &planned),
        stage: request.stage,
        origin: request.origin,
        source_admitted: !request.manifest.is_gated()
            || planned.lane.known().is_some_and(LaneFacts::source_admitted),
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
    };
    let mut secrets = Secrets::from_env(env);
    planned
        .provider
        .iter()
        .for_each(|provider| provider.add_to(&mut secrets));
    let opening = Opening {
        identity,
        contract,
        sealed_contract,
        secrets,
        keys,
    };
    let mut bundle =
        OpenBundle::open(home, dir, opening).map_err(|error| unsealed(&run_id, &error))?;
    let work = home.work().join(run_id.as_str());
    bundle.relies_on = stage_proof::reliances(&planned, baseline.as_ref());
    let asked = Asked {
        request,
        planned: &planned,
        answer,
        home,
        baseline: baseline.as_ref(),
    };
    let outcome = record_and_execute(&mut bundle, asked, env, cancel, &work, progress);
    let mut findings = findings_of(&mut bundle, outcome);
    findings.extend(look_back(
        &mut bundle,
        request,
        &planned,
        &findings,
        env,
        home,
    ));
    if !request.keep {
        remove_workspace(&mut bundle, &work);
    }
    progress.step("seal", "evidence");
    let sealed = bundle
        .close(findings)
        .map_err(|error| unsealed(&run_id, &error))?;
    if sealed.report.status == Status::Pass {
        // Kept only where there is something to look into; what stays is litter, not evidence.
        let _ = files::remove_tree(&work);
    } else if request.keep {
        show_kept(&planned, home, &work);
    }
    progress.done();
    Ok(sealed)
}

/// The engine as the report names it. A version nobody has tried is said, not refused.
fn engine_facts(request: &Request, planned: &Planned) -> EngineFacts {
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
            .map_or(Seen::NotSeen, |contract| contract.lane.executable_sha256),
        warnings: untested.map(warning).into_iter().collect(),
        version,
    }
}

fn cannot_sign(error: &SignError) -> Failure {
    let failure = match error {
        SignError::Keys(keys) => keys.failure(),
        _ => Failure::internal("cannot_sign", "the evidence could not be signed").because(error),
    };
    failure.so("nothing ran")
}

/// An overlay shows nobody outside a jail its files: what is kept for a person is laid out.
fn show_kept(planned: &Planned, home: &Home, work: &Path) {
    let overlay = planned
        .plan
        .as_ref()
        .filter(|plan| plan.workspace == WorkspaceKind::Overlay);
    let Some(look) = overlay
        .and_then(|plan| plan.source.as_ref())
        .filter(|_| work.is_dir())
    else {
        return;
    };
    if let Some(checkout) = Checkout::find(home, &look.tree) {
        // The run is sealed; a workspace that cannot be laid out is not named as kept.
        let _ = of_run::lay_out_kept(Arc::new(checkout), work);
    }
}

fn remove_workspace(bundle: &mut OpenBundle, work: &Path) {
    if let Err(error) = files::remove_tree(work) {
        // The bundle matters more than the litter, and says where it is.
        let _ = bundle.trace(
            "workspace.remove",
            TraceOutcome::Failed,
            Instant::now(),
            Some(error.to_string()),
        );
    }
}

/// The second look at a source, on every road: it must be as it was before.
fn look_back(
    bundle: &mut OpenBundle,
    request: &Request,
    planned: &Planned,
    findings: &[Finding],
    env: &Env,
    home: &Home,
) -> Vec<Finding> {
    let (Some(asked), Some(mut copied)) = (&request.source, copied_repo(planned)) else {
        return Vec::new();
    };
    let since = Instant::now();
    let facts = &bundle.folded().facts;
    copied.copied_fixture_start_clean = facts
        .engine_events
        .contains(&EventType::EngineStarted)
        .then_some(true);
    let left_over = findings
        .iter()
        .any(|finding| finding.code == Code::DirtyEndingTree);
    copied.copied_fixture_end_clean = facts.diff.is_some().then_some(!left_over);
    let mut found: Vec<Finding> = copied
        .ended(&source::look_again(&asked.path, env, home))
        .into_iter()
        .collect();
    let outcome = if found.is_empty() {
        TraceOutcome::Ok
    } else {
        TraceOutcome::Failed
    };
    let _ = bundle.trace(
        "source.look_again",
        outcome,
        since,
        found.first().and_then(|finding| finding.detail.clone()),
    );
    if let Err(error) = bundle.write_json(bundle::SOURCE, &copied) {
        found.push(Finding {
            code: Code::ArtifactWriteFailure,
            detail: Some(chain(&error)),
        });
    }
    found
}

fn copied_repo(planned: &Planned) -> Option<CopiedRepo> {
    let source = planned.contract.valid()?.source.as_ref()?;
    Some(CopiedRepo::begun(source, &planned.source.as_ref()?.look))
}

fn unsealed(run_id: &RunId, error: &EvidenceError) -> Failure {
    Failure::internal("evidence_unwritable", "the evidence could not be sealed")
        .at(run_id.to_string())
        .because(error)
        .so("the run has no verdict; nothing counts as passed")
        .hint("free space under the runs root, then `cto recover`")
}

/// What was asked for, what planning came to, and what was said about it.
struct Asked<'a> {
    request: &'a Request,
    planned: &'a Planned,
    answer: Option<Answer>,
    home: &'a Home,
    baseline: Option<&'a Baseline>,
}

/// What was asked for and what every gate said to it.
fn record_question(
    bundle: &mut OpenBundle,
    request: &Request,
    planned: &Planned,
    blocked: &[gate::GateResult],
) -> Result<(), Stop> {
    let since = Instant::now();
    let gates = &planned.gates;
    bundle.write_gates(gates.clone())?;
    if let Some(copied) = copied_repo(planned) {
        bundle.write_json(bundle::SOURCE, &copied)?;
    }
    if let Some(probe) = &planned.probe {
        bundle.write_json(bundle::MODEL_PROBE, probe)?;
    }
    bundle.write(
        &format!("backend/{}-gate.log", request.manifest.id),
        gate_log(gates).as_bytes(),
    )?;
    bundle.emit(Event::RunStarted(RunStarted {
        kind: Kind::Run,
        origin: request.origin,
        case_id: request.case.id.clone(),
        engine: request.manifest.id.clone(),
        stage: request.stage,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        rules: Rules::NEWEST.number(),
    }))?;
    let carried = |event: EventType| {
        blocked
            .iter()
            .filter_map(|gate| gate.code)
            .filter(|c| c.info().event == event)
            .collect::<Vec<_>>()
    };
    let carries = |gate: &&gate::GateResult| {
        gate.code
            .is_some_and(|code| code.info().event == EventType::TaskContractCreated)
    };
    let carried_detail = blocked
        .iter()
        .find(carries)
        .and_then(|gate| gate.detail.clone());
    bundle.emit(Event::TaskContractCreated(ContractCreated {
        valid: bundle.contract.valid().is_some(),
        task_digest: bundle.sealed_contract.task_digest,
        contract_digest: bundle.sealed_contract.contract_digest,
        blockers: carried(EventType::TaskContractCreated),
        detail: carried_detail,
    }))?;
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

fn record_and_execute(
    bundle: &mut OpenBundle,
    Asked {
        request,
        planned,
        answer,
        home,
        baseline,
    }: Asked<'_>,
    env: &Env,
    cancel: &Cancel,
    work: &Path,
    progress: &mut dyn Progress,
) -> Result<Vec<Finding>, Stop> {
    let gates = &planned.gates;
    let blocked: Vec<_> = gates.blocked().cloned().collect();
    record_question(bundle, request, planned, &blocked)?;
    progress.step("plan", &format!("{} gates", gates.gates.len()));
    let Some(plan) = &planned.plan else {
        stage_proof::write_ordered(bundle, request, planned)?;
        return record_blocks(bundle, request, &blocked);
    };
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
    }))?;
    let git = env.find_program("git").ok_or_else(|| {
        Stop::Finding(
            "git was not found on PATH".into(),
            Code::ProviderUnavailable,
        )
    })?;
    let source = planned.source.as_ref().map(|view| &view.repo);
    let execution = Execution {
        env,
        cancel,
        case: &request.case,
        plan,
        source,
        provider: planned.provider.as_ref(),
        checkout: planned.checkout.clone(),
        home,
        work: work.to_owned(),
        git,
    };
    let executed =
        approvals::settle(bundle, &plan.contract, answer).and_then(|settled| match settled {
            approvals::Settled::Denied => Ok(Vec::new()),
            approvals::Settled::MayRun => execute(bundle, request, &execution, progress),
        });
    match executed {
        Err(Stop::LateGate { gate, code, detail }) => {
            close_gate(bundle, gate, code, detail)?;
            let blocked: Vec<_> = bundle.gates.blocked().cloned().collect();
            record_blocks(bundle, request, &blocked)
        }
        Ok(findings) => stage_proof::write_stage2(bundle, request, baseline).map(|()| findings),
        Err(other) => Err(other),
    }
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

/// The events of a run that no gate let through: one a blocked gate, in the event its code belongs
/// to. What belongs to `run.completed` is returned.
fn record_blocks(
    bundle: &mut OpenBundle,
    request: &Request,
    blocked: &[gate::GateResult],
) -> Result<Vec<Finding>, Stop> {
    let mut findings = Vec::new();
    for gate in blocked {
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
                case_executed: (request.manifest.id.as_str() == "case").then_some(false),
            }))?,
        }
    }
    Ok(findings)
}

fn gate_log(gates: &GateReport) -> String {
    let line = |gate: &gate::GateResult| {
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

fn execute(
    bundle: &mut OpenBundle,
    request: &Request,
    execution: &Execution<'_>,
    progress: &mut dyn Progress,
) -> Result<Vec<Finding>, Stop> {
    let mut findings = Vec::new();
    progress.step("workspace", "private copy");
    let since = Instant::now();
    let workspace = Workspace::prepare(&execution.made_from())?;
    bundle.trace(
        "workspace.prepare",
        TraceOutcome::Ok,
        since,
        Some(workspace.made.to_owned()),
    )?;
    checks::set_up(bundle, execution, workspace.copy(), "setup")?;
    workspace.check_setup(execution.plan)?;
    execution.stop_if_cancelled()?;

    progress.step("engine", request.manifest.id.as_str());
    let end = run_engine(bundle, request, execution, &workspace, progress)?;
    if let ProcessEnd::TimedOut { .. } = end {
        bundle.write(
            bundle::TIMEOUT_NOTE,
            b"the engine reached a time limit and was ended\n",
        )?;
    }

    progress.step("measure", "what really changed");
    let measured = workspace.measure(bundle, execution.plan)?;
    findings.extend(measured.findings.clone());
    if end == ProcessEnd::Cancelled {
        return Err(Stop::Cancelled);
    }

    progress.step("verify", "in a pristine copy");
    checks::run(bundle, execution, &workspace, &measured)?;
    execution.stop_if_cancelled()?;

    findings.extend(workspace.unchanged_since(&measured)?);
    Ok(findings)
}

/// What a stop means for the verdict. No road leads around the seal.
fn findings_of(bundle: &mut OpenBundle, outcome: Result<Vec<Finding>, Stop>) -> Vec<Finding> {
    let stop = match outcome {
        Ok(findings) => return findings,
        Err(stop) => stop,
    };
    let text = chain(&stop);
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
        Stop::Evidence(_) | Stop::Git(_) | Stop::Workspace(_) | Stop::Supervise(_) => {
            Code::Interrupted
        }
    };
    vec![Finding {
        code,
        detail: Some(text),
    }]
}
