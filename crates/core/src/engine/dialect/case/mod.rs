//! How Case talks: standard output is for people and says nothing here, standard error holds JSON lines
//! of a log, and what it does stands in an event log below `.case/`, one object per line. All three are
//! the engine's to forge: what is read of them are claims.
//!
//! - this file: lines in, events out; `account.rs` what of them is kept; `outcome.rs` what it comes to
//!
//! Its exit code says nothing: a pipeline that failed ends with 0 like any other. Phases are data: one
//! that nobody knows here is told like the rest.

mod account;
mod outcome;

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::{ParsedLine, WireSeen};
use crate::run::event::{
    EngineFileChange, EnginePhase, EngineReview, EngineText, EngineToolCall, Event, ToolOutcome,
};
use crate::values::text::tame_excerpt;
use crate::values::time::Utc;

use account::{Account, PhaseEnd, Review, Settled};

/// Most calls of tools that may be open at one time.
const MAX_PENDING: usize = 64;
/// Logs whose numbering is followed, and words about one that does not count up.
const MAX_LOGS: usize = 8;
const MAX_WARNINGS: u32 = 20;
/// The class of a failure that stands on standard error alone.
const PROTOCOL_CLASS: &str = "agent-protocol-error";

#[derive(Debug, Default)]
pub struct Case {
    account: Account,
    /// A review whose meaning the next line decides.
    review: Option<Review>,
    /// Calls that were begun: id, tool, what it is about.
    pending: VecDeque<(String, String, String)>,
    /// The last number of each log, by the run it names.
    numbers: BTreeMap<String, u64>,
    /// Lines since the last that has a number, which could not be read and may have had one.
    unread: u64,
    warned: u32,
    /// The revision that was asked for last.
    revision: Option<u64>,
}

impl Case {
    /// A line of the event log.
    pub fn log_line(&mut self, line: &[u8]) -> ParsedLine {
        if line.iter().all(u8::is_ascii_whitespace) {
            return ParsedLine::Nothing;
        }
        let Ok(Value::Object(line)) = serde_json::from_slice(line) else {
            return self.unread();
        };
        let line = Value::Object(line);
        let Some(name) = line.get("event").and_then(Value::as_str) else {
            return self.unread();
        };
        let mut events = self.numbered(&line);
        match name {
            "pipeline_start" => events.push(plan(&line)),
            "phase_start" => {
                events.extend(self.settle(&Settled::Passed));
                self.account.began(&word(&line, "phase"));
                events.push(phase(&line, None, String::new(), self.revision));
            }
            "phase_end" => events.extend(self.phase_ends(&line)),
            "tool_start" => events.push(self.tool_begins(&line)),
            "tool_end" => events.extend(self.tool_ends(&line)),
            "revision_requested" => events.extend(self.revision(&line)),
            "revision_budget_exhausted" => {
                events.extend(self.settle(&Settled::NoRevisionLeft));
                events.push(warning("no revision is left".into()));
            }
            "pipeline_end" => {
                events.extend(self.settle(&Settled::Passed));
                let agent = word(&line, "failedAgent");
                if self.account.ended(word(&line, "outcome"), agent) {
                    events.extend(
                        self.warns("its event log ends more than once; a failure stays one"),
                    );
                }
            }
            "status_changed" => {}
            _ => return ParsedLine::Unknown,
        }
        match events.is_empty() {
            true => ParsedLine::Nothing,
            false => ParsedLine::Events(events),
        }
    }

    /// A line of standard error. Only one word of it is kept: that a failure was one of the protocol.
    pub fn stderr_line(&mut self, line: &[u8]) -> ParsedLine {
        if memchr::memmem::find(line, PROTOCOL_CLASS.as_bytes()).is_some()
            && serde_json::from_slice::<Value>(line)
                .is_ok_and(|line| says(&line, PROTOCOL_CLASS, 4))
        {
            self.account.protocol_on_stderr = true;
        }
        ParsedLine::Nothing
    }

