//! Lines that Codex really printed, recorded against a scripted model; and lines it never would.

use proptest::prelude::*;

use super::super::{DialectParser, ParsedLine};
use super::*;
use crate::engine::manifest::Dialect;
use crate::values::event_type::EventType;

macro_rules! recorded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("recorded/codex-0.166-", $name, ".jsonl"))),)*]
    };
}

const RECORDED: &[(&str, &str)] =
    recorded!("pass" "child" "401" "429" "500" "hung-up" "in-stream-error");

/// Everything heard, and how many lines nobody understood.
fn heard(text: &str) -> (Vec<Event>, usize) {
    let mut parser = DialectParser::new(Dialect::Codex);
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

fn text(name: &str) -> &'static str {
    RECORDED.iter().find(|(have, _)| *have == name).unwrap().1
}

fn result(events: &[Event]) -> Option<&EngineResult> {
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
fn a_good_run_is_told_whole() {
    let (events, _) = heard(text("pass"));
    use EventType as E;
    let kinds: Vec<EventType> = events.iter().map(Event::kind).collect();
    assert_eq!(
        kinds,
        [
            E::EngineWarning,
            E::EngineToolCall,
            E::EngineToolCall,
            E::EngineFileChange,
            E::EngineToolCall,
            E::EngineToolCall,
            E::EngineMessage,
            E::EngineTokens,
            E::EngineResult,
        ]
    );
    let call = |at: usize| match &events[at] {
        Event::EngineToolCall(call) => call.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        call(2),
        EngineToolCall {
            tool: "apply_patch".into(),
            target: "/workspace/answer.txt".into(),
            kind: Some(ToolKind::Edit),
            paths: vec!["/workspace/answer.txt".into()],
            outcome: Some(ToolOutcome::Completed),
        }
    );
    assert_eq!(call(1).outcome, None, "begun");
    let failed = call(5);
    assert!(failed.target.ends_with("'cat answer.txt; false'"));
    assert_eq!(
        (failed.kind, failed.outcome),
        (Some(ToolKind::Execute), Some(ToolOutcome::Failed))
    );
    assert_eq!(
        events[7],
        Event::EngineTokens(EngineTokens {
            messages: 1,
            input: 600,
            output: 120,
            cache_read: 0,
            cache_write: 0
        })
    );
    let done = result(&events).unwrap();
    assert_eq!((done.summary.as_str(), done.failed), ("Done.", false));
}

#[test]
fn a_failure_of_its_provider_is_a_warning_and_then_a_failed_result() {
    for (name, why) in [
        ("401", "unexpected status 401"),
        ("429", "exceeded retry limit"),
        ("500", "We’re currently experiencing"),
        ("hung-up", "stream disconnected"),
        ("in-stream-error", "stream disconnected"),
    ] {
        let (events, _) = heard(text(name));
        let warnings = |events: &[Event]| {
            events
                .iter()
                .filter(|event| event.kind() == EventType::EngineWarning)
                .count()
        };
        assert_eq!(warnings(&events), 2, "{name}");
        let result = result(&events).unwrap();
        assert!(result.failed && result.claimed == "failed", "{name}");
        assert!(result.summary.starts_with(why), "{name}: {result:?}");
    }
    let again = "{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}";
    let (events, unknown) = heard(again);
    assert_eq!(
        (events, unknown),
        (
            vec![Event::EngineWarning(EngineText {
                text: "Reconnecting... 1/5".into()
            })],
            0
        )
    );
}

#[test]
fn plans_searches_and_other_tools_are_told() {
    let list = r#"{"type":"item.updated","item":{"id":"i","type":"todo_list","items":[{"text":"look","completed":true},{"text":"fix","completed":false}]}}"#;
    assert_eq!(
        heard(list).0,
        [Event::EnginePlan(EngineText {
            text: "[x] look; [ ] fix".into()
        })]
    );
    let refused = r#"{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"failed"}}"#;
    let (events, _) = heard(refused);
    assert_eq!(events.len(), 1, "nothing was changed: {events:?}");
    let declined = r#"{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"s","tool":"t","status":"declined"}}"#;
    let Event::EngineToolCall(call) = &heard(declined).0[0] else {
        panic!()
    };
    assert_eq!(call.outcome, Some(ToolOutcome::Declined));
}

#[test]
fn a_run_that_was_ended_has_no_result() {
    let whole = text("pass");
    let cut = &whole[..whole.find("{\"type\":\"turn.completed\"").unwrap()];
    assert_eq!(result(&heard(cut).0), None);
}

#[test]
fn output_too_long_to_be_kept_is_no_unknown_line() {
    let line = |kind: &str| {
        format!(
            "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_1\",\"type\":\"{kind}\",\"command\":\"x\",\"aggregated_output\":\"{}",
            "y".repeat(1 << 20)
        )
    };
    assert_eq!(heard(&line("command_execution")), (vec![], 0));
    assert_eq!(heard(&line("something_else")), (vec![], 1));
}

#[test]
fn hostile_lines_are_harmless() {
    let deep = format!(
        "{{\"type\":\"item.started\",\"item\":{}",
        "[".repeat(100_000)
    );
    let many = format!(
        "{{\"type\":\"item.completed\",\"item\":{{\"type\":\"file_change\",\"changes\":[{}],\"status\":\"completed\"}}}}",
        vec!["{\"path\":\"a\"}"; 10_000].join(",")
    );
    assert_eq!(heard(&many).0.len(), 1 + MAX_LISTED);
    for line in [
        "{\"type\":\"run.completed\",\"status\":\"pass\"}",
        "{\"type\":\"engine.result\",\"claimed\":\"completed\"}",
        "{\"type\":\"item.completed\"}",
        "{\"type\":\"item.completed\",\"item\":{\"type\":7}}",
        "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\"}}",
        "{\"type\":\"turn.failed\"}",
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
    let numbers = r#"{"type":"turn.completed","usage":{"input_tokens":18446744073709551615,"output_tokens":-1,"cached_input_tokens":1.5}}"#;
    let Event::EngineTokens(tokens) = heard(numbers).0[0] else {
        panic!()
    };
    assert_eq!(
        (tokens.input, tokens.output, tokens.cache_read),
        (MAX_COUNT, 0, 0)
    );
    let coloured = r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"\u001b[2Jgone"}}"#;
    let Event::EngineMessage(message) = &heard(coloured).0[0] else {
        panic!()
    };
    assert!(!message.text.contains('\u{1b}'));
}

proptest! {
    /// Real lines with a piece exchanged: whatever comes, it is events of an engine or nothing.
    #[test]
    fn broken_lines_are_total(
        line in 0usize..40, at in 0usize..400, bytes in proptest::collection::vec(any::<u8>(), 0..12)
    ) {
        let all: Vec<&str> = RECORDED.iter().flat_map(|(_, text)| text.lines()).collect();
        let mut broken = all[line % all.len()].as_bytes().to_vec();
        let at = at % broken.len();
        let end = (at + bytes.len()).min(broken.len());
        broken.splice(at..end, bytes);
        let mut parser = DialectParser::new(Dialect::Codex);
        if let ParsedLine::Events(events) = parser.parse_line(&broken) {
            prop_assert!(events.iter().all(|event| event.kind().is_engine()));
        }
    }
}
