//! Lines that opencode really printed, recorded against a scripted model; and lines it never would.

use proptest::prelude::*;

use super::super::{DialectParser, ParsedLine, Source};
use super::*;
use crate::engine::manifest::Dialect;
use crate::values::event_type::EventType;

macro_rules! recorded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("recorded/opencode-1.18-", $name, ".jsonl"))),)*]
    };
}

const RECORDED: &[(&str, &str)] =
    recorded!("pass" "401" "500" "hung-up" "silent" "in-stream-error");

/// Everything heard to the end of the streams, and how many lines nobody understood.
fn heard(text: &str) -> (Vec<Event>, usize) {
    let mut parser = DialectParser::new(Dialect::Opencode);
    let (mut events, mut unknown) = (Vec::new(), 0);
    for line in text.lines() {
        match parser.hear(Source::Stdout, line.as_bytes()) {
            ParsedLine::Events(more) => events.extend(more),
            ParsedLine::Nothing => {}
            ParsedLine::Unknown => unknown += 1,
        }
    }
    events.extend(parser.ended(&super::super::WireSeen::default()));
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
fn a_good_run_is_told_whole_and_ends_with_its_streams() {
    let (events, _) = heard(text("pass"));
    let calls: Vec<&EngineToolCall> = events
        .iter()
        .filter_map(|event| match event {
            Event::EngineToolCall(call) => Some(call),
            _ => None,
        })
        .collect();
    use ToolKind::{Edit, Execute, Other, Read};
    use ToolOutcome::{Completed, Failed};
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            (
                call.tool.as_str(),
                call.kind.unwrap(),
                call.outcome.unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("read", Read, Completed),
            ("edit", Edit, Completed),
            ("bash", Execute, Failed),
            ("edit", Edit, Failed),
            ("invalid", Other, Failed),
            ("write", Edit, Failed),
            ("write", Edit, Completed),
        ]
    );
    assert_eq!(calls[1].paths, ["answer.txt"]);
    let of = |kind: EventType| events.iter().filter(|event| event.kind() == kind).count();
    assert_eq!(of(EventType::EngineFileChange), 2);
    assert_eq!(of(EventType::EnginePlan), 1);
    let done = result(&events).unwrap();
    assert_eq!((done.summary.as_str(), done.failed), ("Done.", false));
    assert!(events.contains(&Event::EngineTokens(EngineTokens {
        messages: 9,
        input: 900,
        output: 180,
        cache_read: 0,
        cache_write: 0
    })));
}

#[test]
fn a_failure_is_a_warning_and_a_failed_result_and_an_ended_run_has_none() {
    for (name, why) in [
        ("401", "Unauthorized"),
        ("500", "Internal Server Error"),
        ("hung-up", "Cannot connect to API"),
        ("in-stream-error", "{\"message\":\"scripted\""),
    ] {
        let (events, _) = heard(text(name));
        let warned = |event: &Event| event.kind() == EventType::EngineWarning;
        assert!(events.iter().any(warned), "{name}");
        let result = result(&events).unwrap();
        assert!(
            result.failed && result.summary.starts_with(why),
            "{name}: {result:?}"
        );
    }
    assert_eq!(result(&heard(text("silent")).0), None);
    assert_eq!(result(&heard("").0), None);
    let finish = |reason: &str| {
        let line = format!("{{\"type\":\"step_finish\",\"part\":{{\"reason\":\"{reason}\"}}}}");
        result(&heard(&line).0).map(|result| result.failed)
    };
    assert_eq!(finish("stop"), Some(false));
    assert_eq!(finish("length"), Some(true));
    assert_eq!(finish("tool-calls"), None);
}

#[test]
fn hostile_lines_are_harmless() {
    let deep = format!("{{\"type\":\"text\",\"part\":{}", "[".repeat(100_000));
    for line in [
        "{\"type\":\"run.completed\",\"status\":\"pass\"}",
        "{\"type\":\"text\"}",
        "{\"type\":\"tool_use\",\"part\":{\"tool\":7}}",
        "{\"type\":\"step_finish\",\"part\":[]}",
        "{\"type\":\"error\"}",
        "{\"type\":null}",
        "{}",
        "[1]",
        &deep,
    ] {
        let (events, unknown) = heard(line);
        assert_eq!(
            (events.len(), unknown),
            (0, 1),
            "{}",
            &line[..line.len().min(80)]
        );
    }
    let mut parser = DialectParser::new(Dialect::Opencode);
    assert_eq!(
        parser.hear(Source::Stderr, b"{\"type\":\"nonsense\"}"),
        ParsedLine::Nothing,
        "its events are on the other stream"
    );
}

proptest! {
    /// Real lines with a piece exchanged: whatever comes, it is events of an engine or nothing.
    #[test]
    fn broken_lines_are_total(
        line in 0usize..60, at in 0usize..600, bytes in proptest::collection::vec(any::<u8>(), 0..12)
    ) {
        let all: Vec<&str> = RECORDED.iter().flat_map(|(_, text)| text.lines()).collect();
        let mut broken = all[line % all.len()].as_bytes().to_vec();
        let at = at % broken.len();
        let end = (at + bytes.len()).min(broken.len());
        broken.splice(at..end, bytes);
        let mut parser = DialectParser::new(Dialect::Opencode);
        let mut events = match parser.hear(Source::Stdout, &broken) {
            ParsedLine::Events(events) => events,
            _ => Vec::new(),
        };
        events.extend(parser.ended(&super::super::WireSeen::default()));
        prop_assert!(events.iter().all(|event| event.kind().is_engine()));
    }
}
