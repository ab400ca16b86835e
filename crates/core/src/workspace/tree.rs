//! A measured tree as data: what is there, its digest, and how two of them differ.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::values::digest::{Digest, Hasher};
use crate::values::paths::TreePath;
use crate::workspace::change::{Change, ChangeKind};

/// The only kinds of entry a tree can record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FileKind {
    Regular,
    Executable,
    Symlink,
}

impl FileKind {
    /// The mode git records.
    pub fn git_mode(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub kind: FileKind,
    pub bytes: u64,
    /// Of the content, or of a link's text.
    pub sha256: Digest,
}

pub type Tree = BTreeMap<TreePath, Entry>;

/// One digest for a whole tree: every path, mode and content, in path order.
pub fn tree_digest(tree: &Tree) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(b"cto-tree/1\n");
    let mut line = Vec::new();
    for (path, entry) in tree {
        line.clear();
        line.extend_from_slice(entry.kind.git_mode().as_bytes());
        line.push(b' ');
        line.extend_from_slice(&entry.sha256.hex());
        // Length first, so that no name can imitate the next field.
        line.extend_from_slice(format!(" {} ", path.as_bytes().len()).as_bytes());
        line.extend_from_slice(path.as_bytes());
        line.push(b'\n');
        hasher.update(&line);
    }
    hasher.finish()
}

/// What changed from `base` to `now`, in path order: one pass over both.
pub fn tree_changes(base: &Tree, now: &Tree) -> Vec<Change> {
    let (mut before, mut after) = (base.iter().peekable(), now.iter().peekable());
    let mut found = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let old = if order.is_le() { before.next() } else { None };
        let new = if order.is_ge() { after.next() } else { None };
        let Some((path, _)) = old.or(new) else {
            return found;
        };
        if let Some(kind) = change(old.map(|(_, entry)| entry), new.map(|(_, entry)| entry)) {
            found.push(Change {
                path: path.clone(),
                kind,
            });
        }
    }
}

fn change(before: Option<&Entry>, after: Option<&Entry>) -> Option<ChangeKind> {
    match (before, after) {
        (None, None) => None,
        (None, Some(_)) => Some(ChangeKind::Added),
        (Some(_), None) => Some(ChangeKind::Deleted),
        (Some(a), Some(b)) if a == b => None,
        (Some(a), Some(b)) if (a.kind == FileKind::Symlink) != (b.kind == FileKind::Symlink) => {
            Some(ChangeKind::TypeChanged)
        }
        (Some(a), Some(b)) if a.sha256 == b.sha256 => Some(ChangeKind::ModeChanged),
        (Some(_), Some(_)) => Some(ChangeKind::Modified),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn entry(kind: FileKind, text: &str) -> Entry {
        Entry {
            kind,
            bytes: text.len() as u64,
            sha256: Digest::of(text.as_bytes()),
        }
    }

    fn tree(entries: &[(&str, FileKind, &str)]) -> Tree {
        entries
            .iter()
            .map(|(p, k, t)| (TreePath::new(*p), entry(*k, t)))
            .collect()
    }

    #[test]
    fn every_kind_of_change() {
        use FileKind::*;
        let base = tree(&[
            ("same", Regular, "x"),
            ("gone", Regular, "x"),
            ("mode", Regular, "x"),
            ("text", Regular, "x"),
            ("type", Regular, "x"),
        ]);
        let now = tree(&[
            ("same", Regular, "x"),
            ("new", Regular, "x"),
            ("mode", Executable, "x"),
            ("text", Regular, "y"),
            ("type", Symlink, "x"),
        ]);
        let got: Vec<(String, ChangeKind)> = tree_changes(&base, &now)
            .into_iter()
            .map(|c| (c.path.to_string(), c.kind))
            .collect();
        assert_eq!(
            got,
            [
                ("gone".to_owned(), ChangeKind::Deleted),
                ("mode".to_owned(), ChangeKind::ModeChanged),
                ("new".to_owned(), ChangeKind::Added),
                ("text".to_owned(), ChangeKind::Modified),
                ("type".to_owned(), ChangeKind::TypeChanged),
            ]
        );
        assert!(tree_changes(&base, &base).is_empty());
    }

    #[test]
    fn digest_sees_paths_modes_contents_and_borders() {
        use FileKind::*;
        let all = [
            tree(&[("a", Regular, "x")]),
            tree(&[("b", Regular, "x")]),
            tree(&[("a", Executable, "x")]),
            tree(&[("a", Symlink, "x")]),
            tree(&[("a", Regular, "y")]),
            tree(&[]),
            tree(&[("a", Regular, "x"), ("b", Regular, "x")]),
        ];
        let digests: BTreeSet<Digest> = all.iter().map(tree_digest).collect();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn digest_is_that_of_the_lines_it_was_always_made_of() {
        use FileKind::*;
        let tree = tree(&[
            ("a b", Regular, "x"),
            ("bin/run", Executable, "y"),
            ("link", Symlink, ""),
        ]);
        let mut text = b"cto-tree/1\n".to_vec();
        for (path, entry) in &tree {
            let (mode, sha256) = (entry.kind.git_mode(), entry.sha256);
            text.extend(format!("{mode} {sha256} {} {path}\n", path.as_bytes().len()).bytes());
        }
        assert_eq!(tree_digest(&tree), Digest::of(&text));
        let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        assert_eq!(Digest::of(b"test").to_hex(), hex);
    }
}
