//! `backend/scratch/` as one digested file: regular files and link texts, names as bytes. Each is looked at before it is
//! packed: text is cleaned, what is no text and holds a secret gives way to a mark. What is packed or encrypted in there
//! already is not opened.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::BackendScratch;

use super::last_look::TOMBSTONE;
use crate::evidence::secrets::{Hits, Secrets};
use crate::host::files;

/// What is packed at most. A file full of holes costs an engine nothing, and packing it would cost
/// a disk.
const MOST: u64 = 1 << 30;
/// A text that is longer keeps its paths, and is withheld for a secret: it would have to be held whole.
const LONGEST_TEXT: u64 = 64 << 20;

/// Packs the scratch directory and removes it; says what secrets were in it. An empty one leaves no file.
pub fn pack(dir: &Path, secrets: &Secrets) -> io::Result<(BackendScratch, Hits)> {
    let root = dir.join(bundle::SCRATCH_DIR);
    let mut count = BackendScratch::default();
    let (mut names, mut found) = (Vec::new(), Hits::default());
    list(&root, &mut names, &mut count.skipped)?;
    if !names.is_empty() {
        names.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
        let mut tar = tar::Builder::new(io::BufWriter::new(File::create(
            dir.join(bundle::SCRATCH_TAR),
        )?));
        for name in &names {
            match append(&mut tar, &root, name, (MOST - count.bytes, secrets)) {
                Ok((bytes, hits)) => {
                    count.count += 1;
                    count.bytes += bytes;
                    found = found.and(hits);
                }
                Err(Skip::Secret(hits)) => {
                    count.skipped += 1;
                    found = found.and(hits);
                }
                Err(Skip::Entry) => count.skipped += 1,
                Err(Skip::Tar(error)) => return Err(error),
            }
        }
        io::Write::flush(&mut tar.into_inner()?)?;
    }
    files::remove_tree(&root)?;
    Ok((count, found))
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
    /// Its name or where it leads is a secret.
    Secret(Hits),
    /// The archive could not be written.
    Tar(io::Error),
}

fn append(
    tar: &mut tar::Builder<impl io::Write>,
    root: &Path,
    name: &Path,
    (room, secrets): (u64, &Secrets),
) -> Result<(u64, Hits), Skip> {
    let path = root.join(name);
    let meta = fs::symlink_metadata(&path).map_err(|_| Skip::Entry)?;
    must_be_clean(name, secrets)?;
    // Nothing of this machine or moment: only names, kinds and contents.
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mode(0o644);
    if meta.is_symlink() {
        let target = fs::read_link(&path).map_err(|_| Skip::Entry)?;
        must_be_clean(&target, secrets)?;
        let (target, _) = secrets.names.replace(target.as_os_str().as_bytes());
        let target = OsStr::from_bytes(&target);
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, name, target)
            .map_err(Skip::Tar)?;
        return Ok((0, Hits::default()));
    }
    let file = files::open_regular(&path).map_err(|_| Skip::Entry)?;
    let bytes = file.metadata().map_err(|_| Skip::Entry)?.len();
    if bytes > room {
        return Err(Skip::Entry);
    }
    let (instead, hits) = cleaned(&path, bytes, secrets).map_err(|_| Skip::Entry)?;
    if let Some(text) = instead {
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_slice())
            .map_err(Skip::Tar)?;
        return Ok((text.len() as u64, hits));
    }
    header.set_size(bytes);
    tar.append_data(&mut header, name, io::Read::take(file, bytes))
        .map_err(Skip::Tar)?;
    Ok((bytes, hits))
}

fn must_be_clean(name: &Path, secrets: &Secrets) -> Result<(), Skip> {
    let (_, hits) = secrets.redact(name.as_os_str().as_bytes());
    match hits.known + hits.private {
        0 => Ok(()),
        _ => Err(Skip::Secret(hits)),
    }
}

/// What is packed in the place of a file, where that is not the file itself, and what was found in it. What has a zero
/// byte is no text: lengths and offsets in it would no longer fit, and something in it is shaped like a token by chance.
fn cleaned(path: &Path, bytes: u64, secrets: &Secrets) -> io::Result<(Option<Vec<u8>>, Hits)> {
    let (mut redactor, mut is_text) = (secrets.redactor(), bytes <= LONGEST_TEXT);
    files::scan_file(path, |piece| {
        is_text &= !piece.contains(&0);
        redactor.push(piece, &mut |_| {});
    })?;
    let hits = redactor.finish(&mut |_| {});
    let instead = match (is_text, hits.known + hits.private) {
        (true, _) if hits.total() + hits.paths > 0 => {
            Some(secrets.redact(&files::read_limited(path, bytes)?).0)
        }
        (false, found) if found > 0 => Some(TOMBSTONE.to_vec()),
        _ => None,
    };
    Ok((instead, hits))
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
            pack(dir.path(), &Secrets::default()).unwrap().0,
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
    fn text_is_cleaned_and_what_is_no_text_is_withheld() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(bundle::SCRATCH_DIR);
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("a"), "key hunter2 \\u0068unter2\n").unwrap();
        fs::write(root.join("b"), b"\0\0hunter2\0").unwrap();
        fs::write(root.join("c"), b"\0plain\0").unwrap();
        fs::write(root.join("hunter2"), "x").unwrap();
        std::os::unix::fs::symlink("/x/hunter2", root.join("link")).unwrap();
        let mut secrets = Secrets::default();
        secrets.add_credentials([b"hunter2".to_vec()]);
        let (count, hits) = pack(dir.path(), &secrets).unwrap();
        assert_eq!((count.count, count.skipped, hits.known), (3, 2, 5));
        let packed = fs::read(dir.path().join(bundle::SCRATCH_TAR)).unwrap();
        let holds = |text: &[u8]| memchr::memmem::find(&packed, text).is_some();
        assert!(!holds(b"hunter2") && !holds(b"unter2"));
        assert!(holds(
            b"key [redacted:known-value] [redacted:known-value]\n"
        ));
        assert!(holds(TOMBSTONE) && holds(b"\0plain\0"));
    }

    #[test]
    fn nothing_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            pack(dir.path(), &Secrets::default()).unwrap().0,
            BackendScratch::default()
        );
        assert!(!dir.path().join(bundle::SCRATCH_TAR).exists());
    }
}
