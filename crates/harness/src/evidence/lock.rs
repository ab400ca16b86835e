//! `run.lock`: held while a run is live. An open-file-description lock, so it dies with its holder.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cto_core::bundle;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

pub struct RunLock {
    _file: File,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Someone is writing it.
    Live,
    /// Its writer is gone and it was never sealed.
    Interrupted,
    Sealed,
}

impl RunLock {
    /// Takes the lock, or `None` when another process has it.
    pub fn take(dir: &Path) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(bundle::LOCK))?;
        if !lock(&file)? {
            return Ok(None);
        }
        file.set_len(0)?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        writeln!(
            file,
            "{{\"boot_id\":\"{}\",\"pid\":{}}}",
            boot.trim(),
            std::process::id()
        )?;
        Ok(Some(Self { _file: file }))
    }
}

fn write_lock() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn lock(file: &File) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&write_lock())) {
        Ok(_) => Ok(true),
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// How a run directory stands, without changing anything in it.
pub fn liveness(dir: &Path) -> Liveness {
    if dir.join(bundle::REPORT).exists() {
        return Liveness::Sealed;
    }
    if is_held(dir) {
        Liveness::Live
    } else {
        Liveness::Interrupted
    }
}

/// Has a writer of this run not let go of it yet?
pub fn is_held(dir: &Path) -> bool {
    File::open(dir.join(bundle::LOCK)).is_ok_and(|file| is_locked(&file))
}

fn is_locked(file: &File) -> bool {
    let mut probe = write_lock();
    match fcntl(file, FcntlArg::F_OFD_GETLK(&mut probe)) {
        Ok(_) => probe.l_type != libc::F_UNLCK as i16,
        // Unknown is treated as live: a reader must never call a running run interrupted.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_is_live_and_free_is_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(liveness(dir.path()), Liveness::Interrupted);
        let lock = RunLock::take(dir.path()).unwrap().unwrap();
        assert_eq!(liveness(dir.path()), Liveness::Live);
        assert!(RunLock::take(dir.path()).unwrap().is_none());
        drop(lock);
        assert_eq!(liveness(dir.path()), Liveness::Interrupted);
        std::fs::write(dir.path().join(bundle::REPORT), "{}").unwrap();
        assert_eq!(liveness(dir.path()), Liveness::Sealed);
    }
}
