//! The numbers of a patch, as `file | 12 +++---` and a summary show them.

use serde::Serialize;

use crate::workspace::patch::{PatchError, PatchFile, PatchReader};

/// Every file of a patch, by path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PatchStat {
    pub files: Vec<PatchFile>,
    pub added: u64,
    pub removed: u64,
}

impl PatchStat {
    /// The stat of a patch that is in memory.
    pub fn of(patch: &[u8]) -> Result<Self, PatchError> {
        let mut reader = PatchReader::default();
        reader.feed(patch);
        reader.finish().map(Self::of_files)
    }

    pub fn of_files(files: Vec<PatchFile>) -> Self {
        let sum =
            |count: fn(&PatchFile) -> u64| files.iter().map(count).fold(0, u64::saturating_add);
        Self {
            added: sum(|file| file.added),
            removed: sum(|file| file.removed),
            files,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::paths::TreePath;
    use crate::workspace::change::ChangeKind;
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
            let mut reader = PatchReader::default();
            for chunk in text.as_bytes().chunks(cut) {
                reader.feed(chunk);
            }
            let files = reader.finish().unwrap();
            let got: Vec<(u64, u64)> = files.iter().map(|file| (file.added, file.removed)).collect();
            prop_assert_eq!(got, counts);
        }

        #[test]
        fn chunking_never_matters(bytes in proptest::collection::vec(proptest::sample::select(b"@ +-,1\n\\d".to_vec()), 0..120), cut in 1usize..9) {
            let mut patch = b"diff --git a/x b/x\n".to_vec();
            patch.extend(&bytes);
            let mut reader = PatchReader::default();
            patch.chunks(cut).for_each(|chunk| reader.feed(chunk));
            prop_assert_eq!(reader.finish().map(PatchStat::of_files), PatchStat::of(&patch));
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
