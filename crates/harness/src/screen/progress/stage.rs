//! What is under way, told by whoever does it, from any thread: steps that begin, are heard and end. It is
//! drawn elsewhere (`pump.rs`); nobody who works ever waits for a terminal.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cto_core::operator::agent_line::{AgentLine, counts_text, replay_row};
use cto_core::operator::timeline::duration_text;
use cto_core::run::event::Event;
use cto_core::values::text::tame;

use super::Wire;
use super::pump::fitted;
use crate::screen::terminal;

/// What of it is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// Lines that are drawn anew while a step is under way.
    pub live: bool,
    /// A line for each step that stays.
    pub lines: bool,
    /// Everything the steps print.
    pub output: bool,
}

/// Lines that wait to be shown; what comes beyond is counted.
const MOST_WAITING: usize = 4096;
/// The end of a line that is not whole yet.
const MOST_LINE: usize = 4096;
/// An output line is looked at this often at most.
const EACH: Duration = Duration::from_millis(100);
/// Columns of a name, and of what it is about where there is room.
const NAME: usize = 10;
const DETAIL: usize = 28;
/// Of a time.
const TIME: usize = 9;

/// Steps under way, of one run.
#[derive(Clone, Default)]
pub struct Stage {
    pub(super) shared: Arc<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub wake: Condvar,
    shown: Shown,
}

#[derive(Default)]
pub(super) struct State {
    next: u64,
    pub live: Vec<LiveStep>,
    pub waiting: VecDeque<String>,
    pub dropped: u64,
    /// Steps that did not come to their end.
    cut: Vec<String>,
    pub ended: bool,
}

pub(super) struct LiveStep {
    id: u64,
    name: String,
    detail: String,
    since: Instant,
    /// The last line it printed, safe to show.
    said: String,
    /// It stands for others that are shown while they are under way.
    pub is_frame: bool,
    /// The engine whose step it is, at work.
    agent: Agent,
}

/// An engine at work: the last thing it did, and what its model was asked.
#[derive(Default)]
struct Agent {
    line: AgentLine,
    wire: Option<Wire>,
}

impl Agent {
    fn text(&self, columns: usize) -> String {
        self.line
            .text(self.wire.as_ref().map(|wire| wire()), columns)
    }
}

impl LiveStep {
    /// As it looks now.
    pub fn line(&self, columns: usize) -> String {
        let doing = self.agent.text(wide_room(columns));
        if !doing.is_empty() {
            return wide(&self.name, &doing, &elapsed(self.since), columns);
        }
        line(
            &self.name,
            &self.detail,
            &elapsed(self.since),
            &self.said,
            columns,
        )
    }
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        // What is drawn matters less than that the run goes on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a step is, for those who watch.
#[derive(Clone, Copy, Debug)]
pub struct Named<'n> {
    pub name: &'n str,
    pub detail: &'n str,
    /// One of several: its number, and how many there are.
    pub of: Option<(usize, usize)>,
    /// Nothing of it stays when it has ended.
    pub passing: bool,
}

impl<'n> Named<'n> {
    pub fn new(name: &'n str, detail: &'n str) -> Self {
        Self {
            name,
            detail,
            of: None,
            passing: false,
        }
    }

    fn about(&self) -> String {
        match self.of {
            Some((number, all)) if all > 1 => format!("{number} of {all}: {}", tame(self.detail)),
            _ => tame(self.detail),
        }
    }
}

impl Stage {
    pub fn new(shown: Shown) -> Self {
        Self {
            shared: Arc::new(Shared {
                shown,
                ..Shared::default()
            }),
        }
    }

    /// A step begins. It ends with [`Step::end`]; one that is dropped was cut short.
    pub fn begin(&self, named: Named<'_>) -> Step {
        self.enter(named, false)
    }

    /// A step made of others.
    pub(super) fn frame(&self, name: &str, detail: &str) -> Step {
        self.enter(Named::new(name, detail), true)
    }

