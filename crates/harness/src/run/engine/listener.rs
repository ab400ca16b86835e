//! Turns engine output into events while it arrives, answers an engine that is talked to, and tells whoever watches.

use std::time::Duration;

use cto_core::bundle::BACKEND_DIR;
use cto_core::engine::dialect::{DialectParser, LONGEST_LINE, ParsedLine, Reply, Source, WireSeen};
use cto_core::engine::manifest::{SignOfLife, Supervision};
use cto_core::gate::how_it_ended;
use cto_core::run::event::{Dismissal, EngineText, Event};
use cto_core::values::event_type::EventType;
use cto_core::wire::calls;
use cto_gateway::{Gateway, Meter};

use crate::evidence::secrets::Secrets;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::run::engine::event_log::Follower;
use crate::run::engine::lingering::Lingering;
use crate::run::engine::outfit::Outfit;
use crate::screen::progress::Progress;
use crate::supervise::{Attendant, Capture, Captured, Desk, Stream};
use crate::workspace::of_run::Workspace;

/// Engine events beyond this are counted, not recorded: an engine may not fill the disk by talking. The last of each kind
/// is recorded all the same, once it has ended: nothing that counts is lost because of what was said before it.
const MAX_ENGINE_EVENTS: u64 = 2_000;

/// Tells whoever watches what the engine does.
pub struct Shown<'p> {
    progress: &'p mut dyn Progress,
    gateway: Option<&'p Gateway>,
    /// Calls that were told.
    calls: usize,
}

impl<'p> Shown<'p> {
    pub fn new(progress: &'p mut dyn Progress, gateway: Option<&'p Gateway>) -> Self {
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

pub struct Listener<'b> {
    bundle: &'b mut OpenBundle,
    shown: Shown<'b>,
    parser: DialectParser,
    terminal: EventType,
    /// For an engine that is talked to. Its lines are read as they come, so that none waits for the redactor to be
    /// sure of what follows it, and cleaned one by one.
    secrets: Option<&'b Secrets>,
    /// What has come of a line that has not ended, for each stream.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    log: Vec<u8>,
    unknown: u64,
    recorded: u64,
    dropped: u64,
    /// The last event of each kind that there was no room for, in the order they came.
    late: Vec<Event>,
    /// Its last word has come.
    has_ended: bool,
    error: Option<EvidenceError>,
}

pub struct Heard {
    pub unknown: u64,
    pub dropped: u64,
}

impl<'b> Listener<'b> {
    pub fn new(
        bundle: &'b mut OpenBundle,
        (parser, terminal): (DialectParser, EventType),
        secrets: Option<&'b Secrets>,
        shown: Shown<'b>,
    ) -> Self {
        Self {
            bundle,
            shown,
            parser,
            terminal,
            secrets,
            stdout: Vec::new(),
            stderr: Vec::new(),
            log: Vec::new(),
            unknown: 0,
            recorded: 0,
            dropped: 0,
            late: Vec::new(),
            has_ended: false,
            error: None,
        }
    }

    pub fn hear(&mut self, from: Source, bytes: &[u8], desk: &mut Desk) {
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let piece = &bytes[at..end];
            at = end + 1;
            // A line that came whole is read where it is.
            if self.held(from).is_empty() {
                self.hear_line(from, piece, desk);
            } else {
                self.hold(from, piece);
                self.end_line(from, desk);
            }
        }
        self.hold(from, &bytes[at..]);
    }

    fn held(&mut self, from: Source) -> &mut Vec<u8> {
        match from {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
            Source::Log => &mut self.log,
        }
    }

