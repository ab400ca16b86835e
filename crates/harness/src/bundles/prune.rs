//! Removing runs: what is there, what core says may go, and taking it away so that no reader ever
//! sees half a bundle.
//!
//! Everything is read from the bundles themselves: the index may be behind, and here that would
//! cost evidence.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cto_core::operator::amounts::Size;
use cto_core::operator::retention::Candidate;
use cto_core::values::ids::RunId;

use crate::bundles::index::{self, Found, Look};
use crate::bundles::runs_root::{RunsRoot, unreadable_root};
use crate::bundles::settlements;
use crate::evidence::is_held;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::{self, Home};

/// What a run is called once it was taken out of the list; no run id begins like this.
const PREFIX: &str = ".pruned-";

#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    #[error("the run changed after it was selected for deletion")]
    Changed,
    #[error("it cannot be taken out of the runs root")]
    Rename(#[source] io::Error),
    #[error("it was taken out of the runs root, but not wholly removed from {}", .0.display())]
    Remove(PathBuf, #[source] io::Error),
    #[error("there is no name for it")]
    Name,
}

/// Every run of the root, as it lies there now.
pub fn candidates(home: &Home) -> Result<Vec<Candidate>, Failure> {
    let Some(root) = RunsRoot::open(home)? else {
        return Ok(Vec::new());
    };
    let entries = root
        .entries()
        .map_err(|error| unreadable_root(home, &error))?;
    // Without its settlements a run would look as if nothing had been said of it.
    let mut settled =
        settlements::all_named(home).map_err(|error| unreadable_root(home, &error))?;
    let mut found = Vec::with_capacity(entries.len());
    index::read_many(&root, &entries, Look::Seal, |one| {
        let mut run = candidate(&root, one);
        let said = settled.remove(&run.listed.run_id);
        run.refers_to.extend(said.into_iter().flatten());
        found.push(run);
    });
    Ok(found)
}

fn candidate(root: &RunsRoot, found: Found) -> Candidate {
    let Found { record, refers_to } = found;
    let dir = root.path.join(record.listed.run_id.as_str());
    Candidate {
        is_own_directory: record.is_own_directory,
        is_held: is_held(&dir),
        size: if record.is_own_directory {
            size_below(&dir)
        } else {
            Size(0)
        },
        listed: record.listed,
        refers_to,
    }
}

/// What a tree takes on the disk. What cannot be read counts as nothing: a size only ever chooses.
fn size_below(dir: &Path) -> Size {
    let mut blocks = fs::symlink_metadata(dir).map_or(0, |meta| meta.blocks());
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            blocks = blocks.saturating_add(meta.blocks());
            if meta.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Size(blocks.saturating_mul(512))
}

/// Removes one run, if it is still what it was when it was chosen.
pub fn remove(home: &Home, chosen: &Candidate) -> Result<(), PruneError> {
    let root = RunsRoot::open(home)
        .ok()
        .flatten()
        .ok_or(PruneError::Changed)?;
    let run_id = &chosen.listed.run_id;
    // Gone is gone, whoever was quicker.
    let Some(now) = root
        .entry(run_id)
        .and_then(|entry| index::read(&root, &entry, Look::Seal))
    else {
        return Ok(());
    };
    let dir = root.path.join(run_id.as_str());
    if now.record.listed != chosen.listed || !now.record.is_own_directory || is_held(&dir) {
        return Err(PruneError::Changed);
    }
    match take_out(home, &root, run_id, &dir) {
        Ok(aside) => clear(&aside).map_err(|error| PruneError::Remove(aside, error)),
        Err(PruneError::Rename(error))
            if error.kind() == io::ErrorKind::NotFound && !dir.exists() =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// One rename: before it the run is listed and whole, after it there is none.
fn take_out(
    home: &Home,
    root: &RunsRoot,
    run_id: &RunId,
    dir: &Path,
) -> Result<PathBuf, PruneError> {
    let name = format!(
        "{PREFIX}{run_id}-{}",
        host::random_name(6).map_err(|_| PruneError::Name)?
    );
    let aside = home.work().join(&name);
    match host::make_private_dir(&home.work()).and_then(|()| fs::rename(dir, &aside)) {
        Ok(()) => Ok(aside),
        // The runs root is on another file system than the state: a hidden name beside it does as
        // well.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let beside = root.path.join(&name);
            fs::rename(dir, &beside).map_err(PruneError::Rename)?;
            Ok(beside)
        }
        Err(error) => Err(PruneError::Rename(error)),
    }
}

/// Exactly a name that [`take_out`] gives; anything like it may be somebody else's.
fn is_taken_out(name: &str) -> bool {
    let run = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.rsplit_once('-'));
    run.is_some_and(|(run, random)| random.len() == 6 && run.parse::<RunId>().is_ok())
}

/// Clears away what an earlier removal left when it was interrupted.
pub fn sweep(home: &Home) {
    for place in [home.work(), home.runs.clone()] {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && entry.file_name().to_str().is_some_and(is_taken_out) {
                // Nobody reads it; what is in the way now is tried again next time.
                let _ = clear(&entry.path());
            }
        }
    }
}

/// Removes a tree that somebody else may be removing as well.
fn clear(dir: &Path) -> io::Result<()> {
    match files::remove_tree(dir) {
        Err(_)
            if fs::symlink_metadata(dir)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound) =>
        {
            Ok(())
        }
        result => result,
    }
}
