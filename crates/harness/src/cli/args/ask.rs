//! Questions to a person at a terminal. Where there is none, nothing is asked.

use std::io::{self, BufRead, IsTerminal, Read};

use cto_core::values::text::is_dangerous;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::host::failure::Failure;
use crate::supervise::cancel::Cancel;

/// No answer is longer.
const MOST: u64 = 64 << 10;

/// Is there somebody who sees a question and can answer it?
pub fn somebody() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A line that was typed, without its end.
pub fn line() -> Result<String, Failure> {
    let none = || Failure::usage("missing_answer", "there was no answer").so("nothing ran");
    let mut line = String::new();
    let read = io::stdin().lock().take(MOST).read_line(&mut line);
    let count = read.map_err(|error| none().because(&error))?;
    let answer = line.trim();
    if count == 0 {
        return Err(none());
    }
    if answer.chars().any(is_dangerous) {
        return Err(none().reason("it holds a control character, as arrow keys type them"));
    }
    Ok(answer.to_owned())
}

/// What came of waiting for a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    Line(String),
    /// It holds what is no text: control characters, as arrow keys type them, or no UTF-8.
    Odd,
    TooLong,
    /// Nobody will type any more.
    End,
    Cancelled,
}

/// Lines of a terminal, waited for together with the signals that end the waiting.
#[derive(Default)]
pub struct Lines {
    /// What was read beyond the last line.
    rest: Vec<u8>,
}

impl Lines {
    /// Puts a question and waits for the next line. It is not shown while it is typed where
    /// `hidden`, from before the question is seen.
    pub fn next(
        &mut self,
        cancel: &Cancel,
        hidden: bool,
        question: impl FnOnce(),
    ) -> io::Result<Heard> {
        let stdin = io::stdin();
        let _quiet = hidden.then(|| Quiet::on(&stdin)).flatten();
        question();
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(heard(&line));
            }
            if self.rest.len() as u64 > MOST {
                self.rest.clear();
                return Ok(Heard::TooLong);
            }
            let mut fds = [
                PollFd::new(&stdin, PollFlags::IN),
                PollFd::from_borrowed_fd(cancel.fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if cancel.requested() {
                return Ok(Heard::Cancelled);
            }
            if fds[0].revents().is_empty() {
                continue;
            }
            let mut buffer = [0u8; 4096];
            match rustix::io::read(&stdin, &mut buffer) {
                // A terminal that was taken away answers with an error.
                Ok(0) | Err(rustix::io::Errno::IO) => return Ok(Heard::End),
                Ok(count) => self.rest.extend_from_slice(&buffer[..count]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn heard(line: &[u8]) -> Heard {
    match std::str::from_utf8(line).map(str::trim) {
        Ok(text) if !text.chars().any(is_dangerous) => Heard::Line(text.to_owned()),
        _ => Heard::Odd,
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet {
    before: Termios,
}

impl Quiet {
    fn on(stdin: &io::Stdin) -> Option<Self> {
        let before = tcgetattr(stdin).ok()?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ECHO);
        modes.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(stdin, OptionalActions::Now, &modes).ok()?;
        Some(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs no modes.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_text_or_odd() {
        assert_eq!(heard(b" a b \n"), Heard::Line("a b".into()));
        assert_eq!(heard(b"\n"), Heard::Line(String::new()));
        assert_eq!(heard(b"\x1b[A\n"), Heard::Odd);
        assert_eq!(heard(b"\xff\n"), Heard::Odd);
    }
}
