//! Progress on standard error: a live line a step for a person who watches, plain lines for a log.
//!
//! - this file: who is told what; `stage.rs` steps under way, told from any thread; `pump.rs` draws them
//! - `board.rs` several runs; `bell.rs` the end of a long one

pub mod bell;

mod board;
mod pump;
mod stage;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use cto_core::operator::agent_line::counts_text;
use cto_core::operator::timeline::duration_text;
use cto_core::run::event::Event;
use cto_core::values::ids::RunId;
use cto_core::wire::calls::WireCounts;

use crate::host::Env;
use crate::screen::ascii;
use crate::screen::terminal;

pub use board::Board;
use pump::Pump;
use stage::Shown;
pub use stage::{Named, Stage, Step};

pub trait Progress {
    fn started(&mut self, run_id: &RunId);
    fn step(&mut self, name: &str, detail: &str);
    /// What the engine prints that its dialect does not read, for those who asked to see it.
    fn engine_output(&mut self, _: &[u8]) {}
    /// What the engine does, so long after the run began.
    fn engine_event(&mut self, _: Duration, _: &Event) {}
    /// Where it can be read what its model was asked until now.
    fn engine_wire(&mut self, _: Wire) {}
    /// Where steps are told as they begin, are heard and end, from any thread.
    fn stage(&self) -> Stage {
        Stage::default()
    }
    fn done(&mut self);
}

/// Counts of an engine's wire, whenever they are wanted.
pub type Wire = Box<dyn Fn() -> WireCounts + Send>;

/// For `--json` and tests.
pub struct Quiet;

impl Progress for Quiet {
    fn started(&mut self, _: &RunId) {}
    fn step(&mut self, _: &str, _: &str) {}
    fn done(&mut self) {}
}

/// For logs: a line when a step begins.
pub struct Plain {
    begun: Instant,
    /// Of the engine that is at work.
    wire: Option<Wire>,
}

impl Plain {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            wire: None,
        }
    }

    fn line(&self, text: &str) {
        say(&format!("{:>9}  {text}\n", elapsed(self.begun)));
    }

    /// What its model was asked, once it is known.
    fn settle(&mut self) {
        if let Some(wire) = self.wire.take() {
            self.line(&format!("engine: {}", counts_text(wire())));
        }
    }
}

impl Progress for Plain {
    fn started(&mut self, run_id: &RunId) {
        say(&format!("run {run_id}\n"));
    }

    fn step(&mut self, name: &str, detail: &str) {
        self.settle();
        self.line(&format!("{name}: {detail}"));
    }

    fn engine_wire(&mut self, wire: Wire) {
        self.wire = Some(wire);
    }

    fn done(&mut self) {
        self.settle();
        self.line("done");
    }
}

/// A person watches, a log listens, or nobody wants to know. `verbose`: what engine and checks print is
/// shown as well, wherever it goes.
pub fn for_stderr(quiet: bool, verbose: bool, env: &Env) -> Box<dyn Progress> {
    let watched = !quiet && std::io::stderr().is_terminal();
    if !watched && !verbose {
        return match quiet {
            true => Box::new(Quiet),
            false => Box::new(Plain::new()),
        };
    }
    let shown = Shown {
        live: watched && !verbose,
        lines: watched,
        output: verbose,
    };
    Box::new(Watched {
        pump: Pump::start(shown, bell::takes_escapes(env)),
        frame: None,
        plain: (!quiet && !watched).then(Plain::new),
        watched,
    })
}

fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    // A closed terminal is no reason to stop a run.
    let _ = stderr
        .write_all(ascii::spelled(text).as_bytes())
        .and_then(|()| stderr.flush());
}

fn elapsed(since: Instant) -> String {
    duration_text(i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX))
}

/// Steps as they go on, for somebody who watches or wants all of it.
struct Watched {
    pump: Pump,
    /// The step of the spine that is under way.
    frame: Option<Step>,
    /// Where no terminal listens: the lines of a log, between what is printed.
    plain: Option<Plain>,
    watched: bool,
}

impl Watched {
    fn end_frame(&mut self) {
        if let Some(frame) = self.frame.take() {
            frame.end("", true);
        }
    }
}

impl Progress for Watched {
    fn started(&mut self, run_id: &RunId) {
        match &mut self.plain {
            Some(plain) => plain.started(run_id),
            None if self.watched => say(&format!("\x1b[2mrun {run_id}\x1b[0m\n")),
            None => {}
        }
    }

    fn step(&mut self, name: &str, detail: &str) {
        self.end_frame();
        self.frame = Some(self.pump.stage().frame(name, detail));
        if let Some(plain) = &mut self.plain {
            self.pump.flush();
            plain.step(name, detail);
        }
    }

    fn engine_output(&mut self, bytes: &[u8]) {
        if let Some(frame) = &mut self.frame {
            frame.hear(bytes);
        }
    }

    fn engine_event(&mut self, at: Duration, event: &Event) {
        if let Some(frame) = &self.frame {
            frame.did(at, event);
        }
    }

    fn engine_wire(&mut self, wire: Wire) {
        match (&mut self.plain, &self.frame) {
            (Some(plain), _) => plain.engine_wire(wire),
            (None, Some(frame)) => frame.on_wire(wire),
            (None, None) => {}
        }
    }

    fn stage(&self) -> Stage {
        self.pump.stage().clone()
    }

    fn done(&mut self) {
        self.end_frame();
        self.pump.stop();
        match &mut self.plain {
            Some(plain) => plain.done(),
            None if self.watched => say("\n"),
            None => {}
        }
    }
}

impl Drop for Watched {
    /// A run that could not be done leaves the cursor at the beginning of a line.
    fn drop(&mut self) {
        self.end_frame();
        self.pump.stop();
    }
}

/// How far a list of rows is, on one line that is drawn over; nothing where nobody watches.
pub struct Rows {
    watched: bool,
    ended: usize,
    all: usize,
    drawn: usize,
}

impl Rows {
    pub fn for_stderr(quiet: bool, all: usize) -> Self {
        Self {
            watched: !quiet && std::io::stderr().is_terminal(),
            ended: 0,
            all,
            drawn: 0,
        }
    }

    pub fn ended(&mut self, name: &str) {
        self.ended += 1;
        self.draw(&format!("  {} of {}  {name}", self.ended, self.all));
    }

    pub fn done(&mut self) {
        self.draw("");
        self.draw("");
    }

    fn draw(&mut self, line: &str) {
        if self.watched {
            let cover = " ".repeat(self.drawn.saturating_sub(terminal::width(line)));
            self.drawn = terminal::width(line);
            say(&format!("\r{line}{cover}"));
        }
    }
}
