//! The output of Pi in its JSON mode (0.73 to 0.87): one object per line, named by its `type`.
//!
//! Pi ends with exit code 0 whatever happened on the wire. Whether it
//! succeeded is in the `stopReason` and the `errorMessage` of the last message it wrote.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use super::{MAX_COUNT, ParsedLine};
use crate::run::event::{
    EngineFileChange, EngineResult, EngineText, EngineTokens, EngineToolCall, Event,
};
use crate::values::text::tame_excerpt;

/// Most tool calls that may be open at one time.
const MAX_PENDING: usize = 64;

/// What was said so far, as far as later lines need it.
#[derive(Debug, Default)]
pub struct Pi {
    last: Last,
    tokens: EngineTokens,
    /// Changes of files that were begun, by the id of the call.
    pending: VecDeque<(String, String)>,
    /// A result was said and nothing came after it.
    settled: bool,
}

/// The last message Pi wrote itself.
#[derive(Debug, Default)]
struct Last {
    text: String,
    stop: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Typed {
    r#type: String,
}

#[derive(Deserialize)]
struct MessageLine {
    message: Message,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    usage: Value,
    stop_reason: Option<String>,
    error_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolLine {
    tool_call_id: String,
    tool_name: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndLine {
    #[serde(default)]
    will_retry: bool,
}

impl Pi {
    pub fn line(&mut self, line: &[u8]) -> ParsedLine {
        let Some(kind) = kind(line) else {
            return ParsedLine::Unknown;
        };
        match kind.as_str() {
            "message_end" => serde_json::from_slice(line)
                .map_or(ParsedLine::Unknown, |parsed| self.message(parsed)),
            "tool_execution_start" => serde_json::from_slice(line)
                .map_or(ParsedLine::Unknown, |parsed| self.tool_begins(&parsed)),
            "tool_execution_end" => serde_json::from_slice(line)
                .map_or(ParsedLine::Unknown, |parsed| self.tool_ends(&parsed)),
            // Holds the whole conversation, so it may be cut off at its end; its name alone says
            // enough.
            "agent_end" => match serde_json::from_slice(line) {
                Ok(EndLine { will_retry: true }) => ParsedLine::Nothing,
                Ok(EndLine { will_retry: false }) | Err(_) => self.result(),
            },
            "agent_settled" if self.settled => ParsedLine::Nothing,
            "agent_settled" => self.result(),
            "auto_retry_start" | "compaction_start" => {
                ParsedLine::one(Event::EngineMessage(EngineText {
                    text: tame_excerpt(&kind.replace('_', " ")),
                }))
            }
            "session"
            | "agent_start"
            | "turn_start"
            | "turn_end"
            | "message_start"
            | "message_update"
            | "tool_execution_update"
            | "bash_execution_update"
            | "auto_retry_end"
            | "compaction_end"
            | "entry_appended"
            | "queue_update"
            | "session_info_changed"
            | "summarization_retry_attempt_start"
            | "summarization_retry_finished"
            | "summarization_retry_scheduled"
            | "thinking_level_changed" => ParsedLine::Nothing,
            _ => ParsedLine::Unknown,
        }
    }

    fn message(&mut self, MessageLine { message }: MessageLine) -> ParsedLine {
        if message.role != "assistant" {
            return ParsedLine::Nothing;
        }
        let text = text_of(&message.content);
        let count = |name: &str| message.usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        let add = |sum: &mut u64, name: &str| *sum = sum.saturating_add(count(name)).min(MAX_COUNT);
        add(&mut self.tokens.input, "input");
        add(&mut self.tokens.output, "output");
        add(&mut self.tokens.cache_read, "cacheRead");
        add(&mut self.tokens.cache_write, "cacheWrite");
        self.tokens.messages = self.tokens.messages.saturating_add(1).min(MAX_COUNT);
        self.settled = false;
        self.last = Last {
            text: tame_excerpt(&text),
            stop: message.stop_reason,
            error: message.error_message,
        };
        match text.trim().is_empty() {
            true => ParsedLine::Nothing,
            false => ParsedLine::one(Event::EngineMessage(EngineText {
                text: self.last.text.clone(),
            })),
        }
    }

    fn tool_begins(&mut self, tool: &ToolLine) -> ParsedLine {
        let named = |name: &str| tool.args.get(name).and_then(Value::as_str);
        let path = named("path").or_else(|| named("file_path"));
        let target = path
            .or_else(|| named("command"))
            .or_else(|| named("pattern"))
            .unwrap_or_default();
        if let (Some(path), true) = (path, changes_files(&tool.tool_name)) {
            if self.pending.len() == MAX_PENDING {
                self.pending.pop_front();
            }
            self.pending
                .push_back((tame_excerpt(&tool.tool_call_id), tame_excerpt(path)));
        }
        ParsedLine::one(Event::EngineToolCall(EngineToolCall::new(
            tame_excerpt(&tool.tool_name),
            tame_excerpt(target),
        )))
    }

    fn tool_ends(&mut self, tool: &ToolLine) -> ParsedLine {
        let id = tame_excerpt(&tool.tool_call_id);
        let at = self.pending.iter().position(|(pending, _)| *pending == id);
        let path = at
            .and_then(|at| self.pending.remove(at))
            .map(|(_, path)| path);
        match path.filter(|_| !tool.is_error && changes_files(&tool.tool_name)) {
            Some(path) => ParsedLine::one(Event::EngineFileChange(EngineFileChange { path })),
            None => ParsedLine::Nothing,
        }
    }

    /// Whether Pi says it succeeded: only if its last message ended normally and names no
    /// error.
    fn result(&mut self) -> ParsedLine {
        self.settled = true;
        let Last { text, stop, error } = &self.last;
        let stop = stop.as_deref().unwrap_or("none");
        let failed = error.is_some() || stop != "stop";
        let summary = match error {
            Some(error) => tame_excerpt(error),
            None if failed => format!("its last message stopped with {}", tame_excerpt(stop)),
            None => text.clone(),
        };
        let claimed = if failed { "failed" } else { "completed" }.to_owned();
        ParsedLine::Events(vec![
            Event::EngineTokens(self.tokens),
            Event::EngineResult(EngineResult::new(claimed, summary, failed)),
        ])
    }
}

fn changes_files(tool: &str) -> bool {
    matches!(tool, "edit" | "write")
}

/// The name of a line. Pi writes it first, so a long line need not be parsed to be passed over.
fn kind(line: &[u8]) -> Option<String> {
    let first = line.strip_prefix(br#"{"type":""#).and_then(|rest| {
        let name = &rest[..rest.iter().take(64).position(|b| *b == b'"')?];
        name.iter()
            .all(|b| b.is_ascii_lowercase() || *b == b'_')
            .then(|| String::from_utf8_lossy(name).into_owned())
    });
    first.or_else(|| Some(serde_json::from_slice::<Typed>(line).ok()?.r#type))
}

/// The text parts of a message; what it thought and which tools it called are in other events.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| match part.get("type").and_then(Value::as_str) {
                Some("text") => part.get("text").and_then(Value::as_str).map(str::to_owned),
                _ => None,
            };
            parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "pi_tests.rs"]
mod tests;
