//! `cto recover`: close every interrupted run, by a full scan, and end every landing that did not.

use anstyle::AnsiColor;
use serde_json::json;

use crate::bundles::prune;
use crate::cli::Context;
use crate::cli::work::run::drop_journals;
use crate::host::failure::Failure;
use crate::run::recover;
use crate::screen::table::{Cell, Fit, Table};
use crate::workspace::landing::recover as landings;
use cto_core::workspace::landing::journal::End;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    // First: what a run settles may hang on it.
    let landed = landings::landings(&home, &context.env);
    let recovered = recover::recover_all(&home, &context.env);
    drop_journals(context, &home);
    prune::sweep(&home);
    let failed = recovered.iter().filter(|run| run.result.is_err()).count()
        + landed.iter().filter(|one| one.result.is_err()).count();
    if context.output.json {
        let rows: Vec<_> = recovered
            .iter()
            .map(|run| json!({"run_id": run.run_id, "closed": run.result.is_ok(), "error": run.result.as_ref().err().map(ToString::to_string)}))
            .collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "recover", "recovered": rows, "landings": landed.iter().map(row).collect::<Vec<_>>()}))?;
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
        for one in &landed {
            let (word, what) = match &one.result {
                Ok(end) => (
                    Cell::styled("ended", AnsiColor::Green.on_default()),
                    said(*end).to_owned(),
                ),
                Err(error) => (
                    Cell::styled("NOT ENDED", AnsiColor::Red.on_default().bold()),
                    error.to_string(),
                ),
            };
            table.row(vec![word, name(one).into(), what.into()]);
        }
        context.output.table(&table);
        if recovered.is_empty() && landed.is_empty() {
            context
                .output
                .line("Nothing to recover: every run is sealed or live.");
        }
    }
    Ok(if failed == 0 { 0 } else { 70 })
}

/// Whose landing it is; of a journal that cannot be read its file.
pub fn name(one: &landings::Recovered) -> String {
    let file = || one.journal.display().to_string();
    one.run_id.as_ref().map_or_else(file, ToString::to_string)
}

pub fn said(end: End) -> &'static str {
    match end {
        End::Landed => "landing: the commit is there",
        End::Undone => "landing: undone, the repository is as it was",
        End::Left => "landing: somebody went on there, what they have is left to them",
    }
}

fn row(one: &landings::Recovered) -> serde_json::Value {
    json!({
        "run_id": one.run_id,
        "deed": one.deed,
        "end": one.result.as_ref().ok(),
        "error": one.result.as_ref().err().map(ToString::to_string),
    })
}
