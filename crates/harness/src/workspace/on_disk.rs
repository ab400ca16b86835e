//! Private copies: laid out from a fixture, measured by our own walk, re-made pristine for checks.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::values::digest::{Digest, Hasher};
use cto_core::values::paths::TreePath;
use cto_core::workspace::times::Time;
use cto_core::workspace::tree::{Entry, FileKind, Tree};

use crate::host::files;
use crate::task::cases::FixtureFile;
use crate::workspace::git;

/// What a walk over a tree found. The walk follows no link, opens no pipe, and trusts no index.
#[derive(Debug, Default)]
pub struct Walked {
    pub tree: Tree,
    /// `.git` directories or files below the top: nested repositories.
    pub nested_repositories: Vec<TreePath>,
    /// Pipes, sockets, devices: nothing a patch can carry.
    pub unrecordable: Vec<TreePath>,
    /// Files and directories this user cannot read, or that no path can name.
    pub unreadable: Vec<TreePath>,
    /// Files past what is measured; a file full of holes costs an engine nothing, and reading it
    /// hours.
    pub too_large: Vec<TreePath>,
    bytes: u64,
    bounds: Bounds,
}

/// What a walk may cost.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of all files together.
    pub bytes: u64,
    /// When it gives up.
    pub until: Option<Instant>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: MAX_BYTES,
            until: None,
        }
    }
}

impl Bounds {
    /// An error once it is too late to go on.
    pub fn in_time(&self) -> io::Result<()> {
        match self.until.is_some_and(|until| Instant::now() >= until) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

impl Walked {
    /// A tree that is known already, for a walk over what differs from it.
    pub fn starting_with(tree: Tree, bounds: Bounds) -> Self {
        let of_files = tree
            .values()
            .filter(|entry| entry.kind != FileKind::Symlink);
        let bytes = of_files.fold(0u64, |sum, entry| sum.saturating_add(entry.bytes));
        Self {
            tree,
            bytes,
            bounds,
            ..Self::default()
        }
    }

    /// Takes out a path and everything below it.
    pub fn forget(&mut self, path: &TreePath) {
        let below = TreePath::new([path.as_bytes(), b"/"].concat());
        let within = self.tree.range(&below..).map(|(path, _)| path);
        let mut gone: Vec<TreePath> = within
            .take_while(|path| path.as_bytes().starts_with(below.as_bytes()))
            .cloned()
            .collect();
        gone.push(path.clone());
        for entry in gone.iter().filter_map(|path| self.tree.remove(path)) {
            let counted = if entry.kind == FileKind::Symlink {
                0
            } else {
                entry.bytes
            };
            self.bytes = self.bytes.saturating_sub(counted);
        }
    }

    pub fn sort(&mut self) {
        for list in [
            &mut self.nested_repositories,
            &mut self.unrecordable,
            &mut self.unreadable,
            &mut self.too_large,
        ] {
            list.sort();
        }
    }
}

/// The most one walk reads, of all files together.
const MAX_BYTES: u64 = 8 << 30;

/// The file a measured path names below `dir`.
pub fn locate(dir: &Path, path: &TreePath) -> PathBuf {
    dir.join(std::ffi::OsStr::from_bytes(path.as_bytes()))
}

/// Writes fixture files below `dir`; nothing that exists is overwritten unless `replace`.
pub fn lay_out<'a>(
    dir: &Path,
    files: impl IntoIterator<Item = &'a FixtureFile>,
    replace: bool,
) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
    let mut made = dir.to_owned();
    for file in files {
        let path = locate(dir, &file.path);
        if let Some(parent) = path.parent().filter(|parent| *parent != made) {
            make_parent(dir, &path)?;
            made = parent.to_owned();
        }
        if replace {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)?;
        out.write_all(&file.bytes)?;
        // The mode must not depend on the operator's umask.
        out.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Writes one file or link of a stored tree below `dir`, and says what was written.
pub fn write_entry(
    dir: &Path,
    path: &TreePath,
    kind: FileKind,
    content: &mut dyn io::Read,
) -> io::Result<Entry> {
    let is_name = |part: &[u8]| {
        !matches!(part, b"" | b"." | b"..") && !git::is_dot_git(std::ffi::OsStr::from_bytes(part))
    };
    if !path.as_bytes().split(|b| *b == b'/').all(is_name) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{path} cannot be the name of a file"),
        ));
    }
    let place = locate(dir, path);
    make_parent(dir, &place)?;
    if kind == FileKind::Symlink {
        let mut text = Vec::new();
        content.read_to_end(&mut text)?;
        std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(&text), place)?;
        return Ok(Entry {
            kind,
            bytes: text.len() as u64,
            sha256: Digest::of(&text),
        });
    }
    let mode = if kind == FileKind::Executable {
        0o755
    } else {
        0o644
    };
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&place)?;
    let entry = digest_entry(kind, content, &mut out)?;
    out.set_permissions(Permissions::from_mode(mode))?;
    Ok(entry)
}