    /// Its pipeline has said how it ended.
    pub fn has_ended(&self) -> bool {
        self.account.has_ended()
    }

    /// Nothing comes any more: the one result, from all it said and from what the wire saw.
    pub fn ended(&mut self, wire: &WireSeen) -> Vec<Event> {
        let mut events: Vec<Event> = self.settle(&Settled::Passed).into_iter().collect();
        events.extend(self.account.healed_nothing().map(Event::EngineReview));
        let result = outcome::of(&self.account, wire);
        events.extend(result.map(Event::EngineResult));
        events
    }

    fn phase_ends(&mut self, line: &Value) -> Vec<Event> {
        let outcome = word(line, "outcome");
        // Told of phases that never ran, also after those that did.
        if outcome == "skipped" {
            return Vec::new();
        }
        let mut events: Vec<Event> = self.settle(&Settled::Passed).into_iter().collect();
        let name = word(line, "phase");
        let result = line.get("result").unwrap_or(&Value::Null);
        let end = PhaseEnd::read(&outcome, line, result);
        let summary = end.said.clone();
        if is_review(&name) || is_review(&word(line, "agent")) {
            self.review = Review::read(&end, result);
        }
        let commit = result.get("artifacts").map(|made| word(made, "commit"));
        self.account
            .phase_ended(name, end, commit.filter(|id| !id.is_empty()));
        events.push(phase(line, Some(outcome), summary, self.revision));
        events
    }

    fn revision(&mut self, line: &Value) -> Vec<Event> {
        let categories = list(line.get("failedCategories"));
        let mut events: Vec<Event> = self.settle(&Settled::RevisionAsked).into_iter().collect();
        let cycle = line.get("cycle").and_then(Value::as_u64).unwrap_or(0);
        self.revision = Some(cycle.min(super::MAX_COUNT));
        let of = match categories.is_empty() {
            true => String::new(),
            false => format!(" for {}", categories.join(", ")),
        };
        let text = format!("{} asks for revision {cycle}{of}", word(line, "source"));
        events.push(warning(text));
        events
    }

    /// What the last review means, now that it is known what came of it.
    fn settle(&mut self, how: &Settled) -> Option<Event> {
        let review = self.review.take()?;
        let (accepted, summary) = review.verdict(how);
        self.account.rejected = !accepted;
        self.account.ever_rejected |= !accepted;
        let summary = tame_excerpt(&summary);
        Some(Event::EngineReview(EngineReview { accepted, summary }))
    }

    fn tool_begins(&mut self, line: &Value) -> Event {
        let args = line.get("args").unwrap_or(&Value::Null);
        let about = ["path", "file_path", "command", "pattern"];
        let target = about.iter().map(|name| word(args, name));
        let target = target.into_iter().find(|text| !text.is_empty());
        let (tool, target) = (word(line, "tool"), target.unwrap_or_default());
        if self.pending.len() == MAX_PENDING {
            self.pending.pop_front();
        }
        self.pending
            .push_back((word(line, "toolCallId"), tool.clone(), target.clone()));
        Event::EngineToolCall(EngineToolCall::new(tool, target))
    }

    fn tool_ends(&mut self, line: &Value) -> Vec<Event> {
        let id = word(line, "toolCallId");
        let at = self.pending.iter().position(|(open, ..)| *open == id);
        let Some((_, tool, target)) = at.and_then(|at| self.pending.remove(at)) else {
            return Vec::new();
        };
        let failed = line.get("isError").and_then(Value::as_bool) == Some(true);
        let mut call = EngineToolCall::new(tool.clone(), target.clone());
        call.outcome = Some(match failed {
            true => ToolOutcome::Failed,
            false => ToolOutcome::Completed,
        });
        let mut events = vec![Event::EngineToolCall(call)];
        if !failed && matches!(tool.as_str(), "write" | "edit") {
            events.push(Event::EngineFileChange(EngineFileChange { path: target }));
        }
        events
    }

