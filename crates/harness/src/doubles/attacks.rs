//! `cto __attack NAME [ARG]`: one attempt each to get past the jail. Exits 0 when it got through
//! and 1 when it was stopped, so that the table of the threat model can be made by trying.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, Signal};

/// An attempt, and what the table calls it.
pub struct Attack {
    pub name: &'static str,
    pub what: &'static str,
    attempt: fn(&str) -> io::Result<()>,
}

/// Every attack, in the order of the table. What `ARG` means is each attack's own.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "read-file",
        what: "read a file outside the workspace",
        attempt: |path| fs::read(path).map(drop),
    },
    Attack {
        name: "write-file",
        what: "write a file outside the workspace",
        attempt: |path| fs::write(path, "attack"),
    },
    Attack {
        name: "mount",
        what: "mount over a directory of the host",
        attempt: mount,
    },
    Attack {
        name: "signal",
        what: "signal a process of the host",
        attempt: signal,
    },
    Attack {
        name: "shared-memory",
        what: "see shared memory of the host",
        attempt: shared_memory,
    },
    Attack {
        name: "host-name",
        what: "learn the host's name",
        attempt: host_name,
    },
    Attack {
        name: "connect",
        what: "connect to a port of the host",
        attempt: connect,
    },
    Attack {
        name: "vsock",
        what: "open a socket to the hypervisor",
        attempt: vsock,
    },
    Attack {
        name: "chroot",
        what: "use a capability of root",
        attempt: |_| std::os::unix::fs::chroot("/"),
    },
    Attack {
        name: "set-uid",
        what: "become root by a set-uid program",
        attempt: |_| am_root(),
    },
    Attack {
        name: "core-pattern",
        what: "open core_pattern for writing",
        attempt: |_| core_pattern(),
    },
    Attack {
        name: "open-files",
        what: "hold thousands of files open",
        attempt: |_| open_files(),
    },
];

/// Tries one attack; 64 for a name nobody knows.
pub fn play(name: &str, argument: &str) -> u8 {
    match ATTACKS.iter().find(|attack| attack.name == name) {
        None => 64,
        Some(attack) => u8::from((attack.attempt)(argument).is_err()),
    }
}

fn mount(path: &str) -> io::Result<()> {
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount(c"tmpfs", path, c"tmpfs", flags, c"size=64k")?;
    // Only what the host sees counts; the one who asks looks for this file there.
    fs::write(Path::new(path).join("attack"), "")
}

fn signal(pid: &str) -> io::Result<()> {
    let pid = pid
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, Signal::USR1)?)
}

fn shared_memory(id: &str) -> io::Result<()> {
    let table = fs::read_to_string("/proc/sysvipc/shm")?;
    let found = table
        .lines()
        .any(|line| line.split_whitespace().nth(1) == Some(id));
    if found {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn host_name(name: &str) -> io::Result<()> {
    let seen = rustix::system::uname();
    if seen.nodename().to_bytes() == name.as_bytes() {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn connect(address: &str) -> io::Result<()> {
    let address = address.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    TcpStream::connect_timeout(&address, Duration::from_secs(2)).map(drop)
}

fn vsock(_: &str) -> io::Result<()> {
    rustix::net::socket(AddressFamily::VSOCK, SocketType::STREAM, None)?;
    Ok(())
}

fn am_root() -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn core_pattern() -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open("/proc/sys/kernel/core_pattern")
        .map(drop)
}

fn open_files() -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..6000 {
        held.push(fs::File::open("/dev/null")?);
    }
    Ok(())
}
