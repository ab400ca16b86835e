//! Where each protocol keeps what is of interest. An event's fields may come in any order, so what
//! depends on two of them is decided at its end.

use crate::values::maybe_known::MaybeKnown;
use crate::wire::Protocol;
use crate::wire::answers::{Answer, ErrorKind, add};
use crate::wire::json_scan::Value;

/// What is remembered until an event, or a part of one, ends.
#[derive(Default)]
pub struct Event {
    kind: String,
    item: String,
    call_id: String,
    delta: bool,
    text: bool,
    thought: bool,
    input: Option<u64>,
}

const MAX_REASON: usize = 64;

pub fn see(
    protocol: Protocol,
    path: &str,
    value: &Value<'_>,
    event: &mut Event,
    answer: &mut Answer,
) {
    match protocol {
        Protocol::OpenaiChat => chat(path, value, answer),
        Protocol::OpenaiResponses => responses(path, value, event, answer),
        Protocol::AnthropicMessages => messages(path, value, event, answer),
        // A stream that is not of events is one array.
        Protocol::GeminiGenerate => gemini(
            path.strip_prefix("*.").unwrap_or(path),
            value,
            event,
            answer,
        ),
    }
}

pub fn event_ended(protocol: Protocol, event: &mut Event, answer: &mut Answer) {
    let event = std::mem::take(event);
    match protocol {
        Protocol::OpenaiResponses => responses_event(&event, answer),
        Protocol::AnthropicMessages => match event.kind.as_str() {
            "message_stop" => answer.ended = true,
            "error" => answer.failed(ErrorKind::Model),
            _ => {}
        },
        Protocol::OpenaiChat | Protocol::GeminiGenerate => {}
    }
    if let Some(input) = event.input {
        answer.tokens.input = MaybeKnown::Known(input);
    }
}

/// The end of a stream, for protocols whose last event only says why they ended.
pub fn stream_ended(protocol: Protocol, answer: &mut Answer) {
    if matches!(protocol, Protocol::OpenaiChat | Protocol::GeminiGenerate) {
        answer.ended |= answer.finish_reason.is_some();
    }
}

fn finish(answer: &mut Answer, value: &Value<'_>) {
    let reason = match value {
        Value::Text { text: "", .. } => return,
        Value::Text { text, whole: true } if text.len() <= MAX_REASON => *text,
        // Not cut: of a credential in it nobody would find the half that is left.
        Value::Text { .. } => "(not a reason)",
        _ => return,
    };
    answer.finish_reason = Some(reason.to_owned());
}

fn name(answer: &mut Answer, value: &Value<'_>) {
    match value {
        Value::Text { text, whole: true } => answer.named(text),
        Value::Null | Value::ObjectEnds | Value::ArrayEnds => {}
        // Nothing that could be an admitted name.
        _ => answer.named("(not a name)"),
    }
}

/// What of the input the provider had in a cache; an answer may say so more than once.
fn cached(answer: &mut Answer, value: &Value<'_>) {
    if let Some(count) = value.count() {
        answer.tokens.cached = Some(count);
    }
}

fn count(slot: &mut MaybeKnown<u64>, value: &Value<'_>) {
    if let Some(count) = value.count() {
        *slot = MaybeKnown::Known(count);
    }
}

/// An error object, and what its words say.
fn error(path: &str, value: &Value<'_>, answer: &mut Answer) {
    match path {
        "error" if matches!(value, Value::ObjectBegins | Value::Text { .. }) => {
            answer.failed(ErrorKind::Model)
        }
        "error.type" | "error.code" | "error.status" => {
            let word = match value {
                Value::Text { text, .. } | Value::Number(text) => text,
                _ => return,
            };
            if let Some(kind) = ErrorKind::named(word) {
                answer.failed(kind);
            }
        }
        _ => {}
    }
}

fn chat(path: &str, value: &Value<'_>, answer: &mut Answer) {
    if let Some(rest) = path.strip_prefix("choices.*.") {
        let rest = rest
            .strip_prefix("delta.")
            .or_else(|| rest.strip_prefix("message."))
            .unwrap_or(rest);
        match rest {
            "content" | "content.*.text" | "refusal" => answer.content |= value.has_text(),
            "reasoning_content" | "reasoning" | "thinking" | "reasoning_details.*.text" => {
                answer.reasoning |= value.has_text()
            }
            "tool_calls.*.id" | "function_call.name" if value.has_text() => {
                answer.tool_call(value.text().unwrap_or_default())
            }
            "finish_reason" => finish(answer, value),
            _ => {}
        }
        return;
    }
    match path {
        "model" => name(answer, value),
        "usage.prompt_tokens" => count(&mut answer.tokens.input, value),
        "usage.prompt_tokens_details.cached_tokens" => cached(answer, value),
        "usage.completion_tokens" => count(&mut answer.tokens.output, value),
        "usage.completion_tokens_details.reasoning_tokens" => {
            count(&mut answer.tokens.reasoning, value)
        }
        _ => error(path, value, answer),
    }
}

