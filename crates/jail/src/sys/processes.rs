//! System calls about processes and namespaces: starting, ending, reaping, naming.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::check;

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

pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length belong to one string.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Leaves for a new network that has nothing but a loopback, and gives a descriptor of it.
pub fn new_network() -> io::Result<OwnedFd> {
    const SIOCGSKNS: libc::c_ulong = 0x894c;
    unshare(libc::CLONE_NEWNET)?;
    // SAFETY: ioctls on a fresh socket, one with a properly initialised ifreq; the descriptor the
    // other gives is new.
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
        ))?;
        let network = check(libc::ioctl(socket.as_raw_fd(), SIOCGSKNS as _))?;
        Ok(OwnedFd::from_raw_fd(network as RawFd))
    }
}

pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) }).map(drop)
}

pub fn new_session() -> io::Result<()> {
    // SAFETY: no arguments.
    check(unsafe { libc::setsid() }).map(drop)
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

/// The next program starts with no signal blocked, and with none ignored that a shell or this
/// program may have ignored.
pub fn reset_signals() -> io::Result<()> {
    // SAFETY: an empty set and default actions.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        check(libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut()))?;
        for signal in [
            libc::SIGPIPE,
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
        ] {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    Ok(())
}

/// Lets this process say whose turn it is at a terminal, also when it is not its own.
pub fn ignore_terminal_output_stop() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}

/// Stops this process and everyone in its group, as Ctrl-Z would; returns when it goes on. Where
/// nobody could let it go on, the kernel does not stop it, and this returns at once.
pub fn stop_with_group() -> io::Result<()> {
    // SAFETY: the default action stops the process; then the action of before is put back.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        check(libc::sigaction(libc::SIGTSTP, &default, &mut before))?;
        let stopped = check(libc::kill(0, libc::SIGTSTP));
        check(libc::sigaction(libc::SIGTSTP, &before, ptr::null_mut()))?;
        stopped.map(drop)
    }
}

/// Signals a child that was not reaped yet, and its process group.
pub fn signal_group_of(child: i32, signal: i32) {
    // SAFETY: plain integers; the child is ours, so the number is not another's.
    unsafe {
        let group = libc::getpgid(child);
        libc::kill(if group > 1 { -group } else { child }, signal);
    }
}

/// One child that has ended, if any.
pub enum Reaped {
    Exited(i32, i32),
    Signalled(i32, i32),
    /// Not ended: stopped by a signal.
    Stopped(i32, i32),
    NoneYet,
    NoChildren,
}

/// The next child that ended; waited for, or only one that is there.
pub fn reap(wait: bool) -> Reaped {
    reap_with(if wait { 0 } else { libc::WNOHANG })
}

/// The same for a child that is there, told also of one that was stopped.
pub fn reap_or_stopped() -> Reaped {
    reap_with(libc::WNOHANG | libc::WUNTRACED)
}

fn reap_with(flags: i32) -> Reaped {
    let mut status = 0;
    // SAFETY: the status pointer is valid.
    match unsafe { libc::waitpid(-1, &mut status, flags) } {
        0 => Reaped::NoneYet,
        pid if pid > 0 && libc::WIFEXITED(status) => Reaped::Exited(pid, libc::WEXITSTATUS(status)),
        pid if pid > 0 && libc::WIFSTOPPED(status) => Reaped::Stopped(pid, libc::WSTOPSIG(status)),
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

/// Does a process of this number exist for us?
pub fn can_see_pid(pid: u32) -> io::Result<()> {
    // SAFETY: signal 0 only asks.
    check(unsafe { libc::kill(pid as i32, 0) }).map(drop)
}

/// Makes a system call with no arguments at all: for those who try what is refused.
#[cfg(feature = "hostile")]
pub fn call_with_nothing(number: libc::c_long) -> io::Result<i64> {
    // SAFETY: every argument is zero, so there is no memory of ours for the kernel to write to.
    check(unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) })
}
