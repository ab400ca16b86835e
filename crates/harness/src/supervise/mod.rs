//! Starting a process, draining it, and ending it: engine and verification alike. Only this room
//! spawns what a contract names.

mod capture;
mod limits;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cto_core::event::ProcessEnd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

pub use capture::Capture;
pub use limits::TimeLimits;
use limits::{Decision, Input, Watch};

use crate::cancel::Cancel;

/// A process to run, fully decided.
pub struct Job {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    pub limits: TimeLimits,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    pub end: ProcessEnd,
    pub duration_ms: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    #[error("{program} could not be started")]
    Spawn { program: String, source: io::Error },
    #[error("the process could not be watched")]
    Watch { source: io::Error },
}

const GRACE: Duration = Duration::from_millis(500);
/// How long output may still trickle in after the process itself has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// A process that was started and must be watched to its end. Dropping it ends it.
pub struct Running {
    child: Child,
    limits: TimeLimits,
    started: Instant,
}

/// Starts a job.
pub fn start(job: &Job) -> Result<Running, SuperviseError> {
    let started = Instant::now();
    let child = Command::new(&job.program)
        .args(&job.args)
        .current_dir(&job.cwd)
        .env_clear()
        .envs(&job.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| SuperviseError::Spawn { program: job.program.display().to_string(), source })?;
    Ok(Running { child, limits: job.limits, started })
}

/// Runs a job to its end; every byte it writes goes to `output` in order of arrival.
pub fn run(job: &Job, cancel: &Cancel, output: &mut dyn FnMut(Stream, &[u8])) -> Result<Ended, SuperviseError> {
    start(job)?.finish(cancel, output)
}

impl Running {
    pub fn finish(mut self, cancel: &Cancel, output: &mut dyn FnMut(Stream, &[u8])) -> Result<Ended, SuperviseError> {
        let end = watch(&mut self.child, self.limits, cancel, output).map_err(|source| SuperviseError::Watch { source })?;
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Ended { end, duration_ms })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // On every road, also where watching failed: the group is ended, the child reaped.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn watch(
    child: &mut Child,
    limits: TimeLimits,
    cancel: &Cancel,
    output: &mut dyn FnMut(Stream, &[u8]),
) -> io::Result<ProcessEnd> {
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    for pipe in [stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)].into_iter().flatten() {
        rustix::fs::fcntl_setfl(pipe, rustix::fs::OFlags::NONBLOCK)?;
    }
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let mut buffer = vec![0u8; 64 * 1024];
    let mut watch = Watch::new(limits, Instant::now());
    let mut status: Option<ExitStatus> = None;
    loop {
        let now = Instant::now();
        let decision = watch.decide(now, if cancel.requested() { Input::Cancelled } else { Input::Tick });
        match decision {
            Decision::Wait(_) => {}
            Decision::Terminate => {
                // The group may already be gone.
                let _ = kill_process_group(pid, Signal::TERM);
            }
            Decision::Kill => {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            Decision::Finish => break,
        }
        let wait = match decision {
            Decision::Wait(wait) => wait,
            _ => Duration::from_millis(20),
        };
        let ready = {
            let mut fds: Vec<(Ready, BorrowedFd<'_>)> = Vec::with_capacity(4);
            if let Some(pipe) = &stdout {
                fds.push((Ready::Stdout, pipe.as_fd()));
            }
            if let Some(pipe) = &stderr {
                fds.push((Ready::Stderr, pipe.as_fd()));
            }
            if status.is_none() {
                fds.push((Ready::Exit, pidfd.as_fd()));
                fds.push((Ready::Cancel, cancel.fd()));
            }
            wait_ready(&fds, wait)?
        };
        for which in ready {
            match which {
                Ready::Stdout => drain(&mut stdout, &mut buffer, |bytes| output(Stream::Stdout, bytes), &mut watch)?,
                Ready::Stderr => drain(&mut stderr, &mut buffer, |bytes| output(Stream::Stderr, bytes), &mut watch)?,
                Ready::Exit => {
                    status = child.try_wait()?;
                    if status.is_some() {
                        // Whatever it left in its group holds the pipes open and must not outlive it.
                        let _ = kill_process_group(pid, Signal::KILL);
                        watch.decide(Instant::now(), Input::Exited);
                    }
                }
                Ready::Cancel => cancel.drain(),
            }
        }
        if stdout.is_none() && stderr.is_none() {
            watch.decide(Instant::now(), Input::OutputClosed);
        }
    }
    Ok(watch.verdict(status.map(|status| (status.code(), status.signal()))))
}

enum Ready {
    Stdout,
    Stderr,
    Exit,
    Cancel,
}

fn wait_ready(fds: &[(Ready, BorrowedFd<'_>)], wait: Duration) -> io::Result<Vec<Ready>> {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let timeout = rustix::event::Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    Ok(fds
        .iter()
        .zip(&polled)
        .filter(|(_, polled)| !polled.revents().is_empty())
        .map(|((which, _), _)| match which {
            Ready::Stdout => Ready::Stdout,
            Ready::Stderr => Ready::Stderr,
            Ready::Exit => Ready::Exit,
            Ready::Cancel => Ready::Cancel,
        })
        .collect())
}

/// Reads what is there; closes the pipe at its end.
fn drain<R: Read>(pipe: &mut Option<R>, buffer: &mut [u8], mut output: impl FnMut(&[u8]), watch: &mut Watch) -> io::Result<()> {
    let Some(reader) = pipe.as_mut() else { return Ok(()) };
    match reader.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(n) => {
            watch.saw_output(Instant::now());
            output(&buffer[..n]);
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
#[path = "supervise_tests.rs"]
mod tests;
