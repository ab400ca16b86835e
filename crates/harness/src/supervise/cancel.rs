//! The one return arrow: Ctrl-C or SIGTERM asks a run to stop, and it stops by sealing what it has.
//! One a process, shared by every run of it: nothing that one of them does may hide it from
//! another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub struct Cancel {
    /// The signal that came, or 0.
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
    // Kept open so that the read end never reports an end of file.
    _other: UnixStream,
    /// The signal of the cancel this one belongs to.
    above: Option<Arc<AtomicUsize>>,
}

impl Cancel {
    /// Listens to the signals a person or a service manager sends.
    pub fn on_signals() -> io::Result<Self> {
        let cancel = Self::never()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            cancel.also_on(signal)?;
        }
        Ok(cancel)
    }

    /// Listens to another signal, too.
    pub fn also_on(&self, signal: i32) -> io::Result<()> {
        let number = usize::try_from(signal).unwrap_or(usize::MAX);
        signal_hook::flag::register_usize(signal, Arc::clone(&self.signal), number)?;
        signal_hook::low_level::pipe::register(signal, self._other.try_clone()?)?;
        Ok(())
    }

    /// For whoever finds out by other ways than a signal.
    pub fn asker(&self) -> io::Result<Asker> {
        Ok(Asker {
            signal: Arc::clone(&self.signal),
            wake: self._other.try_clone()?,
        })
    }

    /// A cancel nobody can send.
    pub fn never() -> io::Result<Self> {
        let (wake, other) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        Ok(Self {
            signal: Arc::new(AtomicUsize::new(0)),
            wake,
            _other: other,
            above: None,
        })
    }

    /// One that is asked for whenever this one is, and can be asked for alone. What waits on its
    /// descriptor alone is not woken by this one: it has to look from time to time.
    pub fn below(&self) -> io::Result<Self> {
        Ok(Self {
            above: Some(Arc::clone(&self.signal)),
            ..Self::never()?
        })
    }

    pub fn requested(&self) -> bool {
        self.signal() != 0
    }

    /// Which signal asked, or 0.
    pub fn signal(&self) -> i32 {
        let above = self.above.as_deref();
        let number = match above.map_or(0, |above| above.load(Ordering::SeqCst)) {
            0 => self.signal.load(Ordering::SeqCst),
            above => above,
        };
        i32::try_from(number).unwrap_or(i32::MAX)
    }

    /// Readable from the first signal on, for everyone who waits on it. Whoever has seen it stops
    /// waiting on it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// As if this signal had come.
    #[cfg(test)]
    pub fn pretend(&self, signal: i32) -> io::Result<()> {
        self.asker().map(|asker| asker.ask(signal))
    }
}

/// Asks for the end as a signal would.
pub struct Asker {
    signal: Arc<AtomicUsize>,
    wake: UnixStream,
}

impl Asker {
    pub fn ask(&self, signal: i32) {
        let number = usize::try_from(signal).unwrap_or(usize::MAX);
        self.signal.store(number, Ordering::SeqCst);
        // A socket that is full wakes as well.
        let _ = io::Write::write(&mut &self.wake, b"x");
    }
}
