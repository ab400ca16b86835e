//! The harness's end of the control socket: words to a jail, and frames from it.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::spec::{self, CONTINUE, ExitWord, FromJail, GO, SUSPEND, TERMINATE};
use crate::sys;

/// Tells the process inside to become its program.
pub fn go(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[GO])
}

/// Asks everything inside to end; the answer is the end, or the limit after which `sever` is used.
pub fn terminate(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[TERMINATE])
}

/// Stops the main process, as Ctrl-Z would.
pub fn suspend(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[SUSPEND])
}

/// Lets a stopped main process go on.
pub fn resume(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[CONTINUE])
}

/// Cuts the lifeline: pid 1 exits and the kernel ends the rest.
pub fn sever(control: &UnixStream) {
    // Already closed is as good.
    let _ = control.shutdown(std::net::Shutdown::Both);
}

/// What pid 1 says while its process runs, and at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// Keys of the terminal are wanted.
    Asked,
    Stopped,
    /// How the main process ended, and how many others ended with it.
    Ended(ExitWord, u64),
}

/// The next word, waited for; none when there will be no other.
pub fn next_word(control: &UnixStream) -> Option<Word> {
    loop {
        return match receive(control).ok()?.0 {
            FromJail::Asked => Some(Word::Asked),
            FromJail::Stopped => Some(Word::Stopped),
            FromJail::Ended {
                status,
                ended_with_it,
            } => Some(Word::Ended(status, ended_with_it)),
            _ => continue,
        };
    }
}

/// The last word of a pid 1 that is gone, if it left one: nothing is waited for.
pub fn last_word(control: &UnixStream) -> Option<(ExitWord, u64)> {
    // Whatever it said has arrived by now; a socket without words would wait for somebody else's.
    control.set_nonblocking(true).ok()?;
    loop {
        if let Word::Ended(status, ended_with_it) = next_word(control)? {
            return Some((status, ended_with_it));
        }
    }
}

/// One frame; a descriptor that rides along comes with its first bytes.
pub fn receive(socket: &UnixStream) -> io::Result<(FromJail, Option<OwnedFd>)> {
    let mut length = [0u8; 4];
    // A signal to the process may wake any of its threads; that is no answer.
    let (got, fd) = loop {
        match sys::receive_descriptor(socket.as_fd(), &mut length) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => break received?,
        }
    };
    match got {
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        4 => {}
        n => io::Read::read_exact(&mut &*socket, &mut length[n..])?,
    }
    let mut rest = length.to_vec();
    let mut body = vec![0u8; (u32::from_le_bytes(length) as usize).min(16 << 20)];
    io::Read::read_exact(&mut &*socket, &mut body)?;
    rest.extend(body);
    Ok((spec::receive(rest.as_slice())?, fd))
}
