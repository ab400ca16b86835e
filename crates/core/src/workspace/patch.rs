//! Which paths a `patch.diff` touches, read from its headers alone, in any chunking.
//!
//! The harness writes patches with `--no-renames --full-index --binary`, so both names of a header
//! are equal and content lines always begin with ` `, `+`, `-`, `\` or base-85 text, none of which
//! can spell `diff --git `.

use std::collections::BTreeSet;

use crate::values::paths::TreePath;

pub(crate) const HEADER: &[u8] = b"diff --git ";
pub(crate) const DELETED: &[u8] = b"deleted file mode ";
pub(crate) const NEW: &[u8] = b"new file mode ";
pub(crate) const MAX_HEADER: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("a header line is not `diff --git a/X b/X`: {0}")]
    Header(String),
    #[error("{0} is changed twice")]
    Twice(TreePath),
    #[error("the patch does not begin with a header")]
    NoHeader,
    #[error("line {0} is not what its hunk announces")]
    Hunk(u64),
}

/// Feed it the patch in pieces, then take the paths.
#[derive(Default)]
pub struct PatchPaths {
    line: Vec<u8>,
    skipping: bool,
    /// The line just read was a header; the mode lines that belong to it follow at once.
    in_header: bool,
    paths: BTreeSet<TreePath>,
    /// The path just deleted. A file that became a link is one change in two parts, side by side:
    /// its deletion and its creation.
    deleted: Option<TreePath>,
    current: Option<TreePath>,
    /// A second part that has not yet said it is a creation.
    second: Option<TreePath>,
}

impl PatchPaths {
    pub fn feed(&mut self, mut chunk: &[u8]) -> Result<(), PatchError> {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (head, rest) = chunk.split_at(end);
            self.push(head);
            self.end_line()?;
            chunk = if self.seen_header() && !self.in_header {
                &rest[content_end(rest)..]
            } else {
                &rest[1..]
            };
        }
        self.push(chunk);
        Ok(())
    }

    pub fn finish(mut self) -> Result<BTreeSet<TreePath>, PatchError> {
        if !self.line.is_empty() || self.skipping {
            self.end_line()?;
        }
        match self.second {
            Some(path) => Err(PatchError::Twice(path)),
            None => Ok(self.paths),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        let room = MAX_HEADER - self.line.len().min(MAX_HEADER);
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // Content lines can be gigabytes long: keep only what may still be a header.
        let may_be = |want: &[u8]| {
            let n = self.line.len().min(want.len());
            self.line[..n] == want[..n]
        };
        self.skipping = ![HEADER, DELETED, NEW].into_iter().any(may_be);
    }

    fn seen_header(&self) -> bool {
        !self.paths.is_empty()
    }

    fn end_line(&mut self) -> Result<(), PatchError> {
        let line = std::mem::take(&mut self.line);
        let skipped = std::mem::take(&mut self.skipping);
        self.in_header = !skipped;
        if skipped || !line.starts_with(HEADER) {
            if line.starts_with(DELETED) {
                self.deleted = self.current.take();
            } else if line.starts_with(NEW) {
                self.second = None;
            }
            return if self.seen_header() {
                Ok(())
            } else {
                Err(PatchError::NoHeader)
            };
        }
        let path = header_path(&line)?;
        if let Some(path) = self.second.take() {
            return Err(PatchError::Twice(path));
        }
        let was_deleted = self.deleted.take().is_some_and(|deleted| deleted == path);
        if !self.paths.insert(path.clone()) {
            if !was_deleted {
                return Err(PatchError::Twice(path));
            }
            self.second = Some(path);
            return Ok(());
        }
        self.current = Some(path);
        Ok(())
    }
}

/// Where the next line that may be a header begins. `rest` begins with the newline before it, and
/// after a header and its mode lines the lines in between mean nothing.
fn content_end(rest: &[u8]) -> usize {
    let newline =
        memchr::memmem::find(rest, b"\ndiff --git ").or_else(|| memchr::memrchr(b'\n', rest));
    newline.map_or(rest.len(), |at| at + 1)
}

/// The path of a line that begins with `diff --git `.
pub(crate) fn header_path(line: &[u8]) -> Result<TreePath, PatchError> {
    let names = line.strip_prefix(HEADER).and_then(same_names);
    names.ok_or_else(|| {
        PatchError::Header(String::from_utf8_lossy(line).chars().take(200).collect())
    })
}

