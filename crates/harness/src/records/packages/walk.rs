//! One look at packages: what the kernel says of everything in them, without opening a file. And the
//! content of a file, read while that holds.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use cto_core::values::digest::{Digest, Hasher};
use cto_core::values::paths::TreePath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};

use super::{Limits, Problem};
use crate::host::{files, workers};

/// What the kernel says of one entry. Nobody but the kernel sets the time of the last change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    pub device: u64,
    pub inode: u64,
    pub mode: u32,
    pub size: u64,
    pub modified: (i64, u64),
    pub changed: (i64, u64),
}

/// An entry, relative to the top, which has the empty path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub path: Vec<u8>,
    pub state: State,
}

impl Seen {
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.state.mode)
    }
}

impl State {
    fn of(stat: &Stat) -> Self {
        let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            // How a file system counts a directory says nothing about it.
            size: match is_dir {
                true => 0,
                false => u64::try_from(stat.st_size).unwrap_or_default(),
            },
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    fn hash_into(&self, bytes: &mut Vec<u8>) {
        let words = [
            self.device,
            self.inode,
            u64::from(self.mode),
            self.size,
            self.modified.0.cast_unsigned(),
            self.modified.1,
            self.changed.0.cast_unsigned(),
            self.changed.1,
        ];
        words
            .iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
}

/// One digest for what the kernel said of all of it.
pub fn fingerprint(seen: &[Seen]) -> Digest {
    let mut bytes = Vec::with_capacity(seen.len() * 128);
    for one in seen {
        one.state.hash_into(&mut bytes);
        bytes.extend_from_slice(&(one.path.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&one.path);
    }
    Digest::tagged("cto-packages-state/1\n", &bytes)
}

/// A tree that is held open: what is read is below what was looked at, whatever becomes of names.
pub struct Top {
    dir: File,
}

impl Top {
    pub fn open(root: &Path) -> Result<Self, Problem> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(root, flags, Mode::empty())
            .map(|dir| Self {
                dir: File::from(dir),
            })
            .map_err(|error| unreadable(b"", error.into()))
    }

    /// Everything in it, in the order of paths. No link is followed. Level by level, the directories of
    /// one shared by threads.
    pub fn walk(&self, limits: Limits) -> Result<Vec<Seen>, Problem> {
        /// So many directories are looked at sooner than a thread is made.
        const AT_A_TIME: usize = 64;
        const THREADS: usize = 4;
        let top = rustix::fs::statat(&self.dir, c"", AtFlags::EMPTY_PATH)
            .map_err(|error| unreadable(b"", error.into()))?;
        let mut found = vec![Seen {
            path: Vec::new(),
            state: State::of(&top),
        }];
        let mut bytes = 0u64;
        let mut level = vec![PathBuf::new()];
        while !level.is_empty() {
            let parts: Vec<&[PathBuf]> = level.chunks(AT_A_TIME).collect();
            let threads = workers::cores().min(THREADS);
            let looked = workers::for_all(threads, &parts, |dirs| self.some(dirs));
            let mut below = Vec::new();
            for part in looked {
                let part = part?;
                for one in &part {
                    match one.kind() {
                        FileType::Directory => {
                            below.push(PathBuf::from(OsStr::from_bytes(&one.path)));
                        }
                        FileType::RegularFile => bytes = bytes.saturating_add(one.state.size),
                        FileType::Symlink => {}
                        _ => return Err(Problem::Odd(TreePath::new(one.path.as_slice()))),
                    }
                }
                found.extend(part);
                if found.len() as u64 > limits.entries {
                    return Err(Problem::TooMany(limits.entries));
                }
            }
            if bytes > limits.bytes {
                return Err(Problem::TooLarge(limits.bytes));
            }
            level = below;
        }
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn some(&self, dirs: &[PathBuf]) -> Result<Vec<Seen>, Problem> {
        let mut found = Vec::new();
        for dir in dirs {
            self.one(dir, &mut found)
                .map_err(|error| unreadable(dir.as_os_str().as_bytes(), error))?;
        }
        Ok(found)
    }

    /// One directory.
    fn one(&self, dir: &Path, found: &mut Vec<Seen>) -> io::Result<()> {
        let opened = self.opened(dir.as_os_str().as_bytes(), OFlags::DIRECTORY)?;
        for entry in Dir::read_from(&opened)? {
            let name = entry?.file_name().to_owned();
            if name.as_c_str() == c"." || name.as_c_str() == c".." {
                continue;
            }
            let stat = rustix::fs::statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            let path = dir.join(OsStr::from_bytes(name.to_bytes()));
            found.push(Seen {
                path: path.into_os_string().into_vec(),
                state: State::of(&stat),
            });
        }
        Ok(())
    }

    /// Opens what has that path, if no link leads there.
    fn opened(&self, path: &[u8], flags: OFlags) -> io::Result<File> {
        let place = match path.is_empty() {
            true => Path::new("."),
            false => Path::new(OsStr::from_bytes(path)),
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | flags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = rustix::fs::openat2(&self.dir, place, flags, Mode::empty(), resolve)?;
        Ok(File::from(opened))
    }

    /// The digest of a file's content or a link's text, if it is what was seen before and after it was
    /// read.
    pub fn content(&self, seen: &Seen) -> Result<Digest, Problem> {
        let unsteady = || Problem::Unsteady(TreePath::new(seen.path.as_slice()));
        let cannot = |error: io::Error| unreadable(&seen.path, error);
        if seen.kind().is_symlink() {
            let place = Path::new(OsStr::from_bytes(&seen.path));
            let text = rustix::fs::readlinkat(&self.dir, place, Vec::new())
                .map_err(|error| cannot(error.into()))?;
            let stat = rustix::fs::statat(&self.dir, place, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| cannot(error.into()))?;
            return match State::of(&stat) == seen.state {
                true => Ok(Digest::of(text.as_bytes())),
                false => Err(unsteady()),
            };
        }
        let mut file = self.opened(&seen.path, OFlags::NOFOLLOW).map_err(cannot)?;
        let holds = |file: &File| {
            rustix::fs::fstat(file)
                .map(|stat| State::of(&stat) == seen.state)
                .map_err(|error| cannot(error.into()))
        };
        if !holds(&file)? {
            return Err(unsteady());
        }
        let mut hasher = Hasher::default();
        files::read_chunks(&mut file, seen.state.size, |chunk| hasher.update(chunk))
            .map_err(cannot)?;
        match holds(&file)? {
            true => Ok(hasher.finish()),
            false => Err(unsteady()),
        }
    }
}

fn unreadable(path: &[u8], error: io::Error) -> Problem {
    let named: &[u8] = if path.is_empty() { b"." } else { path };
    Problem::Unreadable(TreePath::new(named), error)
}
