//! System calls of the witness: notices of the kernel and the memory of a waiting process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// A call of a watched process that waits for our word.
pub struct Notice {
    pub id: u64,
    pub pid: u32,
    pub call: i64,
    pub args: [u64; 6],
}

/// Installs a filter whose notices are read from the descriptor it gives. Once a notice was
/// received, only a deadly signal interrupts the call it is about; a kernel that cannot promise
/// that is not asked for less.
pub fn install_listener(program: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    const WAIT_KILLABLE: libc::c_ulong = 1 << 5;
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE;
    // SAFETY: the kernel copies the program during the call; the descriptor is new and
    // close-on-exec.
    unsafe {
        let fd = check(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &program,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

const NOTIF_RECV: u64 = 0xc050_2100;
const NOTIF_SEND: u64 = 0xc018_2101;
const NOTIF_ID_VALID: u64 = 0x4008_2102;
const NOTIF_SET_FLAGS: u64 = 0x4008_2104;

/// The next notice; blocks when there is none, so ask after a poll.
pub fn next_notice(listener: BorrowedFd<'_>) -> io::Result<Notice> {
    // SAFETY: an all-zero notice is what the kernel asks for, and the number of the call holds its
    // size.
    unsafe {
        let mut notice: libc::seccomp_notif = std::mem::zeroed();
        check(libc::ioctl(
            listener.as_raw_fd(),
            NOTIF_RECV as _,
            &mut notice,
        ))?;
        Ok(Notice {
            id: notice.id,
            pid: notice.pid,
            call: notice.data.nr.into(),
            args: notice.data.args,
        })
    }
}

/// Is the process of this notice still the one that waits?
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: reads one number.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_ID_VALID as _, &id) }).is_ok()
}

/// Lets the kernel do what was asked of it, under every rule there is.
pub fn let_go_on(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    const CONTINUE: u32 = 1;
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: CONTINUE,
    };
    // SAFETY: a whole answer; the number of the call holds its size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND as _, &answer) }).map(drop)
}

/// Answers for the kernel: done for 0, otherwise this error. The call itself is not made.
pub fn answer(listener: BorrowedFd<'_>, id: u64, error: i32) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error: -error,
        flags: 0,
    };
    // SAFETY: a whole answer; the number of the call holds its size.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND as _, &answer) }).map(drop)
}

/// Hand over the processor with each notice: quicker where the kernel can.
pub fn wake_in_step(listener: BorrowedFd<'_>) -> io::Result<()> {
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: a plain number.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) })
        .map(drop)
}

/// Reads from another process's memory; fewer bytes than asked for where its memory ends.
pub fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: the local range is ours to write; the remote one is only a number to this process.
    check(unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) } as i64)
        .map(|got| got as usize)
}
