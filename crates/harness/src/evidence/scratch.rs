//! `backend/scratch/` as one digested file: regular files and link texts, names as bytes.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::BackendScratch;

use crate::evidence::host_names::HostNames;
use crate::host::files;

/// What is packed at most. A file full of holes costs an engine nothing, and packing it would cost
/// a disk.
const MOST: u64 = 1 << 30;
/// A text that is longer keeps its paths: it would have to be held whole.
const LONGEST_TEXT: u64 = 64 << 20;

/// Packs the scratch directory and removes it. An empty one leaves no file.
pub fn pack(dir: &Path, other: &HostNames) -> io::Result<BackendScratch> {
    let root = dir.join(bundle::SCRATCH_DIR);
    let mut count = BackendScratch::default();
    let mut names = Vec::new();
    list(&root, &mut names, &mut count.skipped)?;
    if !names.is_empty() {
        names.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        let mut tar = tar::Builder::new(io::BufWriter::new(File::create(
            dir.join(bundle::SCRATCH_TAR),
        )?));
        for name in &names {
            match append(&mut tar, &root, name, (MOST - count.bytes, other)) {
                Ok(bytes) => {
                    count.count += 1;
                    count.bytes += bytes;
                }
                Err(Skip::Entry) => count.skipped += 1,
                Err(Skip::Tar(error)) => return Err(error),
            }
        }
        io::Write::flush(&mut tar.into_inner()?)?;
    }
    files::remove_tree(&root)?;
    Ok(count)
}

/// What could not be packed stays as it is, but for what no bundle holds: a link in it would leave a
/// bundle that never verifies.
pub fn plain(dir: &Path) {
    let mut pending = vec![dir.join(bundle::SCRATCH_DIR)];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() => {}
                // Left where it cannot be taken away; the verifier then says so.
                _ => drop(fs::remove_file(entry.path())),
            }
        }
    }
}

fn list(root: &Path, names: &mut Vec<PathBuf>, skipped: &mut u64) -> io::Result<()> {
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let entries = match fs::read_dir(root.join(&below)) {
            Ok(entries) => entries,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && below.as_os_str().is_empty() =>
            {
                return Ok(());
            }
            Err(_) => {
                *skipped += 1;
                continue;
            }
        };
        for entry in entries.flatten() {
            let relative = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(relative),
                Ok(kind) if kind.is_file() || kind.is_symlink() => names.push(relative),
                Ok(_) | Err(_) => *skipped += 1,
            }
        }
    }
    Ok(())
}

enum Skip {
    /// The entry could not be read, or there is no room for it; it is counted, not fatal.
    Entry,
    /// The archive could not be written.
    Tar(io::Error),
}

fn append(
    tar: &mut tar::Builder<impl io::Write>,
    root: &Path,
    name: &Path,
    (room, other): (u64, &HostNames),
) -> Result<u64, Skip> {
    let path = root.join(name);
    let meta = fs::symlink_metadata(&path).map_err(|_| Skip::Entry)?;
    // Nothing of this machine or moment: only names, kinds and contents.
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mode(0o644);
    if meta.is_symlink() {
        let target = fs::read_link(&path).map_err(|_| Skip::Entry)?;
        let (target, _) = other.replace(target.as_os_str().as_bytes());
        let target = OsStr::from_bytes(&target);
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, name, target)
            .map_err(Skip::Tar)?;
        return Ok(0);
    }
    let file = files::open_regular(&path).map_err(|_| Skip::Entry)?;
    let bytes = file.metadata().map_err(|_| Skip::Entry)?.len();
    if bytes > room {
        return Err(Skip::Entry);
    }
    if let Some(text) = with_other_names(&path, bytes, other) {
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_slice())
            .map_err(Skip::Tar)?;
        return Ok(text.len() as u64);
    }
    header.set_size(bytes);
    tar.append_data(&mut header, name, io::Read::take(file, bytes))
        .map_err(Skip::Tar)?;
    Ok(bytes)
}

/// A text file that holds a path which has another name in a bundle, with that name. What has a zero
/// byte is no text: lengths and offsets in it would no longer fit.
fn with_other_names(path: &Path, bytes: u64, other: &HostNames) -> Option<Vec<u8>> {
    if other.is_empty() || bytes > LONGEST_TEXT {
        return None;
    }
    let text = files::read_limited(path, bytes).ok()?;
    if text.contains(&0) {
        return None;
    }
    match other.replace(&text) {
        (Cow::Owned(clean), _) => Some(clean),
        (Cow::Borrowed(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_unpacked_is_plain() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join(bundle::SCRATCH_DIR).join("a");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", below.join("link")).unwrap();
        plain(dir.path());
        assert!(below.join("file").is_file());
        assert!(below.join("link").symlink_metadata().is_err());
    }

    #[test]
    fn packs_files_and_links_and_counts_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(bundle::SCRATCH_DIR);
        fs::create_dir_all(root.join("home")).unwrap();
        fs::write(root.join("home/a"), "hello").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        std::process::Command::new("mkfifo")
            .arg(root.join("pipe"))
            .status()
            .unwrap();
        File::create(root.join("holes"))
            .unwrap()
            .set_len(1 << 42)
            .unwrap();
        assert_eq!(
            pack(dir.path(), &HostNames::default()).unwrap(),
            BackendScratch {
                count: 2,
                bytes: 5,
                skipped: 2
            }
        );
        assert!(!root.exists());
        let mut archive =
            tar::Archive::new(File::open(dir.path().join(bundle::SCRATCH_TAR)).unwrap());
        let names: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|e| e.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["home/a", "link"]);
    }

    #[test]
    fn nothing_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            pack(dir.path(), &HostNames::default()).unwrap(),
            BackendScratch::default()
        );
        assert!(!dir.path().join(bundle::SCRATCH_TAR).exists());
    }
}
