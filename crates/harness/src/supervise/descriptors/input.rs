//! Into a pipe of a jail, from what the operator gave. What the process inside does not read is
//! left for whoever reads next, as if it had been given the operator's own descriptor: a loop over
//! lines in a shell goes on with the next line.

use std::fs::File;
use std::io::{self, PipeWriter, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl, fstat};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, tee};

use super::{Ending, wait_for};

const PAGE: usize = 4096;
const PIECE: usize = 64 * 1024;

/// Feeds the pipe until there is nothing more, nobody reads it any more, or the jail is gone.
pub fn feed(from: &OwnedFd, to: PipeWriter, ending: &Ending) {
    let kind = fstat(from).map(|found| FileType::from_raw_mode(found.st_mode));
    // Where reading or writing fails there is no more input; the process inside sees its end.
    let _ = match kind {
        Ok(FileType::Fifo) => feed_from_pipe(from, &to, ending),
        Ok(FileType::RegularFile) => feed_from_file(from, to, ending),
        Ok(FileType::Directory) | Err(_) => Ok(()),
        Ok(_) => feed_from_stream(from, &to, ending),
    };
}

/// What became of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Ready,
    /// The jail is gone, or nobody in it reads.
    Over,
}

fn wait_to_write(to: &PipeWriter, ending: &Ending) -> io::Result<Waited> {
    loop {
        let mut fds = [
            PollFd::new(to, PollFlags::OUT),
            PollFd::new(ending, PollFlags::IN),
        ];
        wait_for(&mut fds, None)?;
        let (pipe, over) = (fds[0].revents(), !fds[1].revents().is_empty());
        if over || pipe.contains(PollFlags::ERR) {
            return Ok(Waited::Over);
        }
        if pipe.contains(PollFlags::OUT) {
            return Ok(Waited::Ready);
        }
    }
}

fn wait_to_read(from: &OwnedFd, to: &PipeWriter, ending: &Ending) -> io::Result<Waited> {
    loop {
        let mut fds = [
            PollFd::new(from, PollFlags::IN),
            PollFd::new(to, PollFlags::empty()),
            PollFd::new(ending, PollFlags::IN),
        ];
        wait_for(&mut fds, None)?;
        if !fds[1].revents().is_empty() || !fds[2].revents().is_empty() {
            return Ok(Waited::Over);
        }
        if !fds[0].revents().is_empty() {
            return Ok(Waited::Ready);
        }
    }
}

fn is_readable_now(from: &OwnedFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    wait_for(&mut fds, Some(Duration::ZERO))?;
    Ok(!fds[0].revents().is_empty())
}

/// Copies a piece into our pipe without taking it, and takes from the operator's what was read of
/// it. Our pipe holds one piece: room in it means that all of the last one was read.
fn feed_from_pipe(from: &OwnedFd, to: &PipeWriter, ending: &Ending) -> io::Result<()> {
    fcntl_setpipe_size(to, PAGE)?;
    let mut sink = [0u8; PAGE];
    while wait_to_read(from, to, ending)? == Waited::Ready {
        let offered = match tee(from, to, PAGE, SpliceFlags::NONBLOCK) {
            Ok(0) => return Ok(()),
            Ok(offered) => offered,
            Err(Errno::AGAIN | Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let waited = wait_to_write(to, ending)?;
        let unread = match waited {
            Waited::Ready => 0,
            Waited::Over => ioctl_fionread(to)?,
        };
        let mut read = offered.saturating_sub(usize::try_from(unread).unwrap_or(usize::MAX));
        // Somebody else may have taken them since: then there is nothing to wait for.
        while read > 0 && is_readable_now(from)? {
            let part = sink.len().min(read);
            match rustix::io::read(from, &mut sink[..part]) {
                Ok(0) => break,
                Ok(taken) => read -= taken,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if waited == Waited::Over {
            break;
        }
    }
    Ok(())
}

/// Copies a file, and at the end puts its position back to where reading stopped. Bytes are copied,
/// not lent: no page of the operator's file comes into a pipe that somebody inside could write to.
fn feed_from_file(from: &OwnedFd, to: PipeWriter, ending: &Ending) -> io::Result<()> {
    let mut file = File::from(from.try_clone()?);
    let mut buffer = vec![0u8; PIECE];
    fcntl_setfl(&to, OFlags::NONBLOCK)?;
    loop {
        let read = match rustix::io::read(from, &mut buffer) {
            Ok(0) => return wait_for_readers(&mut file, to, ending),
            Ok(read) => read,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            match rustix::io::write(&to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if wait_to_write(&to, ending)? == Waited::Ready => {}
                Err(_) => return put_back(&mut file, rest.len() as u64 + ioctl_fionread(&to)?),
            }
        }
    }
}

/// The end of the file is the end of the pipe; what of it is not read is known when the jail is
/// gone.
fn wait_for_readers(file: &mut File, to: PipeWriter, ending: &Ending) -> io::Result<()> {
    let held = rustix::fs::open(
        format!("/proc/self/fd/{}", to.as_raw_fd()),
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    drop(to);
    let mut gone = [PollFd::new(ending, PollFlags::IN)];
    while gone[0].revents().is_empty() {
        wait_for(&mut gone, None)?;
    }
    put_back(file, ioctl_fionread(&held)?)
}

fn put_back(file: &mut File, unread: u64) -> io::Result<()> {
    let unread = i64::try_from(unread).unwrap_or(0);
    file.seek(SeekFrom::Current(-unread)).map(drop)
}

/// From a socket or a device: what was taken and not read is gone.
fn feed_from_stream(from: &OwnedFd, to: &PipeWriter, ending: &Ending) -> io::Result<()> {
    let mut buffer = vec![0u8; PIECE];
    fcntl_setfl(to, OFlags::NONBLOCK)?;
    while wait_to_read(from, to, ending)? == Waited::Ready {
        let read = match rustix::io::read(from, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            match rustix::io::write(to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if wait_to_write(to, ending)? == Waited::Ready => {}
                Err(_) => return Ok(()),
            }
        }
    }
    Ok(())
}
