//! After the engine and the checks: the source is looked at once more, and the workspace goes or is
//! shown.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cto_core::bundle;
use cto_core::run::judge;
use cto_core::run::rules::Rules;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::contract::Stage;
use cto_core::task::source::{CopiedRepo, Looked};
use cto_core::values::blocker::Code;
use cto_core::values::blocker::Finding;
use cto_core::values::verdict::Status;
use cto_core::workspace::checkout::WorkspaceKind;

use crate::evidence::OpenBundle;
use crate::host::failure::chain;
use crate::host::files;
use crate::host::{Env, Home, workers};
use crate::plan::Planned;
use crate::plan::engine_program::LookAgain;
use crate::plan::source;
use crate::run::execution::Stop;
use crate::task::request::Request;
use crate::workspace::checkout::Checkout;
use crate::workspace::overlay;

/// What the second look at a source found, how many files are others, and when it began.
pub struct SeenAgain {
    found: Looked,
    files: Option<u64>,
    since: Instant,
}

/// Everything has ended: the workspace `goes`, unless it is to be kept, while the source is looked at once more.
pub fn leave(
    bundle: &mut OpenBundle,
    request: &Request,
    planned: &Planned,
    goes: Option<&Path>,
    (env, home): (&Env, &Home),
) -> Option<SeenAgain> {
    let look = || {
        let since = Instant::now();
        let of = (request.source.as_ref()?.path.as_path(), request.label);
        let first = planned.source.as_ref()?;
        let (found, files) = source::look_again(of, Some(first), env, home);
        Some(SeenAgain {
            found,
            files,
            since,
        })
    };
    let (removed, seen) = workers::both(|| goes.map(files::remove_tree), look);
    if let Some(Some(Err(error))) = removed {
        // The bundle matters more than the litter, and says where it is.
        let _ = bundle.trace(
            "workspace.remove",
            TraceOutcome::Failed,
            Instant::now(),
            Some(error.to_string()),
        );
    }
    match seen {
        // Whoever filled the disk left no room for it; now there is some.
        Some(SeenAgain {
            found: Looked::Unusable(_),
            ..
        }) => look(),
        seen => seen,
    }
}

/// What the second look came to, on every road: the source must be as it was before, unless its owner may
/// work on in it.
pub fn look_back(
    bundle: &mut OpenBundle,
    request: &Request,
    planned: &Planned,
    findings: &mut Vec<Finding>,
    seen: Option<SeenAgain>,
) -> Option<CopiedRepo> {
    let (seen, mut copied) = (seen?, copied_repo(planned)?);
    let SeenAgain {
        found: after,
        files,
        since,
    } = seen;
    let facts = &bundle.folded().facts;
    copied.copied_fixture_start_clean = facts.copy_was_used().then_some(true);
    let left_over = findings
        .iter()
        .any(|finding| finding.code == Code::DirtyEndingTree);
    copied.copied_fixture_end_clean = facts.diff.is_some().then_some(!left_over);
    let judged = judge::judges_source(Rules::NEWEST, request.label, &bundle.containment());
    let changed = copied.ended(&after, files, judged != Some(false));
    let outcome = if changed.is_none() {
        TraceOutcome::Ok
    } else {
        TraceOutcome::Failed
    };
    let detail = match (&changed, after) {
        (Some(finding), _) => finding.detail.clone(),
        (None, Looked::Unusable(why)) => Some(why),
        (None, Looked::Found(_)) => Some(copied.meanwhile().words()),
    };
    let _ = bundle.trace("source.look_again", outcome, since, detail);
    findings.extend(changed);
    if let Err(error) = bundle.write_json(bundle::SOURCE, &copied) {
        findings.push(Finding {
            code: Code::ArtifactWriteFailure,
            detail: Some(chain(&error)),
        });
    }
    Some(copied)
}

/// The engine's program, its interpreter and its packages, once it has ended: they must be what the gates saw.
/// The jail could only read them; whoever owns them could write.
pub fn packages_moved(
    bundle: &mut OpenBundle,
    (look, since): (Option<LookAgain>, Instant),
) -> Result<Option<Finding>, Stop> {
    let Some(look) = look else {
        return Ok(None);
    };
    let changed = look.changed();
    let outcome = match &changed {
        None => TraceOutcome::Ok,
        Some(_) => TraceOutcome::Failed,
    };
    bundle.trace("engine.packages", outcome, since, changed.clone())?;
    Ok(changed.map(|what| Finding {
        code: Code::ExecutableNotAdmitted,
        detail: Some(format!(
            "{what}; what was run is not known to be what is admitted"
        )),
    }))
}

/// What was copied, as the first look found it.
pub fn copied_repo(planned: &Planned) -> Option<CopiedRepo> {
    let contract = planned.contract.valid()?;
    let (source, repository) = (contract.source.as_ref()?, contract.lane.repository.as_ref());
    let look = &planned.source.as_ref()?.look;
    Some(CopiedRepo::begun(source, repository, look))
}

/// After the seal: a workspace is kept only where there is something to look into.
pub fn settle_workspace(
    status: Status,
    request: &Request,
    planned: &Planned,
    home: &Home,
    work: &Path,
) {
    // Who keeps a disposable repository keeps it however the run ended; its bundle says that it stays.
    let retained = request.keep && request.stage == Stage::Four;
    if status == Status::Pass && !retained {
        // What stays is litter, not evidence.
        let _ = files::remove_tree(work);
    } else if request.keep {
        show_kept(planned, home, work);
    }
}

/// An overlay shows nobody outside a jail its files: what is kept for a person is laid out.
fn show_kept(planned: &Planned, home: &Home, work: &Path) {
    let overlay = planned
        .plan
        .as_ref()
        .filter(|plan| plan.workspace == WorkspaceKind::Overlay);
    let Some((look, masked)) = overlay
        .and_then(|plan| Some((plan.source.as_ref()?, &plan.guard.masked)))
        .filter(|_| work.is_dir())
    else {
        return;
    };
    if let Some(checkout) = Checkout::find_masked(home, &look.tree, masked) {
        // The run is sealed; a workspace that cannot be laid out is not named as kept.
        let _ = overlay::lay_out_kept(Arc::new(checkout), work);
    }
}
