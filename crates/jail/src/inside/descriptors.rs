//! Descriptors 0–2 of the process inside: pipes the harness made, the jail's own `/dev/null`, or a
//! terminal that is made here, in the jail's own devpts, and belongs to its user.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use cto_core::containment::Layer;
use rustix::fs::{Mode, OFlags};
use rustix::process::{getpgrp, getpid, ioctl_tiocsctty, setpgid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use crate::inside::enter::{Named, Step};
use crate::spec::{self, Descriptor, FromJail, JailSpec};
use crate::sys;

/// Puts every descriptor in its place, openable under its name by the jail's user. Gives the
/// terminal, if there is one: this process leads its session from here on.
pub fn put_in_place(control: &File, spec: &JailSpec, root: bool) -> Step<Option<OwnedFd>> {
    let owner = (root && spec.layers.contains(&Layer::UnprivilegedUid)).then_some(spec.uid);
    let wants = |kind| spec.descriptors.contains(&kind);
    let null = match wants(Descriptor::Null) {
        true => Some(
            rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
                .map_err(io::Error::from)
                .step("open /dev/null")?,
        ),
        false => None,
    };
    let terminal = match wants(Descriptor::Terminal) {
        true => Some(make_terminal(control, owner).step("make a terminal")?),
        false => None,
    };
    for (number, kind) in (0..).zip(spec.descriptors) {
        let placed = match kind {
            Descriptor::Null => null.as_ref(),
            Descriptor::Terminal => terminal.as_ref(),
            Descriptor::Pipe => None,
        };
        match (placed, owner) {
            (Some(fd), _) => sys::become_descriptor(fd.as_fd(), number),
            (None, Some(uid)) => sys::chown_descriptor(number, uid),
            (None, None) => Ok(()),
        }
        .step(format!("put descriptor {number} in its place"))?;
    }
    Ok(terminal)
}

/// Opens a terminal, passes its other side out and takes it as this session's.
fn make_terminal(control: &File, owner: Option<u32>) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let other_side = rustix::fs::open(
        "/dev/ptmx",
        OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    unlockpt(&other_side)?;
    let terminal = ioctl_tiocgptpeer(&other_side, flags)?;
    if let Some(uid) = owner {
        sys::chown_descriptor(terminal.as_raw_fd(), uid)?;
    }
    sys::send_descriptor(
        control.as_fd(),
        &spec::frame(&FromJail::Terminal)?,
        other_side.as_fd(),
    )?;
    sys::new_session()?;
    ioctl_tiocsctty(&terminal)?;
    sys::ignore_terminal_output_stop();
    Ok(terminal)
}

/// The main process is a job of pid 1's session, as one of a shell's would be: it can be stopped.
/// With the keys it begins in the foreground; without them its first read stops it, and pid 1 hears
/// of that.
pub fn begin_as_a_job(terminal: &OwnedFd, with_keys: bool) -> io::Result<()> {
    setpgid(None, None)?;
    if with_keys {
        tcsetpgrp(terminal, getpid())?;
    }
    Ok(())
}

/// Was nobody given the keys yet?
pub fn keys_are_waiting(terminal: &OwnedFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

/// Puts the main process in the foreground.
pub fn give_keys(terminal: &OwnedFd, engine: i32) -> io::Result<()> {
    let engine = rustix::process::Pid::from_raw(engine);
    let group = rustix::process::getpgid(engine)?;
    Ok(tcsetpgrp(terminal, group)?)
}
