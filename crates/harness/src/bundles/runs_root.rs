//! The directory that holds the bundles: which runs are in it, and whether that changed since one
//! last looked.
//!
//! Nothing here looks into a bundle, and nothing here writes.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use cto_core::values::ids::RunId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};

use crate::host::failure::Failure;
use crate::host::{self, Home};

pub struct RunsRoot {
    /// Without links, so that two spellings of one place are one place.
    pub path: PathBuf,
    dir: File,
}

/// A directory in the root that is named like a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub run_id: RunId,
    pub inode: u64,
    /// A directory of this root; otherwise a link to one that lies elsewhere.
    pub is_own_directory: bool,
}

/// What the kernel changes whenever a name in the root comes, goes or changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    pub text: String,
    /// Old enough that a change after this look would have left another one.
    pub is_settled: bool,
}

/// Clocks of file systems are coarse: two changes within one tick leave the same time. Git calls
/// such a time racy. The coarsest clock in use, that of FAT, ticks every two seconds.
const SETTLING_MILLIS: i64 = 2_100;

/// File systems known to change a directory's times with its entries at once, whoever changes them.
/// Network and user-space file systems may answer from a cache; there, names are read every time.
const TRUSTED_FILE_SYSTEMS: [i64; 9] = [
    0xef53,      // ext2 to ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x8584_58f6, // ramfs
];

impl RunsRoot {
    /// `None` when nothing is there yet. A place that is there but cannot be listed is an error:
    /// silence would say that there are no runs.
    pub fn open(home: &Home) -> Result<Option<Self>, Failure> {
        let unreadable = |error: io::Error| unreadable_root(home, &error);
        let path = match home.runs.canonicalize() {
            Ok(path) => path,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && home.runs.symlink_metadata().is_err() =>
            {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(error)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|error| unreadable(error.into()))?;
        let root = Self {
            path,
            dir: dir.into(),
        };
        root.reopen().map_err(unreadable)?;
        Ok(Some(root))
    }

    /// A descriptor of its own, because reading names moves it.
    fn reopen(&self) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(
            &self.dir,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    }

    /// Every run, in no order.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        self.entries_where(|_| true)
    }

    /// Runs whose name is wanted, in no order. Other names, and files named like runs, are not ours
    /// and are passed over.
    pub fn entries_where(&self, mut is_wanted: impl FnMut(&str) -> bool) -> io::Result<Vec<Entry>> {
        let mut found = Vec::new();
        let mut buffer = Vec::with_capacity(256 * 1024);
        let mut names = RawDir::new(self.reopen()?, buffer.spare_capacity_mut());
        while let Some(entry) = names.next() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let is_own_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Symlink | FileType::Unknown => match self.kind(name) {
                    Some(is_own_directory) => is_own_directory,
                    None => continue,
                },
                _ => continue,
            };
            // Asked only of what could be a run, so that it may remember what it was asked.
            let Some(run_id) = is_wanted(name)
                .then(|| name.parse::<RunId>().ok())
                .flatten()
            else {
                continue;
            };
            found.push(Entry {
                run_id,
                inode: entry.ino(),
                is_own_directory,
            });
        }
        Ok(found)
    }

    /// A directory of its own (`true`), a link to one (`false`), or neither.
    fn kind(&self, name: &str) -> Option<bool> {
        let is_dir = |flags| {
            self.stat(name, flags)
                .is_ok_and(|stat| file_type(&stat) == FileType::Directory)
        };
        is_dir(AtFlags::SYMLINK_NOFOLLOW)
            .then_some(true)
            .or_else(|| is_dir(AtFlags::empty()).then_some(false))
    }

    /// One run by its name.
    pub fn entry(&self, run_id: &RunId) -> Option<Entry> {
        let is_own_directory = self.kind(run_id.as_str())?;
        let inode = self
            .stat(run_id.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            .ok()?
            .st_ino;
        Some(Entry {
            run_id: run_id.clone(),
            inode,
            is_own_directory,
        })
    }

    /// What the kernel says of a path below the root.
    pub fn stat(&self, path: &str, flags: AtFlags) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.dir, path, flags)
    }

    pub fn token(&self) -> io::Result<Token> {
        let stat = rustix::fs::fstat(&self.dir)?;
        let changed_millis = [
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        ]
        .map(|(seconds, nanos)| i128::from(seconds) * 1_000 + i128::from(nanos) / 1_000_000);
        let since_change = i128::from(host::now().as_millis())
            - changed_millis.into_iter().max().unwrap_or(i128::MAX);
        let file_system = rustix::fs::fstatfs(&self.dir)?.f_type;
        let text = format!(
            "{}-{}-{}-{}-{}.{:09}-{}.{:09}",
            stat.st_dev,
            stat.st_ino,
            stat.st_nlink,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec
        );
        let is_settled = since_change >= i128::from(SETTLING_MILLIS)
            && TRUSTED_FILE_SYSTEMS.contains(&file_system);
        Ok(Token { text, is_settled })
    }
}

/// A place that is there but cannot be listed.
pub fn unreadable_root(home: &Home, error: &io::Error) -> Failure {
    Failure::usage("unreadable_runs_root", "the runs root cannot be read")
        .at(home.runs.display().to_string())
        .because(error)
        .so("what runs there are is not known")
        .hint("check that it is a directory, who owns it and its mode, or name another with --runs-dir DIR")
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
