//! A directory of the operator's own that a command in a jail works in: what gives orders to other
//! programs is looked for before and cannot be changed meanwhile; what came up is held back
//! afterwards. A mount cannot keep a name from being made, so the second half is a second look.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use cto_core::containment::guard::{Guard, MOUNT_CAP};
use cto_core::containment::mounts::Granted;
use cto_core::containment::orders::{
    EntryKind, GIT_PROTECTED, LINKED_PROTECTED, Orders, Place, guard_of, held_back, is_git_dir,
    is_looked_into, orders_of,
};
use cto_core::values::paths::TreePath;
use cto_jail::Guarded;

use crate::host::failure::Failure;
use crate::host::files::rename_new;

/// Entries beyond which a directory is too large to be looked through twice a command.
const MOST_ENTRIES: usize = 1_000_000;
/// What git reads as: the common directory is this one.
const HERE: &[u8] = b".\n";

/// The writable directories of one command.
pub struct ExecGuard {
    dirs: Vec<Watched>,
    /// Stand-ins of ours in git directories. Whoever needs one holds a lock on it.
    stand_ins: Vec<(PathBuf, File)>,
}

struct Watched {
    on_host: PathBuf,
    inside: PathBuf,
    before: Vec<Place>,
}

impl ExecGuard {
    /// Looks through what the command may write, and puts stand-ins where git would take orders
    /// from a file that is not there yet.
    pub fn look<'g>(writable: impl Iterator<Item = &'g Granted>) -> Result<Self, Failure> {
        let mut guard = Self {
            dirs: Vec::new(),
            stand_ins: Vec::new(),
        };
        for granted in writable.filter(|granted| granted.is_dir()) {
            let root = granted.path();
            let mut before = look_through(root).map_err(|error| not_looked_at(root, &error))?;
            for place in &mut before {
                let dir = at(root, &place.path);
                let stood_in = match place.orders {
                    Orders::Git => guard.stand_in(&dir),
                    _ => Ok(()),
                };
                stood_in.map_err(|error| not_looked_at(&dir, &error))?;
                place.protected = present(&dir, place.orders);
            }
            guard.dirs.push(Watched {
                on_host: root.to_owned(),
                inside: granted.target().to_owned(),
                before,
            });
        }
        Ok(guard)
    }

    /// The same as mounts of the jail.
    pub fn mounts(&self) -> Result<Option<Guarded>, Failure> {
        let mut all = Guard::default();
        for dir in &self.dirs {
            let here = guard_of(&dir.before);
            let move_to = |paths: Vec<TreePath>| {
                let inside = dir.inside.as_os_str().as_bytes();
                let inside = inside.strip_prefix(b"/").unwrap_or(inside);
                let join = move |path: TreePath| [inside, b"/", path.as_bytes()].concat();
                paths.into_iter().map(join).map(TreePath::new)
            };
            all.open.extend(move_to(here.open));
            all.read_only.extend(move_to(here.read_only));
            all.masked.extend(move_to(here.masked));
        }
        match all.mounts() {
            0 => Ok(None),
            count if count > MOUNT_CAP => Err(Failure::usage(
                "guard_too_large",
                format!("protecting the workspace would take {count} mounts, at most {MOUNT_CAP} are made"),
            )
            .so("nothing ran")
            .hint("choose a smaller --workspace, or do without protection: --no-guard")),
            _ => Ok(Some(Guarded {
                root: "/".into(),
                places: all,
            })),
        }
    }

    /// Looks again, when nothing of the command is left. What came up and would give orders gets
    /// another name; each is told in a line.
    pub fn hold_back(self) -> Result<Vec<String>, Failure> {
        let mut told = Vec::new();
        for dir in &self.dirs {
            let known: BTreeSet<&TreePath> = dir.before.iter().map(|place| &place.path).collect();
            let after = look_through(&dir.on_host).map_err(|error| not_checked(dir, &error))?;
            let mut held: Vec<TreePath> = Vec::new();
            for place in after.iter().filter(|place| !known.contains(&place.path)) {
                let within = |above: &TreePath| {
                    let rest = place.path.as_bytes().strip_prefix(above.as_bytes());
                    rest.is_some_and(|rest| rest.starts_with(b"/"))
                };
                let Some(what) = held_back(place).filter(|_| !held.iter().any(within)) else {
                    continue;
                };
                let from = at(&dir.on_host, &what);
                let to = put_aside(&from).map_err(|error| not_checked(dir, &error))?;
                told.push(format!(
                    "held back: {what} is now {}: it was made in the jail, and programs outside take orders from such a name (--no-guard leaves it)",
                    to.display()
                ));
                held.push(what);
            }
        }
        Ok(told)
    }

    fn stand_in(&mut self, git_dir: &Path) -> io::Result<()> {
        let owner = fs::metadata(git_dir)?;
        let made = make_dirs(git_dir, &owner).and_then(|()| self.stand_in_files(git_dir, &owner));
        match made {
            // Where we may not write, nor may the command: it has at most our rights.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Ok(())
            }
            made => made,
        }
    }

    fn stand_in_files(&mut self, git_dir: &Path, owner: &Metadata) -> io::Result<()> {
        let config = git_dir.join("config.worktree");
        if is_missing(&config) && has_worktree_config(git_dir) {
            File::create_new(&config)?;
            chown(&config, Some(owner.uid()), Some(owner.gid()))?;
        }
        let path = git_dir.join("commondir");
        if let Some(file) = lock_stand_in(&path, owner)? {
            self.stand_ins.push((path, file));
        }
        Ok(())
    }
}

