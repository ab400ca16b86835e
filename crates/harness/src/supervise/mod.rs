//! Processes: shaped, started, listened to, limited and ended, engine and checks alike. Only this
//! room starts what a contract names.
//!
//! - `launch/` what a process is started with: mounts, environment, limits
//! - `mod.rs` start and end; `watch.rs` what lies between; `pipes.rs` its output; `capture.rs` the same into a file, without
//!   secrets
//! - `desk.rs` what a listener may do: answer, and let the process go
//! - `descriptors/` descriptors 0–2 of a process in a jail, and the operator's terminal
//! - `unmapped.rs` a directory whose file system stands in the way
//! - `limits.rs` when to wait, ask or kill; `cancel.rs` signals to us
//!
//! Imports host and evidence. Imported by workspace, records, run, doubles, proof and cli.

pub mod cancel;
pub mod launch;

mod capture;
mod descriptors;
mod desk;
mod limits;
mod pipes;
mod unmapped;
mod watch;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cto_core::containment::{JailReport, ProcessReport, unproven_layers};
use cto_core::run::attempt::Log;
use cto_core::run::event::ProcessEnd;
use cto_jail::{Census, Door, ExitWord, JailError, Witness};
use rustix::process::{Pid, Signal, kill_process_group};

pub use capture::{Capture, Captured};
pub use descriptors::Entrance;
use descriptors::{Ours, StandIns};
use desk::Hearing;
pub use desk::{Attendant, Desk};
pub use limits::Limits;

use crate::supervise::cancel::Cancel;
use crate::supervise::launch::{Launch, Streams};

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
    #[error("what it wrote could not be passed on")]
    Output { source: io::Error },
    #[error("the process could not be watched")]
    Watch { source: io::Error },
    #[error(transparent)]
    Jail(#[from] JailError),
    #[error("containment is not proven: {}", missing.join(", "))]
    NotContained { missing: Vec<String> },
}

/// How long a process that may go has to end itself.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long one has that stays when its work is done.
const STAYING: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_millis(500);
/// How long output may still trickle in after the process itself has ended.
const DRAIN: Duration = Duration::from_millis(200);

/// The harness's side of a jail.
struct Jailed {
    control: UnixStream,
    report: JailReport,
    census: Census,
    witness: Result<Witness, String>,
    /// What pid 1 said at the end, if that was heard already.
    ended: Option<(ExitWord, u64)>,
}

/// A process that was started and must be watched to its end. Dropping it ends it.
pub struct Running {
    child: Child,
    /// The child was reaped: its number may be another's.
    is_reaped: bool,
    limits: Limits,
    started: Instant,
    jail: Option<Jailed>,
    door: Option<Door>,
    /// Input that is ours to give.
    input: Option<OwnedFd>,
    /// Output that is ours to take.
    output: (Option<OwnedFd>, Option<OwnedFd>),
    /// The operator's descriptors, stood in for, and the other side of its terminal.
    stand_ins: Option<(StandIns, Option<OwnedFd>)>,
}

/// Starts a process. A jailed one is proven contained here, and waits inside for
/// [`Running::finish`].
pub fn start(launch: &Launch) -> Result<Running, SuperviseError> {
    start_in(None, launch)
}

