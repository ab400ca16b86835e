//! The harness's end of the control socket: words to a jail, and frames from it.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::spec::{self, ExitWord, FromJail, GO, TERMINATE};
use crate::sys;

/// Tells the process inside to become its program.
pub fn go(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[GO])
}

/// Asks everything inside to end; the answer is the end, or the limit after which `sever` is used.
pub fn terminate(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[TERMINATE])
}

/// Cuts the lifeline: pid 1 exits and the kernel ends the rest.
pub fn sever(control: &UnixStream) {
    // Already closed is as good.
    let _ = control.shutdown(std::net::Shutdown::Both);
}

/// What pid 1 says at the end, if it says anything.
pub fn last_word(control: &UnixStream) -> Option<(ExitWord, u64)> {
    match receive(control).ok()? {
        (
            FromJail::Ended {
                status,
                ended_with_it,
            },
            _,
        ) => Some((status, ended_with_it)),
        _ => None,
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
