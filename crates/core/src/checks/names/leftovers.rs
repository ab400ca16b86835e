//! What tools leave behind in a tree: named, not judged.
//!
//! A leftover is no part of the change: it reaches no patch and no copy that is checked, so nothing in
//! it can decide anything. Only what was not there before can be one, and never what the contract
//! allows by its own name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_files::lower_name;
use crate::values::paths::{PathRule, TreePath};
use crate::workspace::change::{Change, ChangeKind};
use crate::workspace::tree::Tree;

/// Which tool left it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// A directory that only a tool's cache is called.
    Cache,
    /// What was covered by a run of tests.
    Coverage,
    /// A file as it was before a patch, or a part that did not apply.
    BeforePatch,
    /// The lock file of a package that keeps none.
    LockFile,
}

impl Leftover {
    pub fn words(self) -> &'static str {
        match self {
            Self::Cache => "a tool's cache",
            Self::Coverage => "a record of coverage",
            Self::BeforePatch => "left by a patch",
            Self::LockFile => "the lock file of a package that keeps none",
        }
    }
}

/// Directories no project has for anything else, at any depth.
const CACHES: &[&[u8]] = &[
    b"__pycache__",
    b".pytest_cache",
    b".mypy_cache",
    b".ruff_cache",
    b".hypothesis",
    b".nyc_output",
];

/// What was left here, if this change is no work but a leftover.
pub fn leftover(
    change: &Change,
    baseline: &Tree,
    result: &Tree,
    allowed: &[PathRule],
) -> Option<Leftover> {
    let path = &change.path;
    let by_name = |rule: &PathRule| rule.as_str().as_bytes() == path.as_bytes();
    if change.kind != ChangeKind::Added || allowed.iter().any(by_name) {
        return None;
    }
    // A directory that holds tracked files is the project's own, whatever it is called.
    let unknown_before = |dir: &[u8]| {
        let mut below = dir.to_vec();
        below.push(b'/');
        !baseline
            .range(TreePath::new(below.clone())..)
            .next()
            .is_some_and(|(path, _)| path.as_bytes().starts_with(&below))
    };
    if let Some(dir) = cache_above(path)
        && unknown_before(dir)
    {
        return Some(Leftover::Cache);
    }
    let name = lower_name(path);
    if name == ".coverage"
        || name
            .strip_prefix(".coverage.")
            .is_some_and(is_coverage_part)
    {
        return Some(Leftover::Coverage);
    }
    let there = |path: &[u8]| {
        let path = TreePath::new(path);
        baseline.contains_key(&path) || result.contains_key(&path)
    };
    let patched = [&b".orig"[..], b".rej"]
        .iter()
        .find_map(|end| path.as_bytes().strip_suffix(*end));
    if patched.is_some_and(there) {
        return Some(Leftover::BeforePatch);
    }
    let package = path.as_bytes().strip_suffix(b"Cargo.lock");
    let package = package.filter(|dir| dir.is_empty() || dir.ends_with(b"/"));
    let manifest = package.map(|dir| TreePath::new([dir, b"Cargo.toml"].concat()));
    manifest
        .is_some_and(|manifest| baseline.contains_key(&manifest))
        .then_some(Leftover::LockFile)
}

/// The cache this path lies in, outermost first.
fn cache_above(path: &TreePath) -> Option<&[u8]> {
    let bytes = path.as_bytes();
    let ends = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at);
    ends.filter_map(|end| bytes.get(..end)).find(|dir| {
        let name = dir.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        CACHES.contains(&name)
    })
}

/// `.coverage.HOST.pidN.XRANDOM`, as runs side by side name theirs. `.coverage.py` is a file of
/// somebody's.
fn is_coverage_part(rest: &str) -> bool {
    rest.split('.').any(|part| {
        let number = part.strip_prefix("pid").unwrap_or(part);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Names in the engine's git directory that are no unfinished work: a stash.
pub const IN_GIT_DIRECTORY: [&str; 1] = ["refs/stash"];

#[cfg(test)]
#[path = "leftovers_tests.rs"]
mod tests;
