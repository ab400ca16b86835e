//! Which time each file and directory of a private copy gets, so that no tool takes what it made of
//! other bytes for new.
//!
//! A file with the bytes of the work tree keeps the time it has there, and so does a directory with
//! the same entries. Everything else is as young as the process that will look at it: what the
//! engine, a control or a commit that is not checked out put there, and every directory that lost
//! or gained a name. A deletion leaves nothing to be young, so it renews the files of its package:
//! a build script that names nothing is run again by the youngest of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::values::paths::TreePath;
use crate::workspace::tree::Tree;

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

/// Files that make a directory a package.
const PACKAGES: [&[u8]; 16] = [
    b"Cargo.toml",
    b"package.json",
    b"pyproject.toml",
    b"setup.py",
    b"setup.cfg",
    b"go.mod",
    b"pom.xml",
    b"build.gradle",
    b"build.gradle.kts",
    b"CMakeLists.txt",
    b"Makefile",
    b"makefile",
    b"GNUmakefile",
    b"meson.build",
    b"configure.ac",
    b"tsconfig.json",
];

/// For a copy that holds `copy` and was made of `start`; `beside` is what else was put into it, by
/// the places of environments.
pub fn stamps(work: &WorkTree, start: &Tree, copy: &Tree, beside: &BTreeSet<TreePath>) -> Stamps {
    let is_same =
        |path: &&TreePath| work.same.contains_key(*path) && start.get(*path) == copy.get(*path);
    let mut renewed: BTreeSet<TreePath> =
        copy.keys().filter(|path| !is_same(path)).cloned().collect();
    let gone = start.keys().filter(|path| !copy.contains_key(*path));
    let packages: BTreeSet<&[u8]> = gone
        .chain(&work.left_out)
        .map(|path| package_of(path.as_bytes(), start, copy))
        .collect();
    if !packages.is_empty() {
        let in_one = |path: &&TreePath| packages.contains(package_of(path.as_bytes(), start, copy));
        renewed.extend(copy.keys().filter(in_one).cloned());
    }
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
        let time = same.map(|known| known.time);
        (dir, time)
    });
    Stamps {
        dirs: dirs.collect(),
        renewed,
    }
}

