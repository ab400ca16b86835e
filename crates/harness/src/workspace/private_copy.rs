//! A private copy, whichever way it is made: what a jail mounts, what is read of it, what is put
//! into it.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{Entry, FileKind};
use cto_jail::Mount;

use crate::host::files;
use crate::host::places::Places;
use crate::workspace::checks_git;
use crate::workspace::git::NOT_FOR_CHECKS;
use crate::workspace::on_disk::{self, Apart, Walked};
use crate::workspace::overlay::Overlay;

pub enum PrivateCopy {
    /// Every file lies in this directory.
    Plain(PathBuf),
    /// Only what differs lies on the host; all of it is seen in jails alone.
    Over(Overlay),
}

impl PrivateCopy {
    /// The copy as a jail mounts it.
    pub fn mount(&self, places: &Places, target: &Path) -> io::Result<Mount> {
        match self {
            Self::Plain(dir) => Ok(Mount::at(&places.made(dir, true)?, target)),
            Self::Over(overlay) => overlay.mount(places, target),
        }
    }

    /// The directory that holds every changed file; with a plain copy, every file.
    pub fn changed_dir(&self) -> PathBuf {
        match self {
            Self::Plain(dir) => dir.clone(),
            Self::Over(overlay) => overlay.upper(),
        }
    }

    /// Gives what is the copy's own to the uid that will work in it. A checkout below is shown as
    /// that uid's instead.
    pub fn hand_over(&self) -> io::Result<()> {
        cto_jail::hand_over(&self.changed_dir())
    }

    /// What is there, measured; these apart, which are no part of its tree.
    pub fn walk(&self, apart: &Apart) -> io::Result<Walked> {
        match self {
            Self::Plain(dir) => on_disk::walk_but(dir, apart),
            Self::Over(overlay) => overlay.walk(apart),
        }
    }

    /// Which of these names in the copy's `.git` are there. A checkout has none of what is asked
    /// for.
    pub fn in_dot_git<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        let there = |name: &&str| {
            let path = Path::new(".git").join(name);
            match self {
                Self::Plain(dir) => std::fs::symlink_metadata(dir.join(path)).is_ok(),
                Self::Over(overlay) => overlay.is_added(&path),
            }
        };
        names.into_iter().filter(there).collect()
    }

    /// Which of these files a process in the copy no longer finds with this content.
    pub fn no_longer<'t>(
        &self,
        files: impl Iterator<Item = (&'t TreePath, &'t Entry)>,
    ) -> Vec<TreePath> {
        let walked = match self {
            Self::Plain(_) => None,
            Self::Over(overlay) => overlay.walk(&Apart::new()).ok(),
        };
        let same = |path: &TreePath, wanted: &Entry| match self {
            Self::Plain(dir) if wanted.kind == FileKind::Symlink => {
                let text = std::fs::read_link(on_disk::locate(dir, path));
                let text = text.map(|text| Digest::of(&text.into_os_string().into_vec()));
                text.is_ok_and(|text| text == wanted.sha256)
            }
            Self::Plain(dir) => {
                let found = files::scan_file(&on_disk::locate(dir, path), |_| {});
                found.is_ok_and(|found| found.sha256 == wanted.sha256)
            }
            Self::Over(_) => {
                let found = walked.as_ref().and_then(|walked| walked.tree.get(path));
                found.is_some_and(|found| {
                    let is_link = |kind: FileKind| kind == FileKind::Symlink;
                    is_link(found.kind) == is_link(wanted.kind) && found.sha256 == wanted.sha256
                })
            }
        };
        files
            .filter(|(path, wanted)| !same(path, wanted))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Puts a git directory into the copy in the place of whatever is there: `above`, over what a
    /// checkout has below or a copy of `below`.
    pub fn put_git(&self, below: &Path, above: &Path) -> io::Result<()> {
        let dot_git = self.changed_dir().join(".git");
        checks_git::clear(&dot_git)?;
        if let Self::Plain(_) = self {
            checks_git::lay(below, &dot_git)?;
        }
        checks_git::lay(above, &dot_git)?;
        match self {
            Self::Plain(_) => Ok(()),
            Self::Over(overlay) => overlay.hide_in_git(NOT_FOR_CHECKS),
        }
    }

    /// What a link of the copy says, where one with these bytes is there.
    pub fn link_text(&self, path: &TreePath, wanted: &Entry) -> Option<Vec<u8>> {
        let dirs = match self {
            Self::Plain(dir) => vec![dir.clone()],
            Self::Over(overlay) => vec![overlay.upper(), overlay.lower()],
        };
        let texts = dirs.iter().map(|dir| {
            let text = std::fs::read_link(on_disk::locate(dir, path)).ok()?;
            Some(text.into_os_string().into_vec())
        });
        let mut texts = texts.flatten();
        texts.find(|text| Digest::of(text) == wanted.sha256)
    }

    /// Runs `change` on a directory in which these paths are what a process in the copy would see,
    /// and no others may be touched.
    pub fn edit<R>(&self, paths: &[TreePath], change: impl FnOnce(&Path) -> R) -> io::Result<R> {
        match self {
            Self::Plain(dir) => Ok(change(dir)),
            Self::Over(overlay) => overlay.edit(paths, change),
        }
    }
}
