//! Counting what is alive in a pid namespace, from outside.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, Dir, Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, openat};

/// Processes of a namespace and the memory they hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub alive: u64,
    pub memory_kib: u64,
}

/// Where the processes of one jail can be counted.
pub enum Census {
    /// The jail's own /proc, passed out: the kernel lists there what lives in its pid namespace,
    /// and nothing else, also after the namespace's end.
    Own(OwnedFd),
    /// The host's /proc, searched for processes of this namespace.
    Host(String),
}

impl Census {
    /// Believes a passed-out directory only if it is the root of another /proc than ours that lists
    /// a first process of its own; otherwise the host's is searched.
    pub fn new(proc: Option<OwnedFd>, pid_namespace: &str) -> Self {
        match proc.map(File::from) {
            Some(dir) if is_foreign_proc(&dir).unwrap_or(false) => Self::Own(dir.into()),
            _ => Self::Host(pid_namespace.to_owned()),
        }
    }

    /// Looks once. A zombie is not alive: it only waits to be reaped.
    pub fn tally(&self) -> io::Result<Tally> {
        match self {
            Self::Own(dir) => count(dir.as_fd(), |_| true),
            Self::Host(namespace) => {
                let dir = openat(
                    CWD,
                    "/proc",
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                count(dir.as_fd(), |pid| {
                    let link = format!("/proc/{pid}/ns/pid");
                    fs::read_link(link).is_ok_and(|link| link.as_os_str() == namespace.as_str())
                })
            }
        }
    }
}

fn is_foreign_proc(dir: &File) -> io::Result<bool> {
    const ROOT_INODE: u64 = 1;
    let (theirs, ours) = (dir.metadata()?, fs::metadata("/proc")?);
    let is_proc = fstatfs(dir)?.f_type == PROC_SUPER_MAGIC;
    let first = openat(
        dir,
        "1/status",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    Ok(is_proc && theirs.ino() == ROOT_INODE && theirs.dev() != ours.dev() && first.is_ok())
}

fn count(proc: BorrowedFd<'_>, belongs: impl Fn(&str) -> bool) -> io::Result<Tally> {
    let mut tally = Tally::default();
    for entry in Dir::read_from(proc)? {
        let entry = entry?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .ok()
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        if !belongs(pid) {
            continue;
        }
        // Gone since it was listed is gone.
        let Ok(file) = openat(
            proc,
            format!("{pid}/status"),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        ) else {
            continue;
        };
        let mut status = String::new();
        if File::from(file).read_to_string(&mut status).is_err() {
            continue;
        }
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
                .unwrap_or_default()
        };
        if field("State:").starts_with(['Z', 'X']) {
            continue;
        }
        tally.alive += 1;
        tally.memory_kib += field("VmRSS:")
            .split_whitespace()
            .next()
            .and_then(|kib| kib.parse::<u64>().ok())
            .unwrap_or(0);
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_this_process_in_its_own_namespace() {
        let own = fs::read_link("/proc/self/ns/pid")
            .unwrap()
            .display()
            .to_string();
        let here = Census::new(None, &own).tally().unwrap();
        assert!(here.alive >= 1 && here.memory_kib > 0);
        assert_eq!(
            Census::new(None, "pid:[0]").tally().unwrap(),
            Tally::default()
        );
    }

    #[test]
    fn no_directory_but_another_proc_is_believed() {
        for path in ["/proc", "/proc/self", "/", "/proc/self/status"] {
            let fd = File::open(path).unwrap().into();
            assert!(
                matches!(Census::new(Some(fd), "pid:[0]"), Census::Host(_)),
                "{path}"
            );
        }
    }
}
