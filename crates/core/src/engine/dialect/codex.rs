//! The output of `codex exec --json` (0.166): one object per line, named by its `type`; what is done
//! is an *item*, begun, updated and completed under one id.
//!
//! Codex retries by itself, and tells of it with `error` lines: those are warnings. Whether its turn
//! succeeded is in `turn.completed` or `turn.failed`.

use serde::Deserialize;
use serde_json::Value;

use super::{MAX_COUNT, ParsedLine};
use crate::run::event::{
    EngineFileChange, EngineResult, EngineText, EngineTokens, EngineToolCall, Event, ToolKind,
    ToolOutcome,
};
use crate::values::text::tame_excerpt;

/// Most files named of one change, most steps named of one plan.
const MAX_LISTED: usize = 32;

/// What was said so far, as far as later lines need it.
#[derive(Debug, Default)]
pub struct Codex {
    /// The last message it wrote.
    last: String,
    messages: u64,
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    #[serde(default)]
    item: Option<Item>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Said>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    r#type: String,
    #[serde(flatten)]
    rest: Value,
}

#[derive(Deserialize)]
struct Said {
    message: String,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Value,
    #[serde(default)]
    cached_input_tokens: Value,
    #[serde(default)]
    cache_write_input_tokens: Value,
    #[serde(default)]
    output_tokens: Value,
}

/// How far an item has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Started,
    Updated,
    Completed,
}

impl Codex {
    pub fn line(&mut self, line: &[u8]) -> ParsedLine {
        let Ok(parsed) = serde_json::from_slice::<Line>(line) else {
            return match is_cut_output(line) {
                true => ParsedLine::Nothing,
                false => ParsedLine::Unknown,
            };
        };
        let phase = match parsed.r#type.as_str() {
            "thread.started" | "turn.started" => return ParsedLine::Nothing,
            "turn.completed" => return self.completed(parsed.usage),
            "turn.failed" => {
                return parsed
                    .error
                    .map_or(ParsedLine::Unknown, |error| failed(&error.message));
            }
            // Told on the way: it usually tries again, and says at its end how that went.
            "error" => {
                return parsed
                    .message
                    .map_or(ParsedLine::Unknown, |message| warning(&message));
            }
            "item.started" => Phase::Started,
            "item.updated" => Phase::Updated,
            "item.completed" => Phase::Completed,
            _ => return ParsedLine::Unknown,
        };
        parsed
            .item
            .map_or(ParsedLine::Unknown, |item| self.item(phase, &item))
    }

    fn item(&mut self, phase: Phase, item: &Item) -> ParsedLine {
        let text = |name: &str| item.rest.get(name).and_then(Value::as_str);
        match item.r#type.as_str() {
            "reasoning" => ParsedLine::Nothing,
            "agent_message" => match (text("text"), phase) {
                (None, _) => ParsedLine::Unknown,
                (Some(said), Phase::Completed) => self.message(said),
                (Some(_), _) => ParsedLine::Nothing,
            },
            "error" => text("message").map_or(ParsedLine::Unknown, warning),
            "command_execution" => match text("command") {
                Some(command) => call(phase, item, ("shell", command), ToolKind::Execute),
                None => ParsedLine::Unknown,
            },
            "file_change" => file_change(phase, item),
            "mcp_tool_call" => match text("tool") {
                Some(tool) => call(
                    phase,
                    item,
                    (tool, text("server").unwrap_or_default()),
                    ToolKind::Other,
                ),
                None => ParsedLine::Unknown,
            },
            "web_search" => call(
                phase,
                item,
                ("web_search", text("query").unwrap_or_default()),
                ToolKind::Fetch,
            ),
            "todo_list" => plan(item),
            _ => ParsedLine::Unknown,
        }
    }

    fn message(&mut self, said: &str) -> ParsedLine {
        self.messages = self.messages.saturating_add(1).min(MAX_COUNT);
        self.last = tame_excerpt(said);
        match said.trim().is_empty() {
            true => ParsedLine::Nothing,
            false => ParsedLine::one(Event::EngineMessage(EngineText {
                text: self.last.clone(),
            })),
        }
    }

    fn completed(&mut self, usage: Option<Usage>) -> ParsedLine {
        let count = |value: &Value| value.as_u64().unwrap_or(0).min(MAX_COUNT);
        let tokens = usage.map(|usage| {
            Event::EngineTokens(EngineTokens {
                messages: self.messages,
                input: count(&usage.input_tokens),
                output: count(&usage.output_tokens),
                cache_read: count(&usage.cached_input_tokens),
                cache_write: count(&usage.cache_write_input_tokens),
            })
        });
        let result = Event::EngineResult(EngineResult::new("completed", self.last.clone(), false));
        ParsedLine::Events(tokens.into_iter().chain([result]).collect())
    }
}

