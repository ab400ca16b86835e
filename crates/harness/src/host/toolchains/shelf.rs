//! The directories of ours in a jail's PATH: links to programs that were granted, and scripts that say
//! of a program that it is not shown.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::search::{Offer, Part, SearchPath};

use crate::host::failure::Failure;
use crate::host::{self, Home, files};

/// Lays them out, each under its place in PATH. Everybody may read them: a jail's user is nobody of
/// ours.
pub fn make(search: &SearchPath, at: &Path) -> io::Result<()> {
    if !search.has_ours() {
        return Ok(());
    }
    open_dir(at)?;
    for (place, part) in search.parts.iter().enumerate() {
        let Part::Ours(ours) = part else { continue };
        let dir = at.join(place.to_string());
        open_dir(&dir)?;
        for (name, offer) in ours {
            let file = dir.join(name);
            match offer {
                Offer::Link { to, .. } => symlink(to, &file)?,
                Offer::Choice { .. } | Offer::NotShown(_) => {
                    fs::write(&file, offer.script(name).unwrap_or_default())?;
                    fs::set_permissions(&file, Permissions::from_mode(0o755))?;
                }
            }
        }
    }
    Ok(())
}

/// A shelf that goes when its command has ended.
pub struct Shelf(PathBuf);

impl Shelf {
    /// One in the state home; nothing where PATH needs none.
    pub fn of(search: &SearchPath, home: &Home) -> Result<Option<Self>, Failure> {
        if !search.has_ours() {
            return Ok(None);
        }
        // A name that is swept where this process is killed.
        let shelf = Self(home.work().join(host::look_name()?));
        let made = host::make_private_dir(&shelf.0).and_then(|()| make(search, &shelf.0));
        made.map_err(|error| {
            Failure::internal("no_programs", "links to your programs cannot be made")
                .at(shelf.0.display().to_string())
                .because(&error)
                .so("nothing ran")
        })?;
        Ok(Some(shelf))
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        // Litter at most: links, and scripts that say that something is not shown.
        let _ = files::remove_tree(&self.0);
    }
}

fn open_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o755))
}