    fn unread(&mut self) -> ParsedLine {
        self.unread = self.unread.saturating_add(1);
        ParsedLine::Unknown
    }

    /// Lines are numbered one by one, by each log. One that is not says so, a few times, and from then on nothing that
    /// is said heals what was said before.
    fn numbered(&mut self, line: &Value) -> Vec<Event> {
        let wrong = self.out_of_order(line);
        self.account.is_doubtful |= wrong.is_some();
        wrong
            .and_then(|what| self.warns(&what))
            .into_iter()
            .collect()
    }

    fn out_of_order(&mut self, line: &Value) -> Option<String> {
        let Some(number) = line.get("sequence").and_then(Value::as_u64) else {
            return Some("a line of its event log has no number".into());
        };
        // What could not be read may have had the numbers between.
        let missed = std::mem::take(&mut self.unread);
        let run = word(line, "runId");
        let is_new = !self.numbers.contains_key(&run);
        if is_new && self.numbers.len() == MAX_LOGS {
            return Some("its event log is about too many runs".into());
        }
        let follows = |before: u64| {
            let next = before.saturating_add(1);
            number >= next && number - next <= missed
        };
        match self.numbers.insert(run, number) {
            Some(before) if !follows(before) => Some(format!(
                "its event log is not whole: {number} follows {before}"
            )),
            None if is_new && self.numbers.len() > 1 => {
                Some("its event log is about more than one run".into())
            }
            _ => None,
        }
    }

    fn warns(&mut self, text: &str) -> Option<Event> {
        self.warned = self.warned.saturating_add(1);
        (self.warned <= MAX_WARNINGS).then(|| warning(text.to_owned()))
    }
}

fn is_review(name: &str) -> bool {
    name.starts_with("review")
}

fn warning(text: String) -> Event {
    Event::EngineWarning(EngineText {
        text: tame_excerpt(&text),
    })
}

/// A text of a line, made harmless; empty where there is none.
fn word(line: &Value, name: &str) -> String {
    line.get(name)
        .and_then(Value::as_str)
        .map(tame_excerpt)
        .unwrap_or_default()
}

/// Names in a list, whichever way it holds them.
fn list(value: Option<&Value>) -> Vec<String> {
    const MOST: usize = 32;
    let named = |value: &Value| match value {
        Value::String(text) => Some(tame_excerpt(text)),
        Value::Object(_) => ["category", "phase", "agent", "name", "id"]
            .iter()
            .map(|key| word(value, key))
            .find(|text| !text.is_empty()),
        _ => None,
    };
    let entries = value.and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .take(MOST)
        .filter_map(named)
        .collect()
}

fn phase(line: &Value, outcome: Option<String>, summary: String, revision: Option<u64>) -> Event {
    let at = line.get("ts").and_then(|ts| match ts {
        Value::String(text) => Utc::from_rfc3339(text),
        Value::Number(millis) => millis.as_i64().and_then(|ms| Utc::from_millis(ms).ok()),
        _ => None,
    });
    Event::EnginePhase(EnginePhase {
        phase: word(line, "phase"),
        agent: word(line, "agent"),
        outcome,
        summary,
        revision,
        at,
    })
}

fn plan(line: &Value) -> Event {
    let phases = list(line.get("plan")).join(" → ");
    let profile = word(line, "profile");
    let text = match phases.is_empty() {
        true => format!("profile {profile}"),
        false => format!("{profile}: {phases}"),
    };
    Event::EnginePlan(EngineText {
        text: tame_excerpt(&text),
    })
}

/// Does a value, or one in it, say exactly this?
fn says(value: &Value, wanted: &str, depth: u8) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(all) if depth > 0 => all.iter().any(|one| says(one, wanted, depth - 1)),
        Value::Object(all) if depth > 0 => all.values().any(|one| says(one, wanted, depth - 1)),
        _ => false,
    }
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
