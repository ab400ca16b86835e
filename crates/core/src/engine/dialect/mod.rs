//! Dialects: how each engine prints what it does. Lines go in, `engine.*` events come out.
//!
//! - this file: the parser every dialect hides behind
//! - `fake.rs` the scripted engine; `pi.rs` Pi; `codex.rs` Codex; `opencode.rs` OpenCode; `case/` Case;
//!   `plain.rs` any command; `acp/` a conversation; `recorded/` real output the tests replay
//!
//! The events are for display only. Unknown lines are counted, and the raw log keeps them.

mod acp;
mod case;
mod codex;
mod fake;
mod opencode;
mod pi;
mod plain;

pub use self::acp::Scope;
use crate::engine::manifest::Dialect;
use crate::run::event::{Dismissal, Event};

/// The largest number a hashed document may hold.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// A longer line is cut there: it is no event of any dialect.
pub const LONGEST_LINE: usize = 1 << 20;

/// What an engine is told that is talked to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Brief {
    pub prompt: String,
    /// The mode that its manifest wants set.
    pub mode: Option<String>,
    /// How methods of its own begin.
    pub own_methods: Vec<String>,
    /// What its questions are answered from.
    pub scope: Scope,
}

/// What is to be said to an engine, and whether it may go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reply {
    pub said: Vec<u8>,
    pub dismissed: Option<Dismissal>,
}

/// The stream a line came on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Stdout,
    Stderr,
    /// A log the engine writes in its workspace.
    Log,
}

/// What was seen on the wire of an engine that has ended; observed, not claimed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WireSeen {
    /// A request that failed and was never answered, in words.
    pub unanswered: Option<String>,
    /// Nothing came to the engine's door at all.
    pub silent: bool,
}

/// What one line of engine output means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParsedLine {
    Events(Vec<Event>),
    /// Blank, or understood and not worth an event.
    Nothing,
    Unknown,
}

impl ParsedLine {
    fn one(event: Event) -> Self {
        Self::Events(vec![event])
    }
}

/// Parses the output of one engine. It keeps state: what a line means can depend on the lines
/// before it.
#[derive(Debug)]
pub enum DialectParser {
    Fake,
    Pi(Box<pi::Pi>),
    Codex(Box<codex::Codex>),
    Opencode(Box<opencode::Opencode>),
    Case(Box<case::Case>),
    Plain(Box<plain::Plain>),
    Acp(Box<acp::Acp>),
}

impl DialectParser {
    pub fn new(dialect: Dialect) -> Self {
        Self::briefed(dialect, &Brief::default())
    }

    /// With what an engine is told that is talked to.
    pub fn briefed(dialect: Dialect, brief: &Brief) -> Self {
        match dialect {
            Dialect::Fake => Self::Fake,
            Dialect::Pi => Self::Pi(Box::default()),
            Dialect::Codex => Self::Codex(Box::default()),
            Dialect::Opencode => Self::Opencode(Box::default()),
            Dialect::Case => Self::Case(Box::default()),
            Dialect::Plain => Self::Plain(Box::default()),
            Dialect::Acp => Self::Acp(Box::new(acp::Acp::new(brief))),
        }
    }

    /// Before it says anything: the first word, where it is ours.
    pub fn begin(&mut self) -> Reply {
        match self {
            Self::Acp(acp) => {
                acp.begin();
                acp.take_reply()
            }
            _ => Reply::default(),
        }
    }

    /// One line of an engine that is talked to, as it came and without what no event may hold.
    pub fn converse(&mut self, raw: &[u8], clean: &[u8]) -> (ParsedLine, Reply) {
        match self {
            Self::Acp(acp) if raw.iter().all(u8::is_ascii_whitespace) => {
                (ParsedLine::Nothing, acp.take_reply())
            }
            Self::Acp(acp) => {
                let parsed = acp.line(raw, clean);
                (parsed, acp.take_reply())
            }
            other => (other.hear(Source::Stdout, clean), Reply::default()),
        }
    }

    /// One line, whole or cut off at the end. Events are on standard output; what comes on the other
    /// stream is for the log, but for a command of which nothing is known.
    pub fn hear(&mut self, from: Source, line: &[u8]) -> ParsedLine {
        match (self, from) {
            (Self::Case(case), Source::Log) => case.log_line(line),
            (_, Source::Log) => ParsedLine::Nothing,
            (Self::Plain(plain), from) => plain.line(from, line),
            (Self::Case(case), Source::Stderr) => case.stderr_line(line),
            (Self::Case(_), Source::Stdout) => ParsedLine::Nothing,
            (_, Source::Stderr) => ParsedLine::Nothing,
            (other, Source::Stdout) => other.parse_line(line),
        }
    }

    /// Has the engine itself said how its work ended, in a dialect that says so before its process ends?
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Case(case) => case.has_ended(),
            _ => false,
        }
    }

    /// All streams have ended: the last word of a dialect that has no closing line.
    pub fn ended(&mut self, wire: &WireSeen) -> Vec<Event> {
        match self {
            Self::Case(case) => case.ended(wire),
            Self::Fake | Self::Pi(_) | Self::Codex(_) => Vec::new(),
            Self::Opencode(opencode) => opencode.ended(),
            Self::Plain(plain) => plain.ended(),
            Self::Acp(acp) => acp.ended(),
        }
    }

    fn parse_line(&mut self, line: &[u8]) -> ParsedLine {
        match line.iter().find(|b| !b.is_ascii_whitespace()) {
            None => return ParsedLine::Nothing,
            // What could be an event; a flood of anything else is not worth a parser.
            Some(b'{' | b'[') => {}
            Some(_) => return ParsedLine::Unknown,
        }
        match self {
            Self::Fake => fake::line(line),
            Self::Pi(pi) => pi.line(line),
            Self::Codex(codex) => codex.line(line),
            Self::Opencode(opencode) => opencode.line(line),
            Self::Plain(plain) => plain.line(Source::Stdout, line),
            Self::Case(_) => ParsedLine::Nothing,
            Self::Acp(_) => self.converse(line, line).0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_dialect() -> impl Strategy<Value = Dialect> {
        proptest::sample::select(Dialect::ALL)
    }

    proptest! {
        /// No line an engine prints becomes anything but an engine event.
        #[test]
        fn only_engine_events_come_out(
            lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 0..4),
            dialect in any_dialect(),
        ) {
            let mut parser = DialectParser::new(dialect);
            let mut heard = Vec::new();
            for (at, line) in lines.iter().enumerate() {
                let from = [Source::Stdout, Source::Stderr, Source::Log][at % 3];
                if let ParsedLine::Events(events) = parser.hear(from, line) {
                    heard.extend(events);
                }
            }
            heard.extend(parser.ended(&WireSeen::default()));
            prop_assert!(heard.iter().all(|event| event.kind().is_engine()));
        }
    }
}
