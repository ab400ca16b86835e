//! The system calls of the jail: every `unsafe` block of the project is in this file.
//!
//! Each wrapper does one thing, checks its result and names no policy. What is called when, and
//! why, is in `enter.rs`.

#![expect(
    unsafe_code,
    reason = "namespaces, mounts and forks have no safe interface; this file is their only home"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

pub fn is_root() -> bool {
    effective_ids().0 == 0
}

pub fn effective_ids() -> (u32, u32) {
    // SAFETY: both calls only read the caller's ids and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

pub fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: takes plain flags; the caller is single-threaded.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

pub enum Forked {
    Child,
    Parent(i32),
}

/// The caller has one thread, so the child may go on using the whole program.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: single-threaded by construction (a re-exec that starts no thread).
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid as i32)),
    }
}

/// Ends this process without running anything of the parent's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

pub fn mount(source: &str, target: &Path, kind: &str, flags: u64, data: &str) -> io::Result<()> {
    let (source, target) = (CString::new(source)?, c_path(target)?);
    let (kind, data) = (CString::new(kind)?, CString::new(data)?);
    // SAFETY: all pointers are valid NUL-terminated strings for the duration of the call.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            data.as_ptr().cast(),
        )
    })
    .map(drop)
}

pub const ATTR_RDONLY: u64 = 1;
pub const ATTR_NOSUID: u64 = 2;
pub const ATTR_NODEV: u64 = 4;
const AT_RECURSIVE: i32 = 0x8000;
const OPEN_TREE_CLONE: i32 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;

/// Binds a tree elsewhere. Attributes are only added, so flags locked by the host never clash.
pub fn bind(source: &Path, target: &Path, attributes: u64) -> io::Result<()> {
    bind_as(source, target, attributes, None)
}

/// Binds a tree; with a user namespace, its owners are shown through that namespace's map.
pub fn bind_as(
    source: &Path,
    target: &Path,
    attributes: u64,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    attach(&c_path(source)?, &c_path(target)?, 0, attributes, map)
}

/// Binds a place over itself. A link is covered as the link it is: neither end is followed.
pub fn bind_over_itself(place: &Path, attributes: u64) -> io::Result<()> {
    let place = c_path(place)?;
    attach(&place, &place, libc::AT_SYMLINK_NOFOLLOW, attributes, None)
}

fn attach(
    source: &CStr,
    target: &CStr,
    follow: i32,
    attributes: u64,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | AT_RECURSIVE | follow;
    // SAFETY: the path is a valid C string; the result is a new descriptor or an error.
    let tree = check(unsafe {
        libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags)
    })?;
    // SAFETY: the kernel just gave us this descriptor and nobody else has it.
    let tree = unsafe { OwnedFd::from_raw_fd(tree as RawFd) };
    set_attributes(
        tree.as_raw_fd(),
        c"",
        libc::AT_EMPTY_PATH | AT_RECURSIVE,
        attributes,
        map,
    )?;
    // SAFETY: valid descriptor and C strings.
    let moved = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    };
    check(moved).map(drop)
}

/// Asks whether a path could be written; a link itself, not what it leads to.
pub fn may_write(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path is a valid C string.
    check(unsafe {
        libc::faccessat(
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::W_OK,
            libc::AT_SYMLINK_NOFOLLOW,
        )
    })
    .map(drop)
}

/// Is this path the root of a mount?
pub fn is_mount(path: &Path) -> bool {
    let Ok(path) = c_path(path) else { return false };
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    // SAFETY: a valid C string and a structure of the size the call fills; zeroes are a valid one.
    let (result, found) = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (
            libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, 0, &mut found),
            found,
        )
    };
    let bit = libc::STATX_ATTR_MOUNT_ROOT as u64;
    result == 0 && found.stx_attributes_mask & bit != 0 && found.stx_attributes & bit != 0
}

/// Makes one mount read-only; what is mounted below it keeps its own attributes.
pub fn make_read_only(path: &Path) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, &c_path(path)?, 0, ATTR_RDONLY, None)
}

fn set_attributes(
    fd: RawFd,
    path: &CStr,
    flags: i32,
    set: u64,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    const ATTR_IDMAP: u64 = 0x0010_0000;
    let attributes = match map {
        None => [set, 0u64, 0, 0],
        Some(namespace) => [set | ATTR_IDMAP, 0, 0, namespace.as_raw_fd() as u64],
    };
    // SAFETY: the structure is four 64-bit words and its size is passed along.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            attributes.as_ptr(),
            std::mem::size_of_val(&attributes),
        )
    };
    check(result).map(drop)
}

/// The current directory becomes the root, and the old root is gone.
pub fn pivot_here() -> io::Result<()> {
    // SAFETY: valid C strings; pivoting onto itself stacks the old root, which is then detached.
    unsafe {
        check(libc::syscall(
            libc::SYS_pivot_root,
            c".".as_ptr(),
            c".".as_ptr(),
        ))?;
        check(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
        check(libc::chdir(c"/".as_ptr())).map(drop)
    }
}

pub fn unmount(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a valid C string.
    check(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length belong to one string.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

pub fn loopback_up() -> io::Result<()> {
    // SAFETY: an ioctl on a fresh socket with a properly initialised ifreq.
    unsafe {
        let socket = OwnedFd::from_raw_fd(check(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))? as RawFd);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &request,
        ))
        .map(drop)
    }
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

pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) }).map(drop)
}

