//! One place of a work tree: what lies there, and how verified bytes get there. Whatever changes a
//! person's work tree does it with these.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::Path;

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{Entry, FileKind};

use crate::host::files;
use crate::workspace::on_disk;

/// Is this path exactly the entry, or exactly absent? A link on the way to it is neither.
pub(in crate::workspace) fn is_as(top: &Path, path: &TreePath, want: Option<&Entry>) -> bool {
    let place = on_disk::locate(top, path);
    if !directories_only(top, &place) {
        return false;
    }
    let found = match fs::symlink_metadata(&place) {
        Err(error) => return error.kind() == io::ErrorKind::NotFound && want.is_none(),
        Ok(meta) => meta,
    };
    want.is_some_and(|want| holds(&place, &found, want))
}

/// Is what lies there, as the kernel says, exactly the entry?
pub(in crate::workspace) fn holds(place: &Path, found: &fs::Metadata, want: &Entry) -> bool {
    match (found.is_symlink(), want.kind == FileKind::Symlink) {
        (true, true) => fs::read_link(place)
            .is_ok_and(|text| Digest::of(text.as_os_str().as_bytes()) == want.sha256),
        (false, false) => {
            let executable = found.permissions().mode() & 0o100 != 0;
            executable == (want.kind == FileKind::Executable)
                && files::scan_file(place, |_| {}).is_ok_and(|file| file.sha256 == want.sha256)
        }
        _ => false,
    }
}

pub(in crate::workspace) fn directories_only(top: &Path, place: &Path) -> bool {
    let parents = place
        .ancestors()
        .skip(1)
        .take_while(|dir| dir.starts_with(top) && *dir != top);
    parents
        .into_iter()
        .all(|dir| match fs::symlink_metadata(dir) {
            // A directory with a `.git` belongs to another repository.
            Ok(meta) => meta.is_dir() && fs::symlink_metadata(dir.join(".git")).is_err(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        })
}

/// Directories a new file needs, as their own next of kin's.
pub(in crate::workspace) fn make_parent(top: &Path, place: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = place
        .ancestors()
        .skip(1)
        .take_while(|dir| !dir.exists())
        .collect();
    on_disk::make_parent(top, place)?;
    if let (true, Some(kin)) = (
        rustix::process::geteuid().is_root(),
        missing.last().and_then(|dir| dir.parent()),
    ) {
        let owner = kin.metadata()?;
        missing
            .iter()
            .try_for_each(|dir| chown(dir, Some(owner.uid()), Some(owner.gid())))?;
    }
    Ok(())
}

pub(in crate::workspace) fn fill(
    temporary: &Path,
    from: &Path,
    previous: Option<&fs::Metadata>,
    kind: FileKind,
) -> io::Result<()> {
    if kind == FileKind::Symlink {
        return symlink(fs::read_link(from)?, temporary);
    }
    let executable = kind == FileKind::Executable;
    // The operator's umask decides about new files, as it does for git.
    let mode = if executable { 0o777 } else { 0o666 };
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(temporary)?;
    io::copy(&mut files::open_regular(from)?, &mut out)?;
    if let Some(previous) = previous {
        let bits = previous.permissions().mode() & 0o666;
        let bits = if executable {
            bits | ((bits & 0o444) >> 2)
        } else {
            bits
        };
        out.set_permissions(Permissions::from_mode(bits))?;
    }
    // Root working in somebody's tree leaves it theirs.
    if rustix::process::geteuid().is_root() {
        let kin = temporary.parent().unwrap_or(temporary).metadata()?;
        let owner = previous.unwrap_or(&kin);
        chown(temporary, Some(owner.uid()), Some(owner.gid()))?;
    }
    out.sync_all()
}

/// As git does: a directory that holds nothing any more is gone.
pub(in crate::workspace) fn remove_empty_parents(top: &Path, place: &Path) {
    for dir in place
        .ancestors()
        .skip(1)
        .take_while(|dir| *dir != top && dir.starts_with(top))
    {
        if fs::remove_dir(dir).is_err() {
            return;
        }
    }
}
