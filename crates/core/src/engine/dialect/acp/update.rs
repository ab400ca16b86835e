//! What an agent tells of its work: messages in pieces, calls of tools that begin and end, plans. All of it is
//! its own words, for people who watch.

use std::collections::VecDeque;

use serde_json::Value;

use super::Scope;
use super::line::ToolCall;
use crate::engine::dialect::ParsedLine;
use crate::run::event::{
    EngineFileChange, EngineText, EngineToolCall, Event, ToolKind, ToolOutcome,
};
use crate::values::text::tame_excerpt;

/// Calls that are remembered from their beginning to their end.
const MAX_CALLS: usize = 64;
/// Of a message, and of what is remembered of a call.
const MAX_TEXT: usize = 4096;
/// Most files named of one call, most steps of one plan.
const MAX_LISTED: usize = 32;

#[derive(Debug, Default)]
pub struct Work {
    /// What has come of a message that may go on.
    saying: String,
    last: String,
    /// Calls under way, the oldest first.
    calls: VecDeque<ToolCall>,
}

impl Work {
    /// The last whole message.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// A message is whole when something else comes.
    pub fn flush(&mut self) -> Option<Event> {
        let said = std::mem::take(&mut self.saying);
        if said.trim().is_empty() {
            return None;
        }
        self.last = tame_excerpt(said.trim());
        Some(Event::EngineMessage(EngineText {
            text: self.last.clone(),
        }))
    }

    /// A call with what was told of it before, where it says nothing itself.
    pub fn completed(&self, call: ToolCall) -> ToolCall {
        let known = self.calls.iter().find(|have| is_same(have, &call));
        match known {
            Some(known) => merged(known, call),
            None => call,
        }
    }

    pub fn take(&mut self, scope: &Scope, update: Value) -> ParsedLine {
        let kind = update.get("sessionUpdate").and_then(Value::as_str);
        match kind {
            Some("agent_message_chunk") => {
                let text = update.pointer("/content/text").and_then(Value::as_str);
                self.say(text.unwrap_or_default());
                ParsedLine::Nothing
            }
            Some("tool_call" | "tool_call_update") => {
                let begins = kind == Some("tool_call");
                match serde_json::from_value::<ToolCall>(update) {
                    Ok(call) => self.call(scope, call, begins),
                    Err(_) => ParsedLine::Unknown,
                }
            }
            Some("plan") => match update.get("entries").and_then(Value::as_array) {
                Some(steps) => self.with_message(vec![plan(steps)]),
                None => ParsedLine::Unknown,
            },
            Some(
                "agent_thought_chunk"
                | "user_message_chunk"
                | "available_commands_update"
                | "current_mode_update"
                | "config_option_update"
                | "session_info_update"
                | "usage_update",
            ) => ParsedLine::Nothing,
            _ => ParsedLine::Unknown,
        }
    }

    fn say(&mut self, text: &str) {
        let room = MAX_TEXT.saturating_sub(self.saying.len());
        self.saying.extend(text.chars().scan(0, |used, c| {
            *used += c.len_utf8();
            (*used <= room).then_some(c)
        }));
    }

    /// Events, after the message that ended with them.
    fn with_message(&mut self, events: Vec<Event>) -> ParsedLine {
        let all: Vec<Event> = self.flush().into_iter().chain(events).collect();
        match all.is_empty() {
            true => ParsedLine::Nothing,
            false => ParsedLine::Events(all),
        }
    }