fn failed(message: &str) -> ParsedLine {
    ParsedLine::one(Event::EngineResult(EngineResult::new(
        "failed",
        tame_excerpt(message),
        true,
    )))
}

fn warning(message: &str) -> ParsedLine {
    ParsedLine::one(Event::EngineWarning(EngineText {
        text: tame_excerpt(message),
    }))
}

/// How an item that is complete says it ended.
fn outcome(item: &Item) -> ToolOutcome {
    match item.rest.get("status").and_then(Value::as_str) {
        None | Some("completed") => ToolOutcome::Completed,
        Some("declined") => ToolOutcome::Declined,
        Some(_) => ToolOutcome::Failed,
    }
}

fn call(phase: Phase, item: &Item, (tool, target): (&str, &str), kind: ToolKind) -> ParsedLine {
    // What it printed so far is in the log.
    if phase == Phase::Updated {
        return ParsedLine::Nothing;
    }
    ParsedLine::one(Event::EngineToolCall(EngineToolCall {
        kind: Some(kind),
        outcome: (phase == Phase::Completed).then(|| outcome(item)),
        ..EngineToolCall::new(tame_excerpt(tool), tame_excerpt(target))
    }))
}

fn file_change(phase: Phase, item: &Item) -> ParsedLine {
    let Some(changes) = item.rest.get("changes").and_then(Value::as_array) else {
        return ParsedLine::Unknown;
    };
    let path = |change: &Value| Some(tame_excerpt(change.get("path")?.as_str()?));
    let paths: Vec<String> = changes.iter().filter_map(path).take(MAX_LISTED).collect();
    let target = paths.first().cloned().unwrap_or_default();
    let mut heard = match call(phase, item, ("apply_patch", &target), ToolKind::Edit) {
        ParsedLine::Events(events) => events,
        other => return other,
    };
    for event in &mut heard {
        if let Event::EngineToolCall(call) = event {
            call.paths.clone_from(&paths);
        }
    }
    // A change is told only once it was made.
    if phase == Phase::Completed && outcome(item) == ToolOutcome::Completed {
        let change = |path| Event::EngineFileChange(EngineFileChange { path });
        heard.extend(paths.into_iter().map(change));
    }
    ParsedLine::Events(heard)
}

fn plan(item: &Item) -> ParsedLine {
    let Some(steps) = item.rest.get("items").and_then(Value::as_array) else {
        return ParsedLine::Unknown;
    };
    let step = |step: &Value| {
        let done = step.get("completed").and_then(Value::as_bool) == Some(true);
        let text = step.get("text").and_then(Value::as_str)?;
        Some(format!("[{}] {text}", if done { 'x' } else { ' ' }))
    };
    let steps: Vec<String> = steps.iter().filter_map(step).take(MAX_LISTED).collect();
    ParsedLine::one(Event::EnginePlan(EngineText {
        text: tame_excerpt(&steps.join("; ")),
    }))
}

/// A command's item holds all that the command printed, so it may be longer than a line that is kept;
/// what it was stood in the item's beginning.
fn is_cut_output(line: &[u8]) -> bool {
    let begin = &line[..line.len().min(160)];
    let has = |needle: &[u8]| memchr::memmem::find(begin, needle).is_some();
    line.len() > 1 << 16
        && begin.starts_with(br#"{"type":"item."#)
        && (has(br#""type":"command_execution""#) || has(br#""type":"mcp_tool_call""#))
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
