//! Progress on standard error: one live line a step for a person who watches, plain lines for a
//! log.

mod board;

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cto_core::operator::timeline::duration_text;
use cto_core::values::ids::RunId;
use cto_core::values::text;

use crate::screen::ascii;
use crate::screen::terminal;

pub use board::Board;

pub trait Progress {
    fn started(&mut self, run_id: &RunId);
    fn step(&mut self, name: &str, detail: &str);
    /// What the engine says while it says it, for those who asked to see it.
    fn engine_output(&mut self, _: &[u8]) {}
    /// Something else writes to the terminal too: draw nothing over it.
    fn keep_still(&mut self) {}
    fn done(&mut self);
}

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
}

impl Progress for Plain {
    fn started(&mut self, run_id: &RunId) {
        say(&format!("run {run_id}\n"));
    }

    fn step(&mut self, name: &str, detail: &str) {
        say(&format!("{:>9}  {name}: {detail}\n", elapsed(self.begun)));
    }

    fn done(&mut self) {
        say(&format!("{:>9}  done\n", elapsed(self.begun)));
    }
}

/// Also shows the engine's output, made safe for a terminal.
pub struct Verbose {
    inner: Box<dyn Progress>,
    spoke: bool,
}

impl Verbose {
    pub fn over(mut inner: Box<dyn Progress>) -> Self {
        inner.keep_still();
        Self {
            inner,
            spoke: false,
        }
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
        // The engine begins on a line of its own, below the step that is under way.
        let begin = if std::mem::replace(&mut self.spoke, true) {
            ""
        } else {
            "\n"
        };
        say(&format!(
            "{begin}{}",
            text::tame_lines(&String::from_utf8_lossy(bytes))
        ));
    }

    fn done(&mut self) {
        self.inner.done();
    }
}

/// A person watches, a log listens, or nobody wants to know.
pub fn for_stderr(quiet: bool) -> Box<dyn Progress> {
    match (quiet, std::io::stderr().is_terminal()) {
        (true, _) => Box::new(Quiet),
        (false, true) => Box::new(Live {
            drawing: Arc::default(),
            ticker: None,
            still: false,
        }),
        (false, false) => Box::new(Plain {
            begun: Instant::now(),
        }),
    }
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

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠇", "⠏"];
const TICK: Duration = Duration::from_millis(100);

/// One line that is drawn anew while a step is under way.
pub struct Live {
    drawing: Arc<(Mutex<Drawing>, Condvar)>,
    ticker: Option<JoinHandle<()>>,
    still: bool,
}

#[derive(Default)]
struct Drawing {
    step: Option<(String, Instant)>,
    /// Columns the last drawing took; the next one covers them.
    drawn: usize,
    ended: bool,
}

impl Drawing {
    fn draw(&mut self, mark: &str, end: &str) {
        let Some((text, since)) = &self.step else {
            return;
        };
        // A line that wraps cannot be drawn over.
        let room = terminal::columns_of(&std::io::stderr())
            .unwrap_or(80)
            .saturating_sub(1);
        let line = format!(
            "  {mark} {}",
            terminal::cut(&format!("{text} {}", elapsed(*since)), room - 4)
        );
        let cover = " ".repeat(self.drawn.saturating_sub(terminal::width(&line)));
        self.drawn = if end.is_empty() {
            terminal::width(&line)
        } else {
            0
        };
        // Blanks instead of an escape sequence: also right where there are no colours.
        say(&format!("\r{line}{cover}{end}"));
    }

    fn finish_step(&mut self) {
        self.draw("•", "\n");
        self.step = None;
    }
}

impl Live {
    fn drawing(&self) -> MutexGuard<'_, Drawing> {
        // What is drawn matters less than that the run goes on.
        self.drawing
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws while nobody calls, so that a long step is seen to be alive.
    fn tick(&mut self) {
        if self.still || self.ticker.is_some() {
            return;
        }
        let shared = Arc::clone(&self.drawing);
        let draw = move || {
            let (drawing, wake) = &*shared;
            let mut drawing = drawing.lock().unwrap_or_else(PoisonError::into_inner);
            for frame in FRAMES.iter().cycle() {
                (drawing, _) = wake
                    .wait_timeout(drawing, TICK)
                    .unwrap_or_else(PoisonError::into_inner);
                if drawing.ended {
                    return;
                }
                drawing.draw(frame, "");
            }
        };
        // Without a thread the line stands still; the run does not mind.
        self.ticker = std::thread::Builder::new()
            .name("progress".into())
            .spawn(draw)
            .ok();
    }

    fn stop(&mut self) {
        self.drawing().ended = true;
        self.drawing.1.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
    }
}

impl Progress for Live {
    fn started(&mut self, run_id: &RunId) {
        say(&format!("\x1b[2mrun {run_id}\x1b[0m\n"));
    }

    fn step(&mut self, name: &str, detail: &str) {
        let mut drawing = self.drawing();
        drawing.finish_step();
        drawing.step = Some((format!("{name:<10} {detail:<28}"), Instant::now()));
        drawing.draw("…", "");
        drop(drawing);
        self.tick();
    }

    fn keep_still(&mut self) {
        self.still = true;
    }

    fn done(&mut self) {
        self.stop();
        self.drawing().finish_step();
        say("\n");
    }
}

impl Drop for Live {
    /// A run that could not be done leaves the cursor at the beginning of a line.
    fn drop(&mut self) {
        self.stop();
        self.drawing().finish_step();
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
