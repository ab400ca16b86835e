//! One engine, from its first process to its last event.
//!
//! - this file: started, followed, ended; `outfit.rs` the files, words and door it is started with

pub mod outfit;

use std::time::{Duration, Instant};

use cto_core::bundle;
use cto_core::containment::ENGINE_PROCESS;
use cto_core::engine::dialect::{DialectParser, ParsedLine, Source, WireSeen};
use cto_core::engine::manifest::Dialect;
use cto_core::run::attempt::{ActionsSeen, Log};
use cto_core::run::event::{EngineEnded, EngineStarted, Event, ProcessEnd};
use cto_core::run::trace::TraceOutcome;
use cto_core::values::blocker::Code;
use cto_core::values::event_type::EventType;
use cto_gateway::Gateway;

use crate::evidence::secrets::Secrets;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::run::engine::outfit::Outfit;
use crate::run::execution::{Execution, Stop};
use crate::screen::progress::Progress;
use crate::supervise::launch::{EngineStart, Launch};
use crate::supervise::{self, Capture, Running, Stream, SuperviseError};
use crate::task::request::Request;
use crate::workspace::of_run::Workspace;

/// Engine events beyond this are counted, not recorded: an engine may not fill the disk by talking.
const MAX_ENGINE_EVENTS: u64 = 2_000;
/// Terminal events kept beyond that.
const MAX_LATE_ENDINGS: u64 = 100;

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
    let start = EngineStart {
        program: &outfit.program(execution)?,
        args: outfit.args(),
        env: outfit.env(),
        door: outfit.needs_a_door(),
        env_of_door: outfit.env_of_door(),
    };
    let launch = Launch::engine(&place, start).map_err(Stop::Workspace)?;
    let secrets = bundle.secrets.clone();
    let limit = plan.limits.output_bytes;
    let mut stdout = Capture::new(
        bundle::STDOUT_LOG,
        bundle.create(bundle::STDOUT_LOG)?,
        limit,
        &secrets,
    );
    let mut stderr = Capture::new(
        bundle::STDERR_LOG,
        bundle.create(bundle::STDERR_LOG)?,
        limit,
        &secrets,
    );
    let mut running = start_proven(bundle, &launch)?;
    let gateway = outfit.open(running.take_door())?;
    bundle.emit(Event::EngineStarted(EngineStarted {
        engine: request.manifest.id.clone(),
        containment: plan.containment,
    }))?;
    if let Some(gateway) = &gateway {
        let meter = gateway.meter();
        progress.engine_wire(Box::new(move || meter.read()));
    }
    let shown = Shown::new(progress, gateway.as_ref());
    let mut listener = Listener::new(bundle, plan.invocation.dialect, shown);
    let ended = running.finish(execution.cancel, &mut |stream, bytes| match stream {
        Stream::Stdout => stdout.push(bytes, &mut |clean| listener.hear(Source::Stdout, clean)),
        Stream::Stderr => stderr.push(bytes, &mut |clean| {
            listener.shown.printed(clean);
            listener.hear(Source::Stderr, clean);
        }),
    })?;
    execution.clock.ran(ended.duration_ms);
    let stdout = stdout.finish(&mut |clean| listener.hear(Source::Stdout, clean));
    let stderr = stderr.finish(&mut |clean| listener.hear(Source::Stderr, clean));
    let heard = listener.finish()?;
    let model = gateway
        .map(|gateway| outfit::record_calls(bundle, &request.manifest.id, gateway.finish()))
        .transpose()?;
    if let Some(contained) = ended.contained.clone() {
        bundle.contained(contained.report(ENGINE_PROCESS));
    }
    for captured in [&stdout, &stderr] {
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
        model,
        actions: Some(actions),
    }))?;
    bundle.trace(
        "engine.run",
        TraceOutcome::Ok,
        since,
        Some(cto_core::bundle::report_md::describe_end(ended.end)),
    )?;
    if let ProcessEnd::TimedOut { .. } = ended.end {
        bundle.write(
            bundle::TIMEOUT_NOTE,
            b"the engine reached a time limit and was ended\n",
        )?;
    }
    Ok(ended.end)
}