fn responses(path: &str, value: &Value<'_>, event: &mut Event, answer: &mut Answer) {
    match path {
        "type" => event.kind = value.text().unwrap_or_default().to_owned(),
        "item.type" => event.item = value.text().unwrap_or_default().to_owned(),
        "item.call_id" => event.call_id = value.text().unwrap_or_default().to_owned(),
        "delta" => event.delta |= value.has_text(),
        // The top of an event of kind `error`.
        "code" => error("error.code", value, answer),
        _ => responses_body(
            path.strip_prefix("response.").unwrap_or(path),
            value,
            answer,
        ),
    }
}

fn responses_body(path: &str, value: &Value<'_>, answer: &mut Answer) {
    match path {
        "model" => name(answer, value),
        "output.*.content.*.type" => {
            answer.content |= value.is_text("output_text") || value.is_text("refusal")
        }
        "output.*.type" if value.is_text("reasoning") => answer.reasoning = true,
        "output.*.call_id" => answer.tool_call(value.text().unwrap_or_default()),
        "usage.input_tokens" => count(&mut answer.tokens.input, value),
        "usage.input_tokens_details.cached_tokens" => cached(answer, value),
        "usage.output_tokens" => count(&mut answer.tokens.output, value),
        "usage.output_tokens_details.reasoning_tokens" => {
            count(&mut answer.tokens.reasoning, value)
        }
        "status" => finish(answer, value),
        "incomplete_details.reason" => finish(answer, value),
        _ => error(path, value, answer),
    }
}

fn responses_event(event: &Event, answer: &mut Answer) {
    match event.kind.as_str() {
        "response.completed" | "response.incomplete" => answer.ended = true,
        "response.failed" => {
            answer.ended = true;
            answer.failed(ErrorKind::Model);
        }
        "error" => answer.failed(ErrorKind::Model),
        "response.output_text.delta" | "response.refusal.delta" => answer.content |= event.delta,
        "response.output_item.done" if event.item == "reasoning" => answer.reasoning = true,
        "response.output_item.done" if event.item.ends_with("_call") => {
            answer.tool_call(&event.call_id)
        }
        kind if kind.starts_with("response.reasoning") => answer.reasoning |= event.delta,
        _ => {}
    }
}

fn messages(path: &str, value: &Value<'_>, event: &mut Event, answer: &mut Answer) {
    match path {
        "type" => {
            event.kind = value.text().unwrap_or_default().to_owned();
            return;
        }
        "delta.text" => answer.content |= value.has_text(),
        "delta.thinking" => answer.reasoning |= value.has_text(),
        "content_block.type" if value.is_text("redacted_thinking") => answer.reasoning = true,
        "content_block.id" => answer.tool_call(value.text().unwrap_or_default()),
        "delta.stop_reason" => finish(answer, value),
        _ => {}
    }
    match path.strip_prefix("message.").unwrap_or(path) {
        "model" => name(answer, value),
        "content.*.text" => answer.content |= value.has_text(),
        "content.*.thinking" => answer.reasoning |= value.has_text(),
        "content.*.id" => answer.tool_call(value.text().unwrap_or_default()),
        "stop_reason" => finish(answer, value),
        // Read from a cache or written to one: tokens of the input all the same.
        "usage.input_tokens"
        | "usage.cache_creation_input_tokens"
        | "usage.cache_read_input_tokens" => {
            if let Some(count) = value.count() {
                event.input = Some(event.input.unwrap_or(0).saturating_add(count));
            }
            if path.ends_with("cache_read_input_tokens") {
                cached(answer, value);
            }
        }
        "usage.output_tokens" => count(&mut answer.tokens.output, value),
        rest => error(rest, value, answer),
    }
}

fn gemini(path: &str, value: &Value<'_>, event: &mut Event, answer: &mut Answer) {
    match path {
        "modelVersion" => name(answer, value),
        "candidates.*.content.parts.*.text" => event.text |= value.has_text(),
        "candidates.*.content.parts.*.thought" => event.thought |= *value == Value::Bool(true),
        "candidates.*.content.parts.*" if *value == Value::ObjectEnds => {
            let (text, thought) = (
                std::mem::take(&mut event.text),
                std::mem::take(&mut event.thought),
            );
            answer.content |= text && !thought;
            answer.reasoning |= text && thought;
        }
        "candidates.*.content.parts.*.functionCall" if *value == Value::ObjectBegins => {
            answer.tool_calls += 1
        }
        "candidates.*.finishReason" | "promptFeedback.blockReason" => finish(answer, value),
        "usageMetadata" if *value == Value::ObjectBegins => {
            answer.tokens.output = MaybeKnown::NotLookedAt
        }
        "usageMetadata.promptTokenCount" => count(&mut answer.tokens.input, value),
        "usageMetadata.cachedContentTokenCount" => cached(answer, value),
        "usageMetadata.candidatesTokenCount" => {
            add(&mut answer.tokens.output, value.count().unwrap_or(0))
        }
        "usageMetadata.thoughtsTokenCount" => {
            count(&mut answer.tokens.reasoning, value);
            add(&mut answer.tokens.output, value.count().unwrap_or(0));
        }
        _ => error(path, value, answer),
    }
}
