//! One look at an environment: everything the kernel says of everything in it, without opening a
//! file. Two looks that found the same give the same digest.
//!
//! Every directory is looked at by itself and has a digest of its own, so that several threads
//! can share a large environment.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};

use cto_core::containment::environment_masks::is_hidden_in_environment;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{MOST_FILES, Seen, StateDigest};

use crate::host::workers;

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

/// What another look found.
pub enum Again {
    /// Everything is what it was.
    Same,
    Other(State),
}

/// Looks once more. Names are read for what they hide only where something is not what it was: the same
/// digest is of the same names.
pub fn look_again(root: &Path, before: Option<Digest>) -> io::Result<Again> {
    let Some(before) = before else {
        return look(root).map(Again::Other);
    };
    match look_for(root, false)?.digest == before {
        true => Ok(Again::Same),
        false => look(root).map(Again::Other),
    }
}

/// Looks at a directory or a file. No link is followed.
pub fn look(root: &Path) -> io::Result<State> {
    look_for(root, true)
}

fn look_for(root: &Path, names: bool) -> io::Result<State> {
    let meta = fs::symlink_metadata(root)?;
    let us = Ids {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    };
    let top = Ids {
        uid: meta.uid(),
        gid: meta.gid(),
    };
    let mut found = Found::with(names);
    if !meta.is_dir() {
        let (dir, name) = (root.parent(), root.file_name());
        let dir = dir.filter(|dir| !dir.as_os_str().is_empty());
        let dir = File::open(dir.unwrap_or(Path::new(".")))?;
        let stat = rustix::fs::statat(&dir, name.unwrap_or_default(), AtFlags::SYMLINK_NOFOLLOW)?;
        let mut entries = StateDigest::default();
        found.take(b"", &stat, &top, &us, &mut entries);
        found.directories.push((Vec::new(), entries.finish()));
    } else {
        found = Walk::of(root, top, us, names)?;
    }
    // In the order of names, whoever came by first.
    found.directories.sort_unstable();
    let mut digest = StateDigest::default();
    for (path, entries) in &found.directories {
        digest.take_directory(path, entries);
    }
    found.hidden.sort_unstable();
    Ok(State {
        files: found.files,
        bytes: found.bytes,
        digest: digest.finish(),
        newest: found.newest,
        foreign: found.foreign || (us.uid != 0 && top.uid != us.uid),
        other_group: found.other_group || (us.uid != 0 && top.gid != us.gid),
        readable: !found.unreadable,
        hidden: found.hidden,
    })
}

#[derive(Clone, Copy)]
struct Ids {
    uid: u32,
    gid: u32,
}

/// What was found in some of the directories.
#[derive(Default)]
struct Found {
    /// Names are read for what no jail is shown.
    names: bool,
    directories: Vec<(Vec<u8>, Digest)>,
    files: u64,
    bytes: u64,
    newest: (i64, i64),
    foreign: bool,
    other_group: bool,
    unreadable: bool,
    hidden: Vec<TreePath>,
}

impl Found {
    fn with(names: bool) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    fn take(&mut self, path: &[u8], stat: &Stat, top: &Ids, us: &Ids, entries: &mut StateDigest) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let seen = seen(stat);
        entries.take(path, &seen);
        self.foreign |= stat.st_uid != top.uid;
        self.other_group |= stat.st_gid != top.gid;
        if kind.is_dir() {
            return;
        }
        self.files += 1;
        self.newest = self.newest.max(seen.modified);
        if kind.is_file() {
            self.bytes = self.bytes.saturating_add(size);
            // Another user's private file: neither a copy nor a jail could read it.
            let ours = us.uid == 0 || stat.st_uid == us.uid;
            self.unreadable |= !ours && stat.st_mode & 0o044 == 0;
        }
        if path.is_empty() || !self.names {
            return;
        }
        let name = TreePath::new(path);
        // Through a socket, a pipe or a device somebody outside would answer.
        let leads_out = !kind.is_file() && !kind.is_symlink();
        if leads_out || is_hidden_in_environment(&name) {
            self.hidden.push(name);
        }
    }

    fn and(&mut self, other: Self) {
        self.directories.extend(other.directories);
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.newest = self.newest.max(other.newest);
        self.foreign |= other.foreign;
        self.other_group |= other.other_group;
        self.unreadable |= other.unreadable;
        self.hidden.extend(other.hidden);
    }
}

/// What the kernel says of an entry, without its content. Its change time cannot be forged.
pub fn seen(stat: &Stat) -> Seen {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let time =
        |seconds: i64, nanoseconds: u64| (seconds, i64::try_from(nanoseconds).unwrap_or_default());
    Seen {
        mode: stat.st_mode,
        size: if kind.is_dir() { 0 } else { size },
        inode: stat.st_ino,
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
        changed: time(stat.st_ctime, stat.st_ctime_nsec),
    }
}

