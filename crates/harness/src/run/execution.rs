//! A run under way: what each of its steps needs, and why one may end before its end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cto_core::containment::Containment;
use cto_core::gate::plan::Plan;
use cto_core::run::event::GitUse;
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;

use crate::evidence::EvidenceError;
use crate::evidence::clock::Clock;
use crate::host::digest_cache;
use crate::host::places::Places;
use crate::host::programs::Program;
use crate::host::{self, Env, Home};
use crate::plan::provider::Provider;
use crate::run::checks::known::BaselineMemory;
use crate::run::spent::Spent;
use crate::screen::progress::Stage;
use crate::supervise::SuperviseError;
use crate::supervise::cancel::Cancel;
use crate::supervise::launch::{CopyToMount, RunPlace};
use crate::task::cases::Case;
use crate::workspace::WorkspaceError;
use crate::workspace::checkout::Checkout;
use crate::workspace::environments::{FirstLook, Laid};
use crate::workspace::git::{self, GitError, SourceRepo};
use crate::workspace::of_run::MadeFrom;
use crate::workspace::private_copy::PrivateCopy;

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
    /// When planning looked at environments.
    pub looked: Option<&'a FirstLook>,
    pub home: &'a Home,
    pub work: PathBuf,
    pub git: Program,
    /// How many of its checks may run at a time.
    pub jobs: usize,
    /// Every changed file is tried alone, however long that takes.
    pub see_all: bool,
    /// Nothing changed, and the checks and their control are run all the same.
    pub untouched: bool,
    /// This program.
    pub own: Digest,
    pub clock: &'a Clock,
    /// What it does with baselines of earlier runs.
    pub baseline: BaselineMemory,
    /// Where its steps are told.
    pub stage: &'a Stage,
    /// Where copies go that nobody needs any more.
    pub spent: &'a Spent,
}

impl Execution<'_> {
    /// The same, ended by another cancel.
    pub fn with_cancel<'b>(&'b self, cancel: &'b Cancel) -> Execution<'b> {
        Execution {
            cancel,
            checkout: self.checkout.clone(),
            work: self.work.clone(),
            git: self.git.clone(),
            ..*self
        }
    }

    /// What the workspace is made from.
    pub fn made_from(&self) -> MadeFrom<'_> {
        MadeFrom {
            case: self.case,
            plan: self.plan,
            source: self.source,
            checkout: self.checkout.clone(),
            looked: self.looked,
            home: self.home,
            work: &self.work,
            git: &self.git,
        }
    }

    /// Which git this run uses, for its evidence.
    pub fn git_use(&self) -> Result<GitUse, Stop> {
        let unreadable = |error: io::Error| {
            Stop::Finding(
                format!("git cannot be read: {error}"),
                Code::ProviderUnavailable,
            )
        };
        Ok(GitUse {
            place: self.git.class(),
            version: git::version(&self.git)?,
            sha256: digest_cache::digest(self.home, self.git.path()).map_err(unreadable)?,
        })
    }

    /// Where the directories of ours lie that are part of PATH.
    pub fn programs(&self) -> PathBuf {
        self.work.join("programs")
    }

    /// Where a process of this run works: a copy with its environments, handed over, and a scratch
    /// directory.
    pub fn place(
        &self,
        copy: &PrivateCopy,
        laid: &Laid,
        scratch: &Path,
    ) -> Result<RunPlace<'_>, Stop> {
        let places = Places::of(self.env, self.home);
        let inside = self.plan.stand.path();
        let copied = CopyToMount {
            mount: copy.mount(&places, inside).map_err(Stop::Workspace)?,
            on_host: copy.changed_dir(),
            environments: laid.mounts(inside, &places).map_err(Stop::Workspace)?,
            hidden: laid.hidden(inside),
        };
        let programs = self.programs();
        let programs = self.plan.search.has_ours().then_some(programs.as_path());
        let place = RunPlace::make(self.plan, self.env, places, copied, scratch, programs)
            .map_err(Stop::Workspace)?;
        if self.plan.containment != Containment::None {
            copy.hand_over().map_err(Stop::Workspace)?;
            laid.hand_over().map_err(Stop::Workspace)?;
        }
        Ok(place)
    }

    /// A name for a scratch directory that no other process has.
    pub fn new_scratch(&self) -> Result<PathBuf, Stop> {
        Ok(self.work.join(format!("scratch-{}", random(8)?)))
    }

    pub fn stop_if_cancelled(&self) -> Result<(), Stop> {
        if self.cancel.requested() {
            Err(Stop::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// Letters nobody could have known before.
pub fn random(length: usize) -> Result<String, Stop> {
    host::random_name(length).map_err(|failure| Stop::Finding(failure.what, Code::Interrupted))
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
            WorkspaceError::SetupChanged(_) | WorkspaceError::SetupConfigured(_) => {
                Self::LateGate {
                    gate: "setup",
                    code: Code::ToolchainUnavailable,
                    detail: error.to_string(),
                }
            }
        }
    }
}
