//! The operator's terminal, stood in for by one of the jail's own. Its keys are read only while we
//! are in the foreground and somebody inside wants them; its modes are ours only for that time, and
//! are given back on every way out that lets a program do anything.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cto_core::containment::descriptors::{Keys, Turn, keys};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, getpgrp};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

use super::output::write_all;
use super::{DRAIN, Ending, wait_for};
use crate::supervise::cancel::{Asker, Cancel};

/// How often we look whether it is our turn: a shell that brings us to the foreground need not tell
/// us.
const LOOK: Duration = Duration::from_millis(250);

pub struct Terminal {
    /// The operator's.
    outer: OwnedFd,
    /// The other side of the jail's.
    inner: OwnedFd,
    /// Others may write to the operator's while we read from it: its output modes stay.
    is_shared: bool,
    modes: Mutex<Modes>,
    /// Somebody inside wants keys.
    wanted: AtomicBool,
    /// Who was in the foreground inside before anybody asked.
    nobody: Option<Pid>,
    showing: AtomicBool,
    continued: Arc<AtomicBool>,
    /// Readable when the size, our turn or somebody's wish may have changed.
    changed: UnixStream,
    change: UnixStream,
    stops: UnixStream,
    _stop: UnixStream,
    hang_up: Asker,
}

#[derive(Default)]
struct Modes {
    before: Option<Termios>,
    are_ours: bool,
}

