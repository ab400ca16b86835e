//! The branch policy of a disposable repository, as the chain tells of it: before the engine starts, and after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::source::branch_policy::{BranchPolicy, Moves};

/// What holds for the repository that the engine is about to be given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchPolicyRecorded {
    pub policy: BranchPolicy,
    /// The commit of the workspace as it was made: the one of the policy, or the run ends.
    pub base_commit: String,
    /// Commits below it.
    pub history: u64,
}

/// What became of the repository.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposal {
    Disposed,
    Retained,
}

/// The refs as our own reading found them after the engine had ended, and what became of the repository.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchPolicyChecked {
    pub moves: Moves,
    /// The one commit of the harness, with the measured tree, and its parent.
    pub result_commit: String,
    pub result_parent: String,
    pub repository_dir: String,
    pub disposal_or_retention: Disposal,
}
