use super::*;
use Protocol::*;
use proptest::prelude::*;

fn read(protocol: Protocol, stream: bool, pieces: &[&[u8]]) -> Answer {
    let mut reader = AnswerReader::new(protocol, stream);
    pieces.iter().for_each(|piece| reader.push(piece));
    reader.finish();
    reader.answer
}

fn events(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| format!("data: {line}\n\n"))
        .collect()
}

fn chat_stream() -> String {
    events(&[
        r#"{"model":"","choices":[]}"#,
        r#"{"id":"c","model":"m","choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"model":"m","choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
        r#"{"model":"m","choices":[{"delta":{"content":"hel"}}]}"#,
        r#"{"model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"w","arguments":""}}]}}]}"#,
        r#"{"model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"model\":\"x\"}"}}]}}]}"#,
        r#"{"model":"m","choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"model":"m","choices":[],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":7},"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2}}}"#,
        "[DONE]",
    ])
}

fn responses_stream() -> String {
    events(&[
        r#"{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[],"error":null}}"#,
        r#"{"item":{"id":"rs","type":"reasoning"},"type":"response.output_item.done"}"#,
        r#"{"delta":"hi","type":"response.output_text.delta"}"#,
        r#"{"type":"response.output_item.done","item":{"id":"f","call_id":"call_1","type":"function_call","name":"w"}}"#,
        r#"{"type":"response.completed","response":{"model":"m","status":"completed","output":[{"type":"function_call","call_id":"call_1"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":7},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2}}}}"#,
    ])
}

fn messages_stream() -> String {
    events(&[
        r#"{"type":"message_start","message":{"model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":7,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"w","input":{}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
        r#"{"type":"message_stop"}"#,
    ])
}

fn gemini_stream() -> String {
    events(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}],"modelVersion":"m"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"hi"},{"functionCall":{"name":"w","args":{"text":"x"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":7,"candidatesTokenCount":3,"thoughtsTokenCount":2},"modelVersion":"m"}"#,
    ])
}

