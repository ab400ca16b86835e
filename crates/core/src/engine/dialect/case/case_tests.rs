//! What a pipeline's words mean, as a table: lines of an event log in, one result and its reviews out.

use super::*;
use crate::run::event::{EngineResult, FailedBy};

/// Lines of a log, numbered.
fn log(lines: &[Value]) -> (Vec<Event>, Option<EngineResult>) {
    heard(lines, None, None)
}

fn heard(
    lines: &[Value],
    stderr: Option<&str>,
    unanswered: Option<&str>,
) -> (Vec<Event>, Option<EngineResult>) {
    let mut case = Case::default();
    let mut events = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut line = line.clone();
        line["sequence"] = (at + 1).into();
        line["runId"] = "r".into();
        if let ParsedLine::Events(more) = case.log_line(line.to_string().as_bytes()) {
            events.extend(more);
        }
    }
    if let Some(line) = stderr {
        assert_eq!(case.stderr_line(line.as_bytes()), ParsedLine::Nothing);
    }
    let wire = WireSeen {
        unanswered: unanswered.map(str::to_owned),
        silent: false,
    };
    events.extend(case.ended(&wire));
    let result = events.iter().find_map(|event| match event {
        Event::EngineResult(result) => Some(result.clone()),
        _ => None,
    });
    (events, result)
}

