//! The target's `index.lock`: a link to a file of ours, so that it is ours or not there at any instant. What
//! it says is known to the journal alone, and only a lock that says so is ever removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::workspace::landing::journal::Journal;
use cto_core::workspace::landing::recovery::Lock;

use super::places::Places;
use crate::host::files;

const NAME: &str = "index.lock";

fn words(journal: &Journal) -> String {
    format!("cto landing {}\n", journal.id)
}

pub fn place(git_dir: &Path) -> PathBuf {
    git_dir.join(NAME)
}

pub fn holder(git_dir: &Path, journal: &Journal) -> Lock {
    match fs::symlink_metadata(place(git_dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Lock::Free,
        Ok(meta) if meta.is_file() => {
            let said = files::read_limited(&place(git_dir), 200).unwrap_or_default();
            match said == words(journal).as_bytes() {
                true => Lock::Ours,
                false => Lock::Theirs,
            }
        }
        _ => Lock::Theirs,
    }
}

/// False where another has it.
pub fn take(git_dir: &Path, places: &Places, journal: &Journal) -> io::Result<bool> {
    let own = places.room().join("lock");
    match fs::remove_file(&own) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&own)?;
    file.write_all(words(journal).as_bytes())?;
    file.sync_all()?;
    match fs::hard_link(&own, place(git_dir)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

pub fn release(git_dir: &Path, journal: &Journal) -> io::Result<()> {
    if holder(git_dir, journal) != Lock::Ours {
        return Ok(());
    }
    fs::remove_file(place(git_dir))?;
    File::open(git_dir)?.sync_all()
}
