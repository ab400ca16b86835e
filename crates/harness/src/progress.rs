//! Progress on a terminal: one line a step, on standard error; nothing when nobody watches.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use cto_core::ids::RunId;

pub trait Progress {
    fn started(&mut self, run_id: &RunId);
    fn step(&mut self, name: &str, detail: &str);
    /// What the engine says while it says it, for those who asked to see it.
    fn engine_output(&mut self, _: &[u8]) {}
    fn done(&mut self);
}

/// For pipes, `--json` and tests.
pub struct Quiet;

impl Progress for Quiet {
    fn started(&mut self, _: &RunId) {}
    fn step(&mut self, _: &str, _: &str) {}
    fn done(&mut self) {}
}

pub struct Terminal {
    step: Option<(String, Instant)>,
}

/// Also shows the engine's output, made safe for a terminal.
pub struct Verbose {
    inner: Box<dyn Progress>,
    spoke: bool,
}

impl Verbose {
    pub fn over(inner: Box<dyn Progress>) -> Self {
        Self { inner, spoke: false }
    }
}

impl Progress for Verbose {
    fn started(&mut self, run_id: &RunId) {
        self.inner.started(run_id);
    }

    fn step(&mut self, name: &str, detail: &str) {
        self.inner.step(name, detail);
    }

    fn engine_output(&mut self, bytes: &[u8]) {
        let text: String = String::from_utf8_lossy(bytes)
            .chars()
            .map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c })
            .collect();
        // The engine begins on a line of its own, below the step that is under way.
        let begin = if std::mem::replace(&mut self.spoke, true) { "" } else { "\n" };
        let _ = write!(anstream::stderr(), "{begin}{text}");
    }

    fn done(&mut self) {
        self.inner.done();
    }
}

/// A person watches, or nobody does.
pub fn for_stderr(quiet: bool) -> Box<dyn Progress> {
    match !quiet && std::io::stderr().is_terminal() {
        true => Box::new(Terminal { step: None }),
        false => Box::new(Quiet),
    }
}

impl Terminal {
    fn finish_step(&mut self) {
        if let Some((text, since)) = self.step.take() {
            // A closed terminal is no reason to stop a run.
            let _ =
                writeln!(anstream::stderr(), "\r  \x1b[2m•\x1b[0m {text} \x1b[2m{} ms\x1b[0m\x1b[K", since.elapsed().as_millis());
        }
    }
}

impl Progress for Terminal {
    fn started(&mut self, run_id: &RunId) {
        let _ = writeln!(anstream::stderr(), "\x1b[2mrun {run_id}\x1b[0m");
    }

    fn step(&mut self, name: &str, detail: &str) {
        self.finish_step();
        let text = format!("{name:<10} {detail:<28}");
        let _ = write!(anstream::stderr(), "  … {text}");
        let _ = anstream::stderr().flush();
        self.step = Some((text, Instant::now()));
    }

    fn done(&mut self) {
        self.finish_step();
        let _ = writeln!(anstream::stderr());
    }
}

/// How far a list of rows is, on one line that is written over.
pub struct Rows {
    watched: bool,
    ended: usize,
    all: usize,
}

impl Rows {
    pub fn for_stderr(quiet: bool, all: usize) -> Self {
        Self { watched: !quiet && std::io::stderr().is_terminal(), ended: 0, all }
    }

    pub fn ended(&mut self, name: &str) {
        self.ended += 1;
        if self.watched {
            let _ = write!(anstream::stderr(), "\r  \x1b[2m{:>3} of {}\x1b[0m {name:<24}\x1b[K", self.ended, self.all);
            let _ = anstream::stderr().flush();
        }
    }

    pub fn done(&self) {
        if self.watched {
            let _ = write!(anstream::stderr(), "\r\x1b[K");
        }
    }
}
