//! What a patch finds and leaves in a work tree whose files are not byte for byte their blobs: line
//! ends that git converts, modes that it does not look at, links that it does not make. What is there is taken for what the run
//! started from only where the owner's git takes it for that, by its bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{Entry, FileKind, Tree};

use super::ApplyError;
use super::place::{directories_only, is_as};
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
    let mut texts = BTreeSet::new();
    if source.has_no_links() {
        for path in paths {
            let (old, new) = ((old, &mut before), (new, &mut after));
            if links_as_texts(&source.top, path, old, new).map_err(ApplyError::Aside)? {
                texts.insert(path);
            }
        }
    }
    if source.ignores_modes() {
        for path in paths {
            as_on_disk(&source.top, path, &mut before, &mut after);
        }
    }
    let other = |path: &&TreePath| {
        let entry = before.get(*path);
        let kind = kind_on_disk(&source.top, path);
        entry.is_some_and(|entry| Some(entry.kind) == kind)
            && !is_as(&source.top, path, entry)
            && !texts.contains(path)
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
    // What stands for a link is never converted.
    let files = |(path, entry): &(&TreePath, &Entry)| {
        entry.kind != FileKind::Symlink && !texts.contains(path)
    };
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

/// Where git makes no links, it leaves a text in the place of one and takes it for that. A real one
/// that is there all the same is what it was before. Says whether there was one.
fn links_as_texts(
    top: &Path,
    path: &TreePath,
    (old, before): (&Path, &mut Tree),
    (new, after): (&Path, &mut Tree),
) -> io::Result<bool> {
    let is_link = |tree: &Tree| {
        let entry = tree.get(path);
        entry.is_some_and(|entry| entry.kind == FileKind::Symlink)
    };
    let (was, becomes) = (is_link(before), is_link(after));
    if was && kind_on_disk(top, path).is_some() {
        before.insert(path.clone(), link_as_text(old, path)?);
    }
    if becomes {
        after.insert(path.clone(), link_as_text(new, path)?);
    }
    Ok(was || becomes)
}

fn link_as_text(dir: &Path, path: &TreePath) -> io::Result<Entry> {
    let place = on_disk::locate(dir, path);
    let text = fs::read_link(&place)?;
    fs::remove_file(&place)?;
    let mut text = text.as_os_str().as_bytes();
    on_disk::write_entry(dir, path, FileKind::Regular, &mut text)
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
