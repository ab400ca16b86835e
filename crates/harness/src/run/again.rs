//! In place of an engine: the patch of an earlier run, put into the copy as it was verified. What is measured
//! and checked after it is measured and checked as ever.

use std::path::PathBuf;
use std::time::Instant;

use cto_core::run::trace::TraceOutcome;

use crate::evidence::OpenBundle;
use crate::run::execution::Stop;
use crate::screen::progress::Progress;
use crate::task::again::First;
use crate::workspace::of_run::Workspace;

/// Puts the patch in. Where it lies is told, so that the very bytes are judged and kept.
pub fn put_in(
    bundle: &mut OpenBundle,
    workspace: &Workspace,
    first: &First,
    progress: &mut dyn Progress,
) -> Result<PathBuf, Stop> {
    let run = &first.reverifies.run_id;
    progress.step("patch", &format!("of {run}"));
    let since = Instant::now();
    let given = workspace.put_in(&first.patch, &first.paths)?;
    bundle.trace(
        "patch.put_in",
        TraceOutcome::Ok,
        since,
        Some(run.to_string()),
    )?;
    Ok(given)
}