    fn enter(&self, named: Named<'_>, is_frame: bool) -> Step {
        let shown = self.shared.shown;
        let (since, about) = (Instant::now(), named.about());
        let mut state = self.shared.state();
        state.next += 1;
        let id = state.next;
        if shown.lines && !shown.live {
            state.show(format!("  … {:<NAME$} {about}", named.name));
        }
        state.live.push(LiveStep {
            id,
            name: named.name.to_owned(),
            detail: about,
            since,
            said: String::new(),
            is_frame,
            agent: Agent::default(),
        });
        drop(state);
        self.shared.wake.notify_all();
        Step {
            stage: self.clone(),
            id,
            prefix: format!("{} | ", named.name),
            passing: named.passing,
            is_frame,
            line: Vec::new(),
            last: Vec::new(),
            published: None,
            over: false,
        }
    }

    /// A line that stays, of something nobody saw under way.
    pub fn tell(&self, name: &str, detail: &str, took: Duration) {
        if self.shared.shown.lines {
            let time = duration_text(i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
            let line = line(name, &tame(detail), &time, "", room());
            self.shared.state().show(format!("  • {line}"));
            self.shared.wake.notify_all();
        }
    }

    /// What did not come to its end, in words.
    pub fn cut_short(&self) -> Vec<String> {
        self.shared.state().cut.clone()
    }
}

impl State {
    pub(super) fn show(&mut self, line: String) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(line);
        } else {
            self.dropped += 1;
        }
    }
}

/// One step, held by whoever does it.
pub struct Step {
    stage: Stage,
    id: u64,
    prefix: String,
    passing: bool,
    is_frame: bool,
    /// The line that is not whole yet, its beginning.
    line: Vec<u8>,
    /// The last whole line that says something.
    last: Vec<u8>,
    published: Option<Instant>,
    over: bool,
}

impl Step {
    /// What it prints, after the redactor. Never waits: what is shown may lag behind.
    pub fn hear(&mut self, clean: &[u8]) {
        let shown = self.stage.shared.shown;
        if !shown.live && !shown.output {
            return;
        }
        // Of a flood only the end is looked at, where nobody reads all of it.
        let from = match shown.output {
            true => 0,
            false => clean.len().saturating_sub(2 * MOST_LINE),
        };
        let mut whole = Vec::new();
        for piece in clean[from..].split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let room = MOST_LINE.saturating_sub(self.line.len());
            let ends = matches!(piece.last(), Some(b'\n' | b'\r'));
            let text = &piece[..piece.len() - usize::from(ends)];
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                let line = std::mem::take(&mut self.line);
                if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                    if shown.output {
                        whole.push(readable(&line));
                    }
                    self.last = line;
                }
            }
        }
        if shown.output {
            self.stream(whole);
        } else if self.published.is_none_or(|at| at.elapsed() >= EACH) {
            self.publish();
        }
    }

    /// Something the engine of this step did.
    pub(super) fn did(&self, at: Duration, event: &Event) {
        let shared = &self.stage.shared;
        if shared.shown.output {
            let at = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
            self.stream(vec![replay_row(at, event)]);
        } else if shared.shown.live {
            self.of_agent(|agent| agent.line.take(event));
        }
    }

    /// Where it is read what its model was asked.
    pub(super) fn on_wire(&self, wire: Wire) {
        self.of_agent(|agent| agent.wire = Some(wire));
    }

    fn of_agent(&self, change: impl FnOnce(&mut Agent)) {
        let mut state = self.stage.shared.state();
        if let Some(step) = state.live.iter_mut().find(|step| step.id == self.id) {
            change(&mut step.agent);
        }
    }

    fn stream(&self, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        let mut state = self.stage.shared.state();
        // Alone, an engine speaks for itself.
        let prefix = if self.is_frame { "" } else { &self.prefix };
        for line in lines {
            state.show(format!("{prefix}{line}"));
        }
        drop(state);
        self.stage.shared.wake.notify_all();
    }

    fn publish(&mut self) {
        // Somebody draws or tells: the next line will do.
        let Ok(mut state) = self.stage.shared.state.try_lock() else {
            return;
        };
        if let Some(step) = state.live.iter_mut().find(|step| step.id == self.id) {
            step.said = readable(&self.last);
        }
        self.published = Some(Instant::now());
    }

    /// It came to its end. Its last words stay where that was not the end it was to have.
    pub fn end(mut self, how: &str, as_wanted: bool) {
        self.over = true;
        let rest = std::mem::take(&mut self.line);
        if rest.iter().any(|byte| !byte.is_ascii_whitespace()) {
            if self.stage.shared.shown.output {
                self.stream(vec![readable(&rest)]);
            }
            self.last = rest;
        }
        let said = match as_wanted {
            true => String::new(),
            false => readable(&self.last),
        };
        self.leave(how, &said);
    }

    fn leave(&self, how: &str, said: &str) {
        let shared = &self.stage.shared;
        let mut state = shared.state();
        let Some(at) = state.live.iter().position(|step| step.id == self.id) else {
            return;
        };
        let mut step = state.live.remove(at);
        if let Some(wire) = &step.agent.wire {
            step.detail = format!("{}, {}", step.detail, counts_text(wire()));
        }
        if !self.over && !self.is_frame {
            let cut = format!(
                "{} ({}, after {})",
                step.name,
                step.detail,
                elapsed(step.since)
            );
            state.cut.push(cut);
        }
        if shared.shown.lines && !self.passing {
            let words = match (how, said) {
                ("", said) => said.to_owned(),
                (how, "") => how.to_owned(),
                (how, said) => format!("{how}: {said}"),
            };
            let time = elapsed(step.since);
            let line = line(&step.name, &step.detail, &time, &words, room());
            state.show(fitted(&format!("  • {line}"), room().saturating_add(4)));
        }
        drop(state);
        shared.wake.notify_all();
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.over {
            let how = if self.is_frame { "" } else { "stopped" };
            self.leave(how, "");
        }
    }
}

