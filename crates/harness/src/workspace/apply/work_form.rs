//! What a patch finds and leaves in a work tree whose files are not byte for byte their blobs: line
//! ends that git converts, modes that it does not look at. What is there is taken for what the run
//! started from only where the owner's git takes it for that, by its bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{Entry, FileKind, Tree};

use super::{ApplyError, directories_only, is_as};
use crate::host::files;
use crate::workspace::git::{HarnessRepo, SourceRepo};
use crate::workspace::on_disk;

/// The touched paths as blobs, before and after, and where those lie.
pub struct Blobs<'a> {
    pub before: (&'a Path, Tree),
    pub after: (&'a Path, Tree),
    pub paths: &'a BTreeSet<TreePath>,
}

/// Makes of blobs what belongs into this work tree.
pub fn settle(
    source: &SourceRepo,
    keeper: &HarnessRepo,
    blobs: Blobs<'_>,
) -> Result<(Tree, Tree), ApplyError> {
    let Blobs {
        before: (old, mut before),
        after: (new, mut after),
        paths,
    } = blobs;
    if source.ignores_modes() {
        for path in paths {
            as_on_disk(&source.top, path, &mut before, &mut after);
        }
    }
    let other = |path: &&TreePath| {
        let entry = before.get(*path);
        let kind = kind_on_disk(&source.top, path);
        entry.is_some_and(|entry| Some(entry.kind) == kind) && !is_as(&source.top, path, entry)
    };
    let asked: Vec<&TreePath> = paths.iter().filter(other).collect();
    let same = source
        .same_for_owner(old, &asked)
        .map_err(ApplyError::Patch)?;
    for path in &same {
        let place = on_disk::locate(&source.top, path);
        let mut file = files::open_regular(&place).map_err(ApplyError::Aside)?;
        let entry = replaced(old, path, before.get(path), &mut file);
        before.insert(path.clone(), entry.map_err(ApplyError::Aside)?);
    }
    if same.is_empty() && !source.converts() {
        return Ok((before, after));
    }
    let files = |(_, entry): &(&TreePath, &Entry)| entry.kind != FileKind::Symlink;
    let made: Vec<TreePath> = after
        .iter()
        .filter(files)
        .map(|(path, _)| path.clone())
        .collect();
    for path in made {
        let blob = on_disk::locate(new, &path);
        let bytes = source
            .in_work_form(keeper, &blob, &path)
            .map_err(ApplyError::Patch)?;
        let entry = replaced(new, &path, after.get(&path), &mut bytes.as_slice());
        after.insert(path, entry.map_err(ApplyError::Aside)?);
    }
    Ok((before, after))
}

/// Other bytes under the same name and kind.
fn replaced(
    dir: &Path,
    path: &TreePath,
    was: Option<&Entry>,
    content: &mut dyn io::Read,
) -> io::Result<Entry> {
    let kind = was.map_or(FileKind::Regular, |was| was.kind);
    fs::remove_file(on_disk::locate(dir, path))?;
    on_disk::write_entry(dir, path, kind, content)
}

fn kind_on_disk(top: &Path, path: &TreePath) -> Option<FileKind> {
    let place = on_disk::locate(top, path);
    let found = fs::symlink_metadata(&place).ok()?;
    let is_ours = found.is_file() && directories_only(top, &place);
    let executable = found.permissions().mode() & 0o100 != 0;
    is_ours.then_some(match executable {
        true => FileKind::Executable,
        false => FileKind::Regular,
    })
}

/// Where modes are not looked at, a file keeps the one it has, unless the patch changes it.
fn as_on_disk(top: &Path, path: &TreePath, before: &mut Tree, after: &mut Tree) {
    let Some(kind) = kind_on_disk(top, path) else {
        return;
    };
    let of = |tree: &Tree| tree.get(path).map(|entry| entry.kind);
    let (was, becomes) = (of(before), of(after));
    let is_file = |kind: Option<FileKind>| kind != Some(FileKind::Symlink);
    if !is_file(was) || !is_file(becomes) {
        return;
    }
    if let Some(entry) = before.get_mut(path) {
        entry.kind = kind;
    }
    if was == becomes
        && let Some(entry) = after.get_mut(path)
    {
        entry.kind = kind;
    }
}
