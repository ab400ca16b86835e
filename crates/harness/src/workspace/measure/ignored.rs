//! Which new paths ignore rules cover: by the rules of the baseline, and still by those of the result.

use std::collections::BTreeSet;

use cto_core::values::paths::TreePath;
use cto_core::workspace::change::Change;
use cto_core::workspace::tree::Tree;

use crate::workspace::WorkspaceError;
use crate::workspace::of_run::{Start, Workspace};
use crate::workspace::on_disk::{self, Content};

impl Workspace {
    /// New paths that the baseline's rules cover.
    pub(super) fn ignored(&self, new: &[TreePath]) -> Result<Vec<TreePath>, WorkspaceError> {
        let baseline = self.baseline();
        let mut all = baseline.iter();
        if new.is_empty() || !all.any(|(path, entry)| on_disk::holds_rules(path, entry)) {
            return Ok(Vec::new());
        }
        // The engine may have changed its own rules: ask a copy that holds the baseline's.
        let rules = match &self.start {
            Start::Checkout(checkout) => checkout.rules(),
            Start::Fixture { .. } | Start::Commit { .. } => self.work.join("rules"),
        };
        if !rules.exists() {
            let wanted = |path: &TreePath| {
                let entry = baseline.get(path);
                entry.is_some_and(|entry| on_disk::holds_rules(path, entry))
            };
            self.fresh_copy(&rules, &wanted)?;
        }
        Ok(self.repo.ignored(&rules, new)?)
    }

    /// What the rules of the result ignore, too: a path that the change takes out of them is part of the
    /// change. More rules than before make nothing scratch.
    pub(super) fn still_ignored(
        &self,
        ignored: Vec<TreePath>,
        changes: &[Change],
        result: &Tree,
    ) -> Result<Vec<TreePath>, WorkspaceError> {
        let is_rules = |path: &TreePath| path.as_bytes().ends_with(b".gitignore");
        let changed: BTreeSet<_> = changes.iter().map(|change| &change.path).collect();
        if ignored.is_empty() || !changed.iter().any(|path| is_rules(path)) {
            return Ok(ignored);
        }
        let rules = self.work.join("rules-after");
        let held = |path: &TreePath| {
            self.baseline()
                .get(path)
                .is_some_and(|entry| on_disk::holds_rules(path, entry))
        };
        self.fresh_copy(&rules, &|path| held(path) && !changed.contains(path))?;
        result
            .iter()
            .filter(|(path, entry)| changed.contains(path) && on_disk::holds_rules(path, entry))
            .try_for_each(|(path, entry)| {
                let mut text = Content::of(&self.copy.changed_dir(), path, entry.kind);
                on_disk::write_entry(&rules, path, entry.kind, &mut text).map(drop)
            })
            .map_err(WorkspaceError::Io)?;
        Ok(self.repo.ignored(&rules, &ignored)?)
    }
}
