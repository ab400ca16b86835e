//! What a listener may do about a process while it runs: tell it something on its standard input, or let it go.
//! Nothing here waits: what the process does not read stays here, up to a bound.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use cto_core::run::event::Dismissal;

use super::Stream;

/// Bytes that may wait for a process that does not read them.
const MAX_WAITING: usize = 1 << 20;

/// Whoever listens to a process, in the one loop that watches it.
pub trait Attendant {
    /// Before the process says anything.
    fn begin(&mut self, _desk: &mut Desk) {}

    fn hear(&mut self, stream: Stream, bytes: &[u8], desk: &mut Desk);

    /// Several times a second, also while the process says nothing.
    fn look(&mut self, _desk: &mut Desk) {}

    /// How soon it wants to look again.
    fn pace(&self) -> Duration {
        Duration::MAX
    }

    /// Is what the process prints a sign of life? Whoever says no tells the desk of others.
    fn heeds_output(&self) -> bool {
        true
    }
}

/// One who only listens.
pub struct Hearing<'a>(pub &'a mut dyn FnMut(Stream, &[u8]));

impl Attendant for Hearing<'_> {
    fn hear(&mut self, stream: Stream, bytes: &[u8], _: &mut Desk) {
        (self.0)(stream, bytes);
    }
}

/// Our end of a standard input, where there is one, and the word that the process may go.
pub struct Desk {
    input: Option<OwnedFd>,
    waiting: VecDeque<u8>,
    dismissed: Option<Dismissal>,
    /// A sign of life was seen since the watcher last asked.
    lives: bool,
    /// None was for as long as the process may show none.
    is_silent: bool,
}

impl Desk {
    pub fn new(input: Option<OwnedFd>) -> io::Result<Self> {
        if let Some(input) = &input {
            rustix::fs::fcntl_setfl(input, rustix::fs::OFlags::NONBLOCK)?;
        }
        Ok(Self {
            input,
            waiting: VecDeque::new(),
            dismissed: None,
            lives: false,
            is_silent: false,
        })
    }

    /// It does something, whatever it prints.
    pub fn shows_life(&mut self) {
        self.lives = true;
    }

    /// Has it been silent for as long as it may? After this look it is ended, unless a sign of life was seen.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    pub(super) fn tell_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    pub(super) fn take_life(&mut self) -> bool {
        std::mem::take(&mut self.lives)
    }

    /// Tells the process something. A process that lets too much wait may go.
    pub fn say(&mut self, bytes: &[u8]) {
        if self.input.is_none() {
            return;
        }
        if bytes.len() > MAX_WAITING - self.waiting.len() {
            self.dismiss(Dismissal::Unread);
            return;
        }
        self.waiting.extend(bytes);
        self.pass_on();
    }

    /// Closes its input; a moment later it is ended, if it does not end itself. The first reason stands.
    pub fn dismiss(&mut self, because: Dismissal) {
        self.dismissed.get_or_insert(because);
        self.close();
    }

    pub fn dismissed(&self) -> Option<Dismissal> {
        self.dismissed
    }

    /// What can be written once there is room for more.
    pub fn awaited(&self) -> Option<BorrowedFd<'_>> {
        let input = self.input.as_ref()?;
        (!self.waiting.is_empty()).then(|| input.as_fd())
    }

    /// Writes what the pipe takes now.
    pub fn pass_on(&mut self) {
        while let (Some(input), false) = (&self.input, self.waiting.is_empty()) {
            match rustix::io::write(input, self.waiting.as_slices().0) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => return,
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                // It closed its input: what it still says is heard, and how it ends is seen.
                Err(_) => self.close(),
            }
        }
    }

    fn close(&mut self) {
        self.input = None;
        self.waiting = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn desk() -> (Desk, io::PipeReader) {
        let (theirs, ours) = io::pipe().unwrap();
        (Desk::new(Some(ours.into())).unwrap(), theirs)
    }

    #[test]
    fn what_is_said_arrives_at_once_and_its_end_with_the_dismissal() {
        let (mut desk, mut theirs) = desk();
        desk.say(b"one\n");
        desk.say(b"two\n");
        assert!(desk.awaited().is_none());
        desk.dismiss(Dismissal::Answered);
        desk.dismiss(Dismissal::Unread);
        desk.say(b"three\n");
        let mut all = String::new();
        theirs.read_to_string(&mut all).unwrap();
        assert_eq!(
            (all.as_str(), desk.dismissed()),
            ("one\ntwo\n", Some(Dismissal::Answered))
        );
    }

    #[test]
    fn nobody_waits_for_a_process_that_does_not_read() {
        let (mut desk, theirs) = desk();
        desk.say(&vec![b'x'; MAX_WAITING]);
        assert!(desk.awaited().is_some() && desk.dismissed().is_none());
        desk.say(&vec![b'x'; MAX_WAITING]);
        assert_eq!(desk.dismissed(), Some(Dismissal::Unread));
        assert!(desk.awaited().is_none() && desk.waiting.is_empty());
        drop(theirs);
    }

    #[test]
    fn an_input_that_was_closed_takes_nothing_and_ends_nothing() {
        let (mut desk, theirs) = desk();
        drop(theirs);
        desk.say(b"hello\n");
        assert!(desk.awaited().is_none() && desk.dismissed().is_none());
        let mut none = Desk::new(None).unwrap();
        none.say(&vec![b'x'; MAX_WAITING + 1]);
        assert!(none.dismissed().is_none());
    }
}
