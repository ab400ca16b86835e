//! The real credential: where it comes from, and a value that shows itself to nobody but the wire.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::host::Env;

const MAX_LENGTH: u64 = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);

/// What authenticates at the endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

/// Where a credential comes from. Names and paths are no secrets; what lies there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CredentialClass {
    /// The name of a variable of the operator's environment.
    Environment(String),
    File(PathBuf),
    /// A program of the operator, and its arguments; it prints the credential.
    Command(Vec<OsString>),
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
    #[error("the credential command could not be run: {source}")]
    Command { source: io::Error },
    #[error("the credential command ended with {status}")]
    CommandFailed { status: std::process::ExitStatus },
    #[error("the credential command gave no answer within {} s", PATIENCE.as_secs())]
    CommandSlow,
    #[error("the credential is empty")]
    Empty,
    #[error("the credential is longer than {MAX_LENGTH} bytes")]
    TooLong,
    #[error("the credential holds a line break, a space or a character outside ASCII")]
    BadCharacter,
}

impl Credential {
    pub fn load(class: &CredentialClass, env: &Env) -> Result<Self, CredentialError> {
        let bytes = match class {
            CredentialClass::Environment(name) => {
                let value = env
                    .get(name)
                    .ok_or_else(|| CredentialError::NoVariable { name: name.clone() })?;
                value.as_encoded_bytes().to_vec()
            }
            CredentialClass::File(path) => {
                read_file(path).map_err(|source| CredentialError::File { source })?
            }
            CredentialClass::Command(argv) => ask(argv)?,
        };
        Self::from_bytes(&bytes)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, CredentialError> {
        let trimmed = bytes.trim_ascii();
        if trimmed.is_empty() {
            return Err(CredentialError::Empty);
        }
        if bytes.len() as u64 > MAX_LENGTH {
            return Err(CredentialError::TooLong);
        }
        // It goes into a header: what ends a header line must not be in it.
        if !trimmed.iter().all(u8::is_ascii_graphic) {
            return Err(CredentialError::BadCharacter);
        }
        Ok(Self(String::from_utf8_lossy(trimmed).into_owned()))
    }

    /// For the wire, and for what takes it out of texts.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// For the redactor of the run, which must know it to take it out.
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
    file.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn ask(argv: &[OsString]) -> Result<Vec<u8>, CredentialError> {
    let failed = |source| CredentialError::Command { source };
    let [program, rest @ ..] = argv else {
        return Err(failed(io::Error::other("no program is named")));
    };
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        // Whatever it starts can then be ended with it.
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let answer = listen(&mut child);
    if !matches!(answer, Ok(Some(_))) {
        end(&mut child);
    }
    let status = child.wait().map_err(failed)?;
    let answer = answer
        .map_err(failed)?
        .ok_or(CredentialError::CommandSlow)?;
    if !status.success() {
        return Err(CredentialError::CommandFailed { status });
    }
    Ok(answer)
}

fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}

/// What it printed, or nothing when time ran out.
fn listen(child: &mut Child) -> io::Result<Option<Vec<u8>>> {
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        stdout
            .map_or(Ok(0), |pipe| {
                pipe.take(MAX_LENGTH + 1).read_to_end(&mut answer)
            })
            .map(|_| answer)
    });
    let since = Instant::now();
    while child.try_wait()?.is_none() || !reader.is_finished() {
        if since.elapsed() > PATIENCE {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
    reader
        .join()
        .map_err(|_| io::Error::other("its answer could not be read"))?
        .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn shell(script: &str) -> CredentialClass {
        CredentialClass::Command(vec!["/bin/sh".into(), "-c".into(), script.into()])
    }

    #[test]
    fn every_class_gives_the_same_value() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "abc-123\n").unwrap();
        let env = Env::from_pairs(&[("LAB_KEY", "abc-123")]);
        for class in [
            CredentialClass::Environment("LAB_KEY".into()),
            CredentialClass::File(file),
            shell("echo abc-123"),
        ] {
            let credential = Credential::load(&class, &env).unwrap();
            assert_eq!(credential.reveal(), "abc-123");
            assert_eq!(format!("{credential:?}"), "Credential");
        }
    }

    #[test]
    fn failures_are_named_and_hold_no_value() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::from_pairs(&[("SPACED", "hidden value")]);
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
            (shell("echo hidden; echo hidden"), "holds a line break"),
            (CredentialClass::Command(vec![]), "no program"),
            (
                CredentialClass::Command(vec!["/nonexistent/x".into()]),
                "could not be run",
            ),
        ] {
            let error = Credential::load(&class, &env).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
