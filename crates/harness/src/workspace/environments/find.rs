//! Which environments lie in a work tree: names of the table beside files that are tracked. What
//! lies below something that git does not know is nobody's package.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{
    EnvironmentKind, SIGN_BESIDE, SIGNS_WITHIN, Signs, kind_of, may_be_environment,
};
use cto_core::workspace::tree::Tree;

use crate::workspace::git::is_dot_git;
use crate::workspace::on_disk::locate;

/// Something that the table knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Candidate {
    pub path: TreePath,
    pub kind: EnvironmentKind,
    pub is_link: bool,
}

/// All of them in path order.
pub fn candidates(top: &Path, tree: &Tree) -> Vec<Candidate> {
    let mut dirs: BTreeSet<&[u8]> = BTreeSet::from([&b""[..]]);
    for path in tree.keys() {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        dirs.extend(slashes.map(|(at, _)| &bytes[..at]));
    }
    let (mut found, mut behind_links) = (Vec::new(), BTreeSet::new());
    for dir in &dirs {
        let place = top.join(std::ffi::OsStr::from_bytes(dir));
        let above = dir
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(&b""[..], |at| &dir[..at]);
        let is_dir = fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_dir());
        // Git tracks nothing behind a link: whoever put one there changed the tree.
        if !is_dir || (!dir.is_empty() && behind_links.contains(above)) {
            behind_links.insert(*dir);
            continue;
        }
        found.extend(in_directory(&place, dir, tree, &dirs));
    }
    found.sort();
    found
}

fn in_directory(place: &Path, dir: &[u8], tree: &Tree, dirs: &BTreeSet<&[u8]>) -> Vec<Candidate> {
    let there = |name: &str| fs::symlink_metadata(place.join(name)).is_ok();
    let cargo_beside = there(SIGN_BESIDE);
    let candidate = |entry: fs::DirEntry| {
        let name = entry.file_name();
        if is_dot_git(&name) || !may_be_environment(name.as_bytes()) {
            return None;
        }
        let path = match dir.is_empty() {
            true => TreePath::new(name.as_bytes()),
            false => TreePath::new([dir, b"/", name.as_bytes()].concat()),
        };
        if tree.contains_key(&path) || dirs.contains(path.as_bytes()) {
            return None;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let [pyvenv, cache_tag] = SIGNS_WITHIN
            .map(|sign| fs::symlink_metadata(entry.path().join(sign)).is_ok_and(|m| m.is_file()));
        let signs = Signs {
            is_dir: fs::metadata(entry.path()).map_or(is_link, |meta| meta.is_dir()),
            pyvenv,
            cache_tag,
            cargo_beside,
        };
        // A repository of its own is a submodule, or somebody else's.
        if signs.is_dir && fs::symlink_metadata(entry.path().join(".git")).is_ok() {
            return None;
        }
        Some(Candidate {
            kind: kind_of(name.as_bytes(), signs)?,
            path,
            is_link,
        })
    };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.filter_map(candidate).collect()
}

/// The kind that the table has for a place that somebody named.
pub fn kind_at(place: &Path) -> Option<EnvironmentKind> {
    let sign = |sign: &str| fs::symlink_metadata(place.join(sign)).is_ok();
    let [pyvenv, cache_tag] = SIGNS_WITHIN.map(sign);
    let signs = Signs {
        is_dir: place.is_dir(),
        pyvenv,
        cache_tag,
        cargo_beside: place
            .parent()
            .is_some_and(|dir| dir.join(SIGN_BESIDE).is_file()),
    };
    kind_of(place.file_name()?.as_bytes(), signs)
}

/// Does a way from the top of a work tree to a path of it lead through a link?
pub fn is_behind_link(top: &Path, path: &TreePath) -> bool {
    let bytes = path.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| at).chain([bytes.len()]).any(|end| {
        let step = locate(top, &TreePath::new(&bytes[..end]));
        fs::symlink_metadata(step).is_ok_and(|meta| meta.is_symlink())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::on_disk;

    #[test]
    fn environments_are_found_beside_tracked_files_alone() {
        let house = tempfile::tempdir().unwrap();
        let top = house.path().join("repo");
        let put = |path: &str| {
            let place = top.join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "x").unwrap();
        };
        for tracked in [
            "Cargo.toml",
            "src/lib.rs",
            "web/package.json",
            "web/target/a",
        ] {
            put(tracked);
        }
        let tree = on_disk::walk(&top).unwrap().tree;
        for ignored in [
            ".venv/pyvenv.cfg",
            "py/pyvenv.cfg",
            "target/debug/x",
            "web/node_modules/a/package.json",
            "web/node_modules/a/node_modules/b/x",
            "loose/node_modules/x",
            "build/x",
            "dist/pyvenv.cfg",
            "src/_version.py",
            "src/__pycache__/x.pyc",
            "module/.git",
            "module/pyvenv.cfg",
        ] {
            put(ignored);
        }
        std::os::unix::fs::symlink("/usr", top.join("src/node_modules")).unwrap();
        std::os::unix::fs::symlink("/nowhere", top.join(".tox")).unwrap();
        let found: Vec<(String, EnvironmentKind, bool)> = candidates(&top, &tree)
            .into_iter()
            .map(|found| (found.path.to_string(), found.kind, found.is_link))
            .collect();
        use EnvironmentKind as K;
        let want = [
            (".tox", K::Tox, true),
            (".venv", K::PythonVenv, false),
            ("py", K::PythonVenv, false),
            ("src/_version.py", K::GeneratedFile, false),
            ("src/node_modules", K::NodeModules, true),
            ("target", K::CargoTarget, false),
            ("web/node_modules", K::NodeModules, false),
        ];
        assert_eq!(
            found,
            want.map(|(path, kind, link)| (path.to_owned(), kind, link))
        );
        assert!(is_behind_link(&top, &TreePath::new("src/node_modules/bin")));
        assert!(!is_behind_link(&top, &TreePath::new("web/node_modules")));
    }
}
