//! `cto runs`: the list, newest first.

use serde_json::json;

use super::Context;
use super::output::{dim, status_style, tame};
use crate::failure::Failure;
use crate::reader::{self, ListedState};

#[derive(clap::Args)]
pub struct Args {
    /// How many to show
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    let runs = reader::list(&home);
    if context.output.json {
        let rows: Vec<_> = runs.iter().take(args.limit).map(row_json).collect();
        context.output.document(&json!({"schema_version": 1, "command": "runs", "total": runs.len(), "runs": rows}))?;
        return Ok(0);
    }
    if runs.is_empty() {
        context.output.line(&format!("No runs yet.\n\nnext: {}", context.output.command("run")));
        return Ok(0);
    }
    let dim = dim();
    let width = runs.iter().take(args.limit).map(|run| run.run_id.as_str().len()).max().unwrap_or(0);
    for run in runs.iter().take(args.limit) {
        let (word, style, rest) = match &run.state {
            ListedState::Live => ("live", dim, "still running".to_owned()),
            ListedState::Unsealed => ("unsealed", dim, "interrupted; proves nothing".to_owned()),
            ListedState::Unreadable(why) => ("unreadable", dim, why.clone()),
            ListedState::Sealed(summary) => {
                let reason = summary.failure_reason.as_deref().unwrap_or("");
                (summary.status.as_str(), status_style(summary.status), format!("{:<8} {}", summary.engine, tame(reason)))
            }
        };
        context.output.line(&format!("{style}{word:<10}{style:#} {:<width$}  {rest}", run.run_id.as_str()));
    }
    let hidden = runs.len().saturating_sub(args.limit);
    if hidden > 0 {
        context.output.note(&format!("{hidden} more; show them with -n {}", runs.len()));
    }
    Ok(0)
}

fn row_json(run: &reader::Listed) -> serde_json::Value {
    let state = match &run.state {
        ListedState::Live => "live",
        ListedState::Unsealed => "unsealed",
        ListedState::Unreadable(_) => "unreadable",
        ListedState::Sealed(_) => "sealed",
    };
    let mut row = json!({"run_id": run.run_id, "state": state, "bundle": run.dir.display().to_string()});
    if let ListedState::Sealed(summary) = &run.state {
        row["status"] = json!(summary.status);
        row["kind"] = json!(summary.kind);
        row["case_id"] = json!(summary.case);
        row["engine"] = json!(summary.engine);
        row["stage"] = json!(summary.stage);
        row["failure_reason"] = json!(summary.failure_reason);
        row["duration_ms"] = json!(summary.duration_ms);
    }
    row
}
