//! System calls about descriptors: taking, closing and passing them on.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::check;

/// Closes every descriptor on the next `exec`.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: only marks descriptors.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOSE_RANGE_CLOEXEC) })
        .map(drop)
}

/// Takes over descriptor 0, which the harness made the control socket.
pub fn take_stdin() -> io::Result<OwnedFd> {
    // SAFETY: duplicates descriptor 0 and then points 0 at /dev/null; both results are checked.
    unsafe {
        let control = check(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 10))?;
        let null = check(libc::open(
            c"/dev/null".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        ))? as RawFd;
        check(libc::dup2(null, 0))?;
        libc::close(null);
        Ok(OwnedFd::from_raw_fd(control as RawFd))
    }
}

pub fn chown_descriptor(fd: RawFd, uid: u32) -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::fchown(fd, uid, uid) }).map(drop)
}

/// Points descriptors 0–2 at nothing, so that this process holds no end of what they were.
pub fn let_go_of_descriptors() -> io::Result<()> {
    // SAFETY: duplicates a fresh descriptor over 0, 1 and 2.
    unsafe {
        let null = check(libc::open(
            c"/dev/null".as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC,
        ))? as RawFd;
        for number in 0..=2 {
            check(libc::dup2(null, number))?;
        }
        libc::close(null);
    }
    Ok(())
}

/// The device of a terminal, whatever name it was opened by.
pub fn terminal_device(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut device: libc::c_uint = 0;
    // SAFETY: the kernel writes one unsigned int.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGDEV, &raw mut device) })?;
    Ok(device.into())
}

/// Makes a descriptor number 0, 1 or 2.
pub fn become_descriptor(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: duplicates an open descriptor over one of the first three.
    check(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
}

/// Sends bytes with one descriptor along.
pub fn send_descriptor(socket: BorrowedFd<'_>, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut vector = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut space = [0u64; 4];
    let (message, size) = control_message(&mut vector, &mut space);
    // SAFETY: the control buffer is large enough for one descriptor and correctly aligned.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), fd.as_raw_fd());
        let sent = check(libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as i64)?;
        if sent as usize == bytes.len() {
            Ok(())
        } else {
            Err(io::Error::other("message sent in part"))
        }
    }
}

/// Receives up to `bytes.len()` bytes, and a descriptor if one came along.
pub fn receive_descriptor(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut vector = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut space = [0u64; 4];
    let (mut message, _) = control_message(&mut vector, &mut space);
    // SAFETY: buffers outlive the call; a received descriptor is new and becomes owned.
    unsafe {
        let got =
            check(libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) as i64)?;
        let header = libc::CMSG_FIRSTHDR(&message);
        let fd = (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS).then(|| {
            OwnedFd::from_raw_fd(ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>()))
        });
        Ok((got as usize, fd))
    }
}

fn control_message(vector: &mut libc::iovec, space: &mut [u64; 4]) -> (libc::msghdr, u32) {
    const SIZE: u32 = std::mem::size_of::<RawFd>() as u32;
    // SAFETY: an all-zero msghdr is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vector;
    message.msg_iovlen = 1;
    message.msg_control = space.as_mut_ptr().cast();
    // SAFETY: pure arithmetic.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(SIZE) } as _;
    (message, SIZE)
}
