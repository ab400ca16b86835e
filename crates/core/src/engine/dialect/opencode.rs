//! The output of `opencode run --format json` (1.18): one object per line, named by its `type`; what
//! is said and done is a *part*.
//!
//! It has no closing line: how its last step finished is its last word, once its streams have ended.

use serde::Deserialize;
use serde_json::Value;

use super::{MAX_COUNT, ParsedLine};
use crate::run::event::{
    EngineFileChange, EngineResult, EngineText, EngineTokens, EngineToolCall, Event, ToolKind,
    ToolOutcome,
};
use crate::values::text::tame_excerpt;

/// What was said so far, as far as its end needs it.
#[derive(Debug, Default)]
pub struct Opencode {
    /// The last text it wrote.
    last: String,
    tokens: EngineTokens,
    /// How the last step finished; none while one is under way.
    finished: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    r#type: String,
    #[serde(default)]
    part: Value,
    #[serde(default)]
    error: Value,
}

impl Opencode {
    pub fn line(&mut self, line: &[u8]) -> ParsedLine {
        let Ok(Line {
            r#type,
            part,
            error,
        }) = serde_json::from_slice(line)
        else {
            return ParsedLine::Unknown;
        };
        match r#type.as_str() {
            "step_start" => {
                // Whatever went wrong before, it went on.
                (self.finished, self.error) = (None, None);
                ParsedLine::Nothing
            }
            "reasoning" => ParsedLine::Nothing,
            "text" => part
                .get("text")
                .and_then(Value::as_str)
                .map_or(ParsedLine::Unknown, |said| self.message(said)),
            "tool_use" => tool(&part),
            "step_finish" => self.step(&part),
            "error" => self.error(&error),
            _ => ParsedLine::Unknown,
        }
    }

    fn message(&mut self, said: &str) -> ParsedLine {
        if said.trim().is_empty() {
            return ParsedLine::Nothing;
        }
        self.last = tame_excerpt(said);
        ParsedLine::one(Event::EngineMessage(EngineText {
            text: self.last.clone(),
        }))
    }

    fn step(&mut self, part: &Value) -> ParsedLine {
        let Some(reason) = part.get("reason").and_then(Value::as_str) else {
            return ParsedLine::Unknown;
        };
        let count = |path: &str| part.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let add = |sum: &mut u64, path: &str| *sum = sum.saturating_add(count(path)).min(MAX_COUNT);
        add(&mut self.tokens.input, "/tokens/input");
        add(&mut self.tokens.output, "/tokens/output");
        add(&mut self.tokens.cache_read, "/tokens/cache/read");
        add(&mut self.tokens.cache_write, "/tokens/cache/write");
        self.tokens.messages = self.tokens.messages.saturating_add(1).min(MAX_COUNT);
        self.finished = Some(tame_excerpt(reason));
        ParsedLine::Nothing
    }

    fn error(&mut self, error: &Value) -> ParsedLine {
        let Some(name) = error.get("name").and_then(Value::as_str) else {
            return ParsedLine::Unknown;
        };
        let message = error.pointer("/data/message").and_then(Value::as_str);
        let text = tame_excerpt(message.unwrap_or(name));
        self.error = Some(text.clone());
        ParsedLine::one(Event::EngineWarning(EngineText { text }))
    }

    /// Its last word. A step under way, or one that ended in calls of tools, is none: it was ended
    /// there.
    pub fn ended(&self) -> Vec<Event> {
        let (failed, summary) = match (&self.error, self.finished.as_deref()) {
            (Some(error), _) => (true, error.clone()),
            (None, Some("stop")) => (false, self.last.clone()),
            (None, None | Some("tool-calls")) => return Vec::new(),
            (None, Some(reason)) => (true, format!("its last step finished with {reason}")),
        };
        let claimed = if failed { "failed" } else { "completed" }.to_owned();
        vec![
            Event::EngineTokens(self.tokens),
            Event::EngineResult(EngineResult::new(claimed, summary, failed)),
        ]
    }
}

fn tool(part: &Value) -> ParsedLine {
    let text = |path: &str| part.pointer(path).and_then(Value::as_str);
    let (Some(name), Some(status)) = (text("/tool"), text("/state/status")) else {
        return ParsedLine::Unknown;
    };
    if let Some(steps) = part.pointer("/state/input/todos").and_then(Value::as_array) {
        return plan(steps);
    }
    let path = text("/state/input/filePath").or_else(|| text("/state/input/path"));
    let target = path
        .or_else(|| text("/state/input/command"))
        .or_else(|| text("/state/input/pattern"))
        .unwrap_or_default();
    // A command that ran is complete, whatever it ended with.
    let exit = part.pointer("/state/metadata/exit").and_then(Value::as_i64);
    let outcome = match (status, exit) {
        ("completed", None | Some(0)) if name != "invalid" => ToolOutcome::Completed,
        _ => ToolOutcome::Failed,
    };
    let kind = kind(name);
    let paths: Vec<String> = path.map(tame_excerpt).into_iter().collect();
    let changed = (kind == ToolKind::Edit && outcome == ToolOutcome::Completed)
        .then(|| paths.first().cloned())
        .flatten()
        .map(|path| Event::EngineFileChange(EngineFileChange { path }));
    let call = Event::EngineToolCall(EngineToolCall {
        kind: Some(kind),
        paths,
        outcome: Some(outcome),
        ..EngineToolCall::new(tame_excerpt(name), tame_excerpt(target))
    });
    ParsedLine::Events([call].into_iter().chain(changed).collect())
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "edit" | "write" | "multiedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "bash" => ToolKind::Execute,
        "grep" | "glob" | "list" => ToolKind::Search,
        "webfetch" | "websearch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn plan(steps: &[Value]) -> ParsedLine {
    const MOST: usize = 32;
    let step = |step: &Value| {
        let text = step.get("content").and_then(Value::as_str)?;
        let done = step.get("status").and_then(Value::as_str) == Some("completed");
        Some(format!("[{}] {text}", if done { 'x' } else { ' ' }))
    };
    let steps: Vec<String> = steps.iter().filter_map(step).take(MOST).collect();
    ParsedLine::one(Event::EnginePlan(EngineText {
        text: tame_excerpt(&steps.join("; ")),
    }))
}

#[cfg(test)]
#[path = "opencode_tests.rs"]
mod tests;