fn streams() -> [(Protocol, String, &'static str); 4] {
    [
        (OpenaiChat, chat_stream(), "tool_calls"),
        (OpenaiResponses, responses_stream(), "completed"),
        (AnthropicMessages, messages_stream(), "tool_use"),
        (GeminiGenerate, gemini_stream(), "STOP"),
    ]
}

#[test]
fn streams_are_understood() {
    for (protocol, text, finish) in streams() {
        let answer = read(protocol, true, &[text.as_bytes()]);
        assert_eq!(answer.models, ["m"], "{protocol:?}");
        assert!(
            answer.content && answer.reasoning && answer.ended && !answer.garbled,
            "{protocol:?} {answer:?}"
        );
        assert_eq!(answer.tool_calls, 1, "{protocol:?}");
        assert_eq!(answer.finish_reason.as_deref(), Some(finish));
        assert_eq!(
            (answer.tokens.input, answer.tokens.output),
            (MaybeKnown::Known(10), MaybeKnown::Known(5)),
            "{protocol:?}"
        );
        assert_eq!(answer.tokens.cached, Some(7), "{protocol:?}");
        assert_eq!(outcome_of(200, &answer, true, true), (Outcome::Ok, None));
        assert_eq!(answer.error, None);
    }
}

#[test]
fn documents_are_understood() {
    for (protocol, text) in [
        (
            OpenaiChat,
            r#"{"model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}"#,
        ),
        (
            OpenaiResponses,
            r#"{"model":"m","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":10,"output_tokens":5}}"#,
        ),
        (
            AnthropicMessages,
            r#"{"type":"message","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}"#,
        ),
        (
            GeminiGenerate,
            r#"[{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5},"modelVersion":"m"}]"#,
        ),
    ] {
        let answer = read(protocol, false, &[text.as_bytes()]);
        assert!(
            answer.content && answer.ended && answer.finish_reason.is_some(),
            "{protocol:?} {answer:?}"
        );
        assert_eq!(
            (answer.tokens.input, answer.tokens.output),
            (MaybeKnown::Known(10), MaybeKnown::Known(5)),
            "{protocol:?}"
        );
        assert_eq!(
            outcome_of(200, &answer, true, true),
            (Outcome::Ok, None),
            "{protocol:?}"
        );
        let cut = read(protocol, false, &[&text.as_bytes()[..text.len() - 1]]);
        assert_eq!(
            outcome_of(200, &cut, false, true).0,
            Outcome::Truncated,
            "{protocol:?}"
        );
    }
}

#[test]
fn a_cut_stream_is_truncated() {
    for (protocol, text, _) in streams() {
        // Up to the end of the first event: a name, and no end.
        let cut = text
            .match_indices("\n\n")
            .map(|(at, _)| at + 2)
            .nth(1)
            .unwrap()
            .min(text.len() - 1);
        let answer = read(protocol, true, &[&text.as_bytes()[..cut]]);
        let outcome = outcome_of(200, &answer, true, true).0;
        let want = if answer.ended {
            Outcome::Ok
        } else {
            Outcome::Truncated
        };
        assert_eq!(outcome, want, "{protocol:?}");
        assert_eq!(
            outcome_of(200, &read(protocol, true, &[text.as_bytes()]), false, true).0,
            Outcome::Truncated
        );
    }
    let two =
        events(&[r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"modelVersion":"m"}"#]);
    assert_eq!(
        outcome_of(
            200,
            &read(GeminiGenerate, true, &[two.as_bytes()]),
            true,
            true
        )
        .0,
        Outcome::Truncated
    );
}

#[test]
fn reasoning_alone_is_told_apart() {
    for (protocol, text) in [
        (
            OpenaiChat,
            events(&[
                r#"{"model":"m","choices":[{"delta":{"reasoning":"hm","content":""},"finish_reason":"length"}]}"#,
                "[DONE]",
            ]),
        ),
        (
            OpenaiResponses,
            events(&[
                r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#,
                r#"{"type":"response.completed","response":{"model":"m","output":[{"type":"reasoning"}]}}"#,
            ]),
        ),
        (
            AnthropicMessages,
            events(&[
                r#"{"type":"message_start","message":{"model":"m"}}"#,
                r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"x"}}"#,
                r#"{"type":"message_stop"}"#,
            ]),
        ),
        (
            GeminiGenerate,
            events(&[
                r#"{"modelVersion":"m","candidates":[{"content":{"parts":[{"thought":true,"text":"hm"}]},"finishReason":"MAX_TOKENS"}]}"#,
            ]),
        ),
    ] {
        let answer = read(protocol, true, &[text.as_bytes()]);
        assert_eq!(
            outcome_of(200, &answer, true, true).0,
            Outcome::ReasoningOnly,
            "{protocol:?} {answer:?}"
        );
    }
}

#[test]
fn errors_inside_an_answer_have_a_class() {
    for (protocol, text, want) in [
        (
            OpenaiChat,
            r#"{"error":{"message":"x","type":"server_error"}}"#,
            Outcome::ServerError,
        ),
        (
            OpenaiChat,
            r#"{"error":{"message":"x","code":429}}"#,
            Outcome::RateLimit,
        ),
        (
            OpenaiChat,
            r#"{"error":{"message":"x","type":"invalid_request_error"}}"#,
            Outcome::ModelError,
        ),
        (
            OpenaiResponses,
            r#"{"type":"response.failed","response":{"model":"m","error":{"code":"server_error"}}}"#,
            Outcome::ServerError,
        ),
        (
            OpenaiResponses,
            r#"{"type":"error","code":"rate_limit_exceeded","message":"x"}"#,
            Outcome::RateLimit,
        ),
        (
            AnthropicMessages,
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            Outcome::ServerError,
        ),
        (
            AnthropicMessages,
            r#"{"type":"error","error":{"type":"authentication_error"}}"#,
            Outcome::Auth,
        ),
        (
            GeminiGenerate,
            r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#,
            Outcome::ServerError,
        ),
        (
            GeminiGenerate,
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#,
            Outcome::RateLimit,
        ),
    ] {
        let answer = read(protocol, true, &[events(&[text]).as_bytes()]);
        assert_eq!(outcome_of(200, &answer, true, true).0, want, "{text}");
    }
}