fn v(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn end(phase: &str, outcome: &str, result: &str) -> Value {
    let mut line = v(r#"{"event":"phase_end"}"#);
    (line["phase"], line["agent"], line["outcome"]) = (phase.into(), phase.into(), outcome.into());
    if !result.is_empty() {
        line["result"] = v(result);
    }
    line
}

fn fine(phase: &str) -> Value {
    end(
        phase,
        "completed",
        r#"{"status":"completed","summary":"ok"}"#,
    )
}

fn pipeline(outcome: &str) -> Value {
    let mut line = v(r#"{"event":"pipeline_end"}"#);
    line["outcome"] = outcome.into();
    line
}

fn skipped(phase: &str) -> Value {
    end(phase, "skipped", "")
}

fn reviews(events: &[Event]) -> Vec<bool> {
    let said = events.iter().filter_map(|event| match event {
        Event::EngineReview(review) => Some(review.accepted),
        _ => None,
    });
    said.collect()
}

const MISSING: &str = r#"{"status":"failed","error":"AGENT_RESULT start delimiter not found"}"#;
const CUT: &str = r#"{"status":"failed","error":"AGENT_RESULT end delimiter not found"}"#;
const GARBLED: &str = r#"{"status":"failed","error":"AGENT_RESULT JSON parse error: x"}"#;
const STATUS: &str = r#"{"status":"failed","error":"AGENT_RESULT invalid status: done"}"#;
const OWN: &str = r#"{"status":"failed","error":"the tests are red"}"#;
const BLOCKED: &str = r#"{"status":"blocked","summary":"no idea"}"#;

#[test]
fn a_whole_pipeline_is_completed_and_names_its_commit() {
    let commit = r#"{"status":"completed","artifacts":{"commit":"abc"}}"#;
    let (events, result) = log(&[
        v(r#"{"event":"pipeline_start","profile":"standard","plan":["implementer","review"]}"#),
        v(r#"{"event":"phase_start","phase":"scout","agent":"scout","ts":"2026-01-02T03:04:05Z"}"#),
        fine("scout"),
        end("implementer", "completed", commit),
        fine("review"),
        skipped("verifier"),
        pipeline("completed"),
    ]);
    let result = result.unwrap();
    assert_eq!((result.failed, result.failed_by), (false, None));
    assert_eq!(result.commit.as_deref(), Some("abc"));
    assert_eq!(reviews(&events), [true]);
    let phases = events
        .iter()
        .filter(|event| matches!(event, Event::EnginePhase(_)));
    assert_eq!(phases.count(), 4, "a skipped end is none: {events:?}");
    assert!(
        events
            .iter()
            .all(|event| !matches!(event, Event::EngineWarning(_)))
    );
}

#[test]
fn two_sources_tell_the_wire_from_the_protocol() {
    use FailedBy::{Protocol, Wire};
    for phase in [
        "implementer",
        "verifier",
        "review",
        "closer",
        "retrospective",
    ] {
        for (envelope, unanswered, by) in [
            (MISSING, false, Some(Protocol)),
            (CUT, false, Some(Protocol)),
            (GARBLED, false, Some(Protocol)),
            (STATUS, false, Some(Protocol)),
            (MISSING, true, Some(Wire)),
            (CUT, true, Some(Wire)),
            // These came over the wire whole.
            (GARBLED, true, Some(Protocol)),
            (STATUS, true, Some(Protocol)),
        ] {
            let lines = [end(phase, "failed", envelope), pipeline("failed")];
            let (events, result) = heard(&lines, None, unanswered.then_some("call 2: 500"));
            let result = result.unwrap();
            assert_eq!(
                (result.failed, result.failed_by),
                (true, by),
                "{phase} {envelope}"
            );
            assert!(reviews(&events).is_empty(), "no envelope is no review");
        }
    }
}

/// What it says without its model having been asked is nobody's protocol.
#[test]
fn who_never_asked_a_model_is_told_from_both() {
    for (envelope, by) in [
        (MISSING, Some(FailedBy::Silence)),
        (CUT, Some(FailedBy::Silence)),
        (GARBLED, Some(FailedBy::Protocol)),
        (OWN, None),
    ] {
        let mut case = Case::default();
        for line in [end("implementer", "failed", envelope), pipeline("failed")] {
            case.log_line(line.to_string().as_bytes());
        }
        let wire = WireSeen {
            unanswered: None,
            silent: true,
        };
        let found = case.ended(&wire).into_iter().find_map(|event| match event {
            Event::EngineResult(result) => Some(result.failed_by),
            _ => None,
        });
        assert_eq!(found, Some(by), "{envelope}");
    }
}

#[test]
fn a_phase_that_fails_by_its_own_word_is_a_failure_of_the_engine() {
    for phase in [
        "implementer",
        "verifier",
        "closer",
        "retrospective",
        "scout",
    ] {
        for envelope in [OWN, BLOCKED, ""] {
            for outcome in ["failed", "completed"] {
                if (outcome, envelope) == ("completed", "") {
                    continue;
                }
                let lines = [end(phase, outcome, envelope), pipeline("completed")];
                let result = log(&lines).1.unwrap();
                assert_eq!(
                    (result.failed, result.failed_by),
                    (true, None),
                    "{phase} {envelope}"
                );
            }
        }
    }
    // The class stands on standard error alone where the log has no words.
    let lines = [end("implementer", "failed", ""), pipeline("failed")];
    let class = r#"{"level":"error","err":{"class":"agent-protocol-error"}}"#;
    let result = heard(&lines, Some(class), None).1.unwrap();
    assert_eq!(result.failed_by, Some(FailedBy::Protocol));
    let mentioned = r#"{"msg":"not an agent-protocol-error at all"}"#;
    assert_eq!(
        heard(&lines, Some(mentioned), None).1.unwrap().failed_by,
        None
    );
}

#[test]
fn a_retry_that_succeeds_is_a_success() {
    let lines = [
        end("implementer", "failed", MISSING),
        fine("implementer"),
        pipeline("completed"),
    ];
    assert!(!heard(&lines, None, Some("call 1: 500")).1.unwrap().failed);
}

#[test]
fn three_ways_to_say_no_and_one_that_is_none() {
    let critical = r#"{"status":"completed","findings":{"critical":2}}"#;
    let listed = r#"{"status":"completed","findings":{"critical":["x"]}}"#;
    let rubric =
        r#"{"status":"completed","rubric":{"categories":[{"category":"scope","verdict":"fail"}]}}"#;
    let hard = r#"{"status":"completed","rubric":{"categories":[{"category":"scope","verdict":"fail","hard":true}]}}"#;
    let asks = v(
        r#"{"event":"revision_requested","source":"review","cycle":1,"failedCategories":["scope"]}"#,
    );
    let gone = v(r#"{"event":"revision_budget_exhausted"}"#);
    let rejected = |lines: &[Value]| {
        let (events, result) = log(lines);
        (reviews(&events).last().copied(), result.unwrap().failed_by)
    };
    for envelope in [OWN, critical, listed, rubric, hard] {
        let outcome = if envelope == OWN {
            "failed"
        } else {
            "completed"
        };
        for last in ["failed", "completed"] {
            let lines = [
                fine("implementer"),
                end("review", outcome, envelope),
                // The closer runs all the same, and may fail because of it.
                end("closer", "failed", OWN),
                pipeline(last),
            ];
            let by = (last == "failed").then_some(FailedBy::Review);
            let by = if envelope == OWN {
                Some(FailedBy::Review)
            } else {
                by
            };
            assert_eq!(rejected(&lines), (Some(false), by), "{envelope} {last}");
        }
    }
    // Soft, with no revision left: the diff and the checks decide.
    let soft = [
        end("review", "completed", rubric),
        gone.clone(),
        pipeline("completed"),
    ];
    assert_eq!(rejected(&soft), (Some(true), None));
    let never = [
        end("review", "completed", hard),
        gone.clone(),
        pipeline("completed"),
    ];
    assert_eq!(rejected(&never).0, Some(false));
    let worse = [
        end("review", "completed", critical),
        gone,
        pipeline("completed"),
    ];
    assert_eq!(rejected(&worse).0, Some(false));
    // A revision that satisfies: the last review decides.
    let revised = [
        end("review", "completed", rubric),
        asks,
        fine("implementer"),
        fine("review"),
        pipeline("completed"),
    ];
    let (events, result) = log(&revised);
    assert_eq!(reviews(&events), [false, true]);
    assert!(!result.unwrap().failed);
}

#[test]
fn a_forged_end_makes_nothing_better() {
    let lines = [
        end("implementer", "failed", OWN),
        pipeline("failed"),
        pipeline("completed"),
    ];
    let (events, result) = log(&lines);
    let result = result.unwrap();
    assert_eq!((result.claimed.as_str(), result.failed), ("failed", true));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::EngineWarning(_)))
    );
    // Completed first, failed later: failed.
    let lines = [
        fine("implementer"),
        pipeline("completed"),
        pipeline("failed"),
    ];
    assert!(log(&lines).1.unwrap().failed);
}

/// Lines as somebody wrote them, numbers and all.
fn written(lines: &[(Value, Option<u64>)]) -> (Vec<Event>, Option<EngineResult>) {
    let mut case = Case::default();
    let mut events = Vec::new();
    for (line, number) in lines {
        let mut line = line.clone();
        line["runId"] = "r".into();
        if let Some(number) = number {
            line["sequence"] = (*number).into();
        }
        let text = match line["raw"].as_str() {
            Some(raw) => raw.as_bytes().to_vec(),
            None => line.to_string().into_bytes(),
        };
        if let ParsedLine::Events(more) = case.log_line(&text) {
            events.extend(more);
        }
    }
    events.extend(case.ended(&WireSeen::default()));
    let result = events.iter().find_map(|event| match event {
        Event::EngineResult(result) => Some(result.clone()),
        _ => None,
    });
    (events, result)
}

/// Who writes lines of their own into a log cannot keep those that come after from having the same numbers, or none.
#[test]
fn in_a_log_that_is_not_whole_nothing_is_healed() {
    let no = || end("review", "failed", OWN);
    let last = || pipeline("completed");
    let rejected =
        |lines: &[(Value, Option<u64>)]| reviews(&written(lines).0).last() == Some(&false);
    let yes = || fine("review");
    let whole = [(no(), Some(1)), (yes(), Some(2)), (last(), Some(3))];
    assert!(!rejected(&whole), "a revision that satisfies");
    for (what, numbers) in [
        ("doubled", [Some(1), Some(2), Some(2)]),
        ("a gap", [Some(1), Some(3), Some(4)]),
        ("backwards", [Some(5), Some(6), Some(3)]),
        ("no number", [Some(1), None, Some(2)]),
    ] {
        let lines = [no(), yes(), last()].into_iter().zip(numbers);
        assert!(rejected(&lines.collect::<Vec<_>>()), "{what}");
    }
    // The same of a phase that failed, and of one that failed and was healed by its retry.
    let retried = |second: u64| {
        let failed = end("implementer", "failed", OWN);
        let lines = [
            (failed, Some(1)),
            (fine("implementer"), Some(second)),
            (last(), Some(second + 1)),
        ];
        written(&lines).1.unwrap().failed
    };
    assert!(!retried(2) && retried(7));
    // A line that could not be read may have had the number that is missing, and no other.
    let torn = || (v(r#"{"raw":"{\"event\":\"tool_end\",\"resu"}"#), None);
    let with_torn = |number| {
        rejected(&[
            (no(), Some(1)),
            torn(),
            (yes(), Some(number)),
            (last(), Some(number + 1)),
        ])
    };
    assert!(!with_torn(3) && with_torn(4) && with_torn(1));
    let (mut other, mut mine) = (yes(), no());
    (other["runId"], mine["runId"]) = ("x".into(), "r".into());
    let mut case = Case::default();
    let mut events = Vec::new();
    for (line, number) in [(mine, 1), (other, 2), (last(), 2)] {
        let mut line = line;
        line["sequence"] = number.into();
        if let ParsedLine::Events(more) = case.log_line(line.to_string().as_bytes()) {
            events.extend(more);
        }
    }
    events.extend(case.ended(&WireSeen::default()));
    assert_eq!(reviews(&events).last(), Some(&false), "another run");
}

#[test]
fn nothing_is_said_for_who_said_nothing() {
    assert_eq!(log(&[]).1, None);
    assert_eq!(log(&[fine("implementer")]).1, None, "no end");
    assert_eq!(log(&[pipeline("completed")]).1, None, "no phase");
    assert_eq!(
        log(&[skipped("implementer"), pipeline("completed")]).1,
        None
    );
}

#[test]
fn lines_that_do_not_count_up_are_told_a_few_times() {
    let mut case = Case::default();
    let mut warnings = 0;
    for number in (0..200).map(|n| n * 3) {
        let line = format!(r#"{{"event":"status_changed","sequence":{number},"runId":"r"}}"#);
        if let ParsedLine::Events(events) = case.log_line(line.as_bytes()) {
            warnings += events.len();
        }
    }
    assert_eq!(warnings, MAX_WARNINGS as usize);
    for unknown in [
        &b"hello"[..],
        b"{}",
        b"[]",
        b"\xff\xfe",
        b"{\"event\":\"other\",\"sequence\":1}",
    ] {
        let found = Case::default().log_line(unknown);
        assert_eq!(found, ParsedLine::Unknown, "{unknown:?}");
    }
    assert_eq!(case.log_line(b"  "), ParsedLine::Nothing);
}

#[test]
fn tools_are_told_with_their_ends() {
    let (events, _) = log(&[
        v(r#"{"event":"tool_start","toolCallId":"1","tool":"write","args":{"path":"a.py"}}"#),
        v(r#"{"event":"tool_end","toolCallId":"1","isError":false}"#),
        v(r#"{"event":"tool_start","toolCallId":"2","tool":"bash","args":{"command":"false"}}"#),
        v(r#"{"event":"tool_end","toolCallId":"2","isError":true}"#),
        v(r#"{"event":"tool_end","toolCallId":"9"}"#),
    ]);
    let kinds: Vec<&str> = events.iter().map(|event| event.kind().as_str()).collect();
    let call = "engine.tool_call";
    assert_eq!(kinds, [call, call, "engine.file_change", call, call]);
}
