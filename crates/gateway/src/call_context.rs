//! What one call works with, and how it waits for the endpoint while it watches the engine and the
//! clock.

use std::io;
use std::time::{Duration, Instant};

use cto_core::wire::calls::{Outcome, RefusalReason};
use rustix::event::{PollFd, PollFlags, poll};

use super::ledger::Ledger;
use super::reply::Reply;
use super::{Route, timespec};
use crate::endpoint_side::upstream::Upstream;

/// How much is read at once.
pub const PIECE: usize = 16 * 1024;

/// Why a call ended before its answer did.
pub struct Broken(pub Outcome, pub Option<RefusalReason>);

impl From<RefusalReason> for Broken {
    fn from(why: RefusalReason) -> Self {
        Self(Outcome::Transport, Some(why))
    }
}

/// What one call works with: where it goes, the budget of the run, and the engine that waits.
pub struct CallContext<'a, 'b> {
    pub route: &'a Route,
    pub ledger: &'a Ledger,
    pub reply: &'a mut Reply<'b>,
    pub sent: Instant,
    /// Has the first byte of the answer come?
    pub begun: bool,
}

impl CallContext<'_, '_> {
    /// The next bytes of the endpoint; 0 at their end.
    pub fn read(&mut self, upstream: &mut Upstream, buffer: &mut [u8]) -> Result<usize, Broken> {
        let reset = |_: io::Error| Broken::from(RefusalReason::Reset);
        // Checked here too: an endpoint that never pauses is never waited for.
        self.in_time()?;
        loop {
            if let Some(n) = upstream.buffered(buffer).map_err(reset)? {
                return Ok(n);
            }
            self.wait(upstream)?;
            if let Some(n) = upstream.receive(buffer).map_err(reset)? {
                return Ok(n);
            }
        }
    }

    /// Has whoever asked left while a connection was made? Then nothing is sent.
    pub fn still_wanted(&self) -> Result<(), Broken> {
        let Some(asker) = self.reply.engine() else {
            return Ok(());
        };
        let mut fds = [PollFd::from_borrowed_fd(asker, PollFlags::RDHUP)];
        match poll(&mut fds, Some(&timespec(Duration::ZERO))) {
            Ok(1..) => Err(Broken(Outcome::EngineClosed, None)),
            _ => Ok(()),
        }
    }

    fn in_time(&self) -> Result<(), Broken> {
        if !self.ledger.time_left().is_zero() {
            return Ok(());
        }
        self.ledger.out_of_time();
        Err(Broken(Outcome::Budget, Some(RefusalReason::Time)))
    }

    /// Waits until the endpoint has sent something. Fails when the engine leaves or time runs out.
    fn wait(&self, upstream: &Upstream) -> Result<(), Broken> {
        let timeouts = self.route.timeouts;
        let patience = match self.begun {
            true => timeouts.stall,
            false => timeouts.first_byte,
        };
        let deadline = Instant::now() + patience.min(self.ledger.time_left());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = vec![PollFd::from_borrowed_fd(upstream.fd(), PollFlags::IN)];
            if let Some(engine) = self.reply.engine() {
                // Bytes of a next request may wait; only its going away counts.
                fds.push(PollFd::from_borrowed_fd(engine, PollFlags::RDHUP));
            }
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) => return self.in_time().and(Err(Broken(Outcome::Stalled, None))),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Err(RefusalReason::Reset.into()),
            }
            let ready = !fds[0].revents().is_empty();
            let gone = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            match (gone, ready) {
                (true, _) => return Err(Broken(Outcome::EngineClosed, None)),
                (false, true) => return Ok(()),
                (false, false) => {}
            }
        }
    }
}

pub fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
