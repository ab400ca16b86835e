//! The two output pipes of a process: waited for together with its end, drained without blocking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::Stream;

/// Of each pipe, and read at once.
const BUFFER: usize = 256 * 1024;

pub struct Pipes {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    buffer: Vec<u8>,
}

/// What woke the watcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready {
    Output(Stream),
    /// The process can be told more.
    Room,
    Exit,
    Cancel,
    /// Pid 1 of a jail said something.
    Word,
    /// Somebody asked us to stop.
    Stop,
}

impl Pipes {
    pub fn new(stdout: Option<OwnedFd>, stderr: Option<OwnedFd>) -> io::Result<Self> {
        let mut pipes = Self {
            stdout,
            stderr,
            buffer: Vec::new(),
        };
        if !pipes.closed() {
            pipes.buffer.resize(BUFFER, 0);
        }
        for (_, pipe) in pipes.open() {
            // Fewer turns between writer and reader; where the kernel refuses, the usual size does
            // as well.
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, BUFFER);
            rustix::fs::fcntl_setfl(pipe, rustix::fs::OFlags::NONBLOCK)?;
        }
        Ok(pipes)
    }

    fn open(&self) -> impl Iterator<Item = (Ready, BorrowedFd<'_>)> {
        let stdout = self
            .stdout
            .as_ref()
            .map(|pipe| (Ready::Output(Stream::Stdout), pipe.as_fd()));
        let stderr = self
            .stderr
            .as_ref()
            .map(|pipe| (Ready::Output(Stream::Stderr), pipe.as_fd()));
        stdout.into_iter().chain(stderr)
    }

    pub fn closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Waits for output or for one of `others`; an interrupted wait is an empty answer.
    pub fn wait(
        &self,
        others: &[(Ready, BorrowedFd<'_>)],
        wait: Duration,
    ) -> io::Result<Vec<Ready>> {
        let fds: Vec<(Ready, BorrowedFd<'_>)> = self.open().chain(others.iter().copied()).collect();
        let mut polled: Vec<PollFd<'_>> = fds
            .iter()
            .map(|(ready, fd)| {
                let of = match ready {
                    Ready::Room => PollFlags::OUT,
                    _ => PollFlags::IN,
                };
                PollFd::from_borrowed_fd(*fd, of)
            })
            .collect();
        let timeout = rustix::event::Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds
            .iter()
            .zip(&polled)
            .filter(|(_, polled)| !polled.revents().is_empty())
            .map(|((ready, _), _)| *ready)
            .collect())
    }

    /// Reads what is there, and says whether anything was; a pipe at its end is closed.
    pub fn drain(&mut self, stream: Stream, hear: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let pipe = match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        };
        let read = pipe
            .as_ref()
            .map(|pipe| rustix::io::read(pipe, &mut self.buffer).map_err(io::Error::from));
        match read {
            None => {}
            Some(Ok(0)) => match stream {
                Stream::Stdout => self.stdout = None,
                Stream::Stderr => self.stderr = None,
            },
            Some(Ok(n)) => {
                hear(&self.buffer[..n]);
                return Ok(true);
            }
            Some(Err(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Some(Err(error)) => return Err(error),
        }
        Ok(false)
    }
}