/// Takes our stand-ins away again, also where nothing ran, but for those that another command relies
/// on.
impl Drop for ExecGuard {
    fn drop(&mut self) {
        for (path, file) in &self.stand_ins {
            if file.try_lock().is_ok() && is_same(path, file) {
                // What stays behind is read by git as if it were not there.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Hooks and attributes: directories that git makes itself, and does not miss.
fn make_dirs(git_dir: &Path, owner: &Metadata) -> io::Result<()> {
    for name in ["hooks", "info"] {
        let dir = git_dir.join(name);
        if is_missing(&dir) {
            fs::create_dir(&dir)?;
            chown(&dir, Some(owner.uid()), Some(owner.gid()))?;
        }
    }
    Ok(())
}

/// A file that says the common directory is this one, held by a lock; none where the git directory
/// has a word of its own.
fn lock_stand_in(path: &Path, owner: &Metadata) -> io::Result<Option<File>> {
    for _ in 0..8 {
        let made = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let mut file = match made {
            Ok(mut file) => {
                file.write_all(HERE)?;
                chown(path, Some(owner.uid()), Some(owner.gid()))?;
                file
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let mut options = OpenOptions::new();
                let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
                options
                    .read(true)
                    .custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
                match options.open(path) {
                    Ok(file) => file,
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    // A link or an odd file: whatever it is, it is there and stays.
                    Err(_) => return Ok(None),
                }
            }
            Err(error) => return Err(error),
        };
        file.try_lock_shared()
            .map_err(|_| io::Error::other("a command that runs here keeps git's commondir"))?;
        let mut text = Vec::new();
        io::Seek::rewind(&mut file)?;
        Read::by_ref(&mut file).take(64).read_to_end(&mut text)?;
        match (text == HERE, is_same(path, &file)) {
            (true, true) => return Ok(Some(file)),
            // Somebody is still writing it, or took it away.
            (_, false) => {}
            (false, true) if text.is_empty() => {}
            (false, true) => return Ok(None),
        }
    }
    Err(io::Error::other("git's commondir comes and goes"))
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn is_same(path: &Path, file: &File) -> bool {
    let (Ok(there), Ok(ours)) = (fs::symlink_metadata(path), file.metadata()) else {
        return false;
    };
    (there.dev(), there.ino()) == (ours.dev(), ours.ino())
}

/// Whether git reads a second configuration beside the first one.
fn has_worktree_config(git_dir: &Path) -> bool {
    fs::read(git_dir.join("config")).is_ok_and(|text| {
        text.to_ascii_lowercase()
            .windows(14)
            .any(|w| w == b"worktreeconfig")
    })
}

/// The protected names that are there.
fn present(dir: &Path, orders: Orders) -> Vec<&'static str> {
    let names: &[&'static str] = match orders {
        Orders::Git => &GIT_PROTECTED,
        Orders::LinkedTree => &LINKED_PROTECTED,
        Orders::Config | Orders::Socket => &[],
    };
    let there = |name: &&&'static str| fs::symlink_metadata(dir.join(name)).is_ok();
    names.iter().filter(there).copied().collect()
}

/// Everything below a directory that gives orders, without following a link; the highest first.
fn look_through(root: &Path) -> io::Result<Vec<Place>> {
    let owner = fs::metadata(root)?.uid();
    let mut found = Vec::new();
    let mut seen = 0;
    // A directory, and whether it has a git directory's name.
    let mut rest = VecDeque::from([(TreePath::new(""), false)]);
    while let Some((dir, named_git)) = rest.pop_front() {
        let on_host = at(root, &dir);
        if !dir.as_bytes().is_empty() && is_out_of_reach(&on_host, owner) {
            continue;
        }
        let listed = fs::read_dir(&on_host).and_then(|list| list.collect::<io::Result<Vec<_>>>());
        let entries: Vec<DirEntry> = match listed {
            Ok(entries) => entries,
            Err(error) if dir.as_bytes().is_empty() => return Err(error),
            // The command could open what is its owner's: closed as a whole.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                found.push(place(dir, Orders::Config));
                continue;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        seen += entries.len();
        if seen > MOST_ENTRIES {
            return Err(io::Error::other(format!(
                "it holds more than {MOST_ENTRIES} names"
            )));
        }
        let names: Vec<_> = entries.iter().map(DirEntry::file_name).collect();
        let is_git = is_git_dir(&dir, names.iter().map(|name| name.as_bytes()));
        if is_git && !named_git {
            found.push(place(dir.clone(), Orders::Git));
        }
        for (entry, name) in entries.iter().zip(&names) {
            let kind = entry.file_type()?;
            let path = match dir.as_bytes() {
                b"" => TreePath::new(name.as_bytes()),
                above => TreePath::new([above, b"/", name.as_bytes()].concat()),
            };
            let kind = match () {
                () if kind.is_dir() => EntryKind::Dir,
                () if kind.is_socket() => EntryKind::Socket,
                () => EntryKind::Other,
            };
            let orders = orders_of(&path, kind);
            if let Some(orders) = orders {
                found.push(place(path.clone(), orders));
            }
            let in_git = is_git || named_git;
            if kind == EntryKind::Dir && is_looked_into(name.as_bytes(), orders, in_git) {
                rest.push_back((path, orders == Some(Orders::Git)));
            }
        }
    }
    Ok(found)
}

fn place(path: TreePath, orders: Orders) -> Place {
    Place {
        path,
        orders,
        protected: Vec::new(),
    }
}

/// A directory of somebody else's that the command can neither open nor make open. As root it has
/// the workspace owner's rights; otherwise ours, and then reading fails for both.
fn is_out_of_reach(dir: &Path, owner: u32) -> bool {
    let closed = |found: &Metadata| match rustix::process::geteuid().is_root() {
        true => found.mode() & 0o1 == 0,
        false => fs::read_dir(dir).is_err(),
    };
    fs::symlink_metadata(dir).is_ok_and(|found| found.uid() != owner && closed(&found))
}

/// Gives a file or directory a name that nothing takes orders from.
fn put_aside(from: &Path) -> io::Result<PathBuf> {
    for number in 1..1000 {
        let mut name = from.as_os_str().to_owned();
        name.push(match number {
            1 => ".held".to_owned(),
            number => format!(".held-{number}"),
        });
        let to = PathBuf::from(name);
        if rename_new(from, &to)? {
            return Ok(to);
        }
    }
    Err(io::Error::other(
        "every name it could be put aside under is taken",
    ))
}

fn at(root: &Path, path: &TreePath) -> PathBuf {
    match path.as_bytes() {
        b"" => root.to_owned(),
        bytes => root.join(OsStr::from_bytes(bytes)),
    }
}

fn not_looked_at(dir: &Path, error: &io::Error) -> Failure {
    Failure::usage(
        "guard_unavailable",
        "what gives orders to other programs could not be protected here",
    )
    .at(dir.display().to_string())
    .because(error)
    .so("nothing ran")
    .hint("choose a smaller --workspace, or do without protection: --no-guard")
}

fn not_checked(dir: &Watched, error: &io::Error) -> Failure {
    Failure::internal(
        "guard_incomplete",
        "the command ended, and what it left could not be looked through",
    )
    .at(dir.on_host.display().to_string())
    .because(error)
    .so("it may hold configuration that git, agents or editors take orders from")
    .hint("look for new `.git` and agent configuration before you use it")
}
