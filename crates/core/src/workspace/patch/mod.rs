//! The one reader of a `patch.diff`: which files it changes, how, and by how many lines.
//!
//! Read in any chunking, with bounded memory. Lines are counted where a hunk announces them, so a
//! content line that looks like a header is content. The harness writes patches with
//! `--no-renames --full-index --binary`, so both names of a header are equal.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::values::paths::TreePath;
use crate::workspace::change::ChangeKind;

const FILE_HEADER: &[u8] = b"diff --git ";
const MAX_HEADER: usize = 64 * 1024;

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

/// One file of a patch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PatchFile {
    pub path: TreePath,
    pub change: ChangeKind,
    pub added: u64,
    pub removed: u64,
    /// Binary content has no lines to count.
    pub binary: bool,
}

/// What a line of a patch is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PatchLine {
    /// `diff --git …`: a file begins.
    File(TreePath),
    /// `new file mode …`
    NewFile,
    /// `deleted file mode …`
    DeletedFile,
    /// `old mode …`
    OldMode,
    /// `@@ … @@`
    Hunk,
    /// Content of a hunk.
    Context,
    Added,
    Removed,
    /// `\ No newline at end of file`
    NoNewline,
    /// `GIT binary patch` or `Binary files …`: binary content begins.
    Binary,
    /// Anything else outside a hunk: names, digests, lines of binary content.
    Other,
}

/// Says of each line what it is. It remembers how much of a hunk is still to come.
#[derive(Default)]
pub struct PatchLines {
    number: u64,
    in_file: bool,
    /// Old and new lines the open hunk still announces.
    hunk: Option<(u64, u64)>,
}

impl PatchLines {
    /// `line` may be cut: one byte of content suffices, and [`MAX_HEADER`] bytes of a header. After
    /// an error the open hunk is given up.
    pub fn classify(&mut self, line: &[u8]) -> Result<PatchLine, PatchError> {
        self.number += 1;
        if let Some(left) = self.hunk.take() {
            return self.content(line.first().copied(), left);
        }
        if line.starts_with(FILE_HEADER) {
            self.in_file = true;
            return header_path(line).map(PatchLine::File);
        }
        if !self.in_file {
            return Err(PatchError::NoHeader);
        }
        if line.starts_with(b"@@ ") {
            let announced = announced_lines(line).ok_or(PatchError::Hunk(self.number))?;
            self.hunk = Some(announced).filter(|lines| *lines != (0, 0));
            return Ok(PatchLine::Hunk);
        }
        Ok(match line {
            _ if line.starts_with(b"new file mode ") => PatchLine::NewFile,
            _ if line.starts_with(b"deleted file mode ") => PatchLine::DeletedFile,
            _ if line.starts_with(b"old mode ") => PatchLine::OldMode,
            // It follows the last line of a hunk, which is over by then.
            _ if line.starts_with(b"\\ ") => PatchLine::NoNewline,
            _ if line == b"GIT binary patch" || line.starts_with(b"Binary files ") => {
                PatchLine::Binary
            }
            _ => PatchLine::Other,
        })
    }

    fn content(&mut self, first: Option<u8>, left: (u64, u64)) -> Result<PatchLine, PatchError> {
        let wrong = PatchError::Hunk(self.number);
        let (line, old, new) = match first {
            // An empty line is a context line that lost its space on the way.
            Some(b' ') | None => (PatchLine::Context, 1, 1),
            Some(b'-') => (PatchLine::Removed, 1, 0),
            Some(b'+') => (PatchLine::Added, 0, 1),
            Some(b'\\') => (PatchLine::NoNewline, 0, 0),
            Some(_) => return Err(wrong),
        };
        match (left.0.checked_sub(old), left.1.checked_sub(new)) {
            (Some(old), Some(new)) => {
                self.hunk = Some((old, new)).filter(|lines| *lines != (0, 0));
                Ok(line)
            }
            _ => Err(wrong),
        }
    }

    /// Bytes of the next line that [`Self::classify`] looks at.
    fn needed_bytes(&self) -> usize {
        // Of a content line only the first byte counts; it can be gigabytes long.
        if self.hunk.is_some() { 1 } else { MAX_HEADER }
    }

    fn finish(&self) -> Result<(), PatchError> {
        match self.hunk {
            Some(_) => Err(PatchError::Hunk(self.number + 1)),
            None => Ok(()),
        }
    }
}

