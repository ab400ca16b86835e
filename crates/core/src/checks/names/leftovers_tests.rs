//! Each leftover, and the work that looks like one.

use super::*;
use crate::values::digest::Digest;
use crate::workspace::tree::{Entry, FileKind};

fn tree(paths: &[&str]) -> Tree {
    let entry = Entry {
        kind: FileKind::Regular,
        bytes: 0,
        sha256: Digest::of(b""),
    };
    paths
        .iter()
        .map(|path| (TreePath::new(*path), entry))
        .collect()
}

fn found(kind: ChangeKind, path: &str, baseline: &[&str], allowed: &[&str]) -> Option<Leftover> {
    let mut result = baseline.to_vec();
    result.push(path);
    let change = Change {
        path: TreePath::new(path),
        kind,
    };
    let allowed: Vec<PathRule> = allowed.iter().map(|rule| rule.parse().unwrap()).collect();
    leftover(&change, &tree(baseline), &tree(&result), &allowed)
}

#[test]
fn leftovers_of_tools_are_known() {
    use Leftover::{BeforePatch, Cache, Coverage, LockFile};
    let baseline = [
        "app.py",
        "sub/app.c",
        "Cargo.toml",
        "tracked/__pycache__/keep",
    ];
    for (path, want) in [
        (".pytest_cache/v/cache/nodeids", Some(Cache)),
        ("sub/__pycache__/app.cpython-311.pyc", Some(Cache)),
        ("a/b/.mypy_cache/3.11/x.json", Some(Cache)),
        (".ruff_cache/0.1/x", Some(Cache)),
        (".coverage", Some(Coverage)),
        ("sub/.coverage", Some(Coverage)),
        (".coverage.host.pid123.Xabc", Some(Coverage)),
        (".coverage.host.123.456", Some(Coverage)),
        ("app.py.orig", Some(BeforePatch)),
        ("sub/app.c.rej", Some(BeforePatch)),
        ("Cargo.lock", Some(LockFile)),
        // Work, whatever it looks like.
        ("tracked/__pycache__/new.pyc", None),
        (".pytest_cache", None),
        ("__pycache__", None),
        ("my__pycache__/x", None),
        (".coverage.py", None),
        (".coveragerc", None),
        ("other.py.orig", None),
        (".orig", None),
        ("sub/Cargo.lock", None),
        ("notCargo.lock", None),
        ("new.py", None),
        ("", None),
    ] {
        assert_eq!(
            found(ChangeKind::Added, path, &baseline, &["*"]),
            want,
            "{path}"
        );
    }
}

#[test]
fn only_what_is_new_and_not_asked_for_is_left_over() {
    let baseline = ["app.py", "Cargo.toml"];
    for path in [
        ".coverage",
        "app.py.orig",
        "Cargo.lock",
        "__pycache__/a.pyc",
    ] {
        assert!(found(ChangeKind::Added, path, &baseline, &["*", "*/"]).is_some());
        assert_eq!(
            found(ChangeKind::Added, path, &baseline, &[path]),
            None,
            "{path}"
        );
        for kind in [
            ChangeKind::Modified,
            ChangeKind::Deleted,
            ChangeKind::ModeChanged,
            ChangeKind::TypeChanged,
        ] {
            assert_eq!(found(kind, path, &baseline, &[]), None, "{path}");
        }
    }
}

#[test]
fn a_new_package_brings_its_own_lock_file() {
    assert_eq!(
        found(ChangeKind::Added, "new/Cargo.lock", &["Cargo.toml"], &[]),
        None
    );
    assert_eq!(
        found(ChangeKind::Added, "a/Cargo.lock", &["a/Cargo.toml"], &[]),
        Some(Leftover::LockFile)
    );
}

#[test]
fn each_kind_has_its_words() {
    for kind in [
        Leftover::Cache,
        Leftover::Coverage,
        Leftover::BeforePatch,
        Leftover::LockFile,
    ] {
        assert!(!kind.words().is_empty());
    }
}
