//! Journals on disk: a private file each, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::workspace::landing::journal::{BadJournal, Journal};

use crate::host::{self, files};

/// A landing of many thousand paths is smaller.
const MOST: u64 = 64 << 20;

pub fn place(store: &Path, id: &str) -> PathBuf {
    store.join(format!("{id}.json"))
}

/// It is on the disk before this returns.
pub fn write(store: &Path, journal: &Journal) -> io::Result<PathBuf> {
    host::make_private_dir(store)?;
    let bytes = cto_core::values::json::pretty(journal).map_err(io::Error::other)?;
    let name = host::random_name(8).map_err(|failure| io::Error::other(failure.what))?;
    let (place, aside) = (
        place(store, &journal.id),
        store.join(format!("{name}.part")),
    );
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&aside, &place));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written?;
    File::open(store)?.sync_all()?;
    Ok(place)
}

pub fn remove(place: &Path) -> io::Result<()> {
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    place
        .parent()
        .map_or(Ok(()), |store| File::open(store)?.sync_all())
}

/// Every journal there, and what is none.
pub fn all(store: &Path) -> Vec<(PathBuf, Result<Journal, BadJournal>)> {
    let entries = fs::read_dir(store).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = files::read_limited(&path, MOST).unwrap_or_default();
        let journal = Journal::read(&bytes).and_then(|journal| {
            // Its names are made of its id: one that was renamed is none of ours.
            match place(store, &journal.id) == path {
                true => Ok(journal),
                false => Err(BadJournal::Strange),
            }
        });
        (path, journal)
    };
    paths.into_iter().map(read).collect()
}
