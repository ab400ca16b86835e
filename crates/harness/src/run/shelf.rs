//! The directories of ours in a jail's PATH: links to programs that were granted, and scripts that say
//! of a program that it is not shown.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use cto_core::containment::mounts::search::{Offer, Part, SearchPath};

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

fn open_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o755))
}
