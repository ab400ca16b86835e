//! Lines that Pi really printed, recorded against a scripted model and shortened; and lines it
//! never would.

use super::super::{DialectParser, ParsedLine};
use super::*;
use crate::engine::manifest::Dialect;
use crate::values::event_type::EventType;

macro_rules! recorded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("recorded/pi-", $name, ".jsonl"))),)*]
    };
}

const RECORDED: &[(&str, &str)] = recorded!(
    "0.73-pass" "0.73-401" "0.74-pass" "0.74-401" "0.74-429" "0.74-500" "0.74-refused" "0.74-cut" "0.74-silent" "0.74-loop"
    "0.74-context" "0.74-in-stream-error" "0.74-empty" "0.74-ended-in-a-tool" "0.87-pass" "0.87-401"
);

fn text(name: &str) -> &'static str {
    RECORDED.iter().find(|(have, _)| *have == name).unwrap().1
}

/// Everything heard, and how many lines nobody understood.
fn heard(text: &str) -> (Vec<Event>, usize) {
    let mut parser = DialectParser::new(Dialect::Pi);
    let (mut events, mut unknown) = (Vec::new(), 0);
    for line in text.lines() {
        match parser.parse_line(line.as_bytes()) {
            ParsedLine::Events(more) => events.extend(more),
            ParsedLine::Nothing => {}
            ParsedLine::Unknown => unknown += 1,
        }
    }
    (events, unknown)
}

fn last_result(events: &[Event]) -> Option<&EngineResult> {
    events.iter().rev().find_map(|event| match event {
        Event::EngineResult(result) => Some(result),
        _ => None,
    })
}

#[test]
fn every_line_of_every_recording_is_understood() {
    for (name, text) in RECORDED {
        assert_eq!(heard(text).1, 0, "{name}");
    }
}

#[test]
fn a_good_run_is_told_in_the_same_words_by_every_version() {
    for name in ["0.73-pass", "0.74-pass", "0.87-pass"] {
        let (events, _) = heard(text(name));
        let kinds: Vec<EventType> = events.iter().map(Event::kind).collect();
        use EventType::{
            EngineFileChange, EngineMessage, EngineResult, EngineTokens, EngineToolCall,
        };
        let want = [
            EngineMessage,
            EngineToolCall,
            EngineToolCall,
            EngineFileChange,
            EngineToolCall,
            EngineMessage,
            EngineTokens,
            EngineResult,
        ];
        assert_eq!(kinds, want, "{name}");
        assert!(events.contains(&Event::EngineFileChange(
            crate::run::event::EngineFileChange {
                path: "/workspace/strings.py".into()
            }
        )));
        let result = last_result(&events).unwrap();
        assert_eq!(
            (result.claimed.as_str(), result.failed),
            ("completed", false),
            "{name}"
        );
        assert_eq!(
            result.summary,
            "Fixed slugify in strings.py; all 4 tests pass."
        );
        let Some(Event::EngineTokens(tokens)) = events.iter().find(|e| e.kind() == EngineTokens)
        else {
            panic!("{name}")
        };
        assert_eq!((tokens.messages, tokens.output), (4, 200), "{name}");
    }
}

#[test]
fn an_error_on_the_wire_is_a_failure_in_its_own_words() {
    for (name, why) in [
        ("0.73-401", "401 Incorrect API key provided"),
        ("0.74-401", "401 Incorrect API key provided"),
        ("0.87-401", "401: {"),
        ("0.74-429", "429 Rate limit reached"),
        ("0.74-500", "500 scripted server error"),
        ("0.74-refused", "Connection error."),
        ("0.74-cut", "Stream ended without finish_reason"),
        ("0.74-in-stream-error", "scripted in-stream failure"),
        ("0.74-context", "400 This model's maximum context length"),
    ] {
        let (events, _) = heard(text(name));
        let result = last_result(&events).unwrap();
        assert!(
            result.failed && result.claimed == "failed",
            "{name}: {result:?}"
        );
        assert!(result.summary.starts_with(why), "{name}: {result:?}");
    }
}

#[test]
fn a_run_that_was_ended_has_no_result() {
    for name in ["0.74-silent", "0.74-loop", "0.74-ended-in-a-tool"] {
        assert_eq!(last_result(&heard(text(name)).0), None, "{name}");
    }
    // An empty last message is a claim like another: whether anything changed is measured.
    assert!(!last_result(&heard(text("0.74-empty")).0).unwrap().failed);
}

