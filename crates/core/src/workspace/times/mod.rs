//! Which time each file and directory of a private copy gets, so that no tool takes what it made of
//! other bytes for new.
//!
//! A file with the bytes of the work tree keeps the time it has there, and so does a directory with
//! the same entries. Everything else is as young as the process that will look at it: what the
//! engine, a control or a commit that is not checked out put there, and every directory that lost
//! or gained a name. A name that came or went is in no list of what a tool read: a build script
//! names nothing, a new header lies before another. So it renews what could have looked for it. A
//! link that leads elsewhere gives old files a new name: it renews all.
//!
//! - this file: the times; `links.rs` where links lead
//! - `compiled.rs` what a compiled module may have been made of; `at_home.rs` what stays at home

pub mod at_home;
pub mod compiled;
pub mod links;

use std::collections::{BTreeMap, BTreeSet};

use crate::values::paths::TreePath;
use crate::workspace::environment::EnvironmentKind;
use crate::workspace::tree::{Entry, FileKind, Tree};

/// Seconds and nanoseconds.
pub type Time = (i64, i64);

/// A work tree, as far as times go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WorkTree {
    /// Files and links whose bytes are those of the tree that is copied.
    pub same: BTreeMap<TreePath, Time>,
    /// By path; the top's is empty.
    pub dirs: BTreeMap<TreePath, Directory>,
    /// What it holds and the copied tree does not, although git does not ignore it.
    pub left_out: BTreeSet<TreePath>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Directory {
    pub time: Time,
    pub names: BTreeSet<Vec<u8>>,
}

/// What is to be done in one copy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stamps {
    /// Files and links that get the time at which the process starts.
    pub renewed: BTreeSet<TreePath>,
    /// Directories that get a time of their own, and those that get that of the start.
    pub dirs: BTreeMap<TreePath, Option<Time>>,
}

/// How far it is felt that a name came or went: by who judges by times in what was carried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Reach {
    /// Nobody does.
    #[default]
    Nothing,
    /// Cargo alone, which looks at its packages.
    Packages,
    /// Anybody: a rule of make may look anywhere.
    Everything,
}

impl Reach {
    pub fn of(kinds: impl IntoIterator<Item = EnvironmentKind>) -> Self {
        let reach = |kind: EnvironmentKind| match kind {
            EnvironmentKind::CargoTarget => Self::Packages,
            kind if kind.is_judged_by_times() => Self::Everything,
            _ => Self::Nothing,
        };
        kinds.into_iter().map(reach).max().unwrap_or_default()
    }
}

/// In what a copy differs from the work tree that everything carried was made in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Differences<'t> {
    /// Files and links of the copy that have other bytes, or of which nothing is known.
    pub other: BTreeSet<&'t TreePath>,
    /// What is there now and was not, and what was and is not.
    pub names: BTreeSet<&'t TreePath>,
    /// What is a link now, or was one, and is not the same.
    pub links: BTreeSet<&'t TreePath>,
}

impl<'t> Differences<'t> {
    /// For a copy that holds `copy` and was made of `start`.
    pub fn of(work: &'t WorkTree, start: &'t Tree, copy: &'t Tree) -> Self {
        let is_link = |entry: Option<&Entry>| entry.is_some_and(|e| e.kind == FileKind::Symlink);
        let mut found = Self::default();
        for (path, entry) in copy {
            let before = start.get(path);
            if work.same.contains_key(path) && before == Some(entry) {
                continue;
            }
            found.other.insert(path);
            if before.is_none() || !work.has_name(path) {
                found.names.insert(path);
            }
            if is_link(before) || is_link(Some(entry)) {
                found.links.insert(path);
            }
        }
        for (path, before) in start.iter().filter(|(path, _)| !copy.contains_key(*path)) {
            found.names.insert(path);
            if is_link(Some(before)) {
                found.links.insert(path);
            }
        }
        found.names.extend(&work.left_out);
        found
    }

    /// Everything that is not as it was.
    pub fn paths(&self) -> BTreeSet<&'t TreePath> {
        self.other.union(&self.names).copied().collect()
    }
}

