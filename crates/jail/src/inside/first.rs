//! Pid 1 while the main process runs: it reaps, hears the harness's words, tells of stops, and ends
//! everything with itself.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

use crate::inside::descriptors;
use crate::inside::enter::{FAILED, Never, Step};
use crate::inside::set_gid;
use crate::spec::{self, CONTINUE, ExitWord, FromJail, SUSPEND, TERMINATE};
use crate::sys;

pub struct First<'a> {
    pub control: &'a File,
    /// Readable when a child changed.
    pub children: &'a OwnedFd,
    pub engine: i32,
    pub terminal: Option<&'a OwnedFd>,
}

/// A stop of the main process, on its way from one side to the other.
#[derive(Default)]
struct Stop {
    /// The harness asked for one since it last let the process go on.
    is_wanted: bool,
    /// The harness was told of one.
    is_told: bool,
}

impl First<'_> {
    /// Reaps until the engine ends, then ends whatever is left; a vanished harness ends everything.
    /// `started` hangs up with the engine's start; who asks for set-gid bits may come by it before.
    pub fn watch(&self, started: &UnixStream) -> Step<Never> {
        let (mut waiting, mut listening, mut stop) = (true, false, Stop::default());
        let mut asking: Option<OwnedFd> = None;
        loop {
            let words = if listening {
                PollFlags::IN
            } else {
                PollFlags::empty()
            };
            let mut fds = vec![
                PollFd::new(self.children, PollFlags::IN),
                PollFd::new(self.control, words),
            ];
            if waiting {
                fds.push(PollFd::new(started, PollFlags::IN));
            }
            if let Some(listener) = &asking {
                fds.push(PollFd::new(listener, PollFlags::IN));
            }
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                // Something inside took from us what waiting needs: nothing can be supervised any
                // more.
                Err(_) => give_up(),
            }
            let (children, harness) = (fds[0].revents(), fds[1].revents());
            let begins = waiting && !fds[2].revents().is_empty();
            let asked = fds[2 + usize::from(waiting)..]
                .first()
                .map_or(PollFlags::empty(), PollFd::revents);
            drop(fds);
            match (&asking, asked.is_empty()) {
                (Some(listener), false) if asked.contains(PollFlags::IN) => {
                    set_gid::answer(listener.as_fd());
                }
                // Nobody is left who could ask.
                (Some(_), false) => asking = None,
                _ => {}
            }
            if begins {
                match sys::receive_descriptor(started.as_fd(), &mut [0u8]) {
                    Ok((1.., listener)) => asking = listener,
                    _ => (waiting, listening) = (false, true),
                }
            }
            if harness.intersects(PollFlags::HUP | PollFlags::ERR) {
                give_up();
            }
            if harness.contains(PollFlags::IN) {
                listening = self.hear(&mut stop);
            }
            if !children.is_empty() {
                let mut sink = [0u8; 128];
                let _ = rustix::io::read(self.children, &mut sink);
                if let Some(status) = self.reap(&mut stop) {
                    self.finish(status);
                }
            }
        }
    }

    /// One word of the harness's. The engine's word to go was read by the engine before it started.
    fn hear(&self, stop: &mut Stop) -> bool {
        let mut word = [0u8];
        match rustix::net::recv(self.control, &mut word, rustix::net::RecvFlags::DONTWAIT) {
            Ok((1, _)) => {
                match word[0] {
                    TERMINATE => {
                        sys::signal_everyone(libc::SIGTERM);
                        // What is stopped hears nothing.
                        sys::signal_everyone(libc::SIGCONT);
                    }
                    SUSPEND => {
                        stop.is_wanted = true;
                        sys::signal_group_of(self.engine, libc::SIGTSTP);
                    }
                    CONTINUE => {
                        *stop = Stop::default();
                        self.go_on();
                    }
                    _ => {}
                }
                true
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
            _ => false,
        }
    }

    /// As a shell does for the job it puts in the foreground.
    fn go_on(&self) {
        if let Some(terminal) = self.terminal
            && !descriptors::keys_are_waiting(terminal)
        {
            // A terminal that refuses only leaves the keys with whoever has them.
            let _ = descriptors::give_keys(terminal, self.engine);
        }
        sys::signal_group_of(self.engine, libc::SIGCONT);
    }

    fn reap(&self, stop: &mut Stop) -> Option<ExitWord> {
        loop {
            let reaped = match self.terminal {
                Some(_) => sys::reap_or_stopped(),
                None => sys::reap(false),
            };
            match reaped {
                sys::Reaped::Exited(pid, code) if pid == self.engine => {
                    return Some(ExitWord::Exited(code));
                }
                sys::Reaped::Signalled(pid, signal) if pid == self.engine => {
                    return Some(ExitWord::Signalled(signal));
                }
                sys::Reaped::Stopped(pid, signal) if pid == self.engine => {
                    self.stopped(signal, stop);
                }
                sys::Reaped::Exited(..) | sys::Reaped::Signalled(..) | sys::Reaped::Stopped(..) => {
                }
                sys::Reaped::NoneYet | sys::Reaped::NoChildren => return None,
            }
        }
    }

    /// A first read of the terminal is a request for its keys; any other stop is the harness's to
    /// hear, once until it answers, so that nobody inside can keep us busy telling.
    fn stopped(&self, signal: i32, stop: &mut Stop) {
        let asks = [libc::SIGTTIN, libc::SIGTTOU].contains(&signal);
        let waiting = self
            .terminal
            .filter(|terminal| asks && descriptors::keys_are_waiting(terminal));
        if let Some(terminal) = waiting {
            let has_keys = descriptors::give_keys(terminal, self.engine).is_ok();
            sys::signal_group_of(self.engine, libc::SIGCONT);
            if stop.is_wanted {
                // Sent while its read had stopped it: the kernel drops that one when it goes on.
                sys::signal_group_of(self.engine, libc::SIGTSTP);
            }
            // Last, for the same reason: once this is heard, a typed key may stop it.
            if has_keys {
                let _ = spec::send(self.control, &FromJail::Asked);
            }
        } else if !stop.is_told {
            stop.is_told = true;
            let _ = spec::send(self.control, &FromJail::Stopped);
        }
    }

    fn finish(&self, status: ExitWord) -> ! {
        sys::signal_everyone(libc::SIGKILL);
        let mut ended_with_it = 0;
        while !matches!(sys::reap(true), sys::Reaped::NoChildren) {
            ended_with_it += 1;
        }
        let _ = spec::send(
            self.control,
            &FromJail::Ended {
                status,
                ended_with_it,
            },
        );
        sys::exit_now(match status {
            ExitWord::Exited(code) => code,
            ExitWord::Signalled(signal) => 128 + signal,
        })
    }
}

/// The exit of pid 1 is the kernel's word to end the namespace.
fn give_up() -> ! {
    sys::signal_everyone(libc::SIGKILL);
    sys::exit_now(FAILED)
}
