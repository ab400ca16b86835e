//! Sans-io dialects: lines an engine printed go in, `engine.*` events come out.
//!
//! What comes out is display data. Unknown lines are counted, never dropped silently: the raw log
//! keeps them.

use serde::Deserialize;

use crate::engine::manifest::Dialect;
use crate::event::{EngineFileChange, EngineResult, EngineReview, EngineText, EngineToolCall, Event};

/// Longest text of one engine event; the whole is in the log.
const TEXT_LIMIT: usize = 500;

/// What one line of engine output meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    Event(Box<Event>),
    Blank,
    Unknown,
}

pub fn read_line(dialect: Dialect, line: &[u8]) -> Said {
    match dialect {
        Dialect::Fake => fake_line(line),
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FakeLine {
    Message { text: String },
    Plan { text: String },
    Tool { tool: String, target: String },
    FileChange { path: String },
    Review { accepted: bool, summary: String },
    Result { status: String, summary: String },
}

fn fake_line(line: &[u8]) -> Said {
    match line.iter().find(|b| !b.is_ascii_whitespace()) {
        None => return Said::Blank,
        // What could be an event; a flood of anything else is not worth a parser.
        Some(b'{' | b'[') => {}
        Some(_) => return Said::Unknown,
    }
    let Ok(parsed) = serde_json::from_slice::<FakeLine>(line) else { return Said::Unknown };
    Said::Event(Box::new(match parsed {
        FakeLine::Message { text } => Event::EngineMessage(EngineText { text: tame(&text) }),
        FakeLine::Plan { text } => Event::EnginePlan(EngineText { text: tame(&text) }),
        FakeLine::Tool { tool, target } => Event::EngineToolCall(EngineToolCall { tool: tame(&tool), target: tame(&target) }),
        FakeLine::FileChange { path } => Event::EngineFileChange(EngineFileChange { path: tame(&path) }),
        FakeLine::Review { accepted, summary } => Event::EngineReview(EngineReview { accepted, summary: tame(&summary) }),
        FakeLine::Result { status, summary } => {
            Event::EngineResult(EngineResult { claimed: tame(&status), summary: tame(&summary) })
        }
    }))
}

/// Text from an engine, made safe to print: no control characters, bounded length.
pub fn tame(text: &str) -> String {
    let mut out: String =
        text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).take(TEXT_LIMIT).collect();
    if text.chars().nth(TEXT_LIMIT).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fake_speaks_json_lines() {
        assert_eq!(
            read_line(Dialect::Fake, br#"{"type":"result","status":"completed","summary":"done"}"#),
            Said::Event(Box::new(Event::EngineResult(EngineResult { claimed: "completed".into(), summary: "done".into() })))
        );
        assert_eq!(read_line(Dialect::Fake, b"  \r"), Said::Blank);
        assert!(matches!(read_line(Dialect::Fake, br#"  {"type":"message","text":"hi"}"#), Said::Event(_)));
        for unknown in [&b"hello"[..], b"{\"type\":\"run.completed\"}", b"{\"type\":\"result\"}", b"\xff\xff", b"[]"] {
            assert_eq!(read_line(Dialect::Fake, unknown), Said::Unknown, "{unknown:?}");
        }
    }

    #[test]
    fn terminal_codes_do_not_survive() {
        assert_eq!(tame("a\u{1b}[31mb\rc"), "a\u{fffd}[31mb\u{fffd}c");
        assert_eq!(tame(&"x".repeat(600)).chars().count(), TEXT_LIMIT + 1);
    }

    proptest! {
        /// No line an engine prints becomes anything but an engine event.
        #[test]
        fn only_engine_events_come_out(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Said::Event(event) = read_line(Dialect::Fake, &bytes) {
                prop_assert!(event.kind().is_engine());
            }
        }
    }
}
