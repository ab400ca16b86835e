//! Copies of directories with the times of the originals: what a tool takes for old stays old.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cto_core::values::paths::TreePath;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::host::files::open_regular;

/// Copies a directory or a file to a place where nothing is. What is hidden becomes an empty file;
/// pipes, sockets and devices are left out.
pub fn copy_tree(from: &Path, to: &Path, hidden: &BTreeSet<&TreePath>) -> io::Result<()> {
    let top = fs::symlink_metadata(from)?;
    if !top.is_dir() {
        return copy_file(from, &top, to);
    }
    // Filled before its time is set: every entry renews the time of its directory.
    let mut dirs: Vec<(PathBuf, Metadata)> = Vec::new();
    let mut pending = vec![(PathBuf::new(), top)];
    while let Some((dir, meta)) = pending.pop() {
        fs::create_dir(to.join(&dir))?;
        for entry in fs::read_dir(from.join(&dir))? {
            let path = dir.join(entry?.file_name());
            let (source, target) = (from.join(&path), to.join(&path));
            let meta = fs::symlink_metadata(&source)?;
            if meta.is_dir() {
                pending.push((path, meta));
            } else if hidden.contains(&TreePath::new(path.as_os_str().as_bytes())) {
                File::create_new(&target)?;
                set_times(&target, &meta)?;
            } else {
                copy_file(&source, &meta, &target)?;
            }
        }
        dirs.push((dir, meta));
    }
    for (dir, meta) in dirs.iter().rev() {
        let place = to.join(dir);
        // Ours to enter and to take apart again, whatever the original is.
        let mode = (meta.mode() & 0o7777) | 0o700;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode & !0o6000))?;
        set_times(&place, meta)?;
    }
    Ok(())
}

fn copy_file(from: &Path, meta: &Metadata, to: &Path) -> io::Result<()> {
    if meta.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
        return set_times(to, meta);
    }
    if !meta.is_file() {
        return Ok(());
    }
    let source = open_regular(from)?;
    let mode = meta.mode() & 0o777;
    let copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode | 0o200)
        .open(to)?;
    // Where the file system has it, no byte is written.
    if rustix::fs::ioctl_ficlone(&copy, &source).is_err() {
        io::copy(&mut &source, &mut &copy)?;
    }
    copy.set_permissions(fs::Permissions::from_mode(mode))?;
    drop(copy);
    set_times(to, meta)
}

/// Gives a place the time of another's content, to the nanosecond.
pub fn set_times(place: &Path, like: &Metadata) -> io::Result<()> {
    set_time(place, (like.mtime(), like.mtime_nsec()))
}

pub fn set_time(place: &Path, (tv_sec, tv_nsec): (i64, i64)) -> io::Result<()> {
    let time = Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_bytes_modes_links_and_times_and_nothing_hidden() {
        let house = tempfile::tempdir().unwrap();
        let (from, to) = (house.path().join("from"), house.path().join("to"));
        fs::create_dir_all(from.join("lib/empty")).unwrap();
        fs::write(from.join("lib/a"), "bytes").unwrap();
        fs::write(from.join("lib/.npmrc"), "token").unwrap();
        fs::set_permissions(from.join("lib/a"), fs::Permissions::from_mode(0o555)).unwrap();
        std::os::unix::fs::symlink("lib/a", from.join("link")).unwrap();
        rustix::fs::mknodat(
            CWD,
            from.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
        for (number, name) in ["lib/a", "lib/empty", "link", "lib", "."]
            .iter()
            .enumerate()
        {
            let time = (1_000_000_000 + i64::try_from(number).unwrap(), 123_456_789);
            set_time(&from.join(name), time).unwrap();
        }
        let secret = TreePath::new("lib/.npmrc");
        copy_tree(&from, &to, &BTreeSet::from([&secret])).unwrap();
        assert_eq!(fs::read(to.join("lib/a")).unwrap(), b"bytes");
        assert_eq!(fs::read(to.join("lib/.npmrc")).unwrap(), b"");
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("lib/a"));
        assert!(!to.join("pipe").exists());
        for name in ["lib/a", "lib/empty", "link", "lib", "."] {
            let (was, is) = (
                fs::symlink_metadata(from.join(name)).unwrap(),
                fs::symlink_metadata(to.join(name)).unwrap(),
            );
            let time = |meta: &Metadata| (meta.mtime(), meta.mtime_nsec());
            assert_eq!(time(&was), time(&is), "{name}");
            assert_eq!(was.mode() & 0o777, is.mode() & 0o777, "{name}");
        }
        assert!(
            copy_tree(&from, &to, &BTreeSet::new()).is_err(),
            "nothing is overwritten"
        );
    }
}
