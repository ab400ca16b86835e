//! The one shape in which the harness says that it could not do its job, and the one match from
//! there to exit codes. A verdict of "fail" or "blocked" is not a failure; it is an answer.

use std::fmt;

use cto_core::values::text::{tame, tame_lines};
use serde_json::{Value, json};

/// Every exit code, and what it means.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "pass; `verify`: good; `matrix`: green"),
    (
        1,
        "fail; `verify`: bad; `diff` and `replay`: of a bad bundle; `matrix`: a row is red; `case check`: something is wrong; `doctor --repo`: the tests are red",
    ),
    (
        2,
        "usage: wrong flags, unknown case, invalid config file, invalid contract in `cto contract`",
    ),
    (
        3,
        "blocked; interrupted and sealed; `apply`: refused; `verify`, `show`, `diff` and `replay`: unknown or unsealed; `matrix`: nothing was proven",
    ),
    (
        70,
        "internal: the harness could not do its job; nothing counts as passed",
    ),
];

/// Whose move it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The command line or its input is wrong.
    Usage,
    /// A guard said no: what was asked is not safe here and now.
    Blocked,
    /// The harness or its machine is.
    Internal,
}

#[derive(Debug)]
pub struct Failure {
    pub kind: FailureKind,
    pub code: &'static str,
    pub what: String,
    pub place: Option<String>,
    pub because: Vec<String>,
    pub so: Option<String>,
    pub hint: Option<String>,
    /// An exit code of its own, for commands that pass on somebody else's.
    pub exits_with: Option<u8>,
}

impl Failure {
    pub fn usage(code: &'static str, what: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, code, what.into())
    }

    pub fn blocked(code: &'static str, what: impl Into<String>) -> Self {
        Self::new(FailureKind::Blocked, code, what.into())
    }

    pub fn internal(code: &'static str, what: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, code, what.into())
    }

    fn new(kind: FailureKind, code: &'static str, what: String) -> Self {
        Self {
            kind,
            code,
            what,
            place: None,
            because: Vec::new(),
            so: None,
            hint: None,
            exits_with: None,
        }
    }

    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    pub fn because(mut self, error: &dyn std::error::Error) -> Self {
        for text in reasons(error) {
            if !self.because.iter().any(|said| said.contains(&text)) {
                self.because.push(text);
            }
        }
        self
    }

    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.because.push(reason.into());
        self
    }

    pub fn so(mut self, so: impl Into<String>) -> Self {
        self.so = Some(so.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn exit_code(&self) -> u8 {
        match (self.exits_with, self.kind) {
            (Some(code), _) => code,
            (None, FailureKind::Usage) => 2,
            (None, FailureKind::Blocked) => 3,
            (None, FailureKind::Internal) => 70,
        }
    }

    /// The document of a command that could not answer.
    pub fn to_json(&self, command: Option<&str>) -> Value {
        json!({
            "schema_version": 1,
            "command": command,
            "error": {
                "code": self.code,
                "what": self.what,
                "where": self.place,
                "because": self.because,
                "so": self.so,
                "hint": self.hint,
                "exit_code": self.exit_code(),
            }
        })
    }
}

/// An error and what lies under it, from the outside in.
fn reasons(error: &dyn std::error::Error) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Some errors print their source themselves; say each thing once.
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    texts
}

/// The same on one line, for a note.
pub fn chain(error: &dyn std::error::Error) -> String {
    reasons(error).join(": ")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[{}]: {}", self.code, tame(&self.what))?;
        if let Some(place) = &self.place {
            writeln!(f, "  where: {}", tame(place))?;
        }
        for because in &self.because {
            writeln!(f, "  because: {}", tame_lines(because))?;
        }
        if let Some(so) = &self.so {
            writeln!(f, "  so: {}", tame_lines(so))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", tame_lines(hint)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        let text = Failure::usage("x", "a\nb\u{1b}[2J")
            .at("c\nd\r")
            .reason("e\nf\u{7}")
            .hint("g\u{9b}")
            .to_string();
        assert_eq!(
            text,
            "error[x]: a\u{fffd}b\u{fffd}[2J\n  where: c\u{fffd}d\u{fffd}\n  because: e\nf\u{fffd}\n\nhint: g\u{fffd}"
        );
    }

    #[test]
    fn anatomy() {
        let failure = Failure::usage("unknown_case", "no case is called \"x\"")
            .at("built-in cases")
            .reason("the name was not found")
            .so("nothing ran")
            .hint("`cto engines` lists engines");
        assert_eq!(
            failure.to_string(),
            "error[unknown_case]: no case is called \"x\"\n  where: built-in cases\n  because: the name was not found\n  so: nothing ran\n\nhint: `cto engines` lists engines"
        );
        assert_eq!(failure.exit_code(), 2);
        assert_eq!(Failure::internal("x", "y").exit_code(), 70);
    }
}
