//! Whose files a jail works with: the uid of its process, and copies handed over to it.

use std::io;
use std::path::{Path, PathBuf};

use crate::spec::Share;
use crate::sys::is_root;

/// The uid a jailed process gets when the harness is root: named in no passwd, and one a thread,
/// because runs side by side share nothing, not even a count of processes. A run stays on the
/// thread it began on.
pub fn jail_uid() -> u32 {
    1_900_000_000
        + rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
            % 50_000_000
}

/// What a jail may use of the operator's own counts. Root's jails have a uid, and so counts, of
/// their own.
pub fn share() -> Share {
    let part = |name: &str, usual: u64| {
        let counted = (!is_root())
            .then(|| std::fs::read_to_string(format!("/proc/sys/user/{name}")).ok())
            .flatten();
        let all = counted.and_then(|text| text.trim().parse().ok());
        (all.unwrap_or(usual) / Share::OF).max(1)
    };
    Share {
        inotify_instances: part("max_inotify_instances", 128),
        inotify_watches: part("max_inotify_watches", 8192),
    }
}

/// Gives a private copy to the uid that will work in it. Only root can, and only root needs to.
pub fn hand_over(dir: &Path) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let uid = jail_uid();
    let mut pending: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        std::os::unix::fs::lchown(&path, Some(uid), Some(uid))?;
        if std::fs::symlink_metadata(&path)?.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                pending.push(entry?.path());
            }
        }
    }
    Ok(())
}
