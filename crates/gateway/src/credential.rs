//! The credential of the operator: where it is read from, and a type that shows its value only to
//! the wire and to the redactor.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use crate::operator_program::{self, OperatorProgram, ProgramError};

const MAX_LENGTH: usize = 16 * 1024;
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// The secret that the endpoint asks for.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

/// Where a credential is read from. Names and paths are no secrets; what is read there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CredentialClass {
    /// The name of a variable of the operator's environment.
    Environment(String),
    File(PathBuf),
    /// A program of the operator; it prints the credential.
    Command(OperatorProgram),
}

impl CredentialClass {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Environment(_) => "environment",
            Self::File(_) => "file",
            Self::Command(_) => "command",
        }
    }
}

/// Why there is no credential. No variant holds any part of one.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("the variable {name} is not set, or empty")]
    NoVariable { name: String },
    #[error("the credential file cannot be read: {source}")]
    File { source: io::Error },
    #[error("the credential command {0}")]
    Command(#[from] ProgramError),
    #[error("the credential is empty")]
    Empty,
    #[error("the credential is longer than {MAX_LENGTH} bytes")]
    TooLong,
    #[error("the credential holds a line break, a space or a character outside ASCII")]
    BadCharacter,
}

impl Credential {
    /// `variable` looks up a name in the operator's environment.
    pub fn load(
        class: &CredentialClass,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, CredentialError> {
        let bytes = match class {
            CredentialClass::Environment(name) => variable(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| CredentialError::NoVariable { name: name.clone() })?
                .into_encoded_bytes(),
            CredentialClass::File(path) => {
                read_file(path).map_err(|source| CredentialError::File { source })?
            }
            CredentialClass::Command(program) => ask_program(program, COMMAND_TIME)?,
        };
        Self::from_bytes(&bytes)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, CredentialError> {
        let trimmed = bytes.trim_ascii();
        if trimmed.is_empty() {
            return Err(CredentialError::Empty);
        }
        if bytes.len() > MAX_LENGTH {
            return Err(CredentialError::TooLong);
        }
        // It goes into a header: what ends a header line must not be in it.
        if !trimmed.iter().all(u8::is_ascii_graphic) {
            return Err(CredentialError::BadCharacter);
        }
        Ok(Self(String::from_utf8_lossy(trimmed).into_owned()))
    }

    /// For the wire and for masking.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn of_tests(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// For the redactor of the run, which must know it to remove it.
    pub fn known_value(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }
}

fn read_file(path: &PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    file.take(MAX_LENGTH as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn ask_program(program: &OperatorProgram, time: Duration) -> Result<Vec<u8>, CredentialError> {
    let limits = operator_program::Limits {
        time,
        output_bytes: MAX_LENGTH,
    };
    match operator_program::run(program, b"", limits) {
        Err(ProgramError::TooMuchOutput(_)) => Err(CredentialError::TooLong),
        output => Ok(output?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator_program::tests::{script, still_running, stubborn_script};
    use std::os::unix::ffi::OsStringExt;

    fn shell(text: &str) -> CredentialClass {
        CredentialClass::Command(script(text))
    }

    #[test]
    fn every_class_gives_the_same_value() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "abc-123\n").unwrap();
        let variable = |name: &str| (name == "LAB_KEY").then(|| OsString::from("abc-123"));
        for class in [
            CredentialClass::Environment("LAB_KEY".into()),
            CredentialClass::File(file),
            shell("echo abc-123"),
        ] {
            let credential = Credential::load(&class, &variable).unwrap();
            assert_eq!(credential.reveal(), "abc-123");
            assert_eq!(format!("{credential:?}"), "Credential");
        }
    }

    #[test]
    fn failures_are_named_and_hold_no_value() {
        let dir = tempfile::tempdir().unwrap();
        let variable = |name: &str| (name == "SPACED").then(|| OsString::from("hidden value"));
        let long = OsString::from_vec(vec![b'a'; 20_000]);
        let file = dir.path().join("long");
        std::fs::write(&file, long.as_encoded_bytes()).unwrap();
        for (class, want) in [
            (CredentialClass::Environment("MISSING".into()), "is not set"),
            (
                CredentialClass::Environment("SPACED".into()),
                "holds a line break",
            ),
            (
                CredentialClass::File(dir.path().join("none")),
                "cannot be read",
            ),
            (
                CredentialClass::File(dir.path().into()),
                "not a regular file",
            ),
            (CredentialClass::File(file), "longer than"),
            (shell("exit 3"), "ended with"),
            (shell("echo"), "is empty"),
            (shell("yes hidden"), "longer than"),
            (shell("echo hidden; echo hidden"), "holds a line break"),
            (
                CredentialClass::Command(OperatorProgram {
                    path: "/nonexistent/x".into(),
                    ..script("")
                }),
                "could not be started",
            ),
        ] {
            let error = Credential::load(&class, &variable).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn a_slow_command_and_its_child_are_killed() {
        let dir = tempfile::tempdir().unwrap();
        let stubborn = script(&stubborn_script(dir.path()));
        let error = ask_program(&stubborn, Duration::from_millis(500)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the credential command gave no answer within 0.5 s"
        );
        assert_eq!(still_running(dir.path()), Vec::<String>::new());
    }
}
