//! Processes: shaped, started, listened to, limited and ended, engine and checks alike. Only this
//! room starts what a contract names.
//!
//! - `launch/` what a process is started with: mounts, environment, limits
//! - `mod.rs` start and watch; `pipes.rs` its output; `capture.rs` the same into a file, without
//!   secrets
//! - `limits.rs` when to wait, ask or kill; `cancel.rs` signals to us
//!
//! Imports host and evidence. Imported by workspace, records, run, doubles, proof and cli.

pub mod cancel;
pub mod launch;

mod capture;
mod limits;
mod pipes;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cto_core::containment::{JailReport, ProcessReport, unproven_layers};
use cto_core::run::attempt::Log;
use cto_core::run::event::ProcessEnd;
use cto_jail::{Census, Door, Entry, ExitWord, JailError, Witness};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

pub use capture::Capture;
pub use limits::Limits;
use limits::{Decision, Input, Watch};
use pipes::{Pipes, Ready};

use crate::supervise::cancel::Cancel;
use crate::supervise::launch::Launch;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    pub end: ProcessEnd,
    pub duration_ms: u64,
    /// How the jail held, for a process that had one.
    pub contained: Option<Contained>,
    /// What it was seen to attempt, or why nothing could be seen.
    pub attempts: Result<Log, String>,
}

/// What was measured about a jail after its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contained {
    pub jail: JailReport,
    pub survivors: u64,
    pub ended_with_it: u64,
    pub peak_memory_kib: Option<u64>,
}

