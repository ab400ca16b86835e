//! The operator's work tree beside the tree that is copied: which of its files have the same bytes,
//! and the times of all of it. A later look that finds the same state need not read a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::{Digest, Hasher};
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::Seen;
use cto_core::workspace::times::{Directory, Time, WorkTree};
use cto_core::workspace::tree::{Entry, FileKind, Tree};

use crate::host::files;
use crate::workspace::environments::copying::set_time;
use crate::workspace::on_disk::locate;

/// What the kernel says of every path of a tree in a work tree.
pub struct LookAtTree {
    top: PathBuf,
    files: BTreeMap<TreePath, Seen>,
    dirs: BTreeMap<TreePath, Directory>,
    /// When the kernel last saw any of it change.
    pub changed: Time,
    /// Of all of that.
    pub key: Digest,
}

/// Looks at every path of `tree`, and reads no file.
pub fn look(top: &Path, tree: &Tree) -> LookAtTree {
    let mut hasher = Hasher::default();
    hasher.update(b"cto-work-tree/1\n");
    let (mut files, mut changed) = (BTreeMap::new(), (0, 0));
    let mut dirs: BTreeMap<TreePath, Directory> = BTreeMap::new();
    for path in tree.keys() {
        let seen = fs::symlink_metadata(locate(top, path)).ok();
        let seen = seen
            .filter(|meta| !meta.is_dir())
            .map(|meta| seen_of(&meta));
        hasher.update(format!("{} {seen:?} ", path.as_bytes().len()).as_bytes());
        hasher.update(path.as_bytes());
        changed = seen
            .as_ref()
            .map_or(changed, |seen| changed.max(seen.changed));
        files.extend(seen.map(|seen| (path.clone(), seen)));
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for end in slashes.map(|(at, _)| at).chain([0]) {
            let dir = TreePath::new(&bytes[..end]);
            dirs.entry(dir).or_default();
        }
    }
    for (dir, found) in &mut dirs {
        let place = locate(top, dir);
        let meta = fs::symlink_metadata(&place).ok().filter(Metadata::is_dir);
        if let Some(meta) = meta {
            found.time = (meta.mtime(), meta.mtime_nsec());
            changed = changed.max((meta.ctime(), meta.ctime_nsec()));
            let entries = fs::read_dir(&place).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().as_bytes().to_vec());
            // The copy has a git directory of its own, or none.
            found.names = names
                .filter(|name| !(dir.as_bytes().is_empty() && name == b".git"))
                .collect();
        }
        hasher.update(format!("{dir} {:?} {:?}\n", found.time, found.names).as_bytes());
    }
    LookAtTree {
        top: top.to_owned(),
        files,
        dirs,
        changed,
        key: hasher.finish(),
    }
}

fn seen_of(meta: &Metadata) -> Seen {
    Seen {
        mode: meta.mode(),
        size: meta.size(),
        inode: meta.ino(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    }
}

impl LookAtTree {
    /// Reads every file of the tree, and says which are the same.
    pub fn read(&self, tree: &Tree) -> BTreeSet<TreePath> {
        let same = |(path, entry): &(&TreePath, &Entry)| {
            self.files
                .get(*path)
                .is_some_and(|seen| self.is_same(path, entry, seen))
        };
        tree.iter()
            .filter(same)
            .map(|(path, _)| path.clone())
            .collect()
    }

    fn is_same(&self, path: &TreePath, entry: &Entry, seen: &Seen) -> bool {
        let place = locate(&self.top, path);
        let executable = seen.mode & 0o100 != 0;
        let same = match entry.kind {
            FileKind::Symlink => fs::read_link(&place)
                .is_ok_and(|text| Digest::of(text.as_os_str().as_bytes()) == entry.sha256),
            FileKind::Regular | FileKind::Executable => {
                seen.size == entry.bytes
                    && executable == (entry.kind == FileKind::Executable)
                    && files::scan_file(&place, |_| {})
                        .is_ok_and(|found| found.sha256 == entry.sha256)
            }
        };
        // The bytes that were read are those of the time that was seen.
        same && fs::symlink_metadata(&place).is_ok_and(|now| seen_of(&now) == *seen)
    }

    /// Gives files of a copy the times they have here.
    pub fn give_times(&self, copy: &Path, same: &BTreeSet<TreePath>) -> io::Result<()> {
        for path in same {
            if let Some(seen) = self.files.get(path) {
                set_time(&locate(copy, path), seen.modified)?;
            }
        }
        Ok(())
    }

    /// The same for its directories, once nothing is put into them any more.
    pub fn give_times_of_dirs(&self, copy: &Path) -> io::Result<()> {
        for (dir, found) in self.dirs.iter().rev() {
            set_time(&locate(copy, dir), found.time)?;
        }
        Ok(())
    }

    /// The work tree, where these files are the same.
    pub fn with(self, same: &BTreeSet<TreePath>, left_out: BTreeSet<TreePath>) -> WorkTree {
        let time = |path: &TreePath| -> Option<(TreePath, Time)> {
            Some((path.clone(), self.files.get(path)?.modified))
        };
        WorkTree {
            same: same.iter().filter_map(time).collect(),
            dirs: self.dirs,
            left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::on_disk;

    #[test]
    fn same_bytes_are_known_by_reading_once_and_by_state_ever_after() {
        let house = tempfile::tempdir().unwrap();
        let top = house.path().join("repo");
        fs::create_dir_all(top.join("src")).unwrap();
        for (path, text) in [("a", "1"), ("src/b", "2"), ("src/c", "3")] {
            fs::write(top.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink("a", top.join("link")).unwrap();
        let tree = on_disk::walk(&top).unwrap().tree;
        let first = look(&top, &tree);
        assert_eq!(first.read(&tree).len(), 4);
        assert_eq!(first.key, look(&top, &tree).key);
        // Equal size, other bytes; and a file that is gone.
        fs::write(top.join("src/b"), "X").unwrap();
        fs::remove_file(top.join("src/c")).unwrap();
        let second = look(&top, &tree);
        assert_ne!(second.key, first.key);
        let same: Vec<String> = second.read(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(same, ["a", "link"]);
        assert!(
            !first.read(&tree).contains(&TreePath::new("src/b")),
            "a state that was"
        );
        // A new name beside them changes the state of their directory.
        fs::write(top.join("src/new"), "").unwrap();
        let third = look(&top, &tree);
        assert_ne!(third.key, second.key);
        let names = &third.dirs[&TreePath::new("src")].names;
        assert_eq!(names.len(), 2);
    }
}