/// Starts the process. A jail that cannot be proven closes the gate that had promised one.
fn start_proven(bundle: &mut OpenBundle, launch: &Launch) -> Result<Running, Stop> {
    match supervise::start(launch) {
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

/// Tells whoever watches what the engine does.
struct Shown<'p> {
    progress: &'p mut dyn Progress,
    gateway: Option<&'p Gateway>,
    /// Calls that were told.
    calls: usize,
}

impl<'p> Shown<'p> {
    fn new(progress: &'p mut dyn Progress, gateway: Option<&'p Gateway>) -> Self {
        Self {
            progress,
            gateway,
            calls: 0,
        }
    }

    fn printed(&mut self, clean: &[u8]) {
        self.progress.engine_output(clean);
    }

    /// A line that is no event. An object that the dialect does not know is nothing to read.
    fn line(&mut self, clean: &[u8]) {
        if !clean.starts_with(b"{") {
            self.progress.engine_output(clean);
            self.progress.engine_output(b"\n");
        }
    }

    /// An event, after the calls that ended before it.
    fn event(&mut self, at: Duration, event: &Event) {
        self.calls(at);
        self.progress.engine_event(at, event);
    }

    fn calls(&mut self, at: Duration) {
        for mut call in self
            .gateway
            .map(|gateway| gateway.ended_after(self.calls))
            .unwrap_or_default()
        {
            self.calls += 1;
            // Its words come from the engine, and nobody has cleaned them yet.
            call.field = None;
            self.progress
                .engine_event(at, &Event::EngineModelCall(Box::new(call)));
        }
    }
}

/// Turns engine output into events while it arrives.
struct Listener<'b> {
    bundle: &'b mut OpenBundle,
    shown: Shown<'b>,
    parser: DialectParser,
    terminal: EventType,
    /// What has come of a line that has not ended, for each stream.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    unknown: u64,
    recorded: u64,
    dropped: u64,
    error: Option<EvidenceError>,
}

struct Heard {
    unknown: u64,
    dropped: u64,
}

/// A line longer than this is no event of any dialect.
const MAX_LINE: usize = 1 << 20;

impl<'b> Listener<'b> {
    fn new(bundle: &'b mut OpenBundle, dialect: Dialect, shown: Shown<'b>) -> Self {
        let (parser, terminal) = (DialectParser::new(dialect), dialect.terminal_event());
        Self {
            bundle,
            shown,
            parser,
            terminal,
            stdout: Vec::new(),
            stderr: Vec::new(),
            unknown: 0,
            recorded: 0,
            dropped: 0,
            error: None,
        }
    }

    fn hear(&mut self, from: Source, bytes: &[u8]) {
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let piece = &bytes[at..end];
            at = end + 1;
            // A line that came whole is read where it is.
            if self.held(from).is_empty() {
                self.hear_line(from, piece);
            } else {
                self.hold(from, piece);
                self.end_line(from);
            }
        }
        self.hold(from, &bytes[at..]);
    }

    fn held(&mut self, from: Source) -> &mut Vec<u8> {
        match from {
            Source::Stdout => &mut self.stdout,
            Source::Stderr | Source::Log => &mut self.stderr,
        }
    }

    fn hold(&mut self, from: Source, piece: &[u8]) {
        let line = self.held(from);
        if line.len() < MAX_LINE {
            line.extend_from_slice(piece);
        }
    }

    fn end_line(&mut self, from: Source) {
        let mut line = std::mem::take(self.held(from));
        self.hear_line(from, &line);
        line.clear();
        *self.held(from) = line;
    }

    fn hear_line(&mut self, from: Source, line: &[u8]) {
        match self.parser.hear(from, line.trim_ascii_end()) {
            ParsedLine::Nothing => {}
            ParsedLine::Unknown => {
                self.unknown += 1;
                self.shown.line(line);
            }
            ParsedLine::Events(events) => events.into_iter().for_each(|event| self.take(event)),
        }
    }

    fn take(&mut self, event: Event) {
        self.shown.event(self.bundle.elapsed(), &event);
        // The terminal event is kept however much was said before it; a flood of them is a flood.
        let room = if event.kind() == self.terminal {
            MAX_ENGINE_EVENTS + MAX_LATE_ENDINGS
        } else {
            MAX_ENGINE_EVENTS
        };
        if self.recorded < room {
            self.record(event);
        } else {
            self.dropped += 1;
        }
    }

    fn record(&mut self, event: Event) {
        self.recorded += 1;
        if self.error.is_none() {
            self.error = self.bundle.emit(event).err();
        }
    }

    fn finish(mut self) -> Result<Heard, EvidenceError> {
        for from in [Source::Stdout, Source::Stderr] {
            if !self.held(from).is_empty() {
                self.end_line(from);
            }
        }
        let last = self.parser.ended(&WireSeen::default());
        last.into_iter().for_each(|event| self.take(event));
        self.shown.calls(self.bundle.elapsed());
        match self.error {
            Some(error) => Err(error),
            None => Ok(Heard {
                unknown: self.unknown,
                dropped: self.dropped,
            }),
        }
    }
}
