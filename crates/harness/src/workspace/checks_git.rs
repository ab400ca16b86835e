//! The git directory in each copy for checks. It is made once a run, laid into each copy afresh, and
//! never looked into again: whatever runs there may use it, ruin it or replace it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use cto_core::containment::masks::{self, Seen};
use cto_core::values::paths::TreePath;
use cto_core::workspace::near_tags::NearTag;
use cto_core::workspace::tree::{Tree, tree_digest};

use crate::host::files;
use crate::workspace::WorkspaceError;
use crate::workspace::git::{CheckGit, SourceRepo};
use crate::workspace::measure::Measured;
use crate::workspace::of_run::{MadeFrom, Start, Workspace};
use crate::workspace::private_copy::PrivateCopy;

/// Where a plain copy's `.git` is kept as it was before anybody was in it.
pub(super) const BELOW: &str = "below.git";

/// What the git directories of checks are made from, beside trees.
#[derive(Default)]
pub(super) struct ChecksGit {
    tags: Vec<NearTag>,
    masked: Vec<(TreePath, Seen)>,
    /// Held by whoever makes one: the control may want it at the same time.
    making: Mutex<()>,
}

impl ChecksGit {
    pub fn of(from: &MadeFrom<'_>, baseline: &Tree, tags: Vec<NearTag>) -> Self {
        Self {
            tags,
            masked: masks::seen_of_masked(baseline, &from.plan.guard.masked),
            making: Mutex::default(),
        }
    }
}

impl Workspace {
    /// What every copy has of the source beside its tree: tags, and files of submodules.
    pub fn beside_the_tree(&self) -> Vec<String> {
        let tags = self.checks_git.tags.iter();
        let tags = tags.map(|tag| format!("tag {} {}", tag.name, tag.annotated));
        let modules = tree_digest(&self.modules.files);
        tags.chain([format!("submodules {modules}")]).collect()
    }

    /// Puts a fresh git directory into a copy for checks, which holds `measured` or the baseline.
    pub fn give_git(
        &self,
        copy: &PrivateCopy,
        measured: Option<&Measured>,
    ) -> Result<(), WorkspaceError> {
        let below = match &self.start {
            Start::Checkout(checkout) => checkout.files().join(".git"),
            Start::Fixture { .. } | Start::Commit { .. } => self.work.join(BELOW),
        };
        let above = self.made_git(&below, measured)?;
        copy.put_git(&below, &above).map_err(WorkspaceError::Io)
    }

    /// Tells it when the staged files were written, once they have their times. Only for a copy in
    /// which nothing ran yet: git of ours reads none of what others could have left there, and what a
    /// command wrote over is not what was measured.
    pub fn tell_git(&self, copy: &PrivateCopy, measured: &Measured) -> Result<(), WorkspaceError> {
        let masked = |path: &TreePath| self.checks_git.masked.iter().any(|(at, _)| at == path);
        let changed = measured.changes.iter().map(|change| &change.path);
        let staged = changed.filter(|path| measured.tree.contains_key(*path) && !masked(path));
        let (staged, dir) = (staged.cloned().collect::<Vec<_>>(), copy.changed_dir());
        let index = dir.join(".git/index");
        Ok(self.repo.know_files(&dir, &index, &staged)?)
    }

    /// What lies above: made by whoever needs it first.
    fn made_git(
        &self,
        below: &Path,
        measured: Option<&Measured>,
    ) -> Result<PathBuf, WorkspaceError> {
        let made = self.work.join(match measured {
            Some(_) => "result-checks.git",
            None => "baseline-checks.git",
        });
        let making = &self.checks_git.making;
        let _alone = making.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.exists() {
            let from = CheckGit {
                below,
                baseline: &self.baseline_commit,
                result: measured.map(|measured| &measured.commit),
                masked: &self.checks_git.masked,
                tags: &self.checks_git.tags,
            };
            let aside = self.work.join("making-checks.git");
            files::remove_tree(&aside).map_err(WorkspaceError::Io)?;
            self.repo.make_check_git(&aside, &from)?;
            fs::rename(&aside, &made).map_err(WorkspaceError::Io)?;
        }
        Ok(made)
    }
}

/// The tags that copies for checks get, asked for while something else is made: it is waiting for git. A
/// check is no worse off without: what is asked of git then fails as it would there.
pub(super) fn beside_tags<R>(
    source: Option<&SourceRepo>,
    make: impl FnOnce() -> R,
) -> (Vec<NearTag>, R) {
    thread::scope(|scope| {
        let tags = source.map(|source| scope.spawn(|| source.nearest_tags()));
        let made = make();
        let tags = tags.and_then(|tags| tags.join().ok()?.ok());
        (tags.unwrap_or_default(), made)
    })
}

/// Removes what lies at a place, whatever was made of it, and follows no link.
pub(super) fn clear(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(meta) if meta.is_dir() => files::remove_tree(place),
        Ok(_) => fs::remove_file(place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Copies a directory of ours into another, over what is there.
pub(super) fn lay(from: &Path, to: &Path) -> io::Result<()> {
    if !to.exists() {
        fs::create_dir(to)?;
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => lay(&entry.path(), &target)?,
            false => fs::copy(entry.path(), &target).map(drop)?,
        }
    }
    Ok(())
}
