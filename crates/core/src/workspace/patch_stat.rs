//! What a `patch.diff` changes, file by file, in lines: the numbers behind `file | 12 +++---`.
//!
//! Read in any chunking, with bounded memory. Lines are counted where a hunk announces them, so a
//! content line that looks like a header is content.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::values::paths::TreePath;
use crate::workspace::change::ChangeKind;
use crate::workspace::patch::{self, PatchError};

/// One file of a patch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FileStat {
    pub path: TreePath,
    pub change: ChangeKind,
    pub added: u64,
    pub removed: u64,
    /// Binary content has no lines to count.
    pub binary: bool,
}

/// Every file of a patch, by path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PatchStat {
    pub files: Vec<FileStat>,
    pub added: u64,
    pub removed: u64,
}

impl PatchStat {
    /// The stat of a patch that is in memory.
    pub fn of(patch: &[u8]) -> Result<Self, PatchError> {
        let mut reader = StatReader::default();
        reader.feed(patch);
        reader.finish()
    }

    /// ` 2 files changed, 3 insertions(+), 1 deletion(-)`, the way git says it.
    pub fn summary(&self) -> String {
        let many =
            |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let mut text = format!("{} changed", many(self.files.len() as u64, "file"));
        if self.added > 0 {
            text.push_str(&format!(", {}(+)", many(self.added, "insertion")));
        }
        if self.removed > 0 {
            text.push_str(&format!(", {}(-)", many(self.removed, "deletion")));
        }
        text
    }
}

/// Feed it the patch in pieces, then take the numbers.
#[derive(Default)]
pub struct StatReader {
    line: Vec<u8>,
    /// Something of this line was seen, even if none of it is kept.
    begun: bool,
    number: u64,
    /// Old and new lines the open hunk still announces.
    hunk: Option<(u64, u64)>,
    files: BTreeMap<TreePath, FileStat>,
    current: Option<FileStat>,
    /// The first thing that was wrong; nothing behind it is looked at.
    wrong: Option<PatchError>,
}

impl StatReader {
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

    pub fn finish(mut self) -> Result<PatchStat, PatchError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.begun {
            self.end_line()?;
        }
        if self.hunk.is_some() {
            return Err(PatchError::Hunk(self.number + 1));
        }
        self.close_file()?;
        let files: Vec<FileStat> = self.files.into_values().collect();
        let sum =
            |count: fn(&FileStat) -> u64| files.iter().map(count).fold(0, u64::saturating_add);
        Ok(PatchStat {
            added: sum(|file| file.added),
            removed: sum(|file| file.removed),
            files,
        })
    }

    fn push(&mut self, bytes: &[u8]) {
        // Of a content line only the first byte counts; it can be gigabytes long.
        let most = if self.hunk.is_some() {
            1
        } else {
            patch::MAX_HEADER
        };
        let room = most.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.begun |= !bytes.is_empty();
    }

    fn end_line(&mut self) -> Result<(), PatchError> {
        let line = std::mem::take(&mut self.line);
        self.begun = false;
        self.number += 1;
        if let Some(left) = self.hunk.take() {
            return self.content(line.first().copied(), left);
        }
        if line.starts_with(patch::HEADER) {
            self.close_file()?;
            let path = patch::header_path(&line)?;
            self.current = Some(FileStat {
                path,
                change: ChangeKind::Modified,
                added: 0,
                removed: 0,
                binary: false,
            });
            return Ok(());
        }
        let Some(file) = &mut self.current else {
            return Err(PatchError::NoHeader);
        };
        if line.starts_with(b"@@ ") {
            let announced = hunk(&line).ok_or(PatchError::Hunk(self.number))?;
            self.hunk = Some(announced).filter(|lines| *lines != (0, 0));
            mode_and_content(file);
        } else if line.starts_with(patch::NEW) {
            file.change = ChangeKind::Added;
        } else if line.starts_with(patch::DELETED) {
            file.change = ChangeKind::Deleted;
        } else if line.starts_with(b"old mode ") {
            file.change = ChangeKind::ModeChanged;
        } else if line == b"GIT binary patch" || line.starts_with(b"Binary files ") {
            file.binary = true;
            mode_and_content(file);
        }
        Ok(())
    }

    fn content(&mut self, first: Option<u8>, (old, new): (u64, u64)) -> Result<(), PatchError> {
        let wrong = || PatchError::Hunk(self.number);
        let Some(file) = &mut self.current else {
            return Err(wrong());
        };
        let (old, new) = match first {
            // An empty line is a context line that lost its space on the way.
            Some(b' ') | None => (old.checked_sub(1), new.checked_sub(1)),
            Some(b'-') => {
                file.removed += 1;
                (old.checked_sub(1), Some(new))
            }
            Some(b'+') => {
                file.added += 1;
                (Some(old), new.checked_sub(1))
            }
            // `\ No newline at end of file`
            Some(b'\\') => (Some(old), Some(new)),
            Some(_) => return Err(wrong()),
        };
        let left = (old.ok_or_else(wrong)?, new.ok_or_else(wrong)?);
        self.hunk = Some(left).filter(|lines| *lines != (0, 0));
        Ok(())
    }

    /// A file that became a link is one change in two parts, its deletion and its creation.
    fn close_file(&mut self) -> Result<(), PatchError> {
        let Some(mut file) = self.current.take() else {
            return Ok(());
        };
        if let Some(before) = self.files.remove(&file.path) {
            if (before.change, file.change) != (ChangeKind::Deleted, ChangeKind::Added) {
                return Err(PatchError::Twice(file.path));
            }
            file.change = ChangeKind::TypeChanged;
            file.added = file.added.saturating_add(before.added);
            file.removed = file.removed.saturating_add(before.removed);
            file.binary |= before.binary;
        }
        self.files.insert(file.path.clone(), file);
        Ok(())
    }
}

