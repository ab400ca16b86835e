//! Sans-io dialects: lines an engine printed go in, `engine.*` events come out.
//!
//! What comes out is display data. Unknown lines are counted, never dropped silently: the raw log
//! keeps them.

mod fake;
mod pi;

use crate::engine::manifest::Dialect;
use crate::run::event::Event;

/// What one line of engine output meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    Events(Vec<Event>),
    /// Blank, or understood and not worth an event.
    Nothing,
    Unknown,
}

impl Said {
    fn one(event: Event) -> Self {
        Self::Events(vec![event])
    }
}

/// Listens to one engine: some lines mean what the lines before them made of them.
#[derive(Debug)]
pub enum Ear {
    Fake,
    Pi(Box<pi::Pi>),
}

impl Ear {
    pub fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Fake => Self::Fake,
            Dialect::Pi => Self::Pi(Box::default()),
        }
    }

    /// One line, whole or cut off at the end.
    pub fn hear(&mut self, line: &[u8]) -> Said {
        match line.iter().find(|b| !b.is_ascii_whitespace()) {
            None => return Said::Nothing,
            // What could be an event; a flood of anything else is not worth a parser.
            Some(b'{' | b'[') => {}
            Some(_) => return Said::Unknown,
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
            let mut ear = Ear::new(if pi { Dialect::Pi } else { Dialect::Fake });
            if let Said::Events(events) = ear.hear(&bytes) {
                prop_assert!(events.iter().all(|event| event.kind().is_engine()));
            }
        }
    }
}
