//! One engine, from its first process to its last event.
//!
//! - this file: started, followed, ended; `outfit.rs` the files, words and door it is started with; `listener.rs` what
//!   it says, and what it is answered; `event_log.rs` a log it writes in its workspace, `own_folder.rs` what it is
//!   given there, `programs.rs` what runs it by name; `lingering.rs` may it be ended that stays?

mod event_log;
mod lingering;
mod listener;
pub mod outfit;
mod own_folder;
mod programs;

use std::time::Instant;

use cto_core::bundle;
use cto_core::containment::ENGINE_PROCESS;
use cto_core::containment::mounts::needed::Unlike;
use cto_core::engine::dialect::{Brief, DialectParser, Scope, Source};
use cto_core::gate::EngineUse;
use cto_core::run::attempt::{ActionsSeen, Log};
use cto_core::run::event::{Dismissal, EngineEnded, EngineStarted, Event, ProcessEnd};
use cto_core::run::trace::TraceOutcome;
use cto_core::values::blocker::Code;
use cto_core::workspace::head::HeadSeen;

use crate::evidence::secrets::Secrets;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::run::engine::lingering::Lingering;
use crate::run::engine::listener::{Attending, EventLogHeard, Life, Listener, Shown};
use crate::run::engine::outfit::Outfit;
use crate::run::execution::{Execution, Stop};
use crate::screen::progress::Progress;
use crate::supervise::launch::{Launch, RunPlace};
use crate::supervise::{self, Capture, Desk, Running, SuperviseError};
use crate::task::request::Request;
use crate::workspace::of_run::Workspace;

/// Starts the engine, listens to it, and records how it ended.
pub fn run(
    bundle: &mut OpenBundle,
    request: &Request,
    execution: &Execution<'_>,
    workspace: &Workspace,
    progress: &mut dyn Progress,
) -> Result<ProcessEnd, Stop> {
    let since = Instant::now();
    let plan = execution.plan;
    let place = execution.place(workspace.copy(), workspace.laid(), &bundle.scratch_dir())?;
    let outfit = Outfit::new(request, execution, bundle.scratch_dir(), place.scratch())?;
    outfit.lay_out(workspace, plan.containment)?;
    let launch = shaped(execution, &place, &outfit)?;
    let secrets = bundle.secrets.clone();
    let limit = plan.limits.output_bytes;
    let mut stdout = capture(bundle, bundle::STDOUT_LOG, limit, &secrets)?;
    let mut stderr = capture(bundle, bundle::STDERR_LOG, limit, &secrets)?;
    let mut log = EventLogHeard::new(bundle, &outfit, workspace, limit, &secrets)?;
    // Not the baseline's commit: where paths are masked, the engine is shown another.
    let before = workspace.head();
    let lingering = Lingering::watch(workspace, plan, &before);
    let mut running = start_proven(bundle, &launch, plan.engine.as_ref())?;
    let gateway = outfit.open(running.take_door())?;
    bundle.emit(Event::EngineStarted(EngineStarted {
        engine: request.manifest.id.clone(),
        containment: plan.containment,
    }))?;
    if let Some(gateway) = &gateway {
        let meter = gateway.meter();
        progress.engine_wire(Box::new(move || meter.read()));
    }
    let wire = gateway.as_ref().map(cto_gateway::Gateway::meter);
    let shown = Shown::new(progress, gateway.as_ref());
    let dialect = plan.invocation.dialect;
    let talked = dialect.is_talked_to();
    let parser = DialectParser::briefed(dialect, &brief(execution, &outfit, &launch));
    let with = (parser, dialect.terminal_event());
    let mut listener = Listener::new(bundle, with, talked.then_some(&secrets), shown);
    let mut attending = Attending {
        listener: &mut listener,
        stdout: &mut stdout,
        stderr: &mut stderr,
        log: log.as_mut(),
        life: Life::of(&plan.invocation.supervision, wire),
        lingering,
    };
    let ended = running.finish_attended(execution.cancel, &mut attending)?;
    execution.clock.ran(ended.duration_ms);
    // Nobody is there any more to be answered.
    let mut desk = Desk::new(None).map_err(Stop::Workspace)?;
    let stdout = stdout.finish(&mut |clean| match talked {
        true => {}
        false => listener.hear(Source::Stdout, clean, &mut desk),
    });
    let stderr = stderr.finish(&mut |clean| listener.hear(Source::Stderr, clean, &mut desk));
    let log = log.map(|log| log.finish(&mut listener, &mut desk));
    let heard = listener.finish(&mut desk)?;
    let admitted = execution
        .provider
        .map_or("", |own| own.route.model.as_str());
    let lane = (&request.manifest.id, admitted);
    let model = gateway
        .map(|gateway| outfit::record_calls(bundle, lane, gateway.finish()))
        .transpose()?;
    if let Some(contained) = ended.contained.clone() {
        bundle.contained(contained.report(ENGINE_PROCESS));
    }
    for captured in [&stdout, &stderr].into_iter().chain(&log) {
        bundle.note_leak(&captured.record.file, captured.hits);
        if let Some(error) = &captured.error {
            return Err(EvidenceError::cannot_write(&captured.record.file, error).into());
        }
    }
    let actions = actions_seen(bundle, &secrets, ended.attempts);
    bundle.emit(Event::EngineEnded(EngineEnded {
        end: ended.end,
        duration_ms: ended.duration_ms,
        stdout: stdout.record,
        stderr: stderr.record,
        unknown_lines: heard.unknown,
        events_not_recorded: heard.dropped,
        event_log: log.map(|log| Box::new(log.record)),
        head: Some(Box::new(HeadSeen {
            before,
            after: workspace.head(),
        })),
        model,
        actions: Some(actions),
    }))?;
    bundle.trace(
        "engine.run",
        TraceOutcome::Ok,
        since,
        Some(cto_core::bundle::report_md::describe_end(ended.end)),
    )?;
    note_end(bundle, ended.end)?;
    Ok(ended.end)
}

