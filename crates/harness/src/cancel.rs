//! The one return arrow: Ctrl-C or SIGTERM asks a run to stop, and it stops by sealing what it has.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub struct Cancel {
    flag: Arc<AtomicBool>,
    wake: UnixStream,
    // Kept open so that the read end never reports an end of file.
    _other: UnixStream,
}

impl Cancel {
    /// Listens to the signals a person or a service manager sends.
    pub fn on_signals() -> io::Result<Self> {
        let cancel = Self::never()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&cancel.flag))?;
            signal_hook::low_level::pipe::register(signal, cancel._other.try_clone()?)?;
        }
        Ok(cancel)
    }

    /// A cancel nobody can send.
    pub fn never() -> io::Result<Self> {
        let (wake, other) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        Ok(Self { flag: Arc::new(AtomicBool::new(false)), wake, _other: other })
    }

    pub fn requested(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Readable when a signal came.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    pub fn drain(&self) {
        let mut buffer = [0u8; 64];
        // Only the wake-up matters; the flag says what happened.
        while matches!((&self.wake).read(&mut buffer), Ok(n) if n > 0) {}
    }
}
