//! Out of a pipe of a jail, to where the operator wants it. The operator's end may block for as
//! long as it likes: then the process inside waits, as it would without us.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

use super::{Ending, wait_for};

/// Of the pipe, and moved at once.
const PIECE: usize = 256 * 1024;

/// Passes on until the pipe is at its end, or the jail is gone and the pipe is empty. Dropping the
/// pipe tells whoever writes into it that nobody takes it any more; that alone is no failure.
pub fn pass_on(from: PipeReader, to: &OwnedFd, ending: &Ending) -> io::Result<()> {
    // Fewer turns; where the kernel refuses, the usual size does as well.
    let _ = fcntl_setpipe_size(&from, PIECE);
    let mut buffer: Option<Vec<u8>> = None;
    while is_readable(&from, ending)? {
        let moved = match &mut buffer {
            None => splice(&from, None, to, None, PIECE, SpliceFlags::MOVE),
            Some(buffer) => copy(&from, to, buffer),
        };
        match moved {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            // A file that is appended to, or something else that takes bytes only.
            Err(Errno::INVAL) if buffer.is_none() => buffer = Some(vec![0; PIECE]),
            Err(Errno::AGAIN) => wait_to_write(to)?,
            Err(Errno::PIPE) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for bytes. False at the end of the pipe, and once the jail is gone and nothing is left:
/// that somebody outside may hold its other end open is not waited for.
fn is_readable(from: &PipeReader, ending: &Ending) -> io::Result<bool> {
    loop {
        let mut fds = [
            PollFd::new(from, PollFlags::IN),
            PollFd::new(ending, PollFlags::IN),
        ];
        wait_for(&mut fds, None)?;
        let (bytes, over) = (fds[0].revents(), !fds[1].revents().is_empty());
        if bytes.contains(PollFlags::IN) {
            return Ok(true);
        }
        if over || !bytes.is_empty() {
            return Ok(false);
        }
    }
}

fn copy(from: &PipeReader, to: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    let read = rustix::io::read(from, &mut *buffer)?;
    write_all(to, &buffer[..read])?;
    Ok(read)
}

/// Writes all of it, also to a descriptor that somebody made non-blocking.
pub fn write_all(to: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(&to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_to_write(&to).map_err(|_| Errno::IO)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_to_write(to: impl AsFd) -> io::Result<()> {
    wait_for(&mut [PollFd::new(&to, PollFlags::OUT)], None)
}
