//! System calls that give something up: capabilities, ids, dumps, limits.

use std::io;
use std::ptr;

use super::check;

pub fn is_root() -> bool {
    effective_ids().0 == 0
}

pub fn effective_ids() -> (u32, u32) {
    // SAFETY: both calls only read the caller's ids and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Gives up every way back to more privilege: bounding set, ids, ambient and current capabilities.
pub fn drop_capabilities() -> io::Result<()> {
    for capability in 0..=63 {
        // SAFETY: plain integers.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) }) {
            Ok(_) => {}
            // Past the last capability this kernel knows.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && capability > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub fn clear_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0u32; 6];
    // SAFETY: header and data have the sizes version 3 asks for.
    unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        );
        check(libc::syscall(
            libc::SYS_capset,
            header.as_ptr(),
            none.as_ptr(),
        ))
        .map(drop)
    }
}

pub fn become_uid(uid: u32) -> io::Result<()> {
    // SAFETY: plain integers; groups first, then gid, then uid, each checked.
    unsafe {
        check(libc::setgroups(0, ptr::null()))?;
        check(libc::setresgid(uid, uid, uid))?;
        check(libc::setresuid(uid, uid, uid)).map(drop)
    }
}

pub fn no_new_privileges() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// Others of the same uid may not look into this process.
pub fn not_dumpable() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }).map(drop)
}

pub fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: a valid rlimit structure.
    check(unsafe { libc::setrlimit(resource, &limit) }).map(drop)
}
