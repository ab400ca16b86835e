//! Standard output is data, standard error is talk. Everything printed goes through here.

use std::io::Write;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use cto_core::verdict::Status;
use serde::Serialize;

use crate::failure::Failure;

pub struct Output {
    pub json: bool,
    /// Flags that a suggested command needs to find the same state.
    state_flags: String,
}

impl Output {
    pub fn new(json: bool, home: Option<&Path>, runs_dir: Option<&Path>) -> Self {
        let flag = |name: &str, dir: Option<&Path>| dir.map(|dir| format!(" {name} {}", dir.display())).unwrap_or_default();
        Self { json, state_flags: format!("{}{}", flag("--home", home), flag("--runs-dir", runs_dir)) }
    }

    /// A command that can be typed as it stands.
    pub fn command(&self, rest: &str) -> String {
        format!("{}{} {rest}", own_command(), self.state_flags)
    }

    /// A line of data. A reader that went away is no failure of ours.
    pub fn line(&self, text: &str) {
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// Bytes of a document that is not ours to format.
    pub fn raw(&self, text: &str) {
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    pub fn note(&self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    pub fn document<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let bytes = cto_core::json::pretty(value)
            .map_err(|e| Failure::internal("unprintable", "the answer cannot be printed").because(&e))?;
        let _ = std::io::stdout().write_all(&bytes);
        Ok(())
    }

    pub fn failure(&self, failure: &Failure) {
        if self.json {
            let _ = self.document(&failure.to_json());
        } else {
            let error = AnsiColor::Red.on_default().bold();
            let text = failure.to_string();
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            self.note(&format!("{error}{first}{error:#}\n{}", rest.trim_end()));
        }
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

/// Text from outside, safe for a terminal: one line, no control characters.
pub fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// How the person reached this program.
fn own_command() -> String {
    let typed = std::env::args_os().next().map(PathBuf::from).unwrap_or_else(|| "cto".into());
    if typed.components().count() < 2 {
        return typed.display().to_string();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let near = typed.strip_prefix(&here).ok().filter(|_| here.parent().is_some());
    let shown = near.map_or(typed.clone(), Path::to_owned);
    match shown.components().count() {
        1 => format!("./{}", shown.display()),
        _ => shown.display().to_string(),
    }
}
