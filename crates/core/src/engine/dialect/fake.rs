//! The output of the scripted engine `fake`: one JSON object per line.

use serde::Deserialize;

use super::ParsedLine;
use crate::run::event::{
    EngineFileChange, EngineResult, EngineReview, EngineText, EngineToolCall, Event,
};
use crate::values::text::tame_excerpt;

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

pub fn line(line: &[u8]) -> ParsedLine {
    let Ok(parsed) = serde_json::from_slice::<Line>(line) else {
        return ParsedLine::Unknown;
    };
    ParsedLine::one(match parsed {
        Line::Message { text } => Event::EngineMessage(EngineText {
            text: tame_excerpt(&text),
        }),
        Line::Plan { text } => Event::EnginePlan(EngineText {
            text: tame_excerpt(&text),
        }),
        Line::Tool { tool, target } => Event::EngineToolCall(EngineToolCall::new(
            tame_excerpt(&tool),
            tame_excerpt(&target),
        )),
        Line::FileChange { path } => Event::EngineFileChange(EngineFileChange {
            path: tame_excerpt(&path),
        }),
        Line::Review { accepted, summary } => Event::EngineReview(EngineReview {
            accepted,
            summary: tame_excerpt(&summary),
        }),
        Line::Result { status, summary } => Event::EngineResult(EngineResult::new(
            tame_excerpt(&status),
            tame_excerpt(&summary),
            false,
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::super::DialectParser;
    use super::*;
    use crate::engine::manifest::Dialect;

    #[test]
    fn fake_speaks_json_lines() {
        let parse = |line: &[u8]| DialectParser::new(Dialect::Fake).parse_line(line);
        assert_eq!(
            parse(br#"{"type":"result","status":"completed","summary":"done"}"#),
            ParsedLine::one(Event::EngineResult(EngineResult::new(
                "completed",
                "done",
                false
            )))
        );
        assert_eq!(parse(b"  \r"), ParsedLine::Nothing);
        assert!(matches!(
            parse(br#"  {"type":"message","text":"hi"}"#),
            ParsedLine::Events(_)
        ));
        for unknown in [
            &b"hello"[..],
            b"{\"type\":\"run.completed\"}",
            b"{\"type\":\"result\"}",
            b"\xff\xff",
            b"[]",
        ] {
            assert_eq!(parse(unknown), ParsedLine::Unknown, "{unknown:?}");
        }
    }
}
