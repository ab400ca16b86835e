//! Questions to a person at a terminal. Where there is none, nothing is asked.

use std::io::{self, BufRead, IsTerminal, Read};

use cto_core::values::text::is_dangerous;

use crate::host::failure::Failure;

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