/// The directory a path lies in, and its name there.
fn parent(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// The nearest directory above a path that is, or was, a package; the top if there is none.
fn package_of<'p>(path: &'p [u8], start: &Tree, copy: &Tree) -> &'p [u8] {
    let mut dir = parent(path).0;
    while !dir.is_empty() {
        let holds = |name: &&[u8]| {
            let file = TreePath::new([dir, b"/", name].concat());
            start.contains_key(&file) || copy.contains_key(&file)
        };
        if PACKAGES.iter().any(holds) {
            return dir;
        }
        dir = parent(dir).0;
    }
    dir
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::digest::Digest;
    use crate::workspace::tree::{Entry, FileKind};

    fn tree(files: &[(&str, &str)]) -> Tree {
        let entry = |text: &str| Entry {
            kind: FileKind::Regular,
            bytes: text.len() as u64,
            sha256: Digest::of(text.as_bytes()),
        };
        let file = |(path, text): &(&str, &str)| (TreePath::new(*path), entry(text));
        files.iter().map(file).collect()
    }

    const START: [(&str, &str); 6] = [
        ("Cargo.toml", "w"),
        ("one/Cargo.toml", "1"),
        ("one/src/lib.rs", "a"),
        ("one/src/gone.rs", "b"),
        ("two/Cargo.toml", "2"),
        ("two/src/lib.rs", "c"),
    ];

    /// A work tree that is the start; every time is told apart.
    fn work() -> WorkTree {
        let start = tree(&START);
        let mut known = WorkTree {
            same: start.keys().cloned().zip((1..).map(|n| (n, 0))).collect(),
            ..WorkTree::default()
        };
        for (dir, names) in [
            ("", vec!["Cargo.toml", "one", "two"]),
            ("one", vec!["Cargo.toml", "src"]),
            ("one/src", vec!["lib.rs", "gone.rs"]),
            ("two", vec!["Cargo.toml", "src"]),
            ("two/src", vec!["lib.rs"]),
        ] {
            let names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let time = (1000, i64::try_from(dir.len()).unwrap());
            let seen = Directory { time, names };
            known.dirs.insert(TreePath::new(dir), seen);
        }
        known
    }

    fn renewed(stamps: &Stamps) -> Vec<String> {
        stamps.renewed.iter().map(ToString::to_string).collect()
    }

    fn young_dirs(stamps: &Stamps) -> Vec<String> {
        let young = stamps.dirs.iter().filter(|(_, time)| time.is_none());
        young
            .map(|(dir, _)| String::from_utf8_lossy(dir.as_bytes()).into_owned())
            .collect()
    }

    #[test]
    fn what_is_as_in_the_work_tree_keeps_its_time() {
        let start = tree(&START);
        let found = stamps(&work(), &start, &start, &BTreeSet::new());
        assert!(found.renewed.is_empty(), "{found:?}");
        assert_eq!(young_dirs(&found), Vec::<String>::new());
        assert_eq!(found.dirs[&TreePath::new("one/src")], Some((1000, 7)));
    }

    #[test]
    fn a_change_of_equal_size_is_young_and_its_directory_is_not() {
        let start = tree(&START);
        let mut copy = start.clone();
        copy.extend(tree(&[("one/src/lib.rs", "A")]));
        let found = stamps(&work(), &start, &copy, &BTreeSet::new());
        assert_eq!(renewed(&found), ["one/src/lib.rs"]);
        assert_eq!(young_dirs(&found), Vec::<String>::new());
    }

    #[test]
    fn a_deletion_renews_its_package_and_no_other() {
        let start = tree(&START);
        let mut copy = start.clone();
        copy.remove(&TreePath::new("one/src/gone.rs"));
        let found = stamps(&work(), &start, &copy, &BTreeSet::new());
        assert_eq!(renewed(&found), ["one/Cargo.toml", "one/src/lib.rs"]);
        assert_eq!(young_dirs(&found), ["one/src"]);
    }

    #[test]
    fn a_new_file_is_young_with_its_directory() {
        let start = tree(&START);
        let mut copy = start.clone();
        copy.extend(tree(&[("two/src/new/x.rs", "x")]));
        let found = stamps(&work(), &start, &copy, &BTreeSet::new());
        assert_eq!(renewed(&found), ["two/src/new/x.rs"]);
        assert_eq!(young_dirs(&found), ["two/src", "two/src/new"]);
    }

    #[test]
    fn a_rename_is_a_deletion_and_a_new_file() {
        let start = tree(&START);
        let mut copy = start.clone();
        copy.remove(&TreePath::new("one/src/gone.rs"));
        copy.extend(tree(&[("two/src/gone.rs", "b")]));
        let found = stamps(&work(), &start, &copy, &BTreeSet::new());
        assert_eq!(
            renewed(&found),
            ["one/Cargo.toml", "one/src/lib.rs", "two/src/gone.rs"]
        );
    }

    #[test]
    fn what_the_work_tree_has_otherwise_is_young() {
        let start = tree(&START);
        let mut dirty = work();
        dirty.same.remove(&TreePath::new("two/src/lib.rs"));
        let found = stamps(&dirty, &start, &start, &BTreeSet::new());
        assert_eq!(renewed(&found), ["two/src/lib.rs"]);
        dirty.left_out.insert(TreePath::new("one/src/extra.rs"));
        let src = dirty.dirs.get_mut(&TreePath::new("one/src")).unwrap();
        src.names.insert(b"extra.rs".to_vec());
        let found = stamps(&dirty, &start, &start, &BTreeSet::new());
        assert_eq!(
            renewed(&found),
            [
                "one/Cargo.toml",
                "one/src/gone.rs",
                "one/src/lib.rs",
                "two/src/lib.rs"
            ]
        );
        assert_eq!(young_dirs(&found), ["one/src"]);
        let nothing = stamps(&WorkTree::default(), &start, &start, &BTreeSet::new());
        assert_eq!(
            nothing.renewed.len(),
            start.len(),
            "nothing known, nothing old"
        );
        assert!(nothing.dirs.values().all(Option::is_none));
    }

    #[test]
    fn an_environment_is_an_entry_of_its_directory() {
        let (start, mut with) = (tree(&START), work());
        let top = with.dirs.get_mut(&TreePath::new("")).unwrap();
        top.names.insert(b"target".to_vec());
        let target = BTreeSet::from([TreePath::new("target")]);
        assert_eq!(
            young_dirs(&stamps(&with, &start, &start, &target)),
            Vec::<String>::new()
        );
        assert_eq!(
            young_dirs(&stamps(&with, &start, &start, &BTreeSet::new())),
            [""]
        );
    }
}
