//! Writing into an overlay from outside, while it is mounted nowhere: the paths in question are
//! first made to look in the upper directory as they do to a process, and what is gone afterwards
//! is hidden.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use cto_core::values::paths::TreePath;

use super::{Overlay, copy_one, is_dir, is_opaque, is_whiteout, make_opaque, make_whiteout};
use crate::workspace::on_disk::locate;

/// What an upper directory has at one place.
enum Found {
    Nothing,
    Whiteout,
    Directory { opaque: bool },
    Other,
}

fn look(path: &Path) -> io::Result<Found> {
    match fs::symlink_metadata(path) {
        Ok(meta) if is_whiteout(&meta) => Ok(Found::Whiteout),
        Ok(meta) if meta.is_dir() => Ok(Found::Directory {
            opaque: is_opaque(path)?,
        }),
        Ok(_) => Ok(Found::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

/// Every place on the way to a path, from the top, the path itself last.
fn steps(path: &TreePath) -> Vec<TreePath> {
    let bytes = path.as_bytes();
    let ends = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at);
    ends.chain([bytes.len()])
        .map(|end| TreePath::new(&bytes[..end]))
        .collect()
}

impl Overlay {
    /// Runs `change` on a directory in which these paths, and what lies on the way to them, are
    /// what a process would see. Only these may be touched.
    pub fn edit<R>(&self, paths: &[TreePath], change: impl FnOnce(&Path) -> R) -> io::Result<R> {
        for path in paths {
            self.bring_up(path)?;
        }
        let result = change(&self.upper());
        let mut gone = BTreeSet::new();
        for path in paths
            .iter()
            .filter(|path| self.baseline().contains_key(*path))
        {
            // A parent that became a file hides the path as well as a whiteout would.
            if !fs::symlink_metadata(locate(&self.upper(), path))
                .is_ok_and(|meta| !is_whiteout(&meta))
            {
                gone.insert(path);
            }
        }
        for path in &gone {
            self.hide(path, &gone)?;
        }
        Ok(result)
    }

    fn bring_up(&self, path: &TreePath) -> io::Result<()> {
        let mut covered = false;
        for place in steps(path) {
            let (above, below) = (locate(&self.upper(), &place), locate(&self.lower(), &place));
            match look(&above)? {
                Found::Directory { opaque } => covered |= opaque || !is_dir(&below),
                Found::Other => return Ok(()),
                Found::Whiteout => {
                    fs::remove_file(&above)?;
                    if place == *path {
                        return Ok(());
                    }
                    // What was hidden stays hidden.
                    fs::create_dir(&above)?;
                    make_opaque(&above)?;
                    covered = true;
                }
                Found::Nothing if covered => return Ok(()),
                Found::Nothing => match fs::symlink_metadata(&below) {
                    Ok(meta) if meta.is_dir() => {
                        fs::create_dir(&above)?;
                        fs::set_permissions(&above, meta.permissions())?;
                    }
                    Ok(meta) => return copy_one(&below, &meta, &above),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Hides a path of the checkout, or the highest directory of it that holds nothing any more:
    /// git leaves no empty directory behind either.
    fn hide(&self, path: &TreePath, gone: &BTreeSet<&TreePath>) -> io::Result<()> {
        for place in steps(path) {
            let above = locate(&self.upper(), &place);
            match look(&above)? {
                Found::Whiteout | Found::Other | Found::Directory { opaque: true } => return Ok(()),
                Found::Directory { opaque: false } => {}
                Found::Nothing if place == *path || self.is_emptied(&place, gone) => {
                    return make_whiteout(&above);
                }
                Found::Nothing => {
                    fs::create_dir(&above)?;
                    fs::set_permissions(
                        &above,
                        fs::symlink_metadata(locate(&self.lower(), &place))?.permissions(),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn is_emptied(&self, dir: &TreePath, gone: &BTreeSet<&TreePath>) -> bool {
        let below = [dir.as_bytes(), b"/"].concat();
        let modules = &self.checkout.manifest.submodules;
        let mut files = self
            .baseline()
            .range(TreePath::new(below.clone())..)
            .map(|(path, _)| path);
        files
            .by_ref()
            .take_while(|path| path.as_bytes().starts_with(&below))
            .all(|path| gone.contains(path))
            && !modules
                .iter()
                .any(|(path, _)| path.as_bytes().starts_with(&below))
    }
}
