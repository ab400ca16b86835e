//! Descriptors 0–2 of a process in a jail, from our side. It never has one of the operator's: each
//! is a pipe or a terminal of ours, and we pass on what goes through it.
//!
//! - this file: what an entry is started with, and the passing on as a whole
//! - `input.rs` into a pipe, taking no more than is read; `output.rs` out of a pipe
//! - `terminal.rs` the operator's terminal: keys, modes, size, stops

mod input;
mod output;
mod terminal;

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cto_core::containment::descriptors::{End, Held, Right, Standing, Wiring, wire};
use cto_jail::{Entry, Given, JailError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{getpgrp, getpid};
use rustix::termios::{isatty, tcgetpgrp};

use self::terminal::Terminal;
use super::DRAIN;
use crate::supervise::cancel::Cancel;

/// A way into a jail that was started, with our ends of its descriptors.
pub struct Entrance {
    pub entry: Entry,
    pub ours: Ours,
}

/// Our ends of descriptors 0–2.
pub enum Ours {
    /// What it writes is ours to take, and what it reads, if anything, ours to give.
    Captured {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// Whatever the operator has, stood in for.
    StoodIn(StandIns),
}

/// Our ends where the operator's descriptors are stood in for.
pub struct StandIns {
    wiring: Wiring,
    input: Option<PipeWriter>,
    /// Each with the operator's descriptor it belongs to.
    outputs: Vec<(PipeReader, OwnedFd)>,
}

impl Entrance {
    /// For a process whose output we take, and that may be `talked` to.
    pub fn captured(talked: bool) -> Result<Self, JailError> {
        let ((stdout, one), (stderr, two)) = (pipe()?, pipe()?);
        let (zero, stdin) = match talked {
            true => {
                let (theirs, ours) = pipe()?;
                (Given::Pipe(theirs.into()), Some(ours.into()))
            }
            false => (Given::Null, None),
        };
        let given = [zero, Given::Pipe(one.into()), Given::Pipe(two.into())];
        Ok(Self {
            entry: Entry::start(given, false)?,
            ours: Ours::Captured {
                stdin,
                stdout: stdout.into(),
                stderr: stderr.into(),
            },
        })
    }

    /// For a command of the operator's.
    pub fn stood_in() -> Result<Self, JailError> {
        let held = [held(io::stdin()), held(io::stdout()), held(io::stderr())];
        let wiring = wire(held, standing());
        let (mut input, mut outputs) = (None, Vec::new());
        let mut shared = None;
        let mut give = |number: usize| -> Result<Given, JailError> {
            Ok(match wiring.ends[number] {
                End::Nothing => Given::Null,
                End::Terminal => Given::Terminal,
                End::Pipe if number == 0 => {
                    let (theirs, ours) = pipe()?;
                    input = Some(ours);
                    Given::Pipe(theirs.into())
                }
                End::SharedPipe => shared.take().map_or(Given::Null, Given::Pipe),
                End::Pipe => {
                    let (ours, theirs) = pipe()?;
                    outputs.push((ours, operators(number).map_err(JailError::Spawn)?));
                    let theirs = OwnedFd::from(theirs);
                    shared = Some(theirs.try_clone().map_err(JailError::Spawn)?);
                    Given::Pipe(theirs)
                }
            })
        };
        let given = [give(0)?, give(1)?, give(2)?];
        drop(shared);
        Ok(Self {
            entry: Entry::start(given, wiring.right == Right::AtOnce)?,
            ours: Ours::StoodIn(StandIns {
                wiring,
                input,
                outputs,
            }),
        })
    }
}

fn pipe() -> Result<(PipeReader, PipeWriter), JailError> {
    io::pipe().map_err(JailError::Spawn)
}

/// One of our own three, held for as long as it is needed.
fn operators(number: usize) -> io::Result<OwnedFd> {
    match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    }
}

/// Where we stand at standard input. Only for the terminal of our session can its foreground be
/// asked for.
fn standing() -> Standing {
    Standing {
        is_of_our_session: tcgetpgrp(io::stdin()).is_ok(),
        leads_group: getpid() == getpgrp(),
    }
}

fn held(fd: impl AsFd) -> Held {
    let null = rustix::fs::makedev(1, 3);
    let Ok(meta) = fd
        .as_fd()
        .try_clone_to_owned()
        .and_then(|fd| File::from(fd).metadata())
    else {
        return Held::Nothing;
    };
    match (isatty(&fd), meta.file_type().is_char_device()) {
        (true, _) => Held::Terminal {
            // Its own device, also where it was opened as `/dev/tty`.
            device: cto_jail::terminal_device(fd.as_fd()).unwrap_or(meta.rdev()),
        },
        (false, true) if meta.rdev() == null => Held::Nothing,
        (false, _) => Held::Other {
            device: meta.dev(),
            inode: meta.ino(),
        },
    }
}

/// At its end from the moment the jail is gone: whoever waits for more stops waiting.
#[derive(Clone)]
pub struct Ending(Arc<PipeReader>);

impl AsFd for Ending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The passing on, while the process runs. Dropping it gives the terminal back.
pub struct Passing {
    ended: Option<PipeWriter>,
    /// At its end when all output has arrived.
    arrived: PipeReader,
    outputs: Vec<JoinHandle<io::Result<()>>>,
    inputs: Vec<JoinHandle<()>>,
    terminal: Option<Arc<Terminal>>,
}

/// Everything that must be in place before the process inside runs; nothing is passed on yet.
pub struct Prepared {
    passing: Passing,
    ending: Ending,
    mark: Arc<PipeWriter>,
    input: Option<PipeWriter>,
    outputs: Vec<(PipeReader, OwnedFd)>,
}

impl StandIns {
    /// Takes the terminal over. `other_side` is that of the jail's terminal.
    pub fn prepare(self, other_side: Option<OwnedFd>, cancel: &Cancel) -> io::Result<Prepared> {
        let (ending, ended) = io::pipe()?;
        let ending = Ending(Arc::new(ending));
        let (arrived, mark) = io::pipe()?;
        let terminal = match (other_side, self.wiring.terminal) {
            (Some(other_side), Some(number)) => Some(Arc::new(Terminal::stand_in_for(
                (operators(number)?, operators(self.wiring.screen(number))?),
                other_side,
                self.wiring.right,
                cancel,
            )?)),
            _ => None,
        };
        let passing = Passing {
            ended: Some(ended),
            arrived,
            outputs: Vec::new(),
            inputs: Vec::new(),
            terminal,
        };
        if let Some(terminal) = &passing.terminal {
            // Before anything inside runs: a key that is typed for it must not mean us.
            terminal.keys();
        }
        Ok(Prepared {
            passing,
            ending,
            mark: Arc::new(mark),
            input: self.input,
            outputs: self.outputs,
        })
    }
}

impl Prepared {
    /// Begins to pass on. The process inside may already run: what it writes waits in its pipes, and
    /// our threads are made while it starts.
    pub fn begin(self) -> io::Result<Passing> {
        let Self {
            mut passing,
            ending,
            mark,
            input,
            outputs,
        } = self;
        for (from, to) in outputs {
            let (ending, mark) = (ending.clone(), mark.clone());
            passing.outputs.push(spawn(move || {
                let passed = output::pass_on(from, &to, &ending);
                drop(mark);
                passed
            })?);
        }
        if let Some(terminal) = &passing.terminal {
            let (shown, its_ending, mark) = (terminal.clone(), ending.clone(), mark.clone());
            passing.outputs.push(spawn(move || {
                shown.show(&its_ending);
                drop(mark);
                Ok(())
            })?);
            let (typed, ending) = (terminal.clone(), ending.clone());
            passing
                .inputs
                .push(spawn(move || typed.read_keys(&ending))?);
        }
        if let Some(to) = input {
            let from = operators(0)?;
            passing
                .inputs
                .push(spawn(move || input::feed(&from, to, &ending))?);
        }
        Ok(passing)
    }
}

fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    const STACK: usize = 256 << 10;
    thread::Builder::new().stack_size(STACK).spawn(work)
}