/// `a/X b/X` or `"a/X" "b/X"`: both halves name the same path, so the middle is known.
fn same_names(names: &[u8]) -> Option<TreePath> {
    let half = names.len().checked_sub(1)? / 2;
    let (left, right) = (names.get(..half)?, names.get(half + 1..)?);
    if names.get(half) != Some(&b' ') || left.len() != right.len() {
        return None;
    }
    let left = TreePath::parse(left).ok()?;
    let right = TreePath::parse(right).ok()?;
    let path = left.as_bytes().strip_prefix(b"a/")?;
    (right.as_bytes().strip_prefix(b"b/")? == path && !path.is_empty()).then(|| TreePath::new(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paths(patch: &[u8]) -> Result<Vec<String>, PatchError> {
        let mut reader = PatchPaths::default();
        reader.feed(patch)?;
        Ok(reader.finish()?.iter().map(ToString::to_string).collect())
    }

    const TWO: &[u8] = b"diff --git a/a b b/a b\nindex 1..2 100644\n--- a/a b\n+++ b/a b\n@@ -1 +1 @@\n-x\n+diff --git a/q b/q\ndiff --git \"a/\\377\" \"b/\\377\"\nnew file mode 100644\n";

    #[test]
    fn reads_plain_and_quoted_headers_and_ignores_content() {
        assert_eq!(paths(TWO).unwrap(), ["a b", "\"\\377\""]);
        assert_eq!(paths(b"").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn refusals() {
        assert_eq!(paths(b"hello\n"), Err(PatchError::NoHeader));
        assert!(matches!(
            paths(b"diff --git a/x b/y\n"),
            Err(PatchError::Header(_))
        ));
        assert!(matches!(
            paths(b"diff --git a/ b/\n"),
            Err(PatchError::Header(_))
        ));
        assert!(matches!(
            paths(b"diff --git a/x b/x\ndiff --git a/x b/x\n"),
            Err(PatchError::Twice(_))
        ));
    }

    #[test]
    fn a_change_of_type_is_one_path_in_two_parts() {
        let gone = "diff --git a/x b/x\ndeleted file mode 100644\n-was\n";
        let made = "diff --git a/x b/x\nnew file mode 120000\n+is\n";
        let other = "diff --git a/y b/y\nnew file mode 100644\n";
        assert_eq!(paths([gone, made].concat().as_bytes()).unwrap(), ["x"]);
        assert_eq!(
            paths([gone, made, other].concat().as_bytes()).unwrap(),
            ["x", "y"]
        );
        for bad in [
            [made, gone, ""],
            [gone, gone, ""],
            [gone, other, made],
            [made, made, ""],
            [gone, made, made],
        ] {
            assert!(
                matches!(paths(bad.concat().as_bytes()), Err(PatchError::Twice(_))),
                "{bad:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(cuts in proptest::collection::vec(1usize..20, 0..30)) {
            let mut reader = PatchPaths::default();
            let mut rest = TWO;
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                reader.feed(head).unwrap();
                rest = tail;
            }
            reader.feed(rest).unwrap();
            let got: Vec<String> = reader.finish().unwrap().iter().map(ToString::to_string).collect();
            prop_assert_eq!(got, paths(TWO).unwrap());
        }

        #[test]
        fn jumping_over_content_changes_nothing(lines in proptest::collection::vec(0usize..6, 0..12), cut in 0usize..200) {
            const LINES: [&str; 6] = ["diff --git a/x b/x", "diff --git a/y b/y", "diff --git a/z b/q", "+diff --git a/x b/x", "", "diff --gi"];
            let text = lines.iter().map(|line| LINES[*line]).collect::<Vec<_>>().join("\n");
            let mut by_line = PatchPaths::default();
            let slow = text.split_inclusive('\n').try_for_each(|line| by_line.feed(line.as_bytes())).and_then(|()| by_line.finish());
            let (head, tail) = text.as_bytes().split_at(cut.min(text.len()));
            let mut reader = PatchPaths::default();
            let fast = reader.feed(head).and_then(|()| reader.feed(tail)).and_then(|()| reader.finish());
            prop_assert_eq!(fast, slow);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = paths(&bytes);
        }
    }
}
