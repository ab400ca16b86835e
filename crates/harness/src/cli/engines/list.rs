//! `cto engines`: every engine this binary knows, and what keeps it closed.

use anstyle::AnsiColor;
use serde_json::json;

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::screen::output::dim;
use crate::screen::table::{Cell, Fit, Table};
use crate::task::engines;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let all = engines::all()?;
    let open = |manifest: &cto_core::engine::manifest::Manifest| {
        !manifest.is_gated() || engines::is_opened(manifest, &[], &context.env)
    };
    if context.output.json {
        let rows: Vec<_> = all
            .iter()
            .map(|manifest| {
                json!({
                    "engine": manifest.id,
                    "title": manifest.title,
                    "default": !manifest.is_gated(),
                    "gate": if open(manifest) { "open" } else { "closed" },
                    "gated_by_env": manifest.gated_by_env,
                    "default_stage": manifest.default_stage,
                    "runnable": manifest.invocation.is_some(),
                })
            })
            .collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "engines", "engines": rows}))?;
        return Ok(0);
    }
    let mut table = Table::new(&[
        ("name", Fit::Whole),
        ("gate", Fit::Whole),
        ("engine", Fit::Cut),
        ("opened by", Fit::Whole),
    ]);
    for manifest in &all {
        let gate = match open(manifest) {
            true => Cell::styled("open", AnsiColor::Green.on_default()),
            false => Cell::styled("closed", dim()),
        };
        let variable = manifest
            .gated_by_env
            .as_deref()
            .unwrap_or("nothing: it always is");
        table.row(vec![
            manifest.id.as_str().into(),
            gate,
            manifest.title.as_str().into(),
            variable.into(),
        ]);
    }
    context.output.table(&table);
    context.output.line("");
    context.output.hanging(
        "",
        "A variable opens its engine when it is 1. An open gate only lets an engine be recognised; admissions and stage proofs decide the rest.",
    );
    Ok(0)
}