    fn hold(&mut self, from: Source, piece: &[u8]) {
        // Beyond it as far as a value may go on that began before it: what is cut is cut clean.
        let beyond = self.secrets.map_or(0, Secrets::longest);
        let line = self.held(from);
        let room = (LONGEST_LINE + beyond).saturating_sub(line.len());
        line.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn end_line(&mut self, from: Source, desk: &mut Desk) {
        let mut line = std::mem::take(self.held(from));
        self.hear_line(from, &line, desk);
        line.clear();
        *self.held(from) = line;
    }

    fn hear_line(&mut self, from: Source, line: &[u8], desk: &mut Desk) {
        match (self.secrets, from) {
            (Some(secrets), Source::Stdout) => {
                let clean = secrets.redact_beginning(line, LONGEST_LINE);
                let line = &line[..line.len().min(LONGEST_LINE)];
                let (parsed, reply) = self.parser.converse(line, &clean);
                // Before anything is written down: somebody waits.
                tell(desk, reply);
                self.parsed(parsed, &clean);
            }
            _ => {
                let parsed = self.parser.hear(from, line.trim_ascii_end());
                self.parsed(parsed, line);
            }
        }
    }

    fn parsed(&mut self, parsed: ParsedLine, clean: &[u8]) {
        match parsed {
            ParsedLine::Nothing => {}
            ParsedLine::Unknown => {
                self.unknown += 1;
                self.shown.line(clean);
            }
            ParsedLine::Events(events) => events.into_iter().for_each(|event| self.take(event)),
        }
    }

    fn take(&mut self, event: Event) {
        self.shown.event(self.bundle.elapsed(), &event);
        self.has_ended |= event.kind() == self.terminal;
        if self.recorded < MAX_ENGINE_EVENTS {
            return self.record(event);
        }
        let before = self.late.len();
        self.late.retain(|held| held.kind() != event.kind());
        self.dropped += (before - self.late.len()) as u64;
        self.late.push(event);
    }

    /// Has it itself said how its work ended?
    fn has_ended(&self) -> bool {
        self.has_ended || self.parser.has_ended()
    }

    fn record(&mut self, event: Event) {
        self.recorded += 1;
        if self.error.is_none() {
            self.error = self.bundle.emit(event).err();
        }
    }

    fn warn(&mut self, text: &str) {
        let text = text.to_owned();
        self.take(Event::EngineWarning(EngineText { text }));
    }

    /// The last word of the engine, which may rest on what the wire saw.
    pub fn finish(mut self, desk: &mut Desk) -> Result<Heard, EvidenceError> {
        for from in [Source::Stdout, Source::Stderr, Source::Log] {
            if !self.held(from).is_empty() {
                self.end_line(from, desk);
            }
        }
        let calls = self.shown.gateway.map(Gateway::calls).unwrap_or_default();
        let unanswered = calls::unanswered(&calls).map(|call| {
            format!(
                "call {} was never answered: {}",
                call.seq,
                how_it_ended(call)
            )
        });
        let last = self.parser.ended(&WireSeen {
            unanswered,
            silent: calls.is_empty(),
        });
        last.into_iter().for_each(|event| self.take(event));
        for event in std::mem::take(&mut self.late) {
            self.record(event);
        }
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

fn tell(desk: &mut Desk, reply: Reply) {
    desk.say(&reply.said);
    if let Some(because) = reply.dismissed {
        desk.dismiss(because);
    }
}

/// A log in the workspace: what is new of it goes to its artifact, cleaned, and to the listener.
pub struct EventLogHeard<'b> {
    follower: Follower,
    capture: Capture<'b>,
}

impl<'b> EventLogHeard<'b> {
    pub fn new(
        bundle: &OpenBundle,
        outfit: &Outfit<'_>,
        workspace: &Workspace,
        limit: u32,
        secrets: &'b Secrets,
    ) -> Result<Option<Self>, EvidenceError> {
        /// Head and tail of a longer one are kept.
        const MOST: u32 = 8 << 20;
        let Some((follower, artifact)) = outfit.event_log(workspace) else {
            return Ok(None);
        };
        let name = format!("{BACKEND_DIR}/{artifact}");
        let file = bundle.create(&name)?;
        let capture = Capture::new(&name, file, limit.min(MOST), secrets);
        Ok(Some(Self { follower, capture }))
    }

    /// Says whether anything was added.
    fn look(&mut self, listener: &mut Listener<'_>, desk: &mut Desk, to_its_end: bool) -> bool {
        let capture = &mut self.capture;
        let mut hear = |bytes: &[u8]| {
            capture.push(bytes, &mut |clean| listener.hear(Source::Log, clean, desk));
        };
        let moved = match to_its_end {
            true => self.follower.finish(&mut hear),
            false => self.follower.look(&mut hear),
        };
        for odd in self.follower.oddities() {
            listener.warn(odd.sentence());
        }
        moved
    }

    /// Nothing writes there any more.
    pub fn finish(mut self, listener: &mut Listener<'_>, desk: &mut Desk) -> Captured {
        self.look(listener, desk, true);
        self.capture
            .finish(&mut |clean| listener.hear(Source::Log, clean, desk))
    }
}

/// What shows that an engine does something, beside what it prints.
pub struct Life {
    output: bool,
    log: bool,
    wire: Option<(Meter, u64)>,
}

impl Life {
    pub fn of(wanted: &Supervision, wire: Option<Meter>) -> Self {
        Self {
            output: wanted.heeds(SignOfLife::Output),
            log: wanted.heeds(SignOfLife::EventLog),
            wire: wire
                .filter(|_| wanted.heeds(SignOfLife::Wire))
                .map(|meter| (meter, 0)),
        }
    }

    fn wire_moved(&mut self) -> bool {
        let Some((meter, before)) = &mut self.wire else {
            return false;
        };
        let now = meter.pulse();
        std::mem::replace(before, now) != now
    }
}

/// How often an engine that may stay is looked at.
const PACE: Duration = Duration::from_millis(25);

/// Listens to the one engine of a run: what it writes goes to its logs, cleaned, and to the listener.
pub struct Attending<'a, 'b> {
    pub listener: &'a mut Listener<'b>,
    pub stdout: &'a mut Capture<'b>,
    pub stderr: &'a mut Capture<'b>,
    pub log: Option<&'a mut EventLogHeard<'b>>,
    pub life: Life,
    pub lingering: Option<Lingering<'a>>,
}

impl Attendant for Attending<'_, '_> {
    fn begin(&mut self, desk: &mut Desk) {
        let first = self.listener.parser.begin();
        tell(desk, first);
    }

    fn look(&mut self, desk: &mut Desk) {
        let log = self.log.as_mut();
        let logged = log.is_some_and(|log| log.look(self.listener, desk, false));
        let wired = self.life.wire_moved();
        if (logged && self.life.log) || wired {
            desk.shows_life();
        }
        let Some(lingering) = self
            .lingering
            .as_mut()
            .filter(|_| desk.dismissed().is_none())
        else {
            return;
        };
        let is_silent = desk.is_silent() && !logged && !wired;
        if lingering.is_over(self.listener.has_ended(), is_silent) {
            desk.dismiss(Dismissal::Lingered);
        }
    }

    fn pace(&self) -> Duration {
        match self.lingering {
            Some(_) => PACE,
            None => Duration::MAX,
        }
    }

    fn heeds_output(&self) -> bool {
        self.life.output
    }

    fn hear(&mut self, stream: Stream, bytes: &[u8], desk: &mut Desk) {
        let listener = &mut *self.listener;
        match stream {
            Stream::Stdout if listener.secrets.is_some() => {
                listener.hear(Source::Stdout, bytes, desk);
                self.stdout.push(bytes, &mut |_| {});
            }
            Stream::Stdout => self.stdout.push(bytes, &mut |clean| {
                listener.hear(Source::Stdout, clean, desk);
            }),
            Stream::Stderr => self.stderr.push(bytes, &mut |clean| {
                listener.shown.printed(clean);
                listener.hear(Source::Stderr, clean, desk);
            }),
        }
    }
}