/// The marker file of an end that was ours.
fn note_end(bundle: &mut OpenBundle, end: ProcessEnd) -> Result<(), EvidenceError> {
    let timed_out = b"the engine reached a time limit and was ended\n";
    let lingered = b"the engine's work was committed and in scope, and it stayed: the harness ended it, then measured and verified as ever\n";
    match end {
        ProcessEnd::TimedOut { .. } => bundle.write(bundle::TIMEOUT_NOTE, timed_out),
        ProcessEnd::Dismissed {
            because: Dismissal::Lingered,
        } => bundle.write(bundle::LIFECYCLE_NOTE, lingered),
        _ => Ok(()),
    }
}

fn capture<'s>(
    bundle: &OpenBundle,
    name: &str,
    limit: u32,
    secrets: &'s Secrets,
) -> Result<Capture<'s>, EvidenceError> {
    Ok(Capture::new(name, bundle.create(name)?, limit, secrets))
}

/// What an engine is told that is talked to; its workspace is where it stands.
fn brief(execution: &Execution<'_>, outfit: &Outfit<'_>, launch: &Launch) -> Brief {
    let contract = &execution.plan.contract;
    let conversation = &execution.plan.invocation.conversation;
    Brief {
        prompt: outfit.prompt().to_owned(),
        mode: conversation.mode.clone(),
        own_methods: conversation.own_methods.clone(),
        scope: Scope {
            root: launch.cwd.display().to_string(),
            allowed: contract.allowed_paths.clone(),
            forbidden: contract.forbidden_paths.clone(),
        },
    }
}

/// What it is started with, where its jail will have it as it was verified.
fn shaped(
    execution: &Execution<'_>,
    place: &RunPlace<'_>,
    outfit: &Outfit<'_>,
) -> Result<Launch, Stop> {
    let program = outfit.program(execution)?;
    let programs = programs::lay_out(execution).map_err(Stop::Workspace)?;
    let start = outfit.start(&program, programs.as_deref());
    let launch = Launch::engine(place, start).map_err(Stop::Workspace)?;
    let admitted = execution.plan.engine.as_ref();
    match admitted.and_then(|engine| launch.unlike_verified(engine)) {
        Some(why) => Err(not_as_verified(&why)),
        None => Ok(launch),
    }
}

/// What would run is not what the gates saw: the gate of the program is closed after all.
fn not_as_verified(why: &Unlike) -> Stop {
    Stop::LateGate {
        gate: "executable-admission",
        code: Code::ExecutableNotAdmitted,
        detail: why.to_string(),
    }
}

/// Starts the process. A jail that cannot be proven closes the gate that had promised one; where it would
/// not mount another program than the one that was verified, that is why.
fn start_proven(
    bundle: &mut OpenBundle,
    launch: &Launch,
    admitted: Option<&EngineUse>,
) -> Result<Running, Stop> {
    let started = supervise::start(launch);
    if let (Err(SuperviseError::Jail(_)), Some(engine)) = (&started, admitted)
        && let Some(why) = launch.exchanged(engine)
    {
        return Err(not_as_verified(&why));
    }
    match started {
        Ok(running) => Ok(running),
        Err(error @ (SuperviseError::Jail(_) | SuperviseError::NotContained { .. })) => {
            Err(Stop::LateGate {
                gate: "containment",
                code: Code::ContainmentUnavailable,
                detail: error.to_string(),
            })
        }
        Err(error) => {
            bundle.write(
                bundle::UNAVAILABLE_NOTE,
                b"the engine's program could not be started\n",
            )?;
            Err(Stop::Finding(error.to_string(), Code::ProviderUnavailable))
        }
    }
}

fn actions_seen(
    bundle: &mut OpenBundle,
    secrets: &Secrets,
    attempts: Result<Log, String>,
) -> ActionsSeen {
    let log = match attempts {
        Ok(log) => log,
        Err(reason) => return ActionsSeen::unseen(reason),
    };
    log.close(&mut |word| {
        let (clean, hits) = secrets.redact(word);
        bundle.note_leak("the words of a command", hits);
        clean
    })
}