impl Contained {
    pub fn report(self, process: &str) -> ProcessReport {
        ProcessReport {
            process: process.to_owned(),
            jail: self.jail,
            survivors: Some(self.survivors),
            ended_with_it: self.ended_with_it,
            peak_memory_kib: self.peak_memory_kib,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    #[error("{program} could not be started")]
    Spawn { program: String, source: io::Error },
    #[error("the process could not be watched")]
    Watch { source: io::Error },
    #[error(transparent)]
    Jail(#[from] JailError),
    #[error("containment is not proven: {}", missing.join(", "))]
    NotContained { missing: Vec<String> },
}

const GRACE: Duration = Duration::from_millis(500);
/// How long output may still trickle in after the process itself has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// The harness's side of a jail.
struct Jailed {
    control: UnixStream,
    report: JailReport,
    census: Census,
    witness: Result<Witness, String>,
}

/// A process that was started and must be watched to its end. Dropping it ends it.
pub struct Running {
    child: Child,
    limits: Limits,
    started: Instant,
    jail: Option<Jailed>,
    door: Option<Door>,
}

/// Starts a process. A jailed one is proven contained here, and waits inside for
/// [`Running::finish`].
pub fn start(launch: &Launch) -> Result<Running, SuperviseError> {
    start_in(None, launch)
}

/// The same, with the way into its jail started before the launch was decided.
pub fn start_in(entry: Option<Entry>, launch: &Launch) -> Result<Running, SuperviseError> {
    let running = start_unproven(entry, launch)?;
    let mut missing = running
        .jail
        .as_ref()
        .map(|jail| unproven_layers(&jail.report))
        .unwrap_or_default();
    let asked = launch
        .jail
        .as_ref()
        .and_then(|plan| plan.guard.as_ref())
        .map(|guard| guard.places.mounts() as u64);
    if asked
        != running
            .jail
            .as_ref()
            .and_then(|jail| jail.report.guard)
            .map(|guard| guard.asked)
    {
        missing.push("guard: not the places that were asked for".into());
    }
    // Dropping `running` ends the jail; nothing of the contract was started in it.
    if missing.is_empty() {
        Ok(running)
    } else {
        Err(SuperviseError::NotContained { missing })
    }
}

/// For experiments with single layers: no run ever starts this way.
pub fn start_unproven(entry: Option<Entry>, launch: &Launch) -> Result<Running, SuperviseError> {
    let started = Instant::now();
    let output = || {
        if launch.inherit_output {
            Stdio::inherit()
        } else {
            Stdio::piped()
        }
    };
    let Some(plan) = &launch.jail else {
        let child = Command::new(&launch.program)
            .args(&launch.args)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(&launch.env)
            .stdin(Stdio::null())
            .stdout(output())
            .stderr(output())
            .process_group(0)
            .spawn()
            .map_err(|source| SuperviseError::Spawn {
                program: launch.program.display().to_string(),
                source,
            })?;
        return Ok(Running {
            child,
            limits: launch.limits,
            started,
            jail: None,
            door: None,
        });
    };
    let entry = match entry {
        Some(entry) => entry,
        None => Entry::start((output(), output()))?,
    };
    let ready = cto_jail::prepare(
        entry,
        plan,
        &launch.program,
        &launch.args,
        &launch.cwd,
        &launch.env,
    )?;
    let jail = Jailed {
        control: ready.control,
        report: ready.report,
        census: ready.census,
        witness: ready.witness,
    };
    Ok(Running {
        child: ready.child,
        limits: launch.limits,
        started,
        jail: Some(jail),
        door: ready.door,
    })
}

/// Runs a process to its end; every byte it writes goes to `output` in order of arrival.
pub fn run(
    launch: &Launch,
    cancel: &Cancel,
    output: &mut dyn FnMut(Stream, &[u8]),
) -> Result<Ended, SuperviseError> {
    start(launch)?.finish(cancel, output)
}

impl Running {
    /// The gateway's door, when the plan asked for one.
    pub fn take_door(&mut self) -> Option<Door> {
        self.door.take()
    }

    pub fn finish(
        mut self,
        cancel: &Cancel,
        output: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Ended, SuperviseError> {
        let watched = |source| SuperviseError::Watch { source };
        if let Some(jail) = &self.jail {
            cto_jail::go(&jail.control).map_err(watched)?;
        }
        let (end, peak) = watch(&mut self, cancel, output).map_err(watched)?;
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Some(Jailed {
            control,
            report,
            census,
            witness,
        }) = self.jail.take()
        else {
            return Ok(Ended {
                end,
                duration_ms,
                contained: None,
                attempts: Err("it ran without containment".into()),
            });
        };
        // The outer process was reaped, so pid 1 is gone, and the kernel ended the rest before
        // that.
        let word = cto_jail::last_word(&control);
        drop(control);
        let survivors = census.tally().map_err(watched)?.alive;
        let end = match (end, word) {
            (
                ProcessEnd::Exited { .. } | ProcessEnd::Signalled { .. } | ProcessEnd::Lost,
                Some((word, _)),
            ) => from_word(word),
            // Ended by us: what it left as a code does not matter. Ended without a word: nobody
            // knows how.
            (
                end @ (ProcessEnd::TimedOut { .. }
                | ProcessEnd::MemoryLimit { .. }
                | ProcessEnd::Cancelled),
                _,
            ) => end,
            (_, None) => ProcessEnd::Lost,
        };
        let ended_with_it = word.map_or(0, |(_, count)| count);
        Ok(Ended {
            end,
            duration_ms,
            contained: Some(Contained {
                jail: report,
                survivors,
                ended_with_it,
                peak_memory_kib: peak,
            }),
            attempts: witness.and_then(Witness::finish),
        })
    }
}

fn from_word(word: ExitWord) -> ProcessEnd {
    match word {
        ExitWord::Exited(code) => {
            u8::try_from(code).map_or(ProcessEnd::Lost, |code| ProcessEnd::Exited { code })
        }
        ExitWord::Signalled(signal) => ProcessEnd::Signalled { signal },
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // On every road, also where watching failed: the tree is ended, the child reaped.
        match self.jail.take() {
            // Pid 1 ends the namespace when its lifeline is cut.
            Some(jail) => cto_jail::sever(&jail.control),
            None => {
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
                let _ = self.child.kill();
            }
        }
        let _ = self.child.wait();
    }
}

/// How a process is told to end: its group when it runs bare, its pid 1 when it is jailed.
struct Reach<'a> {
    pid: Pid,
    control: Option<&'a UnixStream>,
}

impl Reach<'_> {
    fn terminate(&self) {
        // Gone already is what we want.
        let _ = match self.control {
            Some(control) => cto_jail::terminate(control),
            None => kill_process_group(self.pid, Signal::TERM).map_err(io::Error::from),
        };
    }

    fn kill(&self) {
        match self.control {
            Some(control) => cto_jail::sever(control),
            None => {
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
        }
    }
}

/// How often the memory of a jail is looked at.
const SAMPLE: Duration = Duration::from_millis(250);

/// Looks at the memory of a jail's tree now and then.
struct Sampler<'a> {
    census: Option<&'a Census>,
    last: Instant,
    peak_kib: Option<u64>,
}

impl Sampler<'_> {
    /// Memory now, when it is time to look.
    fn look(&mut self, now: Instant) -> Option<u64> {
        let census = self.census.filter(|_| now - self.last >= SAMPLE)?;
        self.last = now;
        // A look that failed is made again at the next sample.
        let memory = census.tally().ok()?.memory_kib;
        self.peak_kib = self.peak_kib.max(Some(memory));
        Some(memory)
    }

    fn bound(&self, wait: Duration) -> Duration {
        if self.census.is_some() {
            wait.min(SAMPLE)
        } else {
            wait
        }
    }
}

/// Watches a process to its end; also tells the most memory that was seen.
fn watch(
    running: &mut Running,
    cancel: &Cancel,
    output: &mut dyn FnMut(Stream, &[u8]),
) -> io::Result<(ProcessEnd, Option<u64>)> {
    let Running {
        child,
        limits,
        jail,
        ..
    } = running;
    let mut pipes = Pipes::of(child)?;
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let reach = Reach {
        pid,
        control: jail.as_ref().map(|jail| &jail.control),
    };
    let mut sampler = Sampler {
        census: jail.as_ref().map(|jail| &jail.census),
        last: Instant::now(),
        peak_kib: None,
    };
    let mut watch = Watch::new(*limits, Instant::now());
    let mut status: Option<ExitStatus> = None;
    loop {
        let now = Instant::now();
        let too_much = status.is_none()
            && sampler
                .look(now)
                .is_some_and(|memory| memory > limits.memory_kib);
        let input = match (cancel.requested(), too_much) {
            (true, _) => Input::Cancelled,
            (false, true) => Input::MemoryExceeded,
            (false, false) => Input::Tick,
        };
        let wait = match watch.decide(now, input) {
            Decision::Wait(wait) => sampler.bound(wait),
            Decision::Terminate => {
                reach.terminate();
                Duration::ZERO
            }
            Decision::Kill => {
                reach.kill();
                Duration::ZERO
            }
            Decision::Finish => break,
        };
        let process = [(Ready::Exit, pidfd.as_fd()), (Ready::Cancel, cancel.fd())];
        let awaited = match (status, input) {
            (Some(_), _) => &[],
            // It stays readable: waiting on it again would not be waiting.
            (None, Input::Cancelled) => &process[..1],
            (None, _) => &process[..],
        };
        for ready in pipes.wait(awaited, wait)? {
            match ready {
                Ready::Output(stream) => pipes.drain(stream, output, &mut watch)?,
                Ready::Cancel => {}
                Ready::Exit => {
                    status = child.try_wait()?;
                    if status.is_some() {
                        // What a bare process left in its group holds the pipes open and must not
                        // outlive it.
                        if reach.control.is_none() {
                            reach.kill();
                        }
                        watch.decide(Instant::now(), Input::Exited);
                    }
                }
            }
        }
        if pipes.closed() {
            watch.decide(Instant::now(), Input::OutputClosed);
        }
    }
    let end = watch.verdict(status.map(|status| (status.code(), status.signal())));
    Ok((end, sampler.peak_kib))
}

#[cfg(test)]
#[path = "supervise_tests.rs"]
mod tests;