#[test]
fn stopping_for_any_other_reason_is_no_success() {
    for stop in [
        "length", "toolUse", "error", "aborted", "pending", "deferred", "STOP", "",
    ] {
        let line = format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":[],"stopReason":"{stop}"}}}}"#
        );
        let (events, _) = heard(&format!(
            "{line}\n{{\"type\":\"agent_end\",\"messages\":[]}}"
        ));
        assert!(last_result(&events).unwrap().failed, "{stop}");
    }
    let spoken = r#"{"type":"message_end","message":{"role":"assistant","content":"done","stopReason":"stop"}}"#;
    let (events, _) = heard(&format!("{spoken}\n{{\"type\":\"agent_end\"}}"));
    assert!(!last_result(&events).unwrap().failed);
    assert!(
        last_result(&heard("{\"type\":\"agent_end\"}").0)
            .unwrap()
            .failed,
        "it never said anything"
    );
}

#[test]
fn an_end_that_is_tried_again_is_not_the_end() {
    let again = "{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":true}";
    assert_eq!(last_result(&heard(again).0), None);
    assert!(last_result(&heard(&format!("{again}\n{{\"type\":\"agent_settled\"}}")).0).is_some());
}

#[test]
fn an_end_too_long_to_be_kept_is_still_the_end() {
    let text = text("0.74-pass");
    let at = text.rfind("{\"type\":\"agent_end\"").unwrap();
    let (events, unknown) = heard(&text[..at + 400]);
    assert_eq!(unknown, 0);
    assert_eq!(last_result(&events).unwrap().claimed, "completed");
}

#[test]
fn a_change_is_told_only_when_it_was_made() {
    let begin = r#"{"type":"tool_execution_start","toolCallId":"a","toolName":"write","args":{"path":"x"}}"#;
    let end = |error: bool| {
        format!(
            r#"{{"type":"tool_execution_end","toolCallId":"a","toolName":"write","result":{{}},"isError":{error}}}"#
        )
    };
    let changes = |text: &str| {
        heard(text)
            .0
            .iter()
            .filter(|e| e.kind() == EventType::EngineFileChange)
            .count()
    };
    assert_eq!(changes(&format!("{begin}\n{}", end(false))), 1);
    assert_eq!(changes(&format!("{begin}\n{}", end(true))), 0);
    assert_eq!(changes(&end(false)), 0);
    // Calls that never end do not pile up.
    let many: String = (0..10_000)
        .map(|n| begin.replace("\"a\"", &format!("\"{n}\"")) + "\n")
        .collect();
    let mut parser = DialectParser::new(Dialect::Pi);
    many.lines()
        .for_each(|line| drop(parser.parse_line(line.as_bytes())));
    let DialectParser::Pi(pi) = parser else {
        panic!()
    };
    assert_eq!(pi.pending.len(), MAX_PENDING);
}

#[test]
fn hostile_lines_are_harmless() {
    let deep = format!(
        "{{\"type\":\"message_end\",\"message\":{}",
        "[".repeat(100_000)
    );
    for line in [
        "{\"type\":\"run.completed\",\"status\":\"pass\"}",
        "{\"type\":\"engine.result\",\"claimed\":\"completed\"}",
        "{\"type\":\"message_end\"}",
        "{\"type\":\"message_end\",\"message\":{\"role\":7}}",
        "{\"type\":\"tool_execution_start\",\"toolCallId\":[]}",
        "{\"type\":\"\u{1b}[31m\"}",
        "{\"type\":null}",
        "{}",
        "[1]",
        &deep,
    ] {
        assert_eq!(
            heard(line),
            (Vec::new(), 1),
            "{}",
            &line[..line.len().min(80)]
        );
    }
    let numbers = r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop","usage":{"input":18446744073709551615,"output":-1,"cacheRead":1.5,"cacheWrite":"7"}}}"#;
    let (events, _) = heard(&format!("{numbers}\n{numbers}\n{{\"type\":\"agent_end\"}}"));
    let Some(Event::EngineTokens(tokens)) = events.first() else {
        panic!("{events:?}")
    };
    assert_eq!(
        (
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write
        ),
        (MAX_COUNT, 0, 0, 0)
    );
    let coloured = "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":\"\\u001b[2Jgone\",\"stopReason\":\"stop\"}}";
    let Event::EngineMessage(message) = &heard(coloured).0[0] else {
        panic!()
    };
    assert!(!message.text.contains('\u{1b}'));
}
