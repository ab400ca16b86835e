//! A look at the workspace while an engine still runs in it. What is found here decides nothing but when an engine that
//! stays is ended: the result is measured afterwards, whole.

use std::time::{Duration, Instant};

use cto_core::gate::plan::Plan;
use cto_core::values::paths::{PathStanding, TreePath, path_standing};
use cto_core::workspace::change::ChangeKind;
use cto_core::workspace::head::Head;
use cto_core::workspace::tree::tree_changes;

use crate::workspace::WorkspaceError;
use crate::workspace::of_run::Workspace;
use crate::workspace::on_disk::Bounds;

/// A walk that takes longer is given up.
const LONGEST: Duration = Duration::from_secs(2);
/// Bytes that are read beyond those of the baseline.
const MORE: u64 = 64 << 20;

impl Workspace {
    /// Where HEAD of the engine's copy stands.
    pub fn head(&self) -> Head {
        self.copy.head()
    }

    /// Is everything that changed by now something the contract allows? An error where that cannot be said.
    pub fn is_in_scope_by_now(&self, plan: &Plan) -> Result<bool, WorkspaceError> {
        let there = self.baseline().values();
        let bytes = there.fold(MORE, |sum, entry| sum.saturating_add(entry.bytes));
        let bounds = Bounds {
            bytes,
            until: Some(Instant::now() + LONGEST),
        };
        let mut walked = self.walk_within(bounds).map_err(WorkspaceError::Io)?;
        if !self.in_submodules(plan, &mut walked)?.odd.is_empty() {
            return Ok(false);
        }
        let contract = &plan.contract;
        let (allowed, forbidden) = (&contract.allowed_paths, &contract.forbidden_paths);
        let standing = |path: &TreePath| path_standing(path, allowed, forbidden);
        let odd = [
            &walked.nested_repositories,
            &walked.unrecordable,
            &walked.unreadable,
            &walked.too_large,
        ];
        let own = &plan.invocation.workspace_scratch;
        let is_own = |path: &TreePath| own.iter().any(|rule| rule.covers(path));
        if odd
            .iter()
            .any(|paths| paths.iter().any(|path| !is_own(path)))
        {
            return Ok(false);
        }
        let mut beyond = tree_changes(self.baseline(), &walked.tree);
        beyond.retain(|change| standing(&change.path) != PathStanding::Allowed);
        if beyond.is_empty() {
            return Ok(true);
        }
        // Scratch is no change, but never in a forbidden path.
        let left = self.left_behind(plan, &beyond, &walked.tree);
        let left: Vec<TreePath> = left.collect();
        let may_be_scratch = |path: &TreePath| standing(path) != PathStanding::Forbidden;
        beyond.retain(|change| {
            let scratch = is_own(&change.path) || left.contains(&change.path);
            !(scratch && may_be_scratch(&change.path))
        });
        let plain = |kind: ChangeKind| kind == ChangeKind::Added;
        if beyond
            .iter()
            .any(|change| !plain(change.kind) || !may_be_scratch(&change.path))
        {
            return Ok(false);
        }
        let new: Vec<TreePath> = beyond.into_iter().map(|change| change.path).collect();
        Ok(self.ignored(&new)?.len() == new.len())
    }
}
