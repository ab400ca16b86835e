//! `cto recover`: close every interrupted run, by a full scan.

use serde_json::json;

use super::Context;
use crate::failure::Failure;
use crate::prune;
use crate::recover;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    let recovered = recover::recover_all(&home);
    prune::sweep(&home);
    let failed = recovered.iter().filter(|run| run.result.is_err()).count();
    if context.output.json {
        let rows: Vec<_> = recovered
            .iter()
            .map(|run| json!({"run_id": run.run_id, "closed": run.result.is_ok(), "error": run.result.as_ref().err().map(ToString::to_string)}))
            .collect();
        context.output.document(&json!({"schema_version": 1, "command": "recover", "recovered": rows}))?;
    } else {
        for run in &recovered {
            match &run.result {
                Ok(()) => context.output.line(&format!("closed {} as blocked: interrupted", run.run_id)),
                Err(error) => context.output.line(&format!("could not close {}: {error}", run.run_id)),
            }
        }
        if recovered.is_empty() {
            context.output.line("Nothing to recover: every run is sealed or live.");
        }
    }
    Ok(if failed == 0 { 0 } else { 70 })
}