/// Does this file hold ignore rules? Git follows no link to some.
pub fn holds_rules(path: &TreePath, entry: &Entry) -> bool {
    path.as_bytes().ends_with(b".gitignore") && entry.kind != FileKind::Symlink
}

/// A time older than an index that will be written: git reads again what is as young as its index.
pub fn some_time_ago() -> Time {
    const OLDER: std::time::Duration = std::time::Duration::from_secs(10);
    let then = std::time::SystemTime::now()
        .checked_sub(OLDER)
        .and_then(|then| then.duration_since(std::time::UNIX_EPOCH).ok());
    let seconds = then.unwrap_or_default().as_secs();
    (i64::try_from(seconds).unwrap_or_default(), 0)
}

/// Gives the files of a tree this time.
pub fn date(dir: &Path, tree: &Tree, (tv_sec, tv_nsec): Time) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec { tv_sec, tv_nsec },
    };
    for path in tree.keys() {
        utimensat(CWD, locate(dir, path), &times, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Passes content on and says what it was.
pub fn digest_entry(
    kind: FileKind,
    content: &mut dyn io::Read,
    out: &mut dyn Write,
) -> io::Result<Entry> {
    let (mut hasher, mut bytes, mut buffer) = (Hasher::default(), 0u64, [0u8; 1 << 14]);
    loop {
        let count = content.read(&mut buffer)?;
        if count == 0 {
            return Ok(Entry {
                kind,
                bytes,
                sha256: hasher.finish(),
            });
        }
        hasher.update(&buffer[..count]);
        out.write_all(&buffer[..count])?;
        bytes += count as u64;
    }
}

/// Makes the directories between `dir` and `path`, and refuses a link among them: in a copy that
/// holds an engine's result, it may lead anywhere on the host.
pub fn make_parent(dir: &Path, path: &Path) -> io::Result<()> {
    let below = path
        .parent()
        .and_then(|parent| parent.strip_prefix(dir).ok())
        .ok_or(io::ErrorKind::InvalidInput)?;
    let mut place = dir.to_owned();
    for part in below.components() {
        place.push(part);
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_dir() && matches!(part, std::path::Component::Normal(_)) => {}
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    format!("{} is no directory", below.display()),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().mode(0o755).create(&place)?
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Closed to us, or so deep that no path names it.
pub fn cannot_be_looked_into(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidFilename
    )
}

/// Measures a tree. The top-level `.git` is left out: it is the engine's, and hostile.
pub fn walk(dir: &Path) -> io::Result<Walked> {
    walk_but(dir, &Apart::new(), Bounds::default())
}

/// What was put into a copy and is no part of its tree, and whether each is a directory or a file.
pub type Apart = BTreeMap<TreePath, bool>;

/// The same without these, and for no more than this.
pub fn walk_but(dir: &Path, apart: &Apart, bounds: Bounds) -> io::Result<Walked> {
    let mut found = Walked::starting_with(Tree::new(), bounds);
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        if !may_enter(&dir.join(&below)) {
            found.unreadable.push(name_of_dir(&below));
            continue;
        }
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            bounds.in_time()?;
            let relative = below.join(entry.file_name());
            if git::is_dot_git(&entry.file_name()) {
                if !below.as_os_str().is_empty() || entry.file_name() != ".git" {
                    found.nested_repositories.push(tree_path(&relative));
                }
                continue;
            }
            let meta = match fs::symlink_metadata(entry.path()) {
                Err(error) if cannot_be_looked_into(&error) => {
                    found.unreadable.push(tree_path(&relative));
                    continue;
                }
                meta => meta?,
            };
            if is_apart(apart, &relative, &meta) {
                continue;
            }
            if meta.is_dir() {
                pending.push(relative);
                continue;
            }
            measure(&mut found, &entry.path(), tree_path(&relative), &meta)?;
        }
    }
    found.sort();
    Ok(found)
}

/// Anything of another kind in such a place is somebody's work like any other.
pub fn is_apart(apart: &Apart, path: &Path, meta: &fs::Metadata) -> bool {
    !apart.is_empty()
        && (meta.is_dir() || meta.is_file())
        && apart.get(&tree_path(path)) == Some(&meta.is_dir())
}

/// May this user list a directory and reach what is in it? One without the other shows names and no
/// more.
pub fn may_enter(dir: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(
        CWD,
        dir,
        Access::READ_OK | Access::EXEC_OK,
        AtFlags::EACCESS,
    )
    .is_ok()
}

/// Measures one entry that is no directory.
pub fn measure(
    found: &mut Walked,
    path: &Path,
    name: TreePath,
    meta: &fs::Metadata,
) -> io::Result<()> {
    if meta.is_symlink() {
        let text = fs::read_link(path)?.into_os_string().into_vec();
        let entry = Entry {
            kind: FileKind::Symlink,
            bytes: text.len() as u64,
            sha256: Digest::of(&text),
        };
        found.tree.insert(name, entry);
        return Ok(());
    }
    if !meta.is_file() {
        found.unrecordable.push(name);
        return Ok(());
    }
    found.bytes = found.bytes.saturating_add(meta.len());
    if found.bytes > found.bounds.bytes {
        found.bytes -= meta.len();
        found.too_large.push(name);
        return Ok(());
    }
    match files::scan_file(path, |_| {}) {
        Ok(file) => {
            let kind = if meta.permissions().mode() & 0o100 != 0 {
                FileKind::Executable
            } else {
                FileKind::Regular
            };
            found.tree.insert(
                name,
                Entry {
                    kind,
                    bytes: file.bytes,
                    sha256: file.sha256,
                },
            );
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            found.unreadable.push(name)
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The top has no name of its own.
pub fn name_of_dir(below: &Path) -> TreePath {
    if below.as_os_str().is_empty() {
        TreePath::new(".")
    } else {
        tree_path(below)
    }
}

fn tree_path(path: &Path) -> TreePath {
    TreePath::new(path.as_os_str().as_bytes())
}

/// The content of a measured path, for git: file bytes or link text. Opened when first read, so
/// that a tree of any size needs one descriptor at a time.
pub struct Content {
    place: PathBuf,
    kind: FileKind,
    open: Option<Box<dyn io::Read>>,
}

impl Content {
    pub fn of(dir: &Path, path: &TreePath, kind: FileKind) -> Self {
        Self {
            place: locate(dir, path),
            kind,
            open: None,
        }
    }
}

impl io::Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let open = match self.open.take() {
            Some(open) => open,
            None => match self.kind {
                FileKind::Symlink => Box::new(io::Cursor::new(
                    fs::read_link(&self.place)?.into_os_string().into_vec(),
                )),
                FileKind::Regular | FileKind::Executable => {
                    Box::new(files::open_regular(&self.place)?) as Box<dyn io::Read>
                }
            },
        };
        self.open.insert(open).read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn files(list: &[(&str, &str, bool)]) -> Vec<FixtureFile> {
        list.iter()
            .map(|(path, text, executable)| FixtureFile {
                path: TreePath::new(*path),
                executable: *executable,
                bytes: text.as_bytes().to_vec(),
            })
            .collect()
    }

    #[test]
    fn what_was_laid_out_is_what_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let fixture = files(&[("a.py", "x", false), ("bin/run", "y", true)]);
        lay_out(dir.path(), &fixture, false).unwrap();
        let want: Tree = fixture
            .iter()
            .map(|f| (f.path.clone(), f.entry()))
            .collect();
        assert_eq!(walk(dir.path()).unwrap().tree, want);
        assert!(
            lay_out(dir.path(), &fixture, false).is_err(),
            "nothing is overwritten by accident"
        );
        lay_out(dir.path(), &fixture, true).unwrap();
    }

    #[test]
    fn odd_entries_are_seen_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink("loop", at("loop")).unwrap();
        symlink("/etc", at("dirlink")).unwrap();
        fs::create_dir_all(at("sub/.git")).unwrap();
        fs::write(at("sub/.git/config"), "x").unwrap();
        fs::create_dir(at(".git")).unwrap();
        fs::create_dir(at(".GIT")).unwrap();
        std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status()
            .unwrap();
        fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\n")), "z").unwrap();
        let found = walk(dir.path()).unwrap();
        let names: Vec<String> = found.tree.keys().map(ToString::to_string).collect();
        assert_eq!(names, ["dirlink", "loop", "\"\\377\\012\""]);
        let nested: Vec<String> = found
            .nested_repositories
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(nested, [".GIT", "sub/.git"]);
        assert_eq!(found.unrecordable, [TreePath::new("pipe")]);
    }

    #[test]
    fn a_closed_top_is_named_and_no_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o000)).unwrap();
        let found = walk(dir.path()).unwrap().unreadable;
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let closed = !cto_jail::is_root();
        assert_eq!(
            found,
            closed
                .then(|| TreePath::new("."))
                .into_iter()
                .collect::<Vec<_>>()
        );
    }
}
