//! Dialects: how each engine prints what it does. Lines go in, `engine.*` events come out.
//!
//! - this file: the parser every dialect hides behind
//! - `fake.rs` the scripted engine; `pi.rs` Pi; `codex.rs` Codex; `recorded/` real output the tests
//!   replay
//!
//! The events are for display only. Unknown lines are counted, and the raw log keeps them.

mod codex;
mod fake;
mod pi;

use crate::engine::manifest::Dialect;
use crate::run::event::Event;

/// The largest number a hashed document may hold.
const MAX_COUNT: u64 = (1 << 53) - 1;

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
}

impl DialectParser {
    pub fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Fake => Self::Fake,
            Dialect::Pi => Self::Pi(Box::default()),
            Dialect::Codex => Self::Codex(Box::default()),
        }
    }

    /// One line, whole or cut off at the end.
    pub fn parse_line(&mut self, line: &[u8]) -> ParsedLine {
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
            for line in lines {
                if let ParsedLine::Events(events) = parser.parse_line(&line) {
                    prop_assert!(events.iter().all(|event| event.kind().is_engine()));
                }
            }
        }
    }
}
