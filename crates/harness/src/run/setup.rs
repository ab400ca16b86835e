//! Setup: the contract's commands that prepare the workspace, in the same kind of jail as the
//! engine that follows them. The copies for checks are set up by the checks themselves.

use std::time::Instant;

use cto_core::bundle::report_md::describe_end;
use cto_core::run::event::ProcessEnd;
use cto_core::run::trace::TraceOutcome;
use cto_core::values::blocker::Code;

use crate::evidence::OpenBundle;
use crate::run::execution::{Execution, Stop};
use crate::screen::progress::Named;
use crate::supervise;
use crate::supervise::launch::Launch;
use crate::workspace::of_run::Workspace;

/// Output kept of one command.
const RECENT: usize = 1 << 20;

/// Runs every setup command. What they may have changed is only what the ignore rules cover.
pub fn run(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    workspace: &Workspace,
) -> Result<(), Stop> {
    for (index, command) in execution.plan.contract.setup.iter().enumerate() {
        execution.stop_if_cancelled()?;
        let name = format!("setup-{}", index + 1);
        let since = Instant::now();
        let mut output = Vec::new();
        let place = execution.place(
            workspace.copy(),
            workspace.laid(),
            &execution.new_scratch()?,
        )?;
        let launch = Launch::command(&place, command).map_err(Stop::Workspace)?;
        let mut step = execution.stage.begin(Named {
            of: Some((index + 1, execution.plan.contract.setup.len())),
            ..Named::new("setup", command)
        });
        let mut redactor = bundle.secrets.redactor();
        let ended = supervise::run(&launch, execution.cancel, &mut |_, bytes| {
            redactor.push(bytes, &mut |clean| {
                step.hear(clean);
                keep(&mut output, clean);
            });
        })?;
        redactor.finish(&mut |clean| {
            step.hear(clean);
            keep(&mut output, clean);
        });
        execution.clock.ran(ended.duration_ms);
        bundle.write(&format!("backend/{name}.log"), &output)?;
        if let Some(contained) = ended.contained {
            bundle.contained(contained.report(&format!("setup: {command}")));
        }
        let how = describe_end(ended.end);
        bundle.trace("setup.run", TraceOutcome::Ok, since, Some(how.clone()))?;
        if ended.end == ProcessEnd::Cancelled {
            return Err(Stop::Cancelled);
        }
        match ended.end.succeeded() {
            true => step.end("", true),
            false => step.end(&how, false),
        }
        if !ended.end.succeeded() {
            let detail = format!("setup failed ({how}): {command}; see backend/{name}.log");
            return Err(Stop::LateGate {
                gate: "setup",
                code: Code::ToolchainUnavailable,
                detail,
            });
        }
    }
    Ok(workspace.check_setup(execution.plan)?)
}

/// The end of what was printed, cut only once it is clean: of half a value nobody finds the rest.
fn keep(output: &mut Vec<u8>, clean: &[u8]) {
    output.extend_from_slice(clean);
    let excess = output.len().saturating_sub(RECENT);
    output.drain(..excess);
}
