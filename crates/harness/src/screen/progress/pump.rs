//! Draws a stage on standard error, on a thread of its own: what stays scrolls by, what is under way stands
//! below it, a line a step. A terminal that takes its time delays nobody else.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::stage::{LiveStep, Shown, Stage, State};
use crate::screen::{ascii, terminal};

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PLAIN_FRAMES: [&str; 4] = ["|", "/", "-", "\\"];
const TICK: Duration = Duration::from_millis(100);
/// Steps that are drawn at a time.
const MOST_LIVE: usize = 6;

/// Shows a stage until it is stopped.
pub struct Pump {
    stage: Stage,
    pen: Arc<Mutex<Pen>>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    /// `moves`: the terminal takes a cursor that goes up.
    pub fn start(shown: Shown, moves: bool) -> Self {
        let stage = Stage::new(shown);
        let pen = Arc::new(Mutex::new(Pen::new(shown.live, moves)));
        let (seen, drawer) = (stage.clone(), pen.clone());
        let draw = move || {
            let begun = Instant::now();
            loop {
                let state = seen.shared.state();
                let (state, _) = seen
                    .shared
                    .wake
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner);
                let ended = state.ended;
                drop(state);
                if ended {
                    return;
                }
                let turn = begun.elapsed().as_millis() / TICK.as_millis();
                draw_once(&seen, &drawer, mark(usize::try_from(turn).unwrap_or(0)));
            }
        };
        // Without a thread things are shown when a step of the run begins; the run does not mind.
        let thread = std::thread::Builder::new().name("progress".into());
        Self {
            stage,
            pen,
            thread: thread.spawn(draw).ok(),
        }
    }

    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Shows all that waits. For whoever may wait for a terminal.
    pub fn flush(&self) {
        draw_once(&self.stage, &self.pen, "…");
    }

    /// Everything that was told is on the terminal, and nothing is drawn any more.
    pub fn stop(&mut self) {
        self.stage.shared.state().ended = true;
        self.stage.shared.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.flush();
    }
}

/// A sign that turns.
fn mark(turn: usize) -> &'static str {
    let frames = match ascii::is_plain() {
        true => PLAIN_FRAMES.as_slice(),
        false => FRAMES.as_slice(),
    };
    frames.get(turn % frames.len()).copied().unwrap_or("…")
}

/// A line as it is spelled here, in so many columns.
pub(super) fn fitted(line: &str, columns: usize) -> String {
    let spelled = ascii::spelled(line);
    match terminal::width(&spelled) <= columns {
        true => spelled.into_owned(),
        // The mark of what is missing may be spelled wider than it is.
        false => ascii::spelled(&terminal::cut(&spelled, columns.saturating_sub(2))).into_owned(),
    }
}

fn draw_once(stage: &Stage, pen: &Mutex<Pen>, frame: &str) {
    // One draws at a time, and holds the stage no longer than it takes to copy a few lines.
    let mut pen = pen.lock().unwrap_or_else(PoisonError::into_inner);
    let columns = terminal::columns_of(&std::io::stderr()).unwrap_or(80);
    let text = pen.draw(&mut stage.shared.state(), frame, columns);
    if !text.is_empty() {
        // A closed terminal is no reason to stop a run. Moves of the cursor are no colours: they pass as
        // they are.
        let mut stderr = std::io::stderr().lock();
        let _ = stderr
            .write_all(ascii::spelled(&text).as_bytes())
            .and_then(|()| stderr.flush());
    }
}

/// What stands on the terminal that is ours to draw again.
struct Pen {
    live: bool,
    moves: bool,
    /// Columns of each live line; the cursor stands at the end of the last.
    drawn: Vec<usize>,
}

impl Pen {
    fn new(live: bool, moves: bool) -> Self {
        Self {
            live,
            moves,
            drawn: Vec::new(),
        }
    }