/// Feed it the patch in pieces, then take its files.
#[derive(Default)]
pub struct PatchReader {
    lines: PatchLines,
    line: Vec<u8>,
    /// Something of this line was seen, even if none of it is kept.
    begun: bool,
    files: BTreeMap<TreePath, PatchFile>,
    current: Option<PatchFile>,
    /// The path deleted last. A file that became a link is one change in two parts, side by side:
    /// its deletion and its creation.
    deleted: Option<TreePath>,
    /// The first thing that was wrong; nothing behind it is looked at.
    wrong: Option<PatchError>,
}

impl PatchReader {
    pub fn feed(&mut self, mut chunk: &[u8]) {
        while self.wrong.is_none()
            && let Some(end) = memchr::memchr(b'\n', chunk)
        {
            self.push(&chunk[..end]);
            self.wrong = self.end_line().err();
            chunk = &chunk[end + 1..];
        }
        self.push(chunk);
    }

    /// Every file of the patch, by path.
    pub fn finish(mut self) -> Result<Vec<PatchFile>, PatchError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.begun {
            self.end_line()?;
        }
        self.lines.finish()?;
        self.close_file()?;
        Ok(self.files.into_values().collect())
    }

    /// The paths of its files alone.
    pub fn finish_paths(self) -> Result<BTreeSet<TreePath>, PatchError> {
        let files = self.finish()?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.lines.needed_bytes().saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.begun |= !bytes.is_empty();
    }

    fn end_line(&mut self) -> Result<(), PatchError> {
        self.begun = false;
        let kind = self.lines.classify(&self.line);
        self.line.clear();
        let kind = match kind? {
            PatchLine::File(path) => {
                self.close_file()?;
                self.current = Some(PatchFile {
                    path,
                    change: ChangeKind::Modified,
                    added: 0,
                    removed: 0,
                    binary: false,
                });
                return Ok(());
            }
            kind => kind,
        };
        if let Some(file) = &mut self.current {
            file.take_line(&kind);
        }
        Ok(())
    }

    fn close_file(&mut self) -> Result<(), PatchError> {
        let Some(mut file) = self.current.take() else {
            return Ok(());
        };
        let deleted = self.deleted.take();
        if let Some(before) = self.files.remove(&file.path) {
            if deleted.as_ref() != Some(&file.path) || file.change != ChangeKind::Added {
                return Err(PatchError::Twice(file.path));
            }
            file.change = ChangeKind::TypeChanged;
            file.added = file.added.saturating_add(before.added);
            file.removed = file.removed.saturating_add(before.removed);
            file.binary |= before.binary;
        }
        self.deleted = (file.change == ChangeKind::Deleted).then(|| file.path.clone());
        self.files.insert(file.path.clone(), file);
        Ok(())
    }
}

impl PatchFile {
    fn take_line(&mut self, line: &PatchLine) {
        match line {
            PatchLine::NewFile => self.change = ChangeKind::Added,
            PatchLine::DeletedFile => self.change = ChangeKind::Deleted,
            PatchLine::OldMode => self.change = ChangeKind::ModeChanged,
            PatchLine::Added => self.added += 1,
            PatchLine::Removed => self.removed += 1,
            PatchLine::Binary => self.binary = true,
            _ => {}
        }
        // A change of mode alone has its own name; with content it is a change of content.
        let is_content = matches!(line, PatchLine::Hunk | PatchLine::Binary);
        if is_content && self.change == ChangeKind::ModeChanged {
            self.change = ChangeKind::Modified;
        }
    }
}

/// The path of a line that begins with `diff --git `.
fn header_path(line: &[u8]) -> Result<TreePath, PatchError> {
    let names = line.strip_prefix(FILE_HEADER).and_then(same_names);
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

/// `@@ -1,2 +3,4 @@ …`: how many old and new lines follow.
fn announced_lines(line: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?.get(..64.min(line.len() - 4))?);
    // A function name behind the second `@@` may hold anything, and may be cut inside a character.
    let text = text
        .or_else(|error| std::str::from_utf8(&line[4..4 + error.valid_up_to()]))
        .ok()?;
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    Some((line_count(old)?, line_count(new)?))
}

/// `START,COUNT`, or `START` for one line.
fn line_count(range: &str) -> Option<u64> {
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    start.parse::<u64>().ok()?;
    count.parse().ok()
}

/// Does a file begin like a patch: of git, of diff, or mailed?
pub fn looks_like_patch(bytes: &[u8]) -> bool {
    let starts = [&b"diff --git "[..], b"--- ", b"From "];
    starts.iter().any(|start| bytes.starts_with(start))
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