impl Passing {
    /// Readable when somebody asked us to stop, as Ctrl-Z does.
    pub fn stops(&self) -> Option<BorrowedFd<'_>> {
        self.terminal.as_ref().map(|terminal| terminal.stops())
    }

    /// Takes that request.
    pub fn hear_stop(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.hear_stop();
        }
    }

    /// Something inside wants keys.
    pub fn keys_are_wanted(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.want_keys();
        }
    }

    /// The process inside was stopped: so are we, until whoever started us lets us go on.
    pub fn stop(&self) -> io::Result<()> {
        self.terminal
            .as_ref()
            .map_or(Ok(()), |terminal| terminal.stop())
    }

    /// The jail is gone: what it wrote still arrives, however slowly it is taken.
    pub fn finish(mut self, cancel: &Cancel) -> io::Result<()> {
        self.ended = None;
        let arrived = self.wait_for_output(None, DRAIN)?;
        self.give_back();
        if !arrived {
            const LONG: Duration = Duration::from_secs(3600);
            // Whoever asks us to end does not wait for a terminal that takes nothing.
            while !cancel.requested() && !self.wait_for_output(Some(cancel), LONG)? {}
            if cancel.requested() && !self.wait_for_output(None, DRAIN)? {
                return Ok(());
            }
        }
        for output in self.outputs.drain(..) {
            output.join().unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    fn wait_for_output(&self, cancel: Option<&Cancel>, wait: Duration) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(&self.arrived, PollFlags::IN)];
        fds.extend(cancel.map(|cancel| PollFd::from_borrowed_fd(cancel.fd(), PollFlags::IN)));
        wait_for(&mut fds, Some(wait))?;
        Ok(!fds[0].revents().is_empty())
    }

    fn give_back(&mut self) {
        self.ended = None;
        for input in self.inputs.drain(..) {
            // A thread that failed has nothing to give back.
            let _ = input.join();
        }
        if let Some(terminal) = &self.terminal {
            terminal.give_back();
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Waits; an interrupted wait is an empty answer.
fn wait_for(fds: &mut [PollFd<'_>], wait: Option<Duration>) -> io::Result<()> {
    let wait = wait.map(|wait| rustix::event::Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: i64::from(wait.subsec_nanos()),
    });
    match poll(fds, wait.as_ref()) {
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::INTR) => {
            fds.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
