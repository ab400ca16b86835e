//! Several runs on one terminal: what has ended scrolls by, what is under way stays below it, one
//! line a run. Where nobody watches, a plain line for each that ended.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cto_core::values::ids::RunId;

use super::Progress;
use crate::host::Env;
use crate::screen::ascii;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    Silent,
    Plain,
    Live,
}

pub struct Board {
    style: Style,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By index: name and step of every run under way.
    live: BTreeMap<usize, (String, String)>,
    /// Lines on the terminal that are ours to draw again.
    drawn: usize,
}

impl Board {
    pub fn for_stderr(silent: bool, env: &Env) -> Self {
        let dumb = env.get("TERM").is_some_and(|term| term == "dumb");
        let style = match (silent, std::io::stderr().is_terminal() && !dumb) {
            (true, _) => Style::Silent,
            (false, true) => Style::Live,
            (false, false) => Style::Plain,
        };
        Self {
            style,
            state: Mutex::default(),
        }
    }

    /// The line of one run, from now until `ended`.
    pub fn line(&self, index: usize, name: &str) -> Line<'_> {
        Line {
            board: self,
            index,
            name: name.to_owned(),
        }
    }

    /// Replaces the line of a run by the one that stays.
    pub fn ended(&self, index: usize, text: &str) {
        let mut state = self.state();
        state.live.remove(&index);
        self.draw(&mut state, Some(text));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, state: &mut State, ended: Option<&str>) {
        let stays = ended.map(|line| format!("{line}\n")).unwrap_or_default();
        let text = match self.style {
            Style::Silent => return,
            Style::Plain => stays,
            Style::Live => state.redraw(&stays, columns().saturating_sub(1)),
        };
        // A closed terminal is no reason to stop a run.
        let _ = std::io::stderr().write_all(ascii::spelled(&text).as_bytes());
    }
}

impl State {
    /// Takes back the lines that were drawn, adds what stays, and draws the others again.
    fn redraw(&mut self, stays: &str, width: usize) -> String {
        let back = if self.drawn > 0 {
            format!("\x1b[{}F\x1b[J", self.drawn)
        } else {
            String::new()
        };
        let live = self
            .live
            .values()
            .map(|(name, step)| clipped(&format!("  … {name}  {step}"), width) + "\n");
        let text = format!("{back}{stays}{}", live.collect::<String>());
        self.drawn = self.live.len();
        text
    }
}

/// A line that wrapped would be two, and drawn over wrongly.
fn clipped(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

fn columns() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .map_or(80, |size| usize::from(size.ws_col).max(20))
}

/// What one run tells of itself.
pub struct Line<'a> {
    board: &'a Board,
    index: usize,
    name: String,
}

impl Line<'_> {
    fn say(&self, step: &str) {
        let mut state = self.board.state();
        state
            .live
            .insert(self.index, (self.name.clone(), step.to_owned()));
        self.board.draw(&mut state, None);
    }
}

impl Progress for Line<'_> {
    fn started(&mut self, _: &RunId) {
        self.say("start");
    }

    fn step(&mut self, name: &str, _: &str) {
        self.say(name);
    }

    fn done(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_never_wrap() {
        assert_eq!(clipped("  … äöü  engine", 7), "  … äöü");
        assert_eq!(clipped("short", 80), "short");
    }

    #[test]
    fn what_ended_stays_and_the_rest_is_drawn_again() {
        let board = Board {
            style: Style::Silent,
            state: Mutex::default(),
        };
        let redraw = |stays: &str| board.state().redraw(stays, 14);
        board.line(0, "a").step("engine", "");
        assert_eq!(redraw(""), "  … a  engine\n");
        board.line(1, "long-name").step("verify", "");
        assert_eq!(redraw(""), "\x1b[1F\x1b[J  … a  engine\n  … long-name \n");
        board.ended(0, "pass a");
        assert_eq!(redraw("pass a\n"), "\x1b[2F\x1b[Jpass a\n  … long-name \n");
        board.ended(1, "pass");
        assert_eq!(redraw("pass\n"), "\x1b[1F\x1b[Jpass\n");
        assert_eq!(redraw(""), "");
    }
}