#[test]
fn statuses_come_first() {
    let answer = Answer::default();
    for (status, want) in [
        (401, Outcome::Auth),
        (403, Outcome::Auth),
        (429, Outcome::RateLimit),
        (404, Outcome::ModelError),
        (500, Outcome::ServerError),
        (529, Outcome::ServerError),
        (302, Outcome::Redirected),
    ] {
        assert_eq!(outcome_of(status, &answer, true, true), (want, None));
    }
}

#[test]
fn names_and_garbage() {
    let unnamed = read(
        OpenaiChat,
        true,
        &[events(&[
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ])
        .as_bytes()],
    );
    assert_eq!(
        outcome_of(200, &unnamed, true, true),
        (Outcome::WrongModel, Some(RefusalReason::NoName))
    );
    let garbage = read(OpenaiChat, false, &[b"<html>"]);
    assert_eq!(
        outcome_of(200, &garbage, true, true),
        (Outcome::Transport, Some(RefusalReason::Garbled))
    );
    let late = read(
        OpenaiChat,
        true,
        &[b"data: {\"model\":\"m\"}\n\ndata: <x>\n\n"],
    );
    assert_eq!(
        outcome_of(200, &late, true, true),
        (Outcome::Truncated, None)
    );
    let two = read(
        OpenaiChat,
        true,
        &[events(&[r#"{"model":"m"}"#, r#"{"model":"n"}"#]).as_bytes()],
    );
    assert!(two.other_model("m", &[]) && !two.other_model("m", &["n".into()]));
    assert!(read(OpenaiChat, false, &[br#"{"model":["m"]}"#]).other_model("m", &[]));
    assert!(read(OpenaiChat, false, &[br#"{"model":"n","model":"m"}"#]).other_model("m", &[]));
    assert!(read(OpenaiChat, false, &[br#"{"model":"M"}"#]).other_model("m", &[]));
    let nested = read(
        OpenaiChat,
        false,
        &[br#"{"model":"m","choices":[{"message":{"model":"n"}}]}"#],
    );
    assert!(!nested.other_model("m", &[]));
    let flood: String = (0..100)
        .map(|n| format!("data: {{\"model\":\"m{n}\"}}\n\n"))
        .collect();
    assert_eq!(
        read(OpenaiChat, true, &[flood.as_bytes()]).models.len(),
        MAX_NAMES
    );
}

#[test]
fn the_end_mark_is_no_json() {
    for (data, ended, garbled) in [
        ("[DONE]", true, false),
        ("[DON", false, true),
        ("[DONE] x", false, true),
        ("[]", false, false),
    ] {
        let answer = read(OpenaiChat, true, &[events(&[data]).as_bytes()]);
        assert_eq!((answer.ended, answer.garbled), (ended, garbled), "{data}");
    }
    assert!(
        read(OpenaiChat, true, &[b"data: [DONE]"]).ended,
        "without the last empty line"
    );
}

proptest! {
    #[test]
    fn every_cut_reads_the_same(which in 0usize..4, cuts in proptest::collection::vec(1usize..50, 1..10)) {
        let (protocol, text, _) = streams()[which].clone();
        let whole = read(protocol, true, &[text.as_bytes()]);
        let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            pieces.push(head);
            rest = tail;
        }
        prop_assert_eq!(read(protocol, true, &pieces), whole);
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "(data: |\\{|\"|:|\\[|\\]|\\}|model|choices|,|\n|error){0,40}") {
        for protocol in Protocol::ALL {
            for stream in [true, false] {
                read(protocol, stream, &[&bytes]);
                read(protocol, stream, &[text.as_bytes()]);
            }
        }
    }
}
