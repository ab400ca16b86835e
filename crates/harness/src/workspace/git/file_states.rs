//! The state of every file of a work tree at one look, to count which are not what they were at
//! another. For words alone: whether a repository changed says its fingerprint.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::Seen;

/// By a short hash of each path, so that a large repository costs little.
#[derive(Clone, Debug, Default)]
pub struct FileStates(BTreeMap<u64, u64>);

impl FileStates {
    /// A file that git knows; one that is not there has no state.
    pub fn take_tracked(&mut self, path: &[u8], seen: Option<&Seen>) {
        let state = seen.map_or(0, |seen| {
            short((
                seen.mode,
                seen.size,
                seen.inode,
                seen.modified,
                seen.changed,
            ))
        });
        self.0.insert(short(path), state);
    }

    /// One that git does not know yet.
    pub fn take_untracked(&mut self, path: &TreePath, state: &[u8]) {
        self.0
            .entry(short(path.as_bytes()))
            .or_insert_with(|| short(state));
    }

    /// How many files came, went or are others.
    pub fn differences(&self, other: &Self) -> u64 {
        let gone = self.0.keys().filter(|path| !other.0.contains_key(*path));
        let others = other
            .0
            .iter()
            .filter(|(path, state)| self.0.get(*path) != Some(*state));
        (gone.count() + others.count()) as u64
    }
}

fn short(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
