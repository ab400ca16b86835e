//! A run under way: what each of its steps needs, and why one may end before its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cto_core::gate::plan::Plan;
use cto_core::values::blocker::Code;

use crate::evidence::EvidenceError;
use crate::host::{Env, Home};
use crate::plan::provider::Provider;
use crate::supervise::SuperviseError;
use crate::supervise::cancel::Cancel;
use crate::task::cases::Case;
use crate::workspace::WorkspaceError;
use crate::workspace::checkout::Checkout;
use crate::workspace::git::{GitError, SourceRepo};
use crate::workspace::of_run::MadeFrom;

/// A planned run under way: what every step of it needs.
pub struct Execution<'a> {
    pub env: &'a Env,
    pub cancel: &'a Cancel,
    pub case: &'a Case,
    pub plan: &'a Plan,
    pub source: Option<&'a SourceRepo>,
    /// The way to the engine's model, where it has one.
    pub provider: Option<&'a Provider>,
    /// The cached checkout of the source, where planning found one.
    pub checkout: Option<Arc<Checkout>>,
    pub home: &'a Home,
    pub work: PathBuf,
    pub git: PathBuf,
}

impl Execution<'_> {
    /// What the workspace is made from.
    pub fn made_from(&self) -> MadeFrom<'_> {
        MadeFrom {
            case: self.case,
            plan: self.plan,
            source: self.source,
            checkout: self.checkout.clone(),
            home: self.home,
            work: &self.work,
            git: &self.git,
        }
    }

    pub fn stop_if_cancelled(&self) -> Result<(), Stop> {
        if self.cancel.requested() {
            Err(Stop::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// Why an execution ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    #[error("{0}")]
    Finding(String, Code),
    /// A gate found closed when it was tried, before anything of the contract ran.
    #[error("{detail}")]
    LateGate {
        gate: &'static str,
        code: Code,
        detail: String,
    },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the workspace could not be prepared or read")]
    Workspace(#[source] io::Error),
    #[error(transparent)]
    Supervise(#[from] SuperviseError),
}

impl From<WorkspaceError> for Stop {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Io(source) => Self::Workspace(source),
            WorkspaceError::Git(error) => Self::Git(error),
            WorkspaceError::Evidence(error) => Self::Evidence(error),
            WorkspaceError::Differs(detail) => Self::Finding(detail.into(), Code::Interrupted),
            WorkspaceError::SetupChanged(_) => Self::LateGate {
                gate: "setup",
                code: Code::ToolchainUnavailable,
                detail: error.to_string(),
            },
        }
    }
}
