//! The operator's terminal, stood in for by one of the jail's own. Its keys are read only where core
//! says so; its modes are ours only for that time, and are given back on every way out that lets a
//! program do anything.
//!
//! Where others may use the terminal too, one mode alone is ours: `EXTPROC`, with which the kernel
//! passes every key on as it comes, unshown. All others stay, so that what somebody else sets for a
//! password can be told from what we set, holds once ours is taken away, and is theirs to undo.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cto_core::containment::descriptors::{Because, Keys, Moment, Right, Turn, keys};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags, fcntl_setfl};
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
    /// The same where it can be written to: input may have been opened for reading alone.
    screen: OwnedFd,
    /// The other side of the jail's.
    inner: OwnedFd,
    right: Right,
    /// Ours alone and never waiting, for a terminal that others may read: a read that waits would
    /// take what is typed later, when it is no longer for us.
    own: Option<OwnedFd>,
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
    /// The shared mode was set by us, once: whoever saved it meanwhile may set it again.
    was_shared: bool,
}

impl Terminal {
    /// Gives the jail's terminal the size and modes of the operator's. Nothing of the operator's is
    /// changed yet.
    pub fn stand_in_for(
        (outer, screen): (OwnedFd, OwnedFd),
        inner: OwnedFd,
        right: Right,
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let keys_at_once = right == Right::AtOnce;
        let (right, own) = match (right, open_own()) {
            (Right::OnceAsked, Ok(own)) => (right, Some(own)),
            (Right::OnceAsked, Err(_)) => (Right::Never(Because::AnotherSession), None),
            (Right::AtOnce | Right::Never(_), _) => (right, None),
        };
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
            screen,
            inner,
            right,
            own,
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
        if !self.wanted.swap(true, Ordering::SeqCst)
            && let Right::Never(because) = self.right
        {
            // Without it, the command would end for no reason that can be seen.
            let _ = writeln!(io::stderr(), "cto: {}", because.sentence());
        }
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
                    if self.wanted.load(Ordering::SeqCst) {
                        // Before its words are seen: whoever answers them types in our modes.
                        self.keys();
                    }
                    if takes && write_all(&self.screen, &buffer[..read]).is_err() {
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
        let mut told: Option<Instant> = None;
        loop {
            let keys = self.keys();
            if keys == Keys::Ended
                && self.wanted.load(Ordering::SeqCst)
                && typed.is_empty()
                && told.is_none_or(|at| at.elapsed() >= LOOK)
            {
                // Told again at every look: whoever changes modes drops what is not read yet.
                told = Some(Instant::now());
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
            let wait = (keys != Keys::Read || self.own.is_some()).then_some(LOOK);
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

    /// Reads what was typed, if that may still be. Were it not our turn by the time of the read,
    /// the kernel would stop us instead.
    fn take_keys(&self, typed: &mut Vec<u8>) -> Result<(), Errno> {
        let mut buffer = [0u8; 4096];
        if self.keys() != Keys::Read {
            return Ok(());
        }
        match rustix::io::read(self.own.as_ref().unwrap_or(&self.outer), &mut buffer) {
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
        let keys = keys(
            self.right,
            Moment {
                is_asked: self.wanted.load(Ordering::SeqCst),
                turn: self.turn(),
                is_hidden: self.own.is_some() && self.is_hidden(),
            },
        );
        match (keys, &self.own) {
            (Keys::Read, Some(_)) => modes.was_shared |= self.take_shared().is_ok_and(|took| took),
            // Somebody asks for a password: what they set holds.
            (Keys::Wait, Some(_)) if modes.was_shared => self.restore(&mut modes),
            // Without our modes the terminal still works, a line at a time.
            (Keys::Read, None) if !modes.are_ours => {
                modes.are_ours = self.take_modes(&mut modes).is_ok();
            }
            _ => {}
        }
        keys
    }

    /// A terminal whose modes cannot be read hides what is typed, for all we know.
    fn is_hidden(&self) -> bool {
        !tcgetattr(&self.outer).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ECHO))
    }

    /// Takes the one mode that is ours where the terminal is shared. Did we have to?
    fn take_shared(&self) -> io::Result<bool> {
        let mut modes = tcgetattr(&self.outer)?;
        let takes = !modes.local_modes.contains(LocalModes::EXTPROC);
        if takes {
            modes.local_modes.insert(LocalModes::EXTPROC);
            tcsetattr(&self.outer, OptionalActions::Now, &modes)?;
        }
        Ok(takes)
    }

    /// Whatever others set meanwhile stays.
    fn restore_shared(&self) -> io::Result<()> {
        let mut modes = tcgetattr(&self.outer)?;
        if modes.local_modes.contains(LocalModes::EXTPROC) {
            modes.local_modes.remove(LocalModes::EXTPROC);
            tcsetattr(&self.outer, OptionalActions::Now, &modes)?;
        }
        Ok(())
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
        Ok(tcsetattr(&self.outer, OptionalActions::Now, &ours)?)
    }

    fn restore(&self, modes: &mut Modes) {
        if (modes.are_ours || modes.was_shared) && self.turn() == Turn::Ours {
            // A terminal that is gone has no modes.
            let _ = match (&self.own, &modes.before) {
                (Some(_), _) => self.restore_shared(),
                (None, Some(before)) => {
                    tcsetattr(&self.outer, OptionalActions::Now, before).map_err(io::Error::from)
                }
                (None, None) => Ok(()),
            };
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

/// The terminal of our session, by a descriptor of our own.
fn open_own() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/tty", flags, Mode::empty())?)
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
