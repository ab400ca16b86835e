//! `cto recover`: close every interrupted run, by a full scan.

use anstyle::AnsiColor;
use serde_json::json;

use crate::bundles::prune;
use crate::cli::Context;
use crate::host::failure::Failure;
use crate::run::recover;
use crate::screen::table::{Cell, Fit, Table};

#[derive(clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    let recovered = recover::recover_all(&home, &context.env);
    prune::sweep(&home);
    let failed = recovered.iter().filter(|run| run.result.is_err()).count();
    if context.output.json {
        let rows: Vec<_> = recovered
            .iter()
            .map(|run| json!({"run_id": run.run_id, "closed": run.result.is_ok(), "error": run.result.as_ref().err().map(ToString::to_string)}))
            .collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "recover", "recovered": rows}))?;
    } else {
        let mut table = Table::new(&[("", Fit::Whole), ("", Fit::Whole), ("", Fit::Cut)]);
        for run in &recovered {
            let (word, what) = match &run.result {
                Ok(()) => (
                    Cell::styled("closed", AnsiColor::Green.on_default()),
                    "blocked: interrupted".to_owned(),
                ),
                Err(error) => (
                    Cell::styled("NOT CLOSED", AnsiColor::Red.on_default().bold()),
                    error.to_string(),
                ),
            };
            table.row(vec![word, run.run_id.as_str().into(), what.into()]);
        }
        context.output.table(&table);
        if recovered.is_empty() {
            context
                .output
                .line("Nothing to recover: every run is sealed or live.");
        }
    }
    Ok(if failed == 0 { 0 } else { 70 })
}
