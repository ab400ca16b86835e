//! The objects of the one commit, as a pack of our own making, into the repository's store: its name is of
//! what it holds, so nothing there is ever overwritten. No git runs for it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cto_core::workspace::landing::journal::Journal;

use crate::host::files;

/// While it lies beside a pack, no `git gc` removes that.
const KEEP: &str = "keep";

fn place(objects: &Path, pack: &str, ending: &str) -> PathBuf {
    objects.join(format!("pack/pack-{pack}.{ending}"))
}

fn words(journal: &Journal) -> String {
    format!("cto landing {}\n", journal.id)
}

/// The name of a pack by its file.
pub fn name_of(pack: &Path) -> Option<String> {
    let stem = pack.file_stem()?.to_str()?;
    stem.strip_prefix("pack-").map(str::to_owned)
}

/// First what keeps it, last what makes git see it.
pub fn put(pack: &Path, objects: &Path, room: &Path, journal: &Journal) -> io::Result<()> {
    let Some(name) = &journal.pack else {
        return Ok(());
    };
    let dir = objects.join("pack");
    match fs::create_dir(&dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if place(objects, name, "idx").exists() {
        return Ok(());
    }
    let mode = (fs::metadata(&dir)?.mode() & 0o444) | 0o400;
    for ending in [KEEP, "pack", "idx"] {
        let part = room.join(ending);
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&part)?;
        if ending == KEEP {
            out.write_all(words(journal).as_bytes())?;
        } else {
            io::copy(
                &mut files::open_regular(&pack.with_extension(ending))?,
                &mut out,
            )?;
        }
        out.sync_all()?;
        move_into(&part, &place(objects, name, ending))?;
    }
    File::open(&dir)?.sync_all()
}

/// By a link and not a rename, so that nothing is written over.
fn move_into(part: &Path, place: &Path) -> io::Result<()> {
    match fs::hard_link(part, place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    fs::remove_file(part)
}

fn is_ours(objects: &Path, journal: &Journal) -> bool {
    let Some(name) = &journal.pack else {
        return false;
    };
    let said = files::read_limited(&place(objects, name, KEEP), 200);
    said.is_ok_and(|said| said == words(journal).as_bytes())
}

/// A ref names the commit now: what is reachable needs no keeping.
pub fn let_go(objects: &Path, journal: &Journal) -> io::Result<()> {
    match (&journal.pack, is_ours(objects, journal)) {
        (Some(name), true) => fs::remove_file(place(objects, name, KEEP)),
        _ => Ok(()),
    }
}

/// Nothing names the commit: what we brought goes again.
pub fn take_back(objects: &Path, journal: &Journal) -> io::Result<()> {
    let (Some(name), true) = (&journal.pack, is_ours(objects, journal)) else {
        return Ok(());
    };
    for ending in ["idx", "pack", KEEP] {
        match fs::remove_file(place(objects, name, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
