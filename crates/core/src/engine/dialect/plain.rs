//! Any command: what it prints is what it says, and that it ended is all it says of itself. Whether
//! it did anything is measured, as for everybody.

use super::{ParsedLine, Source};
use crate::run::event::{EngineResult, EngineText, Event};
use crate::values::text::tame_excerpt;

/// Lines that are told; what follows is in the log.
const MAX_TOLD: u64 = 1_000;

#[derive(Debug, Default)]
pub struct Plain {
    told: u64,
    /// The last lines of each stream that were not blank.
    last: String,
    last_of_stderr: String,
}

impl Plain {
    pub fn line(&mut self, from: Source, line: &[u8]) -> ParsedLine {
        let text = tame_excerpt(&String::from_utf8_lossy(line));
        if text.trim().is_empty() {
            return ParsedLine::Nothing;
        }
        if from == Source::Stderr {
            self.last_of_stderr = text;
            return ParsedLine::Nothing;
        }
        self.last.clone_from(&text);
        if self.told == MAX_TOLD {
            return ParsedLine::Nothing;
        }
        self.told += 1;
        ParsedLine::one(Event::EngineMessage(EngineText { text }))
    }

    /// Its last line stands for a summary. Its exit code is observed, not said.
    pub fn ended(&self) -> Vec<Event> {
        let summary = match self.last.is_empty() {
            true => self.last_of_stderr.clone(),
            false => self.last.clone(),
        };
        vec![Event::EngineResult(EngineResult::new(
            "ended", summary, false,
        ))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_what_it_says_and_its_last_line_the_summary() {
        let mut plain = Plain::default();
        let said = |event: ParsedLine| match event {
            ParsedLine::Events(events) => events.len(),
            ParsedLine::Nothing => 0,
            ParsedLine::Unknown => panic!("nothing is unknown"),
        };
        assert_eq!(
            said(plain.line(Source::Stdout, b"looking \x1b[31mat it\xff")),
            1
        );
        assert_eq!(said(plain.line(Source::Stdout, b"done")), 1);
        assert_eq!(said(plain.line(Source::Stdout, b"  \t")), 0);
        assert_eq!(said(plain.line(Source::Stderr, b"a warning")), 0);
        let Event::EngineResult(result) = &plain.ended()[0] else {
            panic!()
        };
        assert_eq!((result.summary.as_str(), result.failed), ("done", false));
    }

    #[test]
    fn a_silent_command_has_ended_too_and_a_flood_is_not_told_whole() {
        let mut plain = Plain::default();
        assert_eq!(plain.ended().len(), 1);
        plain.line(Source::Stderr, b"only here");
        let Event::EngineResult(result) = &plain.ended()[0] else {
            panic!()
        };
        assert_eq!(result.summary, "only here");
        let told = (0..5_000)
            .filter(|_| plain.line(Source::Stdout, b"y") != ParsedLine::Nothing)
            .count() as u64;
        assert_eq!(told, MAX_TOLD);
    }
}
