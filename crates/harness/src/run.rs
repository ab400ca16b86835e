//! The spine: contract → plan → run → measure → verify → judge → seal, front to back, once.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::blocker::Code;
use cto_core::case_file::{self, ControlSource};
use cto_core::contract::{self, Circumstances, ContractDocument, InvalidContract, Lane, LimitChanges, Stage};
use cto_core::digest::Digest;
use cto_core::engine::manifest::Manifest;
use cto_core::event::{
    ContractCreated, Event, EventType, Finding, GateBlocked, Kind, Origin, PlanUpdated, ProcessEnd, RunStarted,
};
use cto_core::gate::{self, GateInput, GateReport, GateVerdict, HostFacts, InputUse};
use cto_core::ids::RunId;
use cto_core::plan::{self, Next, Plan};
use cto_core::report::{EngineFacts, RunIdentity};
use cto_core::seen::Seen;
use cto_core::trace::TraceOutcome;
use cto_core::tree;

use crate::cancel::Cancel;
use crate::cases::Case;
use crate::engine_run::run_engine;
use crate::evidence::{EvidenceError, OpenBundle, Opening, SealedBundle, reserve_run_dir};
use crate::failure::Failure;
use crate::host::{self, Env, Home, OwnProgram};
use crate::jail::probe;
use crate::keys::KeyStore;
use crate::measure;
use crate::progress::Progress;
use crate::secrets::Secrets;
use crate::sign::{SignError, Signer};
use crate::supervise::SuperviseError;
use crate::toolchains::{self, Resolved};
use crate::verification;
use crate::workspace;

/// What the operator asked for.
pub struct Request {
    pub case: Case,
    pub manifest: Manifest,
    pub stage: Stage,
    pub engine_opened: bool,
    /// The script a scripted engine plays.
    pub script: Option<Vec<u8>>,
    /// The script ships with the case.
    pub own_script: bool,
    pub limits: LimitChanges,
    pub origin: Origin,
}

/// A planned run under way: what every step of it needs.
pub struct Execution<'a> {
    pub env: &'a Env,
    pub cancel: &'a Cancel,
    pub case: &'a Case,
    pub plan: &'a Plan,
    pub work: PathBuf,
    pub git: PathBuf,
}

