//! One private copy that is an overlay: a cached checkout nobody writes to, and a directory with
//! everything that differs from it, read here from outside. The merged view exists only in jails.
//!
//! - this file: the overlay, read and made; `edit.rs` changes to it; `one_file.rs` one file of the merged view;
//!   `probe.rs` does this host have any?

mod edit;
pub mod one_file;
pub mod probe;

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::Tree;
use cto_jail::{Mount, Over};

use crate::host;
use crate::host::places::Places;
use crate::workspace::checkout::Checkout;
use crate::workspace::git;
use crate::workspace::of_run::{OVERLAY, PLAIN};
use crate::workspace::on_disk::{self, Apart, Bounds, Walked};

/// The kernel's marks. A process inside that sets such a name gets another one: only the kernel and
/// the harness can.
const OPAQUE: &str = "user.overlay.opaque";
/// Marks of features that are off: where one is found, the directory does not mean what this reader
/// takes it for.
const UNKNOWN: [&str; 3] = [
    "user.overlay.redirect",
    "user.overlay.metacopy",
    "user.overlay.whiteout",
];

pub struct Overlay {
    checkout: Arc<Checkout>,
    place: PathBuf,
}

impl Overlay {
    /// Nothing changed yet. `place` is a directory that does not exist.
    pub fn fresh(checkout: Arc<Checkout>, place: &Path) -> io::Result<Self> {
        let overlay = Self::at(checkout, place);
        host::make_private_dir(&overlay.work())?;
        // The merged top looks like this directory.
        fs::create_dir(overlay.upper())?;
        fs::set_permissions(
            overlay.upper(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )?;
        Ok(overlay)
    }

    /// One that was made before.
    pub fn at(checkout: Arc<Checkout>, place: &Path) -> Self {
        Self {
            checkout,
            place: place.to_owned(),
        }
    }

    /// The same without the engine's `.git`: a copy of nothing but files.
    pub fn of_files(checkout: Arc<Checkout>, place: &Path) -> io::Result<Self> {
        let overlay = Self::fresh(checkout, place)?;
        make_whiteout(&overlay.upper().join(".git"))?;
        Ok(overlay)
    }

    /// Hides a file of the checkout's `.git`, above which something lies.
    pub fn hide_in_git(&self, name: &str) -> io::Result<()> {
        make_whiteout(&self.upper().join(".git").join(name))
    }

    /// Where everything lies that differs from the checkout.
    pub fn upper(&self) -> PathBuf {
        self.place.join("upper")
    }

    fn work(&self) -> PathBuf {
        self.place.join("work")
    }

    pub fn lower(&self) -> PathBuf {
        self.checkout.files()
    }

    fn baseline(&self) -> &Tree {
        &self.checkout.manifest.tree
    }

    pub fn mount(&self, places: &Places, target: &Path) -> io::Result<Mount> {
        let over = Over {
            upper: self.upper(),
            work: self.work(),
        };
        let lower = places.made(&self.lower(), false)?;
        Ok(Mount::at(&lower, target).below(over))
    }

    /// What a walk over the merged view would find, from the changes alone; these apart, which are
    /// no part of its tree.
    pub fn walk(&self, apart: &Apart, bounds: Bounds) -> io::Result<Walked> {
        let halves = (self.lower(), self.upper());
        read_but(self.baseline(), (&halves.0, &halves.1), apart, bounds)
    }

    /// Is there such an entry in the upper directory, one that hides nothing but is something?
    pub fn is_added(&self, name: &Path) -> bool {
        fs::symlink_metadata(self.upper().join(name)).is_ok_and(|meta| !is_whiteout(&meta))
    }

    /// The merged view as plain files, for a person to look into.
    pub fn lay_out(&self, target: &Path) -> io::Result<()> {
        merge(Some(&self.lower()), Some(&self.upper()), target)
    }
}

/// Walks the upper directory. Everything in it is hostile but its marks, which the kernel makes;
/// each entry takes the place of what the checkout has there.
fn read_but(
    baseline: &Tree,
    (lower, upper): (&Path, &Path),
    apart: &Apart,
    bounds: Bounds,
) -> io::Result<Walked> {
    let mut found = Walked::starting_with(baseline.clone(), bounds);
    if !on_disk::may_enter(upper) {
        found.unreadable.push(on_disk::name_of_dir(Path::new("")));
        return Ok(found);
    }
    // With each directory: does nothing of the checkout show through it?
    let mut pending = vec![(PathBuf::new(), false)];
    while let Some((below, covered)) = pending.pop() {
        for entry in fs::read_dir(upper.join(&below))? {
            let entry = entry?;
            bounds.in_time()?;
            let (place, relative) = (entry.path(), below.join(entry.file_name()));
            let name = TreePath::new(relative.as_os_str().as_bytes());
            let meta = match fs::symlink_metadata(&place) {
                Err(error) if on_disk::cannot_be_looked_into(&error) => {
                    found.forget(&name);
                    found.unreadable.push(name);
                    continue;
                }
                meta => meta?,
            };
            let hides = || !covered && fs::symlink_metadata(lower.join(&relative)).is_ok();
            if on_disk::is_apart(apart, &relative, &meta) {
                continue;
            }
            if is_whiteout(&meta) && hides() {
                found.forget(&name);
            } else if git::is_dot_git(&entry.file_name()) {
                if !below.as_os_str().is_empty() || entry.file_name() != ".git" {
                    found.nested_repositories.push(name);
                }
            } else if !meta.is_dir() {
                found.forget(&name);
                known_marks(&place, &meta)?;
                on_disk::measure(&mut found, &place, name, &meta)?;
            } else if !on_disk::may_enter(&place) {
                found.forget(&name);
                found.unreadable.push(name);
            } else {
                known_marks(&place, &meta)?;
                let opaque = covered || is_opaque(&place)? || !is_dir(&lower.join(&relative));
                if opaque {
                    found.forget(&name);
                }
                pending.push((relative, opaque));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(baseline: &Tree, lower: &Path, upper: &Path) -> io::Result<Walked> {
    read_but(baseline, (lower, upper), &Apart::new(), Bounds::default())
}

fn is_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// The kernel's sign that a name of the checkout is gone. No process inside can make one.
fn is_whiteout(meta: &Metadata) -> bool {
    meta.file_type().is_char_device() && meta.rdev() == 0
}

fn make_whiteout(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(
        CWD,
        path,
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    )?)
}

fn mark(path: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut value = [0u8; 16];
    match rustix::fs::lgetxattr(path, name, &mut value[..]) {
        Ok(length) => Ok(Some(value[..length].to_vec())),
        Err(rustix::io::Errno::NODATA) => Ok(None),
        // There, and longer than any mark this reader knows.
        Err(rustix::io::Errno::RANGE) => Ok(Some(Vec::new())),
        Err(error) => Err(error.into()),
    }
}

fn is_opaque(path: &Path) -> io::Result<bool> {
    match mark(path, OPAQUE)?.as_deref() {
        None => Ok(false),
        Some(b"y") => Ok(true),
        Some(_) => Err(strange(path, OPAQUE)),
    }
}

fn make_opaque(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::lsetxattr(
        path,
        OPAQUE,
        b"y",
        rustix::fs::XattrFlags::empty(),
    )?)
}

/// Refuses what was written by rules other than ours; a result that may mean something else is no
/// result.
fn known_marks(path: &Path, meta: &Metadata) -> io::Result<()> {
    if !(meta.is_dir() || meta.is_file()) {
        return Ok(());
    }
    for name in UNKNOWN {
        match mark(path, name) {
            Ok(None) => {}
            // A file this user cannot read is reported as such where its content is read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && meta.is_file() => {}
            Ok(Some(_)) => return Err(strange(path, name)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn strange(path: &Path, name: &str) -> io::Error {
    io::Error::other(format!(
        "{}: the overlay has a mark this program does not know: {name}",
        path.display()
    ))
}

/// Copies the merged view of two directories. Pipes, sockets and what cannot be read are left out.
fn merge(lower: Option<&Path>, upper: Option<&Path>, target: &Path) -> io::Result<()> {
    fs::create_dir(target)?;
    for entry in upper.map(fs::read_dir).transpose()?.into_iter().flatten() {
        let entry = entry?;
        let meta = fs::symlink_metadata(entry.path())?;
        if meta.is_dir() {
            let below = lower
                .map(|lower| lower.join(entry.file_name()))
                .filter(|below| is_dir(below));
            let opaque = !on_disk::may_enter(&entry.path()) || is_opaque(&entry.path())?;
            let inside = on_disk::may_enter(&entry.path()).then(|| entry.path());
            merge(
                below.filter(|_| !opaque).as_deref(),
                inside.as_deref(),
                &target.join(entry.file_name()),
            )?;
        } else {
            copy_one(&entry.path(), &meta, &target.join(entry.file_name()))?;
        }
    }
    for entry in lower.map(fs::read_dir).transpose()?.into_iter().flatten() {
        let entry = entry?;
        let hidden =
            upper.is_some_and(|upper| fs::symlink_metadata(upper.join(entry.file_name())).is_ok());
        let (meta, to) = (
            fs::symlink_metadata(entry.path())?,
            target.join(entry.file_name()),
        );
        match (hidden, meta.is_dir()) {
            (true, _) => {}
            (false, true) => merge(Some(&entry.path()), None, &to)?,
            (false, false) => copy_one(&entry.path(), &meta, &to)?,
        }
    }
    Ok(())
}

/// Lays a kept workspace out as plain files, where it is an overlay; the checkout below it stays as
/// it is.
pub fn lay_out_kept(checkout: Arc<Checkout>, work: &Path) -> io::Result<()> {
    let (overlay, aside) = (
        Overlay::at(checkout, &work.join(OVERLAY)),
        work.join("laying-out"),
    );
    overlay.lay_out(&aside)?;
    fs::rename(aside, work.join(PLAIN))
}

fn copy_one(from: &Path, meta: &Metadata, to: &Path) -> io::Result<()> {
    if meta.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if !meta.is_file() {
        return Ok(());
    }
    let mut source = match crate::host::files::open_regular(from) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    let mut copy = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_permissions(meta.permissions())
}

#[cfg(test)]
mod overlay_tests;