impl WorkTree {
    fn has_name(&self, path: &TreePath) -> bool {
        let (dir, name) = parent(path.as_bytes());
        let dir = self.dirs.get(&TreePath::new(dir));
        dir.is_some_and(|dir| dir.names.contains(name))
    }
}

/// For a copy that holds `copy` and was made of `start`; `beside` is what else was put into it, by
/// the places of environments.
pub fn stamps(
    work: &WorkTree,
    start: &Tree,
    copy: &Tree,
    beside: &BTreeSet<TreePath>,
    reach: Reach,
) -> Stamps {
    let found = Differences::of(work, start, copy);
    let around = Renewed::by(&found, start, reach);
    let is_renewed = |path: &&TreePath| found.other.contains(*path) || around.covers(path);
    let renewed = copy.keys().filter(is_renewed).cloned().collect();
    let mut names: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
    for path in copy.keys().chain(beside) {
        let mut rest = path.as_bytes();
        // Upward, until a directory is reached that has the name already.
        loop {
            let (dir, name) = parent(rest);
            if !names.entry(dir).or_default().insert(name) || dir.is_empty() {
                break;
            }
            rest = dir;
        }
    }
    let dirs = names.into_iter().map(|(dir, names)| {
        let dir = TreePath::new(dir);
        let same = work.dirs.get(&dir).filter(|known| {
            known.names.len() == names.len() && names.iter().all(|name| known.names.contains(*name))
        });
        let time = same.filter(|_| !around.covers_dir(&dir));
        let time = time.map(|known| known.time);
        (dir, time)
    });
    Stamps {
        dirs: dirs.collect(),
        renewed,
    }
}

/// What is renewed around the names that came or went.
enum Renewed<'t> {
    Nothing,
    Everything,
    Packages {
        /// Directories that were packages when the run began: what a change plants is none.
        all: BTreeSet<&'t [u8]>,
        /// The nearest package of each name, with all that lies below it.
        nearest: BTreeSet<&'t [u8]>,
        /// The packages above those, with their own files.
        above: BTreeSet<&'t [u8]>,
    },
}

impl<'t> Renewed<'t> {
    fn by(found: &Differences<'t>, start: &'t Tree, reach: Reach) -> Self {
        let names = !found.names.is_empty();
        match reach {
            Reach::Nothing => return Self::Nothing,
            _ if !found.links.is_empty() => return Self::Everything,
            _ if !names => return Self::Nothing,
            Reach::Everything => return Self::Everything,
            Reach::Packages => {}
        }
        let dirs = start.keys().map(|path| parent(path.as_bytes()));
        let all: BTreeSet<&[u8]> = dirs
            .filter(|(_, name)| *name == b"Cargo.toml")
            .map(|(dir, _)| dir)
            .collect();
        let (mut nearest, mut above) = (BTreeSet::new(), BTreeSet::new());
        for path in &found.names {
            let mut dir = package_of(path.as_bytes(), &all);
            nearest.insert(dir);
            while !dir.is_empty() {
                dir = package_of(dir, &all);
                above.insert(dir);
            }
        }
        Self::Packages {
            all,
            nearest,
            above,
        }
    }

    fn covers(&self, path: &TreePath) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Packages { all, above, .. } => {
                above.contains(package_of(path.as_bytes(), all))
                    || self.covers_dir(&TreePath::new(parent(path.as_bytes()).0))
            }
        }
    }

    fn covers_dir(&self, dir: &TreePath) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Packages { nearest, .. } => {
                let mut dir = dir.as_bytes();
                while !nearest.contains(dir) {
                    if dir.is_empty() {
                        return false;
                    }
                    dir = parent(dir).0;
                }
                true
            }
        }
    }
}

/// The directory a path lies in, and its name there.
fn parent(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The nearest package that a path lies in; the top if there is none.
fn package_of<'p>(path: &'p [u8], all: &BTreeSet<&[u8]>) -> &'p [u8] {
    let mut dir = parent(path).0;
    while !dir.is_empty() && !all.contains(dir) {
        dir = parent(dir).0;
    }
    dir
}

#[cfg(test)]
#[path = "times_tests.rs"]
mod tests;