impl Terminal {
    /// Gives the jail's terminal the size and modes of the operator's. Nothing of the operator's is
    /// changed yet.
    pub fn stand_in_for(
        outer: OwnedFd,
        inner: OwnedFd,
        keys_at_once: bool,
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let mut modes = tcgetattr(&outer)?;
        if !modes.local_modes.contains(LocalModes::ICANON) {
            // Somebody else's for the moment.
            modes = tcgetattr(&inner)?;
        }
        if !keys_at_once {
            // The operator's terminal ends lines as it likes; twice would be once too often.
            modes.output_modes.remove(OutputModes::OPOST);
        }
        tcsetattr(&inner, OptionalActions::Now, &modes)?;
        fcntl_setfl(&inner, OFlags::NONBLOCK)?;
        let ((changed, change), (stops, stop)) = (pair()?, pair()?);
        for signal in [SIGWINCH, SIGCONT] {
            signal_hook::low_level::pipe::register(signal, change.try_clone()?)?;
        }
        let continued = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGCONT, continued.clone())?;
        signal_hook::low_level::pipe::register(SIGTSTP, stop.try_clone()?)?;
        // With the terminal in our modes, this one may not end us on the spot either.
        cancel.also_on(SIGQUIT)?;
        let terminal = Self {
            nobody: tcgetpgrp(&inner).ok().filter(|_| !keys_at_once),
            outer,
            inner,
            is_shared: !keys_at_once,
            modes: Mutex::default(),
            wanted: AtomicBool::new(keys_at_once),
            showing: AtomicBool::new(false),
            continued,
            changed,
            change,
            stops,
            _stop: stop,
            hang_up: cancel.asker()?,
        };
        terminal.follow_size();
        Ok(terminal)
    }

    pub fn stops(&self) -> BorrowedFd<'_> {
        self.stops.as_fd()
    }

    pub fn hear_stop(&self) {
        drain(&self.stops);
    }

    pub fn want_keys(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        // A wake that is already waiting is enough.
        let _ = (&self.change).write(&[0]);
    }

    /// Stops us with our group, the terminal as we found it. Returns when we go on.
    pub fn stop(&self) -> io::Result<()> {
        self.wait_until_shown();
        // Held meanwhile: nobody takes the modes back before we go on.
        let mut modes = self.modes();
        self.restore(&mut modes);
        let stopped = cto_jail::stop_with_group();
        drop(modes);
        let _ = (&self.change).write(&[0]);
        stopped
    }

    pub fn give_back(&self) {
        self.restore(&mut self.modes());
    }

    /// Shows what the process inside writes, until it is gone.
    pub fn show(&self, ending: &Ending) {
        let mut buffer = vec![0u8; 64 << 10];
        let mut takes = true;
        loop {
            let mut fds = [
                PollFd::new(&self.inner, PollFlags::IN),
                PollFd::new(ending, PollFlags::IN),
            ];
            if wait_for(&mut fds, None).is_err() {
                return;
            }
            let over = !fds[1].revents().is_empty();
            self.showing.store(true, Ordering::SeqCst);
            match rustix::io::read(&self.inner, &mut buffer) {
                Ok(read @ 1..) => {
                    self.notice_wish();
                    if takes && write_all(&self.outer, &buffer[..read]).is_err() {
                        takes = false;
                        self.hang_up.ask(SIGHUP);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !over => {}
                // Nobody has the other side any more, or what they left is shown.
                Ok(0) | Err(_) => return,
            }
            self.showing.store(false, Ordering::SeqCst);
        }
    }

    /// Passes on keys and changes of size, until the process inside is gone.
    pub fn read_keys(&self, ending: &Ending) {
        let mut typed: Vec<u8> = Vec::new();
        let mut end_is_told = false;
        loop {
            let keys = self.keys();
            if keys == Keys::Ended && !end_is_told {
                end_is_told = true;
                typed.extend(self.end_of_input());
            }
            let reading = keys == Keys::Read && typed.is_empty();
            let mut fds = [
                PollFd::new(ending, PollFlags::IN),
                PollFd::new(&self.changed, PollFlags::IN),
                PollFd::new(
                    &self.outer,
                    if reading {
                        PollFlags::IN
                    } else {
                        PollFlags::empty()
                    },
                ),
                PollFd::new(&self.inner, PollFlags::OUT),
            ];
            let awaited = if typed.is_empty() { 3 } else { 4 };
            let wait = (keys == Keys::Wait).then_some(LOOK);
            if wait_for(&mut fds[..awaited], wait).is_err() || !fds[0].revents().is_empty() {
                return;
            }
            if !fds[1].revents().is_empty() {
                drain(&self.changed);
                self.follow_size();
            }
            self.notice_wish();
            let outer = fds[2].revents();
            if outer.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                self.hang_up.ask(SIGHUP);
                return;
            }
            if outer.contains(PollFlags::IN) && self.take_keys(&mut typed).is_err() {
                self.hang_up.ask(SIGHUP);
                return;
            }
            if !typed.is_empty() {
                self.pass_keys(&mut typed);
            }
        }
    }

    /// Reads what was typed, if it is still our turn. Were it not by the time of the read, the
    /// kernel would stop us instead.
    fn take_keys(&self, typed: &mut Vec<u8>) -> Result<(), Errno> {
        let mut buffer = [0u8; 4096];
        if self.turn() != Turn::Ours {
            return Ok(());
        }
        match rustix::io::read(&self.outer, &mut buffer) {
            Ok(read) => {
                typed.extend_from_slice(&buffer[..read]);
                Ok(())
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(_) if self.turn() != Turn::Ours => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What does not fit now waits; nothing more is read before it fits.
    fn pass_keys(&self, typed: &mut Vec<u8>) {
        match rustix::io::write(&self.inner, typed) {
            Ok(written) => drop(typed.drain(..written)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Nobody inside has a terminal any more.
            Err(_) => typed.clear(),
        }
    }

    /// May keys be read now? Where they may, the modes of the terminal are ours.
    pub fn keys(&self) -> Keys {
        let mut modes = self.modes();
        if self.continued.swap(false, Ordering::SeqCst) {
            // Whoever let us go on may have set others.
            modes.are_ours = false;
        }
        let keys = keys(self.wanted.load(Ordering::SeqCst), self.turn());
        if keys == Keys::Read && !modes.are_ours {
            // Without our modes the terminal still works, a line at a time.
            modes.are_ours = self.take_modes(&mut modes).is_ok();
        }
        keys
    }

    fn take_modes(&self, modes: &mut Modes) -> io::Result<()> {
        let before = match &modes.before {
            Some(before) => before.clone(),
            None => modes.before.insert(tcgetattr(&self.outer)?).clone(),
        };
        let mut ours = before.clone();
        ours.make_raw();
        // A read never waits, also where somebody else took the key that woke us.
        ours.special_codes[SpecialCodeIndex::VMIN] = 0;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        if self.is_shared {
            ours.output_modes = before.output_modes;
        }
        Ok(tcsetattr(&self.outer, OptionalActions::Now, &ours)?)
    }

    fn restore(&self, modes: &mut Modes) {
        if let Some(before) = modes.before.as_ref().filter(|_| modes.are_ours)
            && self.turn() == Turn::Ours
        {
            // A terminal that is gone has no modes.
            let _ = tcsetattr(&self.outer, OptionalActions::Now, before);
        }
        modes.are_ours = false;
    }

    fn turn(&self) -> Turn {
        match tcgetpgrp(&self.outer) {
            Ok(group) if group == getpgrp() => Turn::Ours,
            Ok(_) => Turn::Background,
            Err(Errno::NOTTY) => Turn::AnotherSession,
            Err(_) => Turn::Background,
        }
    }

    /// A program that put itself in the foreground wants keys, though nothing stopped it.
    fn notice_wish(&self) {
        if !self.wanted.load(Ordering::SeqCst)
            && self.nobody.is_some()
            && tcgetpgrp(&self.inner).is_ok_and(|group| Some(group) != self.nobody)
        {
            self.want_keys();
        }
    }

    fn follow_size(&self) {
        if let Ok(size) = tcgetwinsize(&self.outer) {
            // A terminal that keeps its size is still one.
            let _ = tcsetwinsize(&self.inner, size);
        }
    }

    /// The key that ends input inside.
    fn end_of_input(&self) -> Option<u8> {
        let modes = tcgetattr(&self.inner).ok()?;
        Some(modes.special_codes[SpecialCodeIndex::VEOF])
    }

    /// Before a stop: what was written until then is on the screen.
    fn wait_until_shown(&self) {
        const STEP: Duration = Duration::from_millis(5);
        let steps = DRAIN.as_millis() / STEP.as_millis();
        for _ in 0..steps {
            let mut waiting = [PollFd::new(&self.inner, PollFlags::IN)];
            let is_read = wait_for(&mut waiting, Some(Duration::ZERO)).is_err()
                || waiting[0].revents().is_empty();
            if is_read && !self.showing.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(STEP);
        }
    }

    fn modes(&self) -> MutexGuard<'_, Modes> {
        self.modes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pair() -> io::Result<(UnixStream, UnixStream)> {
    let (one, two) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    two.set_nonblocking(true)?;
    Ok((one, two))
}

fn drain(mut from: &UnixStream) {
    let mut sink = [0u8; 64];
    while from.read(&mut sink).is_ok_and(|read| read > 0) {}
}
