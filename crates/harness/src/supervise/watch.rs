//! A process from its start to its end: waited for, looked at, limited, and told to end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use cto_core::run::event::ProcessEnd;
use cto_jail::{Census, ExitWord, Word};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::descriptors::Passing;
use super::limits::{Decision, Input, Watch};
use super::pipes::{Pipes, Ready};
use super::{Attendant, Desk, Jailed, Running};
use crate::supervise::cancel::Cancel;

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

/// What is said while a process has a terminal: by its pid 1, and by whoever asks us to stop.
struct Words<'a> {
    control: &'a UnixStream,
    passing: &'a Passing,
    stops: BorrowedFd<'a>,
    is_open: bool,
    ended: Option<(ExitWord, u64)>,
}

impl<'a> Words<'a> {
    fn of(jail: Option<&'a Jailed>, passing: Option<&'a Passing>) -> Option<Self> {
        let passing = passing?;
        Some(Self {
            control: &jail?.control,
            passing,
            stops: passing.stops()?,
            is_open: true,
            ended: None,
        })
    }

    fn awaited(&self) -> impl Iterator<Item = (Ready, BorrowedFd<'a>)> + use<'a> {
        let both = [
            (Ready::Word, self.control.as_fd()),
            (Ready::Stop, self.stops),
        ];
        both.into_iter().filter({
            let is_open = self.is_open;
            move |_| is_open
        })
    }

    fn hear(&mut self, ready: Ready) -> io::Result<()> {
        if ready == Ready::Stop {
            self.passing.hear_stop();
            return cto_jail::suspend(self.control).or(Ok(()));
        }
        match cto_jail::next_word(self.control) {
            Some(Word::Asked) => self.passing.keys_are_wanted(),
            Some(Word::Stopped) => {
                self.passing.stop()?;
                // A jail that is gone by now goes nowhere.
                let _ = cto_jail::resume(self.control);
            }
            last => {
                self.is_open = false;
                if let Some(Word::Ended(status, others)) = last {
                    self.ended = Some((status, others));
                }
            }
        }
        Ok(())
    }
}

/// What a moment brings; whoever asks us to end comes first.
fn pressing(is_cancelled: bool, too_much: bool) -> Input {
    match (is_cancelled, too_much) {
        (true, _) => Input::Cancelled,
        (false, true) => Input::MemoryExceeded,
        (false, false) => Input::Tick,
    }
}

/// Lets the listener look, and takes up what it says of life and dismissal.
fn look(now: Instant, watch: &mut Watch, desk: &mut Desk, attendant: &mut dyn Attendant) {
    desk.tell_silent(watch.is_silent(now));
    attendant.look(desk);
    if desk.take_life() {
        watch.saw_life(now);
    }
    watch.dismiss(now, desk.dismissed());
}

/// Watches a process to its end; also tells the most memory that was seen.
pub fn watch(
    running: &mut Running,
    cancel: &Cancel,
    passing: Option<&Passing>,
    attendant: &mut dyn Attendant,
) -> io::Result<(ProcessEnd, Option<u64>)> {
    let Running {
        child,
        is_reaped,
        limits,
        jail,
        input,
        output: (stdout, stderr),
        ..
    } = running;
    let mut desk = Desk::new(input.take())?;
    attendant.begin(&mut desk);
    let mut pipes = Pipes::new(stdout.take(), stderr.take())?;
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let jail = jail.as_mut();
    let mut words = Words::of(jail.as_deref(), passing);
    let reach = Reach {
        pid,
        control: jail.as_deref().map(|jail| &jail.control),
    };
    let mut sampler = Sampler {
        census: jail.as_deref().map(|jail| &jail.census),
        last: Instant::now(),
        peak_kib: None,
    };
    let mut watch = Watch::new(*limits, Instant::now());
    let mut status: Option<ExitStatus> = None;
    loop {
        let now = Instant::now();
        look(now, &mut watch, &mut desk, attendant);
        let too_much = status.is_none()
            && sampler
                .look(now)
                .is_some_and(|memory| memory > limits.memory_kib);
        let input = pressing(cancel.requested(), too_much);
        let wait = match watch.decide(now, input) {
            Decision::Wait(wait) => sampler.bound(wait).min(attendant.pace()),
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
        let mut awaited = Vec::with_capacity(5);
        if status.is_none() {
            awaited.push((Ready::Exit, pidfd.as_fd()));
            // It stays readable: waiting on it again would not be waiting.
            if input != Input::Cancelled {
                awaited.push((Ready::Cancel, cancel.fd()));
            }
            awaited.extend(words.iter().flat_map(Words::awaited));
            awaited.extend(desk.awaited().map(|input| (Ready::Room, input)));
        }
        for ready in pipes.wait(&awaited, wait)? {
            match (ready, &mut words) {
                (Ready::Output(stream), _) => {
                    let mut hear = |bytes: &[u8]| attendant.hear(stream, bytes, &mut desk);
                    if pipes.drain(stream, &mut hear)? && attendant.heeds_output() {
                        watch.saw_life(Instant::now());
                    }
                }
                (Ready::Room, _) => desk.pass_on(),
                (Ready::Word | Ready::Stop, Some(words)) => words.hear(ready)?,
                (Ready::Cancel | Ready::Word | Ready::Stop, _) => {}
                (Ready::Exit, _) => {
                    // What a bare process left in its group holds the pipes open and must not
                    // outlive it. It is not reaped yet, so the number is still its own.
                    if reach.control.is_none() {
                        reach.kill();
                    }
                    status = child.try_wait()?;
                    if status.is_some() {
                        *is_reaped = true;
                        watch.decide(Instant::now(), Input::Exited);
                    }
                }
            }
        }
        if pipes.closed() {
            watch.decide(Instant::now(), Input::OutputClosed);
        }
    }
    let (ended, peak_kib) = (words.and_then(|words| words.ended), sampler.peak_kib);
    if let Some(jail) = jail {
        jail.ended = ended;
    }
    let end = watch.verdict(status.map(|status| (status.code(), status.signal())));
    Ok((end, peak_kib))
}