/// A change of mode alone has its own name; with content it is a change of content.
fn mode_and_content(file: &mut FileStat) {
    if file.change == ChangeKind::ModeChanged {
        file.change = ChangeKind::Modified;
    }
}

/// `@@ -1,2 +3,4 @@ …`: how many old and new lines follow.
fn hunk(line: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(line.strip_prefix(b"@@ -")?.get(..64.min(line.len() - 4))?);
    // A function name behind the second `@@` may hold anything, and may be cut inside a character.
    let text = text
        .or_else(|error| std::str::from_utf8(&line[4..4 + error.valid_up_to()]))
        .ok()?;
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    Some((count(old)?, count(new)?))
}

/// `START,COUNT`, or `START` for one line.
fn count(range: &str) -> Option<u64> {
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    start.parse::<u64>().ok()?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATCH: &str = "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@ fn x() \u{e9}\n one\n--- two\n+++ two\n three\n@@ -9 +9,2 @@\n-x\n\\ No newline at end of file\n+x\n+y\n\\ No newline at end of file\ndiff --git a/b.bin b/b.bin\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 3\nKcmZQzU\n\nliteral 0\nHcmV?d00001\n\ndiff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\ndiff --git a/z b/z\ndeleted file mode 100644\n--- a/z\n+++ /dev/null\n@@ -1 +0,0 @@\n-was\ndiff --git a/z b/z\nnew file mode 120000\n--- /dev/null\n+++ b/z\n@@ -0,0 +1 @@\n+is\n";

    fn short(stat: &PatchStat) -> Vec<(String, ChangeKind, u64, u64, bool)> {
        stat.files
            .iter()
            .map(|file| {
                (
                    file.path.to_string(),
                    file.change,
                    file.added,
                    file.removed,
                    file.binary,
                )
            })
            .collect()
    }

    #[test]
    fn counts_what_hunks_announce() {
        let stat = PatchStat::of(PATCH.as_bytes()).unwrap();
        assert_eq!(
            short(&stat),
            [
                ("a.txt".into(), ChangeKind::Modified, 3, 2, false),
                ("b.bin".into(), ChangeKind::Added, 0, 0, true),
                ("run.sh".into(), ChangeKind::ModeChanged, 0, 0, false),
                ("z".into(), ChangeKind::TypeChanged, 1, 1, false),
            ]
        );
        assert_eq!((stat.added, stat.removed), (4, 3));
        assert_eq!(
            stat.summary(),
            "4 files changed, 4 insertions(+), 3 deletions(-)"
        );
        assert_eq!(PatchStat::of(b"").unwrap().summary(), "0 files changed");
    }

    #[test]
    fn a_mode_with_content_is_a_change_of_content() {
        let patch = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(
            short(&PatchStat::of(patch.as_bytes()).unwrap()),
            [("x".into(), ChangeKind::Modified, 1, 1, false)]
        );
        assert_eq!(
            PatchStat::of(patch.as_bytes()).unwrap().summary(),
            "1 file changed, 1 insertion(+), 1 deletion(-)"
        );
    }

    #[test]
    fn refusals() {
        let head = "diff --git a/x b/x\n";
        for (body, want) in [
            ("@@ -1 +1 @@\n-a\n", PatchError::Hunk(4)),
            ("@@ -1 +1 @@\n-a\n-b\n", PatchError::Hunk(4)),
            ("@@ -1 +1 @@\n?\n", PatchError::Hunk(3)),
            ("@@ -1 +1\n", PatchError::Hunk(2)),
            ("@@ -x +1 @@\n", PatchError::Hunk(2)),
            ("@@ -1,99999999999999999999 +1 @@\n", PatchError::Hunk(2)),
            (
                "diff --git a/x b/x\n",
                PatchError::Twice(TreePath::new("x")),
            ),
        ] {
            assert_eq!(
                PatchStat::of(format!("{head}{body}").as_bytes()),
                Err(want),
                "{body}"
            );
        }
        assert_eq!(PatchStat::of(b"hello\n"), Err(PatchError::NoHeader));
        assert!(matches!(
            PatchStat::of(b"diff --git a/x b/y\n"),
            Err(PatchError::Header(_))
        ));
    }

    /// A patch with a known answer, from the signs of its lines.
    fn patch_of(files: &[Vec<u8>]) -> (String, Vec<(u64, u64)>) {
        let mut text = String::new();
        let mut counts = Vec::new();
        for (number, signs) in files.iter().enumerate() {
            text.push_str(&format!(
                "diff --git a/{number:04} b/{number:04}\n--- a/{number:04}\n+++ b/{number:04}\n"
            ));
            let count =
                |wanted: &[u8]| signs.iter().filter(|sign| wanted.contains(sign)).count() as u64;
            if !signs.is_empty() {
                text.push_str(&format!("@@ -1,{} +1,{} @@\n", count(b" -"), count(b" +")));
            }
            for sign in signs {
                // What follows the sign looks like every kind of header.
                text.push_str(&format!(
                    "{}diff --git a/x b/x @@ -1 +1 @@\n",
                    char::from(*sign)
                ));
            }
            counts.push((count(b"+"), count(b"-")));
        }
        (text, counts)
    }

    proptest! {
        #[test]
        fn any_patch_is_counted_right_in_any_chunking(
            files in proptest::collection::vec(proptest::collection::vec(proptest::sample::select(b" +-".to_vec()), 0..12), 0..6),
            cut in 1usize..40,
        ) {
            let (text, counts) = patch_of(&files);
            let mut reader = StatReader::default();
            for chunk in text.as_bytes().chunks(cut) {
                reader.feed(chunk);
            }
            let stat = reader.finish().unwrap();
            let got: Vec<(u64, u64)> = stat.files.iter().map(|file| (file.added, file.removed)).collect();
            prop_assert_eq!(got, counts);
        }

        #[test]
        fn chunking_never_matters(bytes in proptest::collection::vec(proptest::sample::select(b"@ +-,1\n\\d".to_vec()), 0..120), cut in 1usize..9) {
            let mut patch = b"diff --git a/x b/x\n".to_vec();
            patch.extend(&bytes);
            let mut reader = StatReader::default();
            patch.chunks(cut).for_each(|chunk| reader.feed(chunk));
            prop_assert_eq!(reader.finish(), PatchStat::of(&patch));
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = PatchStat::of(&bytes);
        }

        #[test]
        fn one_changed_byte_never_panics(at in 0usize..PATCH.len(), byte in any::<u8>()) {
            let mut bytes = PATCH.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = PatchStat::of(&bytes);
        }
    }
}
