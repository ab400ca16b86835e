//! Why a workspace could not be made, read or measured.

use std::io;

use crate::evidence::EvidenceError;
use crate::workspace::git::GitError;

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("the workspace could not be prepared or read")]
    Io(#[source] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A copy that is not what it should be a copy of, or cannot be kept.
    #[error("{0}")]
    Differs(&'static str),
    /// Setup may only make what the ignore rules cover.
    #[error("setup changed paths that are not ignored: {}", .0.join(", "))]
    SetupChanged(Vec<String>),
    /// Nor what an engine would take orders from.
    #[error("setup made configuration for agents: {}", .0.join(", "))]
    SetupConfigured(Vec<String>),
}
