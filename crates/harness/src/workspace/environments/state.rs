//! One look at an environment: everything the kernel says of everything in it, without opening a
//! file. Two looks that found the same give the same digest.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cto_core::containment::environment_masks::is_hidden_in_environment;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{MOST_FILES, Seen, StateDigest};

use crate::workspace::on_disk::may_enter;

/// What a look found.
pub struct State {
    pub files: u64,
    pub bytes: u64,
    pub digest: Digest,
    /// The youngest time of a file's content, in seconds and nanoseconds.
    pub newest: (i64, i64),
    /// Something belongs to another user than the top does, or the top to another than us.
    pub foreign: bool,
    /// The same of groups.
    pub other_group: bool,
    /// All of it could be entered, and will be read.
    pub readable: bool,
    /// Files that no jail is shown, and whatever is neither file, link nor directory, relative to
    /// it.
    pub hidden: Vec<TreePath>,
}

/// Looks at a directory or a file. No link is followed.
pub fn look(root: &Path) -> io::Result<State> {
    let top = fs::symlink_metadata(root)?;
    let (uid, gid) = ids();
    let mut walk = Walk {
        owner: (top.uid(), top.gid()),
        digest: StateDigest::default(),
        found: State {
            files: 0,
            bytes: 0,
            digest: Digest::of(b""),
            newest: (0, 0),
            foreign: uid != 0 && top.uid() != uid,
            other_group: uid != 0 && top.gid() != gid,
            readable: true,
            hidden: Vec::new(),
        },
    };
    walk.take(Path::new(""), &top);
    if top.is_dir() {
        walk.below(root)?;
    }
    walk.found.digest = walk.digest.finish();
    Ok(walk.found)
}

fn ids() -> (u32, u32) {
    use rustix::process::{getegid, geteuid};
    (geteuid().as_raw(), getegid().as_raw())
}

struct Walk {
    owner: (u32, u32),
    digest: StateDigest,
    found: State,
}

impl Walk {
    fn below(&mut self, root: &Path) -> io::Result<()> {
        let mut pending = vec![PathBuf::new()];
        while let Some(dir) = pending.pop() {
            let place = root.join(&dir);
            if !may_enter(&place) {
                self.found.readable = false;
                continue;
            }
            let mut names: Vec<OsString> = Vec::new();
            for entry in fs::read_dir(&place)? {
                names.push(entry?.file_name());
            }
            names.sort_unstable();
            for name in names {
                let path = dir.join(&name);
                let meta = fs::symlink_metadata(place.join(&name))?;
                self.take(&path, &meta);
                if meta.is_dir() {
                    pending.push(path);
                }
            }
            if self.found.files > MOST_FILES {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, meta: &Metadata) {
        let (found, bytes) = (&mut self.found, path.as_os_str().as_bytes());
        let seen = Seen {
            mode: meta.mode(),
            size: if meta.is_dir() { 0 } else { meta.size() },
            inode: meta.ino(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        };
        self.digest.take(bytes, &seen);
        found.foreign |= meta.uid() != self.owner.0;
        found.other_group |= meta.gid() != self.owner.1;
        if meta.is_dir() {
            return;
        }
        found.files += 1;
        found.newest = found.newest.max(seen.modified);
        if meta.is_file() {
            found.bytes = found.bytes.saturating_add(meta.size());
            // Another user's private file: neither a copy nor a jail could read it.
            let (uid, _) = ids();
            found.readable &= uid == 0 || meta.uid() == uid || meta.mode() & 0o044 != 0;
        }
        let name = TreePath::new(bytes);
        // Through a socket, a pipe or a device somebody outside would answer.
        let leads_out = !meta.is_file() && !meta.is_symlink();
        if !bytes.is_empty() && (leads_out || is_hidden_in_environment(&name)) {
            found.hidden.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_changes_the_digest_and_looking_does_not() {
        let house = tempfile::tempdir().unwrap();
        let root = house.path().join("env");
        fs::create_dir_all(root.join("lib/sub")).unwrap();
        fs::write(root.join("lib/a"), "a").unwrap();
        fs::write(root.join("lib/.npmrc"), "token").unwrap();
        std::os::unix::fs::symlink("/nowhere", root.join("link")).unwrap();
        let first = look(&root).unwrap();
        assert_eq!(first.digest, look(&root).unwrap().digest);
        assert_eq!((first.files, first.bytes), (3, 6));
        assert_eq!(first.hidden, [TreePath::new("lib/.npmrc")]);
        assert!(first.readable && !first.foreign);
        let changes: [&dyn Fn(); 6] = [
            &|| fs::write(root.join("lib/a"), "b").unwrap(),
            &|| fs::write(root.join("lib/new"), "").unwrap(),
            &|| fs::rename(root.join("lib/new"), root.join("lib/sub/new")).unwrap(),
            &|| {
                fs::remove_file(root.join("lib/a")).unwrap();
                fs::write(root.join("lib/a"), "b").unwrap();
            },
            &|| fs::remove_file(root.join("lib/sub/new")).unwrap(),
            &|| {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                fs::set_permissions(root.join("lib/a"), mode).unwrap();
            },
        ];
        let mut before = first.digest;
        for (number, change) in changes.iter().enumerate() {
            change();
            let now = look(&root).unwrap().digest;
            assert_ne!(now, before, "change {number}");
            before = now;
        }
    }

    #[test]
    fn one_file_is_looked_at_like_a_directory() {
        let house = tempfile::tempdir().unwrap();
        let file = house.path().join("_version.py");
        fs::write(&file, "v = 1\n").unwrap();
        let state = look(&file).unwrap();
        assert_eq!((state.files, state.bytes), (1, 6));
    }
}
