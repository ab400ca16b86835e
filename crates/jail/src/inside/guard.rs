//! The protected places of a workspace: put up as mounts when the root is already the jail's own,
//! so that no link on the way leads to the host; and tried one by one before the engine starts.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::containment::GuardReport;
use cto_core::values::paths::TreePath;

use crate::inside::enter::{Named, Step};
use crate::spec::Guarded;
use crate::sys;

/// What a masked directory or file shows.
pub const EMPTY_DIR: &str = "/run/empty";
pub const EMPTY_FILE: &str = "/run/empty-file";

/// Shows nothing in files that hold tokens.
pub fn hide(files: &[PathBuf]) -> Step<()> {
    for file in files {
        match sys::bind(Path::new(EMPTY_FILE), file, sys::ATTR_RDONLY) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            hidden => hidden.step(format!("hide {}", file.display()))?,
        }
    }
    Ok(())
}

/// Mounts every protected place over itself, and an empty place over every masked one.
pub fn put_up(guarded: &Guarded) -> Step<()> {
    for path in &guarded.places.open {
        let place = at(guarded, path);
        sys::bind_over_itself(&place, 0).step(format!("hold {path} in its place"))?;
    }
    for path in &guarded.places.read_only {
        let place = at(guarded, path);
        sys::bind_over_itself(&place, sys::ATTR_RDONLY).step(format!("protect {path}"))?;
    }
    for path in &guarded.places.masked {
        let place = at(guarded, path);
        let is_dir = std::fs::symlink_metadata(&place)
            .step(format!("mask {path}"))?
            .is_dir();
        let empty = if is_dir { EMPTY_DIR } else { EMPTY_FILE };
        sys::bind(Path::new(empty), &place, sys::ATTR_RDONLY).step(format!("mask {path}"))?;
    }
    Ok(())
}

/// Tries each of them: an open directory must be a mount, everything else must refuse to be written
/// because it is read-only, not because of a mode that its owner could change.
pub fn report(guarded: &Guarded) -> GuardReport {
    let places = &guarded.places;
    let refused = |path: &&TreePath| {
        let asked = sys::may_write(&at(guarded, path));
        asked.is_err_and(|error| error.raw_os_error() == Some(libc::EROFS))
    };
    let held = places
        .open
        .iter()
        .filter(|path| sys::is_mount(&at(guarded, path)))
        .count()
        + places
            .read_only
            .iter()
            .chain(&places.masked)
            .filter(refused)
            .count();
    GuardReport {
        asked: places.mounts() as u64,
        held: held as u64,
    }
}

fn at(guarded: &Guarded, path: &TreePath) -> PathBuf {
    guarded.root.join(OsStr::from_bytes(path.as_bytes()))
}