    fn call(&mut self, scope: &Scope, told: ToolCall, begins: bool) -> ParsedLine {
        let at = self.calls.iter().position(|have| is_same(have, &told));
        let call = match at {
            Some(at) => merged(&self.calls[at], told),
            None => told,
        };
        let outcome = match call.status.as_deref() {
            Some("completed") => Some(ToolOutcome::Completed),
            Some("failed") => Some(ToolOutcome::Failed),
            _ => None,
        };
        let event = event(scope, &call, outcome);
        let changed = match (outcome, call.kind.as_deref()) {
            (Some(ToolOutcome::Completed), Some("edit" | "delete" | "move")) => {
                shown_paths(scope, &call)
            }
            _ => Vec::new(),
        };
        match (at, outcome) {
            (Some(at), Some(_)) => drop(self.calls.remove(at)),
            (Some(at), None) => self.calls[at] = kept(scope, call),
            (None, Some(_)) => {}
            (None, None) => {
                if self.calls.len() == MAX_CALLS {
                    self.calls.pop_front();
                }
                self.calls.push_back(kept(scope, call));
            }
        }
        // Its beginning and its end are told; what lies between is in the log.
        if !begins && outcome.is_none() {
            return ParsedLine::Nothing;
        }
        let change = |path| Event::EngineFileChange(EngineFileChange { path });
        let changes = changed.into_iter().map(change);
        self.with_message([event].into_iter().chain(changes).collect())
    }
}

fn is_same(have: &ToolCall, call: &ToolCall) -> bool {
    have.tool_call_id == call.tool_call_id
}

fn merged(known: &ToolCall, call: ToolCall) -> ToolCall {
    ToolCall {
        tool_call_id: call.tool_call_id,
        title: call.title.or_else(|| known.title.clone()),
        kind: call.kind.or_else(|| known.kind.clone()),
        status: call.status.or_else(|| known.status.clone()),
        locations: call.locations.or_else(|| known.locations.clone()),
        content: call.content.or_else(|| known.content.clone()),
        raw_input: call.raw_input.or_else(|| known.raw_input.clone()),
    }
}

/// What is remembered of a call: its words and its files, not what it holds. A file that cannot be remembered
/// stays as one that lies nowhere, so that no question about the call is answered with yes for want of it.
fn kept(scope: &Scope, call: ToolCall) -> ToolCall {
    let short = |text: String| text.chars().take(MAX_TEXT / 4).collect::<String>();
    let paths = call.paths().filter(|paths| paths.len() <= MAX_LISTED);
    let paths = paths.unwrap_or_else(|| vec![String::new()]);
    let place = |path: &String| match path.len() <= MAX_TEXT / 4 {
        true => serde_json::json!({"path": scope.shown(path)}),
        false => serde_json::json!({"path": ""}),
    };
    let places: Vec<Value> = paths.iter().map(place).collect();
    ToolCall {
        tool_call_id: call.tool_call_id.chars().take(MAX_TEXT).collect(),
        title: call.title.map(short),
        kind: call.kind.map(short),
        status: call.status.map(short),
        locations: (!places.is_empty()).then_some(places),
        content: None,
        raw_input: None,
    }
}

fn event(scope: &Scope, call: &ToolCall, outcome: Option<ToolOutcome>) -> Event {
    let kind = call.kind.as_deref().unwrap_or("other");
    let title = call.title.as_deref().unwrap_or_default();
    Event::EngineToolCall(EngineToolCall {
        kind: Some(self::kind(kind)),
        paths: shown_paths(scope, call),
        outcome,
        ..EngineToolCall::new(tame_excerpt(kind), tame_excerpt(title))
    })
}

pub fn shown_paths(scope: &Scope, call: &ToolCall) -> Vec<String> {
    let paths = call.paths().unwrap_or_default();
    let shown = paths.iter().map(|path| tame_excerpt(scope.shown(path)));
    let mut shown: Vec<String> = shown.take(MAX_LISTED).collect();
    shown.dedup();
    shown
}

pub fn kind(word: &str) -> ToolKind {
    match word {
        "read" => ToolKind::Read,
        "edit" | "delete" | "move" => ToolKind::Edit,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn plan(steps: &[Value]) -> Event {
    let step = |step: &Value| {
        let text = step.get("content").and_then(Value::as_str)?;
        let done = step.get("status").and_then(Value::as_str) == Some("completed");
        Some(format!("[{}] {text}", if done { 'x' } else { ' ' }))
    };
    let steps: Vec<String> = steps.iter().filter_map(step).take(MAX_LISTED).collect();
    Event::EnginePlan(EngineText {
        text: tame_excerpt(&steps.join("; ")),
    })
}
