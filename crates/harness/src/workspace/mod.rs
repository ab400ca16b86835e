//! Work trees: private copies for engines and checks, and what really changed in them.
//!
//! - `of_run.rs` the workspace of one run; `measure.rs` what changed in it
//! - `private_copy.rs` a copy, plain or over a cached one: `checkout.rs` the cache, `overlay/` the
//!   kernel's layers; `environments/` what it gets of the operator's work tree besides
//! - `work_tree.rs` the operator's files beside the copied tree; `stamping.rs` times in a copy
//! - `checks_git.rs` the git directory in each copy for checks
//! - `git/` the only place that starts git; `on_disk.rs` files laid out and walked
//! - `apply/` a patch into the operator's work tree; `landing/` a commit into the repository; `own_dir.rs` private directories for a look
//!
//! Imports host, task, evidence and supervise. Imported by plan, run, proof and cli.

mod checks_git;

pub mod apply;
pub mod checkout;
pub mod environments;
pub mod git;
pub mod landing;
pub mod measure;
pub mod of_run;
pub mod on_disk;
pub mod overlay;
pub mod own_dir;
pub mod private_copy;
pub mod stamping;
pub mod work_tree;

use std::io;

use crate::evidence::EvidenceError;
use git::GitError;

/// Why a workspace could not be made, read or measured.
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
