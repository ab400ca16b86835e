//! The branches of a disposable repository: what holds for them is told before the engine starts, and what became of
//! them, and of the repository, after. What an engine committed is compared and never used.

use std::path::Path;

use cto_core::run::event::{BranchPolicyChecked, BranchPolicyRecorded, Disposal, Event};
use cto_core::task::source::branch_policy::{Moves, RefsRead};
use cto_core::values::blocker::{Code, Finding};
use cto_core::values::text::{excerpt, tame};

use crate::evidence::OpenBundle;
use crate::host::failure::chain;
use crate::run::execution::{Execution, Stop};
use crate::workspace::git::HISTORY;
use crate::workspace::measure::Measured;
use crate::workspace::of_run::{PLAIN, Workspace};

/// How much of a name or of what it says is kept.
const KEPT: usize = 120;

/// What became of the refs; the repository is still there.
pub struct Ended {
    moves: Moves,
    result_commit: String,
    result_parent: String,
}

/// Tells the policy, where there is one, once the repository stands at the very commit that was approved.
pub fn record(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    workspace: &Workspace,
) -> Result<Option<RefsRead>, Stop> {
    let Some(policy) = &execution.plan.contract.branch_policy else {
        return Ok(None);
    };
    let base = workspace.base_commit();
    if policy.base_commit.known().map(String::as_str) != Some(base) {
        let why = "the disposable repository is not the one that was planned";
        return Err(Stop::Finding(why.into(), Code::Interrupted));
    }
    bundle.emit(Event::BranchPolicyRecorded(BranchPolicyRecorded {
        policy: policy.clone(),
        base_commit: base.to_owned(),
        history: HISTORY,
    }))?;
    Ok(Some(workspace.refs()))
}

/// Reads the refs again, after the engine.
pub fn look(
    bundle: &OpenBundle,
    workspace: &Workspace,
    measured: &Measured,
    before: Option<RefsRead>,
) -> Option<Ended> {
    let secrets = bundle.secrets.clone();
    let mut shown = |text: &str| {
        let (clean, _) = secrets.redact(text.as_bytes());
        tame(&excerpt(&String::from_utf8_lossy(&clean), KEPT))
    };
    Some(Ended {
        moves: Moves::between(&before?, &workspace.refs(), &mut shown),
        result_commit: measured.result_commit().to_owned(),
        result_parent: workspace.base_commit().to_owned(),
    })
}

/// Tells what became of refs and repository, once it is gone or stays.
pub fn tell(
    bundle: &mut OpenBundle,
    ended: Option<Ended>,
    work: &Path,
    findings: &mut Vec<Finding>,
) {
    let Some(ended) = ended else { return };
    let disposal_or_retention = match work.symlink_metadata() {
        Ok(_) => Disposal::Retained,
        Err(_) => Disposal::Disposed,
    };
    let repository_dir = format!("home:work/{}/{PLAIN}", bundle.identity.run_id);
    let told = bundle.emit(Event::BranchPolicyChecked(BranchPolicyChecked {
        moves: ended.moves,
        result_commit: ended.result_commit,
        result_parent: ended.result_parent,
        repository_dir,
        disposal_or_retention,
    }));
    findings.extend(told.err().map(|error| Finding {
        code: Code::ArtifactWriteFailure,
        detail: Some(chain(&error)),
    }));
}
