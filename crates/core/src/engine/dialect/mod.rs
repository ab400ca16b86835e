//! Dialects: how each engine prints what it does. Lines go in, `engine.*` events come out.
//!
//! - this file: the parser every dialect hides behind
//! - `fake.rs` the scripted engine; `pi.rs` Pi; `recorded/` real output the tests replay
//!
//! The events are for display only. Unknown lines are counted, and the raw log keeps them.

mod fake;
mod pi;

use crate::engine::manifest::Dialect;
use crate::run::event::Event;

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
}

impl DialectParser {
    pub fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Fake => Self::Fake,
            Dialect::Pi => Self::Pi(Box::default()),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No line an engine prints becomes anything but an engine event.
        #[test]
        fn only_engine_events_come_out(bytes in proptest::collection::vec(any::<u8>(), 0..120), pi: bool) {
            let mut parser = DialectParser::new(if pi { Dialect::Pi } else { Dialect::Fake });
            if let ParsedLine::Events(events) = parser.parse_line(&bytes) {
                prop_assert!(events.iter().all(|event| event.kind().is_engine()));
            }
        }
    }
}
