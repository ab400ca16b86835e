//! A private copy, whichever way it is made: what a jail mounts, what is read of it, what is put
//! into it.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::change::ChangeKind;
use cto_core::workspace::head::{self, Found, Head, HeadProblem};
use cto_core::workspace::tree::{Entry, FileKind, Tree, tree_changes};
use cto_jail::Mount;

use crate::host::files;
use crate::host::places::Places;
use crate::workspace::checks_git;
use crate::workspace::git::NOT_FOR_CHECKS;
use crate::workspace::on_disk::{self, Apart, Bounds, Walked};
use crate::workspace::overlay::Overlay;
use crate::workspace::overlay::one_file::{self, Seen};

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
    pub fn walk(&self, apart: &Apart, bounds: Bounds) -> io::Result<Walked> {
        match self {
            Self::Plain(dir) => on_disk::walk_but(dir, apart, bounds),
            Self::Over(overlay) => overlay.walk(apart, bounds),
        }
    }

    /// Where HEAD of the copy's own git directory stands, for a process in it.
    pub fn head(&self) -> Head {
        let (upper, lower) = match self {
            Self::Plain(dir) => (dir.clone(), None),
            Self::Over(overlay) => (overlay.upper(), Some(overlay.lower())),
        };
        head::resolve(&mut |name, most| {
            let path = format!(".git/{name}");
            match one_file::read(&upper, lower.as_deref(), &path, most) {
                Ok(Seen::Bytes(bytes)) => Ok(Found::Bytes(bytes)),
                Ok(Seen::Absent) => Ok(Found::Absent),
                Ok(Seen::Directory) => Ok(Found::Directory),
                Ok(Seen::NoFile) => Err(HeadProblem::NotAFile),
                Ok(Seen::TooLarge) => Err(HeadProblem::TooLarge),
                Err(_) => Err(HeadProblem::Unreadable),
            }
        })
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

    /// Which files of a tree a process in the copy no longer finds with this content.
    pub fn no_longer(&self, tree: &Tree) -> Vec<TreePath> {
        let dir = match self {
            Self::Plain(dir) => dir,
            Self::Over(overlay) => return no_longer_above(overlay, tree),
        };
        let same = |path: &TreePath, wanted: &Entry| match wanted.kind {
            FileKind::Symlink => {
                let text = std::fs::read_link(on_disk::locate(dir, path));
                let text = text.map(|text| Digest::of(&text.into_os_string().into_vec()));
                text.is_ok_and(|text| text == wanted.sha256)
            }
            FileKind::Regular | FileKind::Executable => {
                let found = files::scan_file(&on_disk::locate(dir, path), |_| {});
                found.is_ok_and(|found| found.sha256 == wanted.sha256)
            }
        };
        let all = tree.iter().filter(|(path, wanted)| !same(path, wanted));
        all.map(|(path, _)| path.clone()).collect()
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

/// The same of an overlay. A change of mode alone is none.
fn no_longer_above(overlay: &Overlay, tree: &Tree) -> Vec<TreePath> {
    let Ok(walked) = overlay.walk(&Apart::new(), Bounds::default()) else {
        return tree.keys().cloned().collect();
    };
    let counts = |kind| !matches!(kind, ChangeKind::Added | ChangeKind::ModeChanged);
    tree_changes(tree, &walked.tree)
        .into_iter()
        .filter(|change| counts(change.kind))
        .map(|change| change.path)
        .collect()
}
