//! Starting git: a scrubbed environment, no configuration but ours, and how a call that failed says
//! so.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use cto_core::values::paths::TreePath;

use super::GitError;
use crate::host::programs::{self, Program};

/// Runs a command that reads paths and may answer while it reads.
pub(super) fn told(
    operation: &'static str,
    command: Command,
    paths: &[TreePath],
) -> Result<Output, GitError> {
    let input = paths
        .iter()
        .flat_map(|path| [path.as_bytes(), b"\0"].concat());
    answered(operation, command, input.collect())
}

fn answered(
    operation: &'static str,
    mut command: Command,
    input: Vec<u8>,
) -> Result<Output, GitError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|source| GitError::Spawn { operation, source })?;
    let stdin = child.stdin.take();
    // Written from a thread: git answers while it reads, and both pipes are bounded.
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(&input)));
        let output = child.wait_with_output();
        // A failed write shows as a failed answer.
        drop(writer.join());
        output
    });
    output.map_err(|source| GitError::Pipe { operation, source })
}

/// Runs a command that reads a path a line and answers a line for each.
pub(super) fn told_lines(
    operation: &'static str,
    command: Command,
    paths: &[PathBuf],
) -> Result<Vec<String>, GitError> {
    let lines = paths
        .iter()
        .flat_map(|path| [path.as_os_str().as_bytes(), b"\n"]);
    let output = fed(operation, command, lines.collect::<Vec<_>>().concat())?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Runs a command that reads something and must not fail.
pub(super) fn fed(
    operation: &'static str,
    command: Command,
    input: Vec<u8>,
) -> Result<Vec<u8>, GitError> {
    told_well(operation, answered(operation, command, input)?)
}

pub(super) fn scrubbed(git: &Program) -> Command {
    let mut command = Command::new(git.path());
    command
        .env_clear()
        .env("PATH", programs::system_path())
        .env("LC_ALL", "C")
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.untrackedCache=false",
        ])
        .args([
            "-c",
            "core.autocrlf=false",
            "-c",
            "core.safecrlf=false",
            "-c",
            "core.excludesFile=/dev/null",
        ])
        .args([
            "-c",
            "core.attributesFile=/dev/null",
            "-c",
            "gc.auto=0",
            "-c",
            "maintenance.auto=false",
        ])
        .args(["-c", "core.fsync=none", "-c", "safe.directory=*"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// A question that git is answering meanwhile. One that nobody waits for ends.
pub(super) struct Asking {
    operation: &'static str,
    child: Option<Child>,
}

impl Asking {
    pub fn start(operation: &'static str, mut command: Command) -> Result<Self, GitError> {
        let child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| GitError::Spawn { operation, source })?;
        Ok(Self {
            operation,
            child: Some(child),
        })
    }

    pub fn answer(mut self) -> Result<Vec<u8>, GitError> {
        let operation = self.operation;
        let gone = || GitError::Pipe {
            operation,
            source: std::io::ErrorKind::BrokenPipe.into(),
        };
        finished(operation, self.child.take().ok_or_else(gone)?)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(super) fn asked(operation: &'static str, command: Command) -> Result<Vec<u8>, GitError> {
    Asking::start(operation, command)?.answer()
}

pub(super) fn finish(operation: &'static str, mut command: Command) -> Result<(), GitError> {
    let child = command
        .spawn()
        .map_err(|source| GitError::Spawn { operation, source })?;
    finished(operation, child).map(drop)
}

/// Waits for a command that was started, and takes what it printed.
pub(super) fn finished(operation: &'static str, child: Child) -> Result<Vec<u8>, GitError> {
    let output = child
        .wait_with_output()
        .map_err(|source| GitError::Pipe { operation, source })?;
    told_well(operation, output)
}

/// What a command printed that must not fail.
pub(super) fn told_well(operation: &'static str, output: Output) -> Result<Vec<u8>, GitError> {
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(GitError::Failed {
            operation,
            message: last_line(&output.stderr),
        }),
    }
}

pub(super) fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("no message");
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}
