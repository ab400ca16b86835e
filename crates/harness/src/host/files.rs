//! Reading, hashing and removing files without following surprises.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use cto_core::values::digest::Hasher;
use cto_core::verify::FoundFile;
use rustix::fs::IFlags;

// Small enough to stay in a core's own cache between the copy and the digest.
const CHUNK: usize = 64 * 1024;

/// Opens a regular file for reading: never through a link, never blocking on a pipe.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags =
        rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        )),
    }
}

/// Reads in chunks to the end, handing each to `each`; `expected` is only a hint.
pub fn read_chunks(
    source: &mut (impl Read + ?Sized),
    expected: u64,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer =
        vec![0u8; CHUNK.min(usize::try_from(expected).unwrap_or(CHUNK).saturating_add(1))];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a file in chunks, handing each to `each`; returns length and digest.
pub fn scan_file(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<FoundFile> {
    let mut file = open_regular(path)?;
    let expected = file.metadata()?.len();
    let mut hasher = Hasher::default();
    let mut bytes = 0;
    read_chunks(&mut file, expected, |chunk| {
        hasher.update(chunk);
        each(chunk);
        bytes += chunk.len() as u64;
    })?;
    Ok(FoundFile {
        bytes,
        sha256: hasher.finish(),
    })
}

/// Length and digest of a regular file (a link is followed only for this program's own path).
pub fn digest_file(path: &Path) -> io::Result<FoundFile> {
    scan_file(&path.canonicalize()?, |_| {})
}

/// Gives a file or directory its name, unless something has it; false then.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A whole regular file, refused beyond `limit`.
pub fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open(open_regular(path)?, limit)
}

/// The rest of an open file, refused beyond `limit`.
pub fn read_open(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {limit} bytes"),
        )),
        false => Ok(bytes),
    }
}

/// Asks the file system to put what is made in this directory apart from each other, and says whether it will.
/// Every run makes and removes hundreds of files below one directory. ext4 without a journal does not give
/// out an inode again for minutes and, looking for another in the same group, reads each of those: the copies
/// of the next run took nine times as long.
pub fn spread_below(dir: &Path) -> bool {
    let spread = || -> io::Result<()> {
        let dir = File::open(dir)?;
        let flags = rustix::fs::ioctl_getflags(&dir)?;
        if !flags.contains(IFlags::TOPDIR) {
            rustix::fs::ioctl_setflags(&dir, flags | IFlags::TOPDIR)?;
        }
        Ok(())
    };
    spread().is_ok()
}

/// Removes a tree, also one whose directories were made unreadable, or that is deeper than a path
/// or a table of open files is long.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => take_apart(dir),
    }
}

/// Moves every directory up to the top before it is emptied: no path grows long, and nothing is
/// held open on the way.
fn take_apart(dir: &Path) -> io::Result<()> {
    // Failure shows in what follows.
    let open_up = |dir: &Path| drop(fs::set_permissions(dir, Permissions::from_mode(0o700)));
    open_up(dir);
    let (mut pending, mut number) = (vec![dir.to_owned()], 0u64);
    while let Some(place) = pending.pop() {
        for entry in fs::read_dir(&place)?.collect::<io::Result<Vec<_>>>()? {
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                fs::remove_file(path)?;
                continue;
            }
            open_up(&path);
            if place == dir {
                pending.push(path);
                continue;
            }
            let mut top = dir.join(number.to_string());
            while !rename_new(&path, &top)? {
                number += 1;
                top = dir.join(number.to_string());
            }
            pending.push(top);
        }
        if place != dir {
            fs::remove_dir(&place)?;
        }
    }
    fs::remove_dir(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_below_is_spread_and_does_not_spread_in_turn() {
        let house = tempfile::tempdir().unwrap();
        let (top, run) = (house.path().join("work"), house.path().join("work/run"));
        fs::create_dir(&top).unwrap();
        let is_top = |dir: &Path| {
            let flags = rustix::fs::ioctl_getflags(File::open(dir).unwrap());
            flags.is_ok_and(|flags| flags.contains(IFlags::TOPDIR))
        };
        assert_eq!(spread_below(&top), is_top(&top));
        assert_eq!(spread_below(&top), is_top(&top));
        fs::create_dir(&run).unwrap();
        assert!(!is_top(&run));
        assert!(!spread_below(&house.path().join("nowhere")));
    }

    #[test]
    fn closed_directories_are_removed_too() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("in/deep")).unwrap();
        fs::set_permissions(top.join("in"), Permissions::from_mode(0o000)).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        remove_tree(&top).unwrap();
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed_too() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        let name = "n".repeat(200);
        let mut inside = rustix::fs::open(
            dir.path(),
            rustix::fs::OFlags::PATH,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
        let below = |at: &std::os::fd::OwnedFd, name: &str| {
            rustix::fs::mkdirat(at, name, rustix::fs::Mode::RWXU).unwrap();
            rustix::fs::openat(
                at,
                name,
                rustix::fs::OFlags::PATH,
                rustix::fs::Mode::empty(),
            )
            .unwrap()
        };
        inside = below(&inside, "top");
        // Names that the removal itself would choose.
        for number in ["0", "1", "3"] {
            below(&inside, number);
        }
        for _ in 0..100 {
            inside = below(&inside, &name);
        }
        take_apart(&top).unwrap();
        assert!(!top.exists());
    }
}