/// Columns behind the mark of a line.
fn room() -> usize {
    let columns = terminal::columns_of(&std::io::stderr());
    columns.map_or(usize::MAX, |columns| columns.saturating_sub(5))
}

/// A name, what it is about, a time and last words, in so many columns.
fn line(name: &str, detail: &str, time: &str, said: &str, columns: usize) -> String {
    let room = columns.saturating_sub(NAME + 1 + 1 + TIME);
    // Last words get a third of a narrow line, and all that is left of a wide one.
    let wanted = match said.is_empty() {
        true => DETAIL,
        false => DETAIL.min(room / 5 * 3),
    };
    let cut = terminal::cut(detail, wanted.min(room));
    let blanks = " ".repeat(wanted.min(room).saturating_sub(terminal::width(&cut)));
    let left = format!("{name:<NAME$} {cut}{blanks} {time}");
    if said.is_empty() {
        return left;
    }
    let used = terminal::width(&left).max(NAME + 1 + wanted + 1 + TIME);
    let room = columns.saturating_sub(used + 1);
    match room {
        0..6 => left,
        room => {
            let blanks = " ".repeat(used + 1 - terminal::width(&left));
            format!("{left}{blanks}{}", terminal::cut(said, room))
        }
    }
}

/// Columns for what an engine does, beside its name and its time.
fn wide_room(columns: usize) -> usize {
    columns.saturating_sub(NAME + 1 + 1 + TIME).min(100)
}

/// A name, all that fits of what it does, and a time that stays in its place.
fn wide(name: &str, doing: &str, time: &str, columns: usize) -> String {
    let room = wide_room(columns);
    let cut = terminal::cut(doing, room);
    let blanks = " ".repeat(room.saturating_sub(terminal::width(&cut)));
    format!("{name:<NAME$} {cut}{blanks} {time}")
}

/// Text of others as one line: without styles, and with nothing a terminal would obey.
fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = anstream::adapter::strip_str(&text).to_string();
    tame(plain.replace('\t', " ").trim_end())
}

fn elapsed(since: Instant) -> String {
    duration_text(i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
