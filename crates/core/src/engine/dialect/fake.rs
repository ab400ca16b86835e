//! How the scripted engine talks: one JSON object a line.

use serde::Deserialize;

use super::{Said, tame};
use crate::run::event::{
    EngineFileChange, EngineResult, EngineReview, EngineText, EngineToolCall, Event,
};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Message { text: String },
    Plan { text: String },
    Tool { tool: String, target: String },
    FileChange { path: String },
    Review { accepted: bool, summary: String },
    Result { status: String, summary: String },
}

pub fn line(line: &[u8]) -> Said {
    let Ok(parsed) = serde_json::from_slice::<Line>(line) else {
        return Said::Unknown;
    };
    Said::one(match parsed {
        Line::Message { text } => Event::EngineMessage(EngineText { text: tame(&text) }),
        Line::Plan { text } => Event::EnginePlan(EngineText { text: tame(&text) }),
        Line::Tool { tool, target } => Event::EngineToolCall(EngineToolCall {
            tool: tame(&tool),
            target: tame(&target),
        }),
        Line::FileChange { path } => {
            Event::EngineFileChange(EngineFileChange { path: tame(&path) })
        }
        Line::Review { accepted, summary } => Event::EngineReview(EngineReview {
            accepted,
            summary: tame(&summary),
        }),
        Line::Result { status, summary } => Event::EngineResult(EngineResult {
            claimed: tame(&status),
            summary: tame(&summary),
            failed: false,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Ear;
    use super::*;
    use crate::engine::manifest::Dialect;

    #[test]
    fn fake_speaks_json_lines() {
        let hear = |line: &[u8]| Ear::new(Dialect::Fake).hear(line);
        assert_eq!(
            hear(br#"{"type":"result","status":"completed","summary":"done"}"#),
            Said::one(Event::EngineResult(EngineResult {
                claimed: "completed".into(),
                summary: "done".into(),
                failed: false
            }))
        );
        assert_eq!(hear(b"  \r"), Said::Nothing);
        assert!(matches!(
            hear(br#"  {"type":"message","text":"hi"}"#),
            Said::Events(_)
        ));
        for unknown in [
            &b"hello"[..],
            b"{\"type\":\"run.completed\"}",
            b"{\"type\":\"result\"}",
            b"\xff\xff",
            b"[]",
        ] {
            assert_eq!(hear(unknown), Said::Unknown, "{unknown:?}");
        }
    }
}