/// Why an execution ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    #[error("{0}")]
    Finding(String, Code),
    /// A gate found closed when it was tried, before anything of the contract ran.
    #[error("{detail}")]
    LateGate { gate: &'static str, code: Code, detail: String },
    #[error(transparent)]
    Git(#[from] crate::git::GitError),
    #[error("the workspace could not be prepared or read")]
    Workspace(#[source] io::Error),
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
}

/// Resolves a contract, or says everything that is wrong with it.
pub fn contract_of(request: &Request, own: &OwnProgram) -> ContractDocument {
    let invalid = |errors| ContractDocument::Invalid(InvalidContract { invalid: true, errors });
    let case = match case_file::parse(&request.case.label, &request.case.text) {
        Ok(case) => case,
        Err(errors) => return invalid(errors),
    };
    let control_patch = match &case.verification_control {
        Some(ControlSource::Patch(file)) => match request.case.beside.get(file) {
            Some(bytes) => Some(Digest::of(bytes)),
            None => {
                let message = format!("verification_control: there is no file {file:?} beside the case file");
                return invalid(vec![case_file::ContractIssue { file: request.case.label.clone(), line: 1, column: 1, message }]);
            }
        },
        _ => None,
    };
    let runs_itself = request.manifest.invocation.is_some();
    let circumstances = Circumstances {
        lane: Lane {
            engine: request.manifest.id.clone(),
            executable_sha256: if runs_itself { Seen::Known(own.sha256) } else { Seen::NotSeen },
            model: None,
            stage: request.stage,
            target_head: Seen::Known("none".into()),
            script_sha256: request.script.as_deref().map(Digest::of),
            terminal_event: request.manifest.invocation.as_ref().map_or(EventType::EngineResult, |i| i.dialect.terminal_event()),
        },
        start_tree: Seen::Known(tree::digest(&request.case.baseline())),
        hidden_files: request.case.hidden_digests(),
        control_patch,
        limits: request.limits,
    };
    ContractDocument::Valid(Box::new(contract::resolve(case, circumstances)))
}

/// One governed run, from request to sealed bundle.
pub fn run(
    home: &Home,
    env: &Env,
    request: &Request,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<SealedBundle, Failure> {
    let own = OwnProgram::find(home)?;
    let contract = contract_of(request, &own);
    let sealed_contract =
        contract.seal().map_err(|e| Failure::internal("contract_unwritable", "the contract cannot be written").because(&e))?;
    let (plan, gates) = make_plan(&contract, request, env, home);
    home.create()?;
    let keys = KeyStore::of(home);
    Signer::ready(&keys).map_err(|error| cannot_sign(&error))?;
    let started_at = host::now();
    let (run_id, dir) = reserve_run_dir(home, |suffix| RunId::new(started_at, &request.case.id, suffix).ok())?;
    progress.started(&run_id);
    let identity = RunIdentity {
        run_id: run_id.clone(),
        case_id: request.case.id.clone(),
        engine: EngineFacts {
            name: request.manifest.id.clone(),
            version: request.manifest.invocation.as_ref().map(|_| env!("CARGO_PKG_VERSION").to_owned()),
            executable_sha256: contract.valid().map_or(Seen::NotSeen, |c| c.lane.executable_sha256),
        },
        stage: request.stage,
        origin: request.origin,
        gated: request.manifest.is_gated(),
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
    };
    let opening = Opening { identity, contract, sealed_contract, secrets: Secrets::from_env(env), keys };
    let mut bundle = OpenBundle::open(home, dir, opening).map_err(|error| unsealed(&run_id, &error))?;
    let work = home.work().join(run_id.as_str());
    let outcome = record_and_execute(&mut bundle, request, plan, &gates, env, cancel, &work, progress);
    let findings = findings_of(&mut bundle, outcome);
    if let Err(error) = workspace::remove(&work) {
        // The bundle matters more than the litter, and says where it is.
        let _ = bundle.trace("workspace.remove", TraceOutcome::Failed, Instant::now(), Some(error.to_string()));
    }
    progress.step("seal", "evidence");
    let sealed = bundle.close(findings).map_err(|error| unsealed(&run_id, &error))?;
    progress.done();
    Ok(sealed)
}

fn cannot_sign(error: &SignError) -> Failure {
    let failure = match error {
        SignError::Keys(keys) => keys.failure(),
        _ => Failure::internal("cannot_sign", "the evidence could not be signed").because(error),
    };
    failure.so("nothing ran")
}

fn unsealed(run_id: &RunId, error: &EvidenceError) -> Failure {
    Failure::internal("evidence_unwritable", "the evidence could not be sealed")
        .at(run_id.to_string())
        .because(error)
        .so("the run has no verdict; nothing counts as passed")
        .hint("free space under the runs root, then `cto recover`")
}

fn make_plan(contract: &ContractDocument, request: &Request, env: &Env, home: &Home) -> (Option<Plan>, GateReport) {
    let mut input = GateInput {
        contract,
        manifest: &request.manifest,
        stage: request.stage,
        engine_opened: request.engine_opened,
        own_script: request.own_script,
        host: Seen::NotSeen,
    };
    match plan::next(&input) {
        Next::Blocked(gates) => (None, gates),
        Next::Ready(plan, gates) => (Some(*plan), gates),
        Next::LookAtHost => {
            input.host = Seen::Known(look_at_host(contract, request, env, home));
            match plan::next(&input) {
                Next::Ready(plan, gates) => (Some(*plan), gates),
                Next::Blocked(gates) => (None, gates),
                // The host was just supplied; an empty gate list judges as a missing event, never as a pass.
                Next::LookAtHost => (None, GateReport { schema_version: 1, gates: Vec::new() }),
            }
        }
    }
}

fn look_at_host(contract: &ContractDocument, request: &Request, env: &Env, home: &Home) -> HostFacts {
    let mut facts = HostFacts { jail_missing: probe::missing(home), ..HostFacts::default() };
    for name in contract.valid().map(gate::programs_needed).unwrap_or_default() {
        let place = match toolchains::resolve(&name, env, home) {
            Resolved::Missing => None,
            Resolved::System(path) => Some(path.display().to_string()),
            Resolved::Toolchain(toolchain) => {
                let program = toolchain.record.program.clone();
                facts.toolchains.push(toolchain);
                Some(program)
            }
            Resolved::Unusable(why) => {
                facts.unusable.push(why);
                Some(name.clone())
            }
        };
        facts.programs.insert(name, place);
    }
    for rule in contract.valid().map(|contract| contract.inputs.as_slice()).unwrap_or_default() {
        let path = rule.as_str().trim_end_matches('/');
        match request.case.inputs.as_ref().map(|dir| dir.join(path)).filter(|source| source.exists()) {
            Some(source) => facts.inputs.push(InputUse { source: source.display().to_string(), path: path.to_owned() }),
            None => facts.unusable.push(format!("the input {path:?} is not in the case's inputs directory")),
        }
    }
    facts
}

#[expect(clippy::too_many_arguments, reason = "the one place where everything a run has gathered comes together")]
fn record_and_execute(
    bundle: &mut OpenBundle,
    request: &Request,
    plan: Option<Plan>,
    gates: &GateReport,
    env: &Env,
    cancel: &Cancel,
    work: &Path,
    progress: &mut dyn Progress,
) -> Result<Vec<Finding>, Stop> {
    let since = Instant::now();
    bundle.write_gates(gates.clone())?;
    bundle.write(&format!("backend/{}-gate.log", request.manifest.id), gate_log(gates).as_bytes())?;
    bundle.emit(Event::RunStarted(RunStarted {
        kind: Kind::Run,
        origin: request.origin,
        case_id: request.case.id.clone(),
        engine: request.manifest.id.clone(),
        stage: request.stage,
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
    }))?;
    let blocked: Vec<_> = gates.blocked().cloned().collect();
    let carried =
        |event: EventType| blocked.iter().filter_map(|gate| gate.code).filter(|c| c.info().event == event).collect::<Vec<_>>();
    bundle.emit(Event::TaskContractCreated(ContractCreated {
        valid: bundle.contract.valid().is_some(),
        task_digest: bundle.sealed_contract.task_digest,
        contract_digest: bundle.sealed_contract.contract_digest,
        blockers: carried(EventType::TaskContractCreated),
    }))?;
    for gate in gates.gates.iter().filter(|gate| gate.result != GateVerdict::NotSeen) {
        let outcome = if gate.result == GateVerdict::Blocked { TraceOutcome::Refused } else { TraceOutcome::Ok };
        bundle.trace(&format!("gate.{}", gate.gate), outcome, since, gate.detail.clone())?;
    }
    progress.step("plan", &format!("{} gates", gates.gates.len()));
    let Some(plan) = plan else {
        record_blocks(bundle, request, &blocked)?;
        return Ok(Vec::new());
    };
    bundle.emit(Event::PlanUpdated(PlanUpdated {
        summary: plan.summary(),
        containment: plan.containment,
        approval_required: plan.contract.approval_required,
        toolchains: plan.toolchains.iter().map(|toolchain| toolchain.record.clone()).collect(),
    }))?;
    let git =
        env.find_program("git").ok_or_else(|| Stop::Finding("git was not found on PATH".into(), Code::ProviderUnavailable))?;
    let execution = Execution { env, cancel, case: &request.case, plan: &plan, work: work.to_owned(), git };
    match execute(bundle, request, &execution, progress) {
        Err(Stop::LateGate { gate, code, detail }) => {
            block_late(bundle, request, gate, code, detail)?;
            Ok(Vec::new())
        }
        other => other,
    }
}

/// A gate that had let the plan through, found closed when it was tried: recorded as one that blocked.
fn block_late(bundle: &mut OpenBundle, request: &Request, gate: &str, code: Code, detail: String) -> Result<(), Stop> {
    let mut gates = bundle.gates.clone();
    for row in gates.gates.iter_mut().filter(|row| row.gate == gate) {
        row.result = GateVerdict::Blocked;
        row.code = Some(code);
        row.detail = Some(detail.clone());
    }
    bundle.write_gates(gates)?;
    let blocked: Vec<_> = bundle.gates.blocked().cloned().collect();
    record_blocks(bundle, request, &blocked)
}

/// The events of a run that no gate let through: one a blocked gate, in the event its code belongs to.
fn record_blocks(bundle: &mut OpenBundle, request: &Request, blocked: &[gate::GateResult]) -> Result<(), Stop> {
    for gate in blocked {
        let Some(code) = gate.code else { continue };
        match code.info().event {
            EventType::VerificationCompleted => {
                let reason = gate.detail.clone().unwrap_or_else(|| code.info().sentence.to_owned());
                verification::record_not_run(bundle, &reason, vec![code])?;
            }
            EventType::TaskContractCreated => {}
            _ => bundle.emit(Event::BackendGateBlocked(GateBlocked {
                backend: request.manifest.id.clone(),
                gate: gate.gate.clone(),
                reason: code,
                detail: gate.detail.clone(),
                mutation_mode: bundle.contract.valid().map(|contract| contract.mutation_mode),
                executed: false,
                case_executed: (request.manifest.id.as_str() == "case").then_some(false),
            }))?,
        }
    }
    Ok(())
}

fn gate_log(gates: &GateReport) -> String {
    let line = |gate: &gate::GateResult| {
        let verdict = match gate.result {
            GateVerdict::Pass => "pass",
            GateVerdict::Blocked => "BLOCKED",
            GateVerdict::NotApplicable => "not applicable",
            GateVerdict::NotSeen => "not looked at",
        };
        let code = gate.code.map(|code| format!(" {}", code.as_str())).unwrap_or_default();
        let detail = gate.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
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
    let workspace = measure::Workspace::prepare(execution)?;
    bundle.trace("workspace.prepare", TraceOutcome::Ok, since, None)?;
    verification::set_up(bundle, execution, workspace.dir(), "setup")?;
    workspace.check_setup(execution)?;
    stop_if_cancelled(execution)?;

    progress.step("engine", request.manifest.id.as_str());
    let end = run_engine(bundle, request, execution, &workspace, progress)?;
    if let ProcessEnd::TimedOut { .. } = end {
        bundle.write("backend/provider-timeout.txt", b"the engine reached a time limit and was ended\n")?;
    }

    progress.step("measure", "what really changed");
    let measured = workspace.measure(bundle, execution)?;
    findings.extend(measured.findings.clone());
    if end == ProcessEnd::Cancelled {
        return Err(Stop::Cancelled);
    }

    progress.step("verify", "in a pristine copy");
    verification::run(bundle, execution, &workspace, &measured)?;
    stop_if_cancelled(execution)?;

    findings.extend(workspace.unchanged_since(&measured)?);
    Ok(findings)
}

pub fn stop_if_cancelled(execution: &Execution<'_>) -> Result<(), Stop> {
    if execution.cancel.requested() { Err(Stop::Cancelled) } else { Ok(()) }
}

pub fn write_error(artifact: &str, error: &io::Error) -> EvidenceError {
    let source = io::Error::new(error.kind(), error.to_string());
    EvidenceError::Write { artifact: artifact.to_owned(), source }
}

/// What a stop means for the verdict. No road leads around the seal.
fn findings_of(bundle: &mut OpenBundle, outcome: Result<Vec<Finding>, Stop>) -> Vec<Finding> {
    let stop = match outcome {
        Ok(findings) => return findings,
        Err(stop) => stop,
    };
    let text = chain_of(&stop);
    let _ = bundle.trace("run.stop", TraceOutcome::Failed, Instant::now(), Some(text.clone()));
    let code = match stop {
        Stop::Cancelled => Code::Interrupted,
        Stop::Finding(_, code) => code,
        // Recorded as its own event where it was caught; here only its recording can have failed.
        Stop::LateGate { .. } => Code::Interrupted,
        Stop::Evidence(EvidenceError::Write { .. } | EvidenceError::Open { .. }) => Code::ArtifactWriteFailure,
        Stop::Evidence(_) | Stop::Git(_) | Stop::Workspace(_) | Stop::Supervise(_) => Code::Interrupted,
    };
    vec![Finding { code, detail: Some(text) }]
}

fn chain_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}
