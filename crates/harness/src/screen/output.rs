//! Standard output is data, standard error is talk. Everything printed goes through here.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
pub use cto_core::values::text::tame;
use cto_core::values::text::tame_lines;
use cto_core::values::verdict::Status;
use serde::Serialize;

use crate::host::failure::Failure;
use crate::screen::ascii;
use crate::screen::table::Table;
use crate::screen::terminal;

/// When to use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    pub fn apply(self) {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
        .write_global();
    }
}

pub struct Output {
    pub json: bool,
    /// Words of the command that answers, for its documents.
    command: Option<String>,
    /// How the person reached this program; asked only where a command is suggested.
    program: fn() -> String,
    /// Flags that a suggested command needs to find the same state and engines.
    state_flags: String,
    /// Why an answer did not arrive.
    lost: OnceLock<io::Error>,
}

impl Output {
    pub fn new(
        json: bool,
        program: fn() -> String,
        command: Option<String>,
        home: Option<&Path>,
        runs_dir: Option<&Path>,
        engines: Option<&Path>,
    ) -> Self {
        let flag = |name: &str, dir: Option<&Path>| {
            dir.map(|dir| format!(" {name} {}", quoted(dir)))
                .unwrap_or_default()
        };
        let state_flags = [
            flag("--home", home),
            flag("--runs-dir", runs_dir),
            flag("--engines", engines),
        ]
        .concat();
        Self {
            json,
            program,
            command,
            state_flags,
            lost: OnceLock::new(),
        }
    }

    /// A command that can be typed as it stands.
    pub fn command(&self, rest: &str) -> String {
        format!("{}{} {rest}", (self.program)(), self.state_flags)
    }

    /// A line of data.
    pub fn line(&self, text: &str) {
        let text = ascii::spelled(text);
        self.arrived(writeln!(anstream::stdout(), "{text}"));
    }

    /// A line that continues below its own beginning where the terminal is too narrow.
    pub fn hanging(&self, beginning: &str, text: &str) {
        let indent = terminal::width(beginning);
        let room = terminal::columns().map(|columns| columns.saturating_sub(indent).max(20));
        for (number, part) in terminal::wrap(text, room).iter().enumerate() {
            match number {
                0 => self.line(&format!("{beginning}{part}")),
                _ => self.line(&format!("{}{part}", " ".repeat(indent))),
            }
        }
    }

    /// `  name      text`, the shape of every answer about one thing.
    pub fn row(&self, name: &str, text: &str) {
        let dim = dim();
        self.hanging(&format!("  {dim}{name:<9}{dim:#} "), text);
    }

    pub fn table(&self, table: &Table) {
        table
            .lines(terminal::columns())
            .iter()
            .for_each(|line| self.line(line));
    }

    /// Bytes as they are.
    pub fn bytes(&self, bytes: &[u8]) {
        self.arrived(io::stdout().write_all(bytes));
    }

    pub fn note(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{}", ascii::spelled(text));
    }

    pub fn document<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let bytes = cto_core::values::json::pretty(value).map_err(|e| {
            Failure::internal("unprintable", "the answer cannot be printed").because(&e)
        })?;
        self.bytes(&bytes);
        Ok(())
    }

    pub fn failure(&self, failure: &Failure) {
        if self.json {
            let _ = self.document(&failure.to_json(self.command.as_deref()));
        } else {
            let error = AnsiColor::Red.on_default().bold();
            let text = tame_lines(&failure.to_string());
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            self.note(&format!("{error}{first}{error:#}\n{}", rest.trim_end()));
        }
    }

    /// A reader that went away is no failure of ours; a full disk is.
    fn arrived(&self, result: io::Result<()>) {
        if let Err(error) = result
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            // The first reason is the one that matters.
            let _ = self.lost.set(error);
        }
    }

    /// An answer that did not arrive is none, whatever it was.
    pub fn check_arrival(&self) -> Result<(), Failure> {
        self.arrived(io::stdout().flush());
        match self.lost.get() {
            None => Ok(()),
            Some(error) => Err(Failure::internal(
                "output_lost",
                "the answer could not be written to standard output",
            )
            .because(error)),
        }
    }
}

/// Does a person read standard output as it appears?
pub fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A word as a shell reads it back.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=~".contains(c);
    match text.chars().all(plain) && !text.is_empty() && !text.starts_with('~') {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

pub fn status_style(status: Status) -> Style {
    match status {
        Status::Pass => AnsiColor::Green.on_default().bold(),
        Status::Blocked => AnsiColor::Yellow.on_default().bold(),
        Status::Fail => AnsiColor::Red.on_default().bold(),
    }
}

pub fn dim() -> Style {
    Style::new().dimmed()
}
