//! What is new in a workspace and no part of a change: what ignore rules cover, what an engine keeps for itself, and
//! what tools leave behind.

use std::collections::BTreeSet;

use cto_core::checks::names::leftovers;
use cto_core::containment::masks;
use cto_core::gate::plan::Plan;
use cto_core::values::paths::{PathStanding, TreePath, path_standing};
use cto_core::workspace::change::{Change, ChangeKind};
use cto_core::workspace::tree::Tree;

use crate::workspace::WorkspaceError;
use crate::workspace::of_run::Workspace;

/// How many are named; all are counted.
const LEFTOVERS_NAMED: usize = 50;

impl Workspace {
    /// What tools left behind, some of it by name: among scratch, and in the copy's git directory.
    pub(super) fn named_leftovers(
        &self,
        plan: &Plan,
        recorded: &[Change],
        tree: &Tree,
        scratch: &BTreeSet<TreePath>,
    ) -> Vec<TreePath> {
        let left = self.left_behind(plan, recorded, tree);
        let left = left
            .filter(|path| scratch.contains(path))
            .take(LEFTOVERS_NAMED);
        let stash = self.copy.in_dot_git(leftovers::IN_GIT_DIRECTORY);
        let stash = stash
            .into_iter()
            .map(|name| TreePath::new(format!(".git/{name}").as_bytes()));
        left.chain(stash).collect()
    }

    /// What tools left behind in a tree: no part of the change.
    pub(super) fn left_behind<'a>(
        &'a self,
        plan: &'a Plan,
        changes: &'a [Change],
        result: &'a Tree,
    ) -> impl Iterator<Item = TreePath> + 'a {
        let (baseline, allowed) = (self.baseline(), &plan.contract.allowed_paths);
        let left =
            |change: &&Change| leftovers::leftover(change, baseline, result, allowed).is_some();
        changes
            .iter()
            .filter(left)
            .map(|change| change.path.clone())
    }

    /// New paths the baseline's ignore rules cover, and the engine's own folders. Forbidden paths
    /// are never scratch, nor is what would then be missing from the patch in silence.
    pub(super) fn scratch(
        &self,
        plan: &Plan,
        changes: &[Change],
        result: &Tree,
    ) -> Result<BTreeSet<TreePath>, WorkspaceError> {
        let added = |change: &&Change| change.kind == ChangeKind::Added;
        let new: Vec<TreePath> = changes
            .iter()
            .filter(added)
            .map(|change| change.path.clone())
            .collect();
        let own = &plan.invocation.workspace_scratch;
        let (mut scratch, new): (Vec<_>, Vec<_>) = new
            .into_iter()
            .partition(|path| own.iter().any(|rule| rule.covers(path)));
        let ignored = self.ignored(&new)?;
        scratch.extend(self.still_ignored(ignored, changes, result)?);
        scratch.extend(self.left_behind(plan, changes, result));
        let contract = &plan.contract;
        let allowed = &contract.allowed_paths;
        scratch.retain(|path| {
            path_standing(path, allowed, &contract.forbidden_paths) != PathStanding::Forbidden
        });
        let litter = masks::litter(scratch, self.baseline(), allowed);
        Ok(litter.into_iter().collect())
    }
}
