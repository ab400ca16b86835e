//! Files of Git LFS in a person's work tree. Their blobs are pointers, and only a program of the
//! owner's makes one of the other; it is never started. A file is taken for unchanged where its
//! bytes are those that its pointer names.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use cto_core::values::paths::TreePath;
use cto_core::workspace::lfs::{FILTER, LONGEST, Pointer};
use cto_core::workspace::tree::FileKind;

use super::super::GitError;
use super::super::command::{told, told_well};
use super::super::source::SourceRepo;
use crate::host::files;
use crate::workspace::on_disk;

/// A file that is not as the index has it, and nothing is staged of it.
const UNSTAGED: &[u8] = b" M ";

impl SourceRepo {
    /// The answer of `status --porcelain -z` without files that the owner's git calls unchanged.
    pub(in crate::workspace::git) fn without_lfs(
        &self,
        lines: Vec<u8>,
    ) -> Result<Vec<u8>, GitError> {
        let paths: Vec<TreePath> = lines
            .split(|byte| *byte == 0)
            .filter_map(|line| line.strip_prefix(UNSTAGED))
            .map(TreePath::new)
            .collect();
        let filtered = self.filtered(&paths)?;
        if filtered.is_empty() {
            return Ok(lines);
        }
        let mut same = BTreeSet::new();
        let wanted = |path: &TreePath| filtered.contains(path);
        self.files_of(&self.tree, &wanted, &mut |path, kind, content| {
            let mut text = Vec::new();
            content.take(LONGEST as u64 + 1).read_to_end(&mut text)?;
            let pointer = Pointer::read(&text);
            if pointer.is_some_and(|pointer| self.is_file_of(&pointer, path, kind)) {
                same.insert(path.clone());
            }
            Ok(())
        })?;
        let other = |line: &&[u8]| {
            let path = line.strip_prefix(UNSTAGED).map(TreePath::new);
            !line.is_empty() && !path.is_some_and(|path| same.contains(&path))
        };
        let kept = lines.split(|byte| *byte == 0).filter(other);
        Ok(kept.flat_map(|line| [line, b"\0"].concat()).collect())
    }

    /// Which of these paths have the filter of Git LFS by their attributes.
    fn filtered(&self, paths: &[TreePath]) -> Result<BTreeSet<TreePath>, GitError> {
        const OPERATION: &str = "check-attr";
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut command = self.command();
        command.args([OPERATION, "-z", "--stdin", "filter"]);
        let answer = told_well(OPERATION, told(OPERATION, command, paths)?)?;
        let parts: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let named = parts.chunks_exact(3);
        Ok(named
            .filter(|words| words[2] == FILTER)
            .map(|words| TreePath::new(words[0]))
            .collect())
    }

    fn is_file_of(&self, pointer: &Pointer, path: &TreePath, kind: FileKind) -> bool {
        let place = on_disk::locate(&self.top, path);
        let executable = |mode: u32| (mode & 0o100 != 0) == (kind == FileKind::Executable);
        let mode_fits = std::fs::symlink_metadata(&place).is_ok_and(|meta| {
            meta.is_file() && (self.ignores_modes() || executable(meta.permissions().mode()))
        });
        mode_fits
            && files::scan_file(&place, |_| {})
                .is_ok_and(|found| found.bytes == pointer.bytes && found.sha256 == pointer.sha256)
    }
}