/// The same, with the way into its jail started before the launch was decided.
pub fn start_in(entrance: Option<Entrance>, launch: &Launch) -> Result<Running, SuperviseError> {
    let running = start_unproven(entrance, launch)?;
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
pub fn start_unproven(
    entrance: Option<Entrance>,
    launch: &Launch,
) -> Result<Running, SuperviseError> {
    let started = Instant::now();
    let Some(plan) = &launch.jail else {
        return start_bare(launch, started);
    };
    let Entrance { entry, ours } = match entrance {
        Some(entrance) => entrance,
        None if launch.streams == Streams::StoodInFor => Entrance::stood_in()?,
        None => Entrance::captured(launch.streams == Streams::Talked)?,
    };
    let ready = cto_jail::prepare(
        entry,
        plan,
        &launch.program,
        &launch.args,
        &launch.cwd,
        &launch.settled_env(),
    )?;
    let jail = Jailed {
        control: ready.control,
        report: ready.report,
        census: ready.census,
        witness: ready.witness,
        ended: None,
    };
    let (input, output, stand_ins) = match ours {
        Ours::Captured {
            stdin,
            stdout,
            stderr,
        } => (stdin, (Some(stdout), Some(stderr)), None),
        Ours::StoodIn(stand_ins) => (None, (None, None), Some((stand_ins, ready.terminal))),
    };
    Ok(Running {
        child: ready.child,
        is_reaped: false,
        limits: launch.limits,
        started,
        jail: Some(jail),
        door: ready.door,
        input,
        output,
        stand_ins,
    })
}

fn start_bare(launch: &Launch, started: Instant) -> Result<Running, SuperviseError> {
    let mut child = Command::new(&launch.program)
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(&launch.env)
        .stdin(match launch.streams {
            Streams::Talked => Stdio::piped(),
            Streams::Taken | Streams::StoodInFor => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| SuperviseError::Spawn {
            program: launch.program.display().to_string(),
            source,
        })?;
    Ok(Running {
        input: child.stdin.take().map(OwnedFd::from),
        output: (
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ),
        child,
        is_reaped: false,
        limits: launch.limits,
        started,
        jail: None,
        door: None,
        stand_ins: None,
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
        self,
        cancel: &Cancel,
        output: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Ended, SuperviseError> {
        self.finish_attended(cancel, &mut Hearing(output))
    }

    /// The same with somebody who may answer, and say that the process may go.
    pub fn finish_attended(
        mut self,
        cancel: &Cancel,
        attendant: &mut dyn Attendant,
    ) -> Result<Ended, SuperviseError> {
        let watched = |source| SuperviseError::Watch { source };
        let prepared = match self.stand_ins.take() {
            Some((stand_ins, terminal)) => {
                Some(stand_ins.prepare(terminal, cancel).map_err(watched)?)
            }
            None => None,
        };
        if let Some(jail) = &self.jail {
            cto_jail::go(&jail.control).map_err(watched)?;
        }
        let passing = match prepared {
            Some(prepared) => Some(prepared.begin().map_err(watched)?),
            None => None,
        };
        let (end, peak) =
            watch::watch(&mut self, cancel, passing.as_ref(), attendant).map_err(watched)?;
        if let Some(passing) = passing {
            passing
                .finish(cancel)
                .map_err(|source| SuperviseError::Output { source })?;
        }
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Some(Jailed {
            control,
            report,
            census,
            witness,
            ended,
        }) = self.jail.take()
        else {
            return Ok(Ended {
                end,
                duration_ms,
                contained: None,
                attempts: Err("it ran without containment".into()),
            });
        };
        // The outer process was reaped. With pid 1's last word, pid 1 is gone, and the kernel ended
        // the rest before that. Without it the outer process may have gone first, whoever ended it.
        let word = ended.or_else(|| cto_jail::last_word(&control));
        cto_jail::sever(&control);
        drop(control);
        let survivors = match word {
            Some(_) => census.tally().map_err(watched)?.alive,
            None => settled(&census).map_err(watched)?,
        };
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
                | ProcessEnd::Dismissed { .. }
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

/// How many live in a jail that is being ended, once none do or too long has passed.
fn settled(census: &Census) -> io::Result<u64> {
    const STEP: Duration = Duration::from_millis(5);
    const STEPS: u32 = 1000;
    for _ in 1..STEPS {
        if census.tally()?.alive == 0 {
            return Ok(0);
        }
        std::thread::sleep(STEP);
    }
    Ok(census.tally()?.alive)
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
            // Once it is reaped, its number and its group's may be somebody else's.
            None if self.is_reaped => {}
            None => {
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
                let _ = self.child.kill();
            }
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
#[path = "supervise_tests.rs"]
mod tests;
