//! The commit that the result of a run at stage 5 will be in the repository of its operator. It is named while that
//! repository stays as it is: nothing lands before somebody accepted it, and then only this very commit.

use std::path::Path;
use std::time::{Duration, Instant};

use cto_core::task::contract::Stage;
use cto_core::task::source::SourceLook;
use cto_core::values::blocker::{Code, Finding};
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use cto_core::workspace::landing::Way;

use crate::evidence::OpenBundle;
use crate::host::failure::chain;
use crate::host::files;
use crate::run::execution::Execution;
use crate::task::request::Request;
use crate::workspace::git::SourceRepo;
use crate::workspace::landing::result::{Into, RunResult, result_order};
use crate::workspace::landing::{self, LandingError};

/// For so long another `cto` at work in the repository is waited for.
const WAIT: Duration = Duration::from_secs(2);
/// A larger patch is refused long before.
const MOST: u64 = 1 << 30;

/// What is known of a result before it is measured.
pub struct Named<'a> {
    execution: &'a Execution<'a>,
    source: &'a SourceRepo,
    look: &'a SourceLook,
    run_id: RunId,
    started_at: Utc,
    request: Option<RunId>,
}

impl<'a> Named<'a> {
    /// Only a run at stage 5 has a result that somebody may land.
    pub fn of(
        bundle: &OpenBundle,
        request: &Request,
        execution: &'a Execution<'a>,
    ) -> Option<Self> {
        let is_stage = execution.plan.contract.lane.stage == Stage::Five;
        let (source, look) = execution.source.zip(execution.plan.source.as_ref())?;
        is_stage.then(|| Self {
            execution,
            source,
            look,
            run_id: bundle.identity.run_id.clone(),
            started_at: bundle.identity.started_at,
            request: request.request_id.clone(),
        })
    }

    /// The name of the commit, or why this repository can have none.
    pub fn commit(&self, patch: &Path) -> Result<String, Finding> {
        let cannot = |code, error: &dyn std::error::Error| Finding {
            code,
            detail: Some(chain(error)),
        };
        let patch = files::read_limited(patch, MOST)
            .map_err(|error| cannot(Code::ArtifactWriteFailure, &error))?;
        let unfit = |error: &dyn std::error::Error| cannot(Code::LandingUnsupported, error);
        let contract = &self.execution.plan.contract;
        let result = RunResult {
            title: &contract.title,
            case: &contract.case_id,
            run: &self.run_id,
            started_at: self.started_at,
            request: self.request.as_ref(),
            patch: &patch,
            head: &self.look.head,
            tree: &self.look.tree,
            branch: None,
        };
        let repository = contract.lane.repository.as_ref();
        let only: Option<Digest> = repository.map(|named| named.path_sha256);
        let users_home = self.execution.env.path("HOME");
        let into = Into {
            git: &self.execution.git,
            home: self.execution.home,
            repository: &self.source.top,
            only,
            users_home: users_home.as_deref(),
            aside: &self.execution.work,
        };
        // A ref of its own asks the least of a repository, and the commit is the same.
        let order = result_order(&result, into, Way::Branch).map_err(|error| unfit(&error))?;
        let since = Instant::now();
        loop {
            match landing::prepare(&order) {
                Ok(ready) => return Ok(ready.commit),
                Err(LandingError::Busy) if since.elapsed() < WAIT => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => return Err(unfit(&error)),
            }
        }
    }
}