/// The same, as the standard library tells it.
pub fn seen_of(meta: &fs::Metadata) -> Seen {
    Seen {
        mode: meta.mode(),
        size: if meta.is_dir() { 0 } else { meta.size() },
        inode: meta.ino(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    }
}

/// One environment, while it is walked.
struct Walk {
    root: File,
    top: Ids,
    us: Ids,
    names: bool,
}

impl Walk {
    /// Level by level, the directories of one shared by threads.
    fn of(root: &Path, top: Ids, us: Ids, names: bool) -> io::Result<Found> {
        /// So many directories are looked at sooner than a thread is made.
        const AT_A_TIME: usize = 64;
        const THREADS: usize = 4;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = File::from(rustix::fs::open(root, flags, Mode::empty())?);
        let stat = rustix::fs::statat(&root, c"", AtFlags::EMPTY_PATH)?;
        let walk = Self {
            root,
            top,
            us,
            names,
        };
        let mut found = Found::with(names);
        let mut entries = StateDigest::default();
        found.take(b"", &stat, &top, &us, &mut entries);
        // Its own state under a name that no directory below it has.
        found.directories.push((b"/".to_vec(), entries.finish()));
        let mut level = vec![PathBuf::new()];
        // What is too large is not carried, and so not looked at to its end.
        while !level.is_empty() && found.files <= MOST_FILES {
            let parts: Vec<&[PathBuf]> = level.chunks(AT_A_TIME).collect();
            let threads = workers::cores().min(THREADS);
            let looked = workers::for_all(threads, &parts, |dirs| walk.some(dirs));
            let mut below = Vec::new();
            for part in looked {
                let (others, deeper) = part?;
                found.and(others);
                below.extend(deeper);
            }
            level = below;
        }
        Ok(found)
    }

    fn some(&self, dirs: &[PathBuf]) -> io::Result<(Found, Vec<PathBuf>)> {
        let (mut found, mut below) = (Found::with(self.names), Vec::new());
        for dir in dirs {
            below.extend(self.one(dir, &mut found)?);
        }
        Ok((found, below))
    }

    /// One directory; says which lie in it.
    fn one(&self, dir: &Path, found: &mut Found) -> io::Result<Vec<PathBuf>> {
        let place = match dir.as_os_str().is_empty() {
            true => Path::new("."),
            false => dir,
        };
        let may = Access::READ_OK | Access::EXEC_OK;
        if rustix::fs::accessat(&self.root, place, may, AtFlags::EACCESS).is_err() {
            found.unreadable = true;
            return Ok(Vec::new());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = rustix::fs::openat2(&self.root, place, flags, Mode::empty(), resolve)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&opened)? {
            let name = entry?.file_name().to_owned();
            if name.as_c_str() != c"." && name.as_c_str() != c".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        let (mut entries, mut below) = (StateDigest::default(), Vec::new());
        let mut path = dir.as_os_str().as_bytes().to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        let above = path.len();
        for name in names {
            let stat = rustix::fs::statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            path.truncate(above);
            path.extend_from_slice(name.to_bytes());
            found.take(&path, &stat, &self.top, &self.us, &mut entries);
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                below.push(PathBuf::from(OsStr::from_bytes(&path)));
            }
        }
        let name = dir.as_os_str().as_bytes().to_vec();
        found.directories.push((name, entries.finish()));
        Ok(below)
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
    fn another_look_finds_what_came_with_what_it_hides() {
        let house = tempfile::tempdir().unwrap();
        let root = house.path().join("env");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::write(root.join("lib/a"), "a").unwrap();
        let first = look(&root).unwrap().digest;
        assert!(matches!(
            look_again(&root, Some(first)).unwrap(),
            Again::Same
        ));
        fs::write(root.join("lib/.npmrc"), "token").unwrap();
        for before in [Some(first), None] {
            let Again::Other(state) = look_again(&root, before).unwrap() else {
                panic!("something came");
            };
            assert_eq!(state.hidden, [TreePath::new("lib/.npmrc")]);
            assert_eq!(state.digest, look(&root).unwrap().digest);
        }
    }

    #[test]
    fn threads_that_share_it_find_what_one_alone_finds() {
        let house = tempfile::tempdir().unwrap();
        let root = house.path().join("node_modules");
        for package in 0..300 {
            let dir = root.join(format!("package-{package}/lib"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("index.js"), "1").unwrap();
            fs::write(dir.join(".npmrc"), "token").unwrap();
        }
        let first = look(&root).unwrap();
        assert_eq!((first.files, first.hidden.len()), (600, 300));
        for _ in 0..3 {
            let again = look(&root).unwrap();
            assert_eq!((again.digest, &again.hidden), (first.digest, &first.hidden));
        }
        fs::write(root.join("package-299/lib/index.js"), "2").unwrap();
        assert_ne!(look(&root).unwrap().digest, first.digest);
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