    /// The bytes that bring the terminal up to date.
    fn draw(&mut self, state: &mut State, frame: &str, columns: usize) -> String {
        let mut stays: Vec<String> = state.waiting.drain(..).collect();
        match std::mem::take(&mut state.dropped) {
            0 => {}
            more => stays.push(format!("  … {more} lines are not shown; the log has them")),
        }
        // A line that wraps cannot be drawn over.
        let room = columns.saturating_sub(1);
        let live: Vec<String> = match self.live {
            true => self
                .under_way(&state.live)
                .into_iter()
                .map(|step| {
                    fitted(
                        &format!("  {frame} {}", step.line(room.saturating_sub(4))),
                        room,
                    )
                })
                .collect(),
            false => Vec::new(),
        };
        if stays.is_empty() && live.is_empty() && self.drawn.is_empty() {
            return String::new();
        }
        let mut text = String::new();
        match self.drawn.len() {
            0 => {}
            1 => text.push('\r'),
            lines => text.push_str(&format!("\x1b[{}A\r\x1b[J", lines - 1)),
        }
        // Blanks instead of an escape sequence where one line is enough: also right on a dumb terminal.
        let mut covered = match self.drawn.as_slice() {
            [columns] => *columns,
            _ => 0,
        };
        let last = live.len().saturating_sub(1);
        for (number, line) in stays.iter().chain(&live).enumerate() {
            let blanks = covered.saturating_sub(terminal::width(line));
            covered = 0;
            text.push_str(line);
            text.push_str(&" ".repeat(blanks));
            if number < stays.len() || number - stays.len() < last {
                text.push('\n');
            }
        }
        if stays.is_empty() && live.is_empty() {
            text.push_str(&" ".repeat(covered));
            text.push('\r');
        }
        self.drawn = live.iter().map(|line| terminal::width(line)).collect();
        text
    }

    /// A step made of others is seen only while none of them is; where the cursor cannot go up, only the
    /// newest step is.
    fn under_way<'s>(&self, steps: &'s [LiveStep]) -> Vec<&'s LiveStep> {
        let parts: Vec<&LiveStep> = steps.iter().filter(|step| !step.is_frame).collect();
        let seen = match parts.is_empty() {
            true => steps.iter().collect(),
            false => parts,
        };
        let most = if self.moves { MOST_LIVE } else { 1 };
        let from = seen.len().saturating_sub(most);
        seen.into_iter().skip(from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Named;
    use super::*;

    const LIVE: Shown = Shown {
        live: true,
        lines: true,
        output: false,
    };

    fn draw(pen: &mut Pen, stage: &Stage, columns: usize) -> String {
        pen.draw(&mut stage.shared.state(), "*", columns)
    }

    #[test]
    fn one_line_needs_no_escape_sequence() {
        let (stage, mut pen) = (Stage::new(LIVE), Pen::new(true, false));
        let frame = stage.frame("verify", "all of it");
        assert!(draw(&mut pen, &stage, 80).starts_with("  * verify"));
        let one = stage.begin(Named::new("check", "a"));
        let two = stage.begin(Named::new("control", "b"));
        let text = draw(&mut pen, &stage, 80);
        assert!(text.starts_with("\r  * control"), "{text:?}");
        assert!(
            !text.contains("check") && !text.contains('\x1b'),
            "{text:?}"
        );
        one.end("green", true);
        let text = draw(&mut pen, &stage, 80);
        assert!(
            text.starts_with("\r  • check") && text.contains("green"),
            "{text:?}"
        );
        assert!(text.contains("\n  * control"), "{text:?}");
        two.end("red", true);
        frame.end("", true);
        let text = draw(&mut pen, &stage, 80);
        assert!(text.ends_with('\n') && !text.contains('*'), "{text:?}");
        assert_eq!(draw(&mut pen, &stage, 80), "");
    }

    #[test]
    fn several_at_a_time_have_a_line_each() {
        let (stage, mut pen) = (Stage::new(LIVE), Pen::new(true, true));
        let steps: Vec<_> = ["check", "control", "baseline"]
            .map(|name| stage.begin(Named::new(name, "pytest -q")))
            .into();
        let text = draw(&mut pen, &stage, 60);
        assert_eq!(text.lines().count(), 3, "{text:?}");
        assert!(
            text.lines().all(|line| terminal::width(line) < 60),
            "{text:?}"
        );
        let text = draw(&mut pen, &stage, 60);
        assert!(text.starts_with("\x1b[2A\r\x1b[J  * check"), "{text:?}");
        for step in steps {
            step.end("green", true);
        }
        let text = draw(&mut pen, &stage, 60);
        assert_eq!(text.matches('•').count(), 3, "{text:?}");
        assert!(text.ends_with('\n'), "{text:?}");
    }

    #[test]
    fn what_is_not_shown_is_said() {
        let (stage, mut pen) = (Stage::new(Shown::default()), Pen::new(false, false));
        stage.shared.state().dropped = 3;
        let text = draw(&mut pen, &stage, 80);
        assert_eq!(text, "  … 3 lines are not shown; the log has them\n");
    }
}