pub fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: a valid rlimit structure.
    check(unsafe { libc::setrlimit(resource, &limit) }).map(drop)
}

pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() }).map(drop)
}

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

/// Points standard output and error at nothing, so that this process holds no pipe open.
pub fn let_go_of_output() -> io::Result<()> {
    // SAFETY: duplicates a fresh descriptor over 1 and 2.
    unsafe {
        let null = check(libc::open(
            c"/dev/null".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        ))? as RawFd;
        check(libc::dup2(null, 1))?;
        check(libc::dup2(null, 2))?;
        libc::close(null);
    }
    Ok(())
}

/// Blocks SIGCHLD and gives a descriptor that is readable when a child changed.
pub fn child_watch() -> io::Result<OwnedFd> {
    // SAFETY: the signal set is initialised before use; the descriptor is new.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()))?;
        let fd = check(libc::signalfd(
            -1,
            &set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// A descriptor that is readable when a child of ours has ended.
pub fn process_watch(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain integers; the descriptor is new and close-on-exec by the kernel's doing.
    unsafe {
        Ok(OwnedFd::from_raw_fd(
            check(libc::syscall(libc::SYS_pidfd_open, pid, 0))? as RawFd,
        ))
    }
}

/// Ends a child that was not reaped yet.
pub fn kill_child(pid: i32) -> io::Result<()> {
    // SAFETY: plain integers; the child is ours, so the number is not another's.
    check(unsafe { libc::kill(pid, libc::SIGKILL) }).map(drop)
}

/// The next program starts with no signal blocked or ignored.
pub fn reset_signals() -> io::Result<()> {
    // SAFETY: an empty set and default actions.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        check(libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut()))?;
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    Ok(())
}

/// One child that has ended, if any.
pub enum Reaped {
    Exited(i32, i32),
    Signalled(i32, i32),
    NoneYet,
    NoChildren,
}

pub fn reap(wait: bool) -> Reaped {
    let mut status = 0;
    let flags = if wait { 0 } else { libc::WNOHANG };
    // SAFETY: the status pointer is valid.
    match unsafe { libc::waitpid(-1, &mut status, flags) } {
        0 => Reaped::NoneYet,
        pid if pid > 0 && libc::WIFEXITED(status) => Reaped::Exited(pid, libc::WEXITSTATUS(status)),
        pid if pid > 0 => Reaped::Signalled(pid, libc::WTERMSIG(status)),
        _ => Reaped::NoChildren,
    }
}

/// Signals every process of this pid namespace but its first. Only pid 1 may: for anyone else
/// "everyone" would be the host.
pub fn signal_everyone(signal: i32) {
    // SAFETY: plain integers; no process left is no error here.
    unsafe {
        if libc::getpid() == 1 {
            libc::kill(-1, signal);
        }
    }
}

/// A user namespace that exists only for its map: `owner` on disk is shown as `uid`. The child that
/// held it is ended here and left for the caller to reap.
pub fn owner_map(owner: (u32, u32), uid: u32) -> io::Result<OwnedFd> {
    // SAFETY: a fork with a new user namespace; the child touches nothing and waits to be killed.
    let child = match check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::CLONE_NEWUSER | libc::SIGCHLD,
            0,
            0,
            0,
            0,
        )
    })? {
        0 => {
            // Should the parent be killed before it can end us.
            let _ = die_with_parent();
            loop {
                // SAFETY: no arguments.
                unsafe { libc::pause() };
            }
        }
        pid => pid as i32,
    };
    let map = map_of(child, owner, uid);
    // SAFETY: our own child, not yet reaped.
    check(unsafe { libc::kill(child, libc::SIGKILL) })?;
    map
}

fn map_of(child: i32, owner: (u32, u32), uid: u32) -> io::Result<OwnedFd> {
    std::fs::write(
        format!("/proc/{child}/uid_map"),
        format!("{} {uid} 1", owner.0),
    )?;
    std::fs::write(
        format!("/proc/{child}/gid_map"),
        format!("{} {uid} 1", owner.1),
    )?;
    Ok(std::fs::File::open(format!("/proc/{child}/ns/user"))?.into())
}

/// Makes a descriptor standard input.
pub fn become_stdin(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: duplicates an open descriptor over 0.
    check(unsafe { libc::dup2(fd.as_raw_fd(), 0) }).map(drop)
}

/// Does a process of this number exist for us?
pub fn can_see_pid(pid: u32) -> io::Result<()> {
    // SAFETY: signal 0 only asks.
    check(unsafe { libc::kill(pid as i32, 0) }).map(drop)
}

/// Makes a system call with no arguments at all: for those who try what is refused.
pub fn call_with_nothing(number: libc::c_long) -> io::Result<i64> {
    // SAFETY: every argument is zero, so there is no memory of ours for the kernel to write to.
    check(unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) })
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
