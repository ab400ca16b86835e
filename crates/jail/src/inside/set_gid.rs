//! The set-gid bit of directories: no filter can tell a directory from a file, so processes of a
//! jail ask pid 1, which has their uid and no power they lack but this one. What it holds on to is a
//! directory for good, whatever comes to its name; on anything else the bit is refused as ever.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use super::seccomp::FCHMODAT2;
use crate::sys::{self, Notice};
use crate::witness::Memory;

/// Answers one who asks.
pub fn answer(listener: BorrowedFd<'_>) {
    // One that vanished meanwhile waits for nothing.
    let Ok(notice) = sys::next_notice(listener) else {
        return;
    };
    let code = match change(listener, &notice) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EPERM),
    };
    let _ = sys::answer(listener, notice.id, code);
}

fn refused() -> io::Error {
    io::Error::from_raw_os_error(libc::EPERM)
}

fn change(listener: BorrowedFd<'_>, notice: &Notice) -> io::Result<()> {
    let (place, mode) = held(notice)?;
    // Only while it waits was what was opened by its number its own.
    let is_dir = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode).is_dir();
    if !is_dir || mode & libc::S_ISUID != 0 || !sys::still_waits(listener, notice.id) {
        return Err(refused());
    }
    let place = format!("/proc/self/fd/{}", place.as_raw_fd());
    fs::set_permissions(place, fs::Permissions::from_mode(mode & 0o7777))
}

/// What the call is about, and the mode it asks for.
fn held(notice: &Notice) -> io::Result<(OwnedFd, u32)> {
    let [first, second, third, fourth, ..] = notice.args;
    let of = |name: String| pinned(&format!("/proc/{}/{name}", notice.pid));
    let from = |dir: u64| match dir as i32 {
        libc::AT_FDCWD => of("cwd".into()),
        number => of(format!("fd/{number}")),
    };
    let text = |at: u64| Memory(notice.pid).text(at);
    let (dir, path, mode, flags) = match notice.call {
        libc::SYS_fchmod => return Ok((of(format!("fd/{}", first as i32))?, second as u32)),
        libc::SYS_fchmodat => (from(first)?, text(second)?, third, 0),
        FCHMODAT2 => (from(first)?, text(second)?, third, fourth as i32),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (of("cwd".into())?, text(first)?, second, 0),
        _ => return Err(refused()),
    };
    if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
        return Ok((dir, mode as u32));
    }
    // How a C library changes the mode of what it holds.
    let own = path.strip_prefix(b"/proc/self/fd/".as_slice());
    let number = own.and_then(|name| std::str::from_utf8(name).ok()?.parse::<i32>().ok());
    if let Some(number) = number {
        return Ok((of(format!("fd/{number}"))?, mode as u32));
    }
    // Any other magic link would lead to what pid 1 has open.
    let follow = match flags & libc::AT_SYMLINK_NOFOLLOW {
        0 => OFlags::empty(),
        _ => OFlags::NOFOLLOW,
    };
    let place = rustix::fs::openat2(
        dir.as_fd(),
        path,
        OFlags::PATH | OFlags::CLOEXEC | follow,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )?;
    Ok((place, mode as u32))
}

fn pinned(path: &str) -> io::Result<OwnedFd> {
    super::root::pin(Path::new(path))
}
