//! The dialogue itself: a question is answered by its flag or by the person at the terminal, who is
//! told at once what is wrong with an answer and asked that one question again. Ctrl-C, SIGTERM and
//! the end of input leave at once.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use cto_core::operator::setup::{Question, Refused};
use cto_core::values::ids::EngineId;

use crate::cli::Context;
use crate::cli::args::ask::{self, Heard, Lines};
use crate::host::failure::Failure;
use crate::screen::output::tame;
use crate::screen::progress::{self, Progress};
use crate::supervise::cancel::Cancel;

/// Who answers wrongly this often does not read what is said.
const MOST_TRIES: usize = 10;
/// A wait that is shorter is not worth a word.
const PATIENCE: Duration = Duration::from_millis(400);

pub struct Dialogue<'a> {
    context: &'a Context,
    pub cancel: &'a Cancel,
    engine: EngineId,
    lines: RefCell<Lines>,
    asked: Cell<usize>,
    somebody: bool,
}

/// How a question is put.
pub struct Asked<'a> {
    pub question: Question,
    /// What its flag said.
    pub given: Option<&'a str>,
    pub words: &'a str,
    /// Not shown while it is typed: a key could be pasted here.
    pub hidden: bool,
}

impl<'a> Dialogue<'a> {
    pub fn new(context: &'a Context, cancel: &'a Cancel, engine: &EngineId) -> Self {
        Self {
            context,
            cancel,
            engine: engine.clone(),
            lines: RefCell::default(),
            asked: Cell::new(0),
            somebody: ask::somebody(),
        }
    }

    /// Can anything be asked?
    pub fn has_somebody(&self) -> bool {
        self.somebody
    }

    /// How many questions a person answered.
    pub fn asked(&self) -> usize {
        self.asked.get()
    }

    /// A statement: where documents are printed, beside them.
    pub fn say(&self, text: &str) {
        match self.context.output.json {
            true => self.context.output.note(text),
            false => self.context.output.line(text),
        }
    }

    pub fn row(&self, name: &str, text: &str) {
        match self.context.output.json {
            true => self
                .context
                .output
                .note(&format!("  {name:<9} {}", tame(text))),
            false => self.context.output.row(name, &tame(text)),
        }
    }

    /// Answers a question by its flag, or asks until an answer is taken.
    pub fn ask<T>(
        &self,
        asked: &Asked<'_>,
        take: impl FnMut(&str) -> Result<T, Refused>,
    ) -> Result<T, Failure> {
        let mut take = take;
        if let Some(given) = asked.given {
            return take(given).map_err(|why| self.refused(asked.question, &why));
        }
        if !self.somebody {
            let flag = asked.question.flag();
            return Err(Failure::usage(
                "missing_answer",
                format!("{flag} is missing, and there is no terminal to ask at"),
            )
            .so("nothing was written")
            .hint(format!(
                "cto setup {} {flag} …, or at a terminal",
                self.engine
            )));
        }
        self.asked.set(self.asked.get() + 1);
        for _ in 0..MOST_TRIES {
            let answer = match self.line(asked)? {
                Heard::Line(text) => take(&text),
                Heard::TooLong => Err(Refused::Text("is too long".into())),
                _ => Err(Refused::Text("holds what is no text".into())),
            };
            match answer {
                Ok(value) => return Ok(value),
                Err(why) => self
                    .context
                    .output
                    .note(&format!("  not taken: {}", tame(&why.to_string()))),
            }
        }
        Err(Failure::usage("missing_answer", "no answer was taken")
            .so("nothing was written")
            .hint(format!("begin again: cto setup {}", self.engine)))
    }

    fn line(&self, asked: &Asked<'_>) -> Result<Heard, Failure> {
        let none = |what: &str| {
            Failure::usage("missing_answer", what)
                .so("nothing was written")
                .hint(format!("begin again: cto setup {}", self.engine))
        };
        let put = || self.context.output.note(asked.words);
        let mut lines = self.lines.borrow_mut();
        match lines.next(self.cancel, asked.hidden, put) {
            Ok(Heard::Cancelled) => Err(self.interrupted("nothing was written")),
            Ok(Heard::End) => Err(none("the input ended before an answer")),
            Ok(heard) => Ok(heard),
            Err(error) => Err(none("the answer cannot be read").because(&error)),
        }
    }

    /// What a person who ends it is told.
    pub fn interrupted(&self, so: &str) -> Failure {
        Failure::blocked("interrupted", "it was interrupted")
            .so(so)
            .hint(format!("begin again: cto setup {}", self.engine))
    }

    /// Ends here where somebody asked for it.
    pub fn go_on(&self, so: &str) -> Result<(), Failure> {
        match self.cancel.requested() {
            true => Err(self.interrupted(so)),
            false => Ok(()),
        }
    }

    pub fn refused(&self, question: Question, why: &Refused) -> Failure {
        let what = format!("the answer to {} is not taken", question.flag());
        let failure = match question {
            Question::Name | Question::Send => Failure::blocked(why.code(), what),
            _ => Failure::usage(why.code(), what),
        };
        failure
            .reason(why.to_string())
            .so("nothing was written")
            .hint(format!("cto setup {} {} …", self.engine, question.flag()))
    }

    /// A wait for somebody else, said once it is one. Hand `still` to whoever waits.
    pub fn waiting<T>(
        &self,
        name: &str,
        detail: &str,
        wait: impl FnOnce(&mut dyn FnMut(Duration) -> bool) -> T,
    ) -> T {
        let mut shown: Option<Box<dyn Progress>> = None;
        let done = wait(&mut |elapsed| {
            if elapsed > PATIENCE && shown.is_none() {
                let mut progress =
                    progress::for_stderr(self.context.output.json, false, &self.context.env);
                progress.step(name, detail);
                shown = Some(progress);
            }
            !self.cancel.requested()
        });
        if let Some(mut progress) = shown {
            progress.done();
        }
        done
    }
}
