//! The packages a program comes with, as its admission pins them: everything below one directory, by
//! name, mode and content. One digest stands for all of it; two lists say what differs.

use std::cmp::Ordering;

use crate::values::digest::{Digest, Hasher};
use crate::values::paths::TreePath;

/// The kind and version of the digest. Whoever changes what is hashed changes this.
const DOMAIN: &[u8] = b"cto-packages/1\n";
/// A larger tree is not pinned, and so not admitted.
pub const MOST_ENTRIES: u64 = 200_000;
pub const MOST_BYTES: u64 = 8 << 30;

/// What an entry is. A device, a pipe or a socket has no content to pin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Directory,
    File(Digest),
    /// By the text it leads to: it is not followed.
    Link(Digest),
}

/// One entry, relative to the top, which has the empty path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub path: TreePath,
    /// The bits that `chmod` sets; a link has none.
    pub mode: u32,
    pub kind: Kind,
}

/// One digest for all of it; the entries are in the order of their paths.
pub fn packages_digest(entries: &[Entry]) -> Digest {
    let mut hasher = Hasher::default();
    hasher.update(DOMAIN);
    for entry in entries {
        let (kind, mode, content) = match &entry.kind {
            Kind::Directory => ("d", entry.mode, "-".to_owned()),
            Kind::File(sha256) => ("f", entry.mode, sha256.to_hex()),
            Kind::Link(sha256) => ("l", 0, sha256.to_hex()),
        };
        let path = entry.path.as_bytes();
        // Length first, so that no name can imitate the next line.
        hasher.update(format!("{kind} {mode:04o} {content} {} ", path.len()).as_bytes());
        hasher.update(path);
        hasher.update(b"\n");
    }
    hasher.finish()
}

/// The first path at which two trees differ, and how; both are in the order of their paths.
pub fn first_difference(admitted: &[Entry], found: &[Entry]) -> Option<String> {
    let (mut before, mut now) = (admitted.iter().peekable(), found.iter().peekable());
    loop {
        let order = match (before.peek(), now.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.path.cmp(&b.path),
        };
        let old = if order.is_le() { before.next() } else { None };
        let new = if order.is_ge() { now.next() } else { None };
        match (old, new) {
            (Some(old), None) => return Some(format!("{} is gone", named(&old.path))),
            (None, Some(new)) => return Some(format!("{} was added", named(&new.path))),
            (Some(old), Some(new)) if old != new => {
                let path = named(&new.path);
                return Some(match (&old.kind, &new.kind) {
                    (a, b) if a == b => {
                        format!("{path} has mode {:04o}, was {:04o}", new.mode, old.mode)
                    }
                    (Kind::Link(_), Kind::Link(_)) => format!("{path} leads elsewhere"),
                    (Kind::File(_), Kind::File(_)) => format!("{path} was changed"),
                    _ => format!("{path} is of another kind"),
                });
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

fn named(path: &TreePath) -> String {
    match path.as_bytes().is_empty() {
        true => "its top directory".to_owned(),
        false => path.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, mode: u32, kind: Kind) -> Entry {
        Entry {
            path: TreePath::new(path),
            mode,
            kind,
        }
    }

    fn tree() -> Vec<Entry> {
        vec![
            entry("", 0o755, Kind::Directory),
            entry("a", 0o755, Kind::Directory),
            entry("a/x.js", 0o644, Kind::File(Digest::of(b"x"))),
            entry("link", 0, Kind::Link(Digest::of(b"a/x.js"))),
        ]
    }

    #[test]
    fn the_digest_is_what_a_stranger_computes() {
        let text = format!(
            "cto-packages/1\nd 0755 - 0 \nd 0755 - 1 a\nf 0644 {} 6 a/x.js\nl 0000 {} 4 link\n",
            Digest::of(b"x"),
            Digest::of(b"a/x.js")
        );
        assert_eq!(packages_digest(&tree()), Digest::of(text.as_bytes()));
    }

    #[test]
    fn whatever_differs_changes_the_digest_and_is_named() {
        type Change = fn(&mut Vec<Entry>);
        let changes: [(Change, &str); 8] = [
            (
                |t| t[2].kind = Kind::File(Digest::of(b"y")),
                "a/x.js was changed",
            ),
            (|t| t[2].mode = 0o755, "a/x.js has mode 0755, was 0644"),
            (
                |t| t[2].kind = Kind::Link(Digest::of(b"x")),
                "a/x.js is of another kind",
            ),
            (
                |t| t[3].kind = Kind::Link(Digest::of(b"b")),
                "link leads elsewhere",
            ),
            (|t| drop(t.remove(2)), "a/x.js is gone"),
            (|t| drop(t.pop()), "link is gone"),
            (
                |t| t.insert(2, entry("a/new\n", 0o644, Kind::File(Digest::of(b"")))),
                r#""a/new\012" was added"#,
            ),
            (
                |t| t[0].mode = 0o777,
                "its top directory has mode 0777, was 0755",
            ),
        ];
        assert_eq!(first_difference(&tree(), &tree()), None);
        for (change, words) in changes {
            let mut other = tree();
            change(&mut other);
            assert_ne!(packages_digest(&tree()), packages_digest(&other), "{words}");
            assert_eq!(first_difference(&tree(), &other).as_deref(), Some(words));
        }
    }

    #[test]
    fn no_name_imitates_another_entry() {
        let file = |path: &str| entry(path, 0o644, Kind::File(Digest::of(b"x")));
        let two = [file("a"), file("b")];
        let line = format!("a\nf 0644 {} 1 b", Digest::of(b"x"));
        assert_ne!(packages_digest(&two), packages_digest(&[file(&line)]));
    }
}
