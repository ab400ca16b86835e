//! `cto engines`: every engine this binary knows, and what keeps it closed.

use serde_json::json;

use super::Context;
use super::output::dim;
use crate::engines;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let all = engines::all()?;
    let open =
        |manifest: &cto_core::engine::manifest::Manifest| !manifest.is_gated() || engines::is_opened(manifest, &[], &context.env);
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
        context.output.document(&json!({"schema_version": 1, "command": "engines", "engines": rows}))?;
        return Ok(0);
    }
    let dim = dim();
    context.output.line(&format!("{dim}{:<10} {:<7} {:<36} engine{dim:#}", "name", "gate", "opens with"));
    for manifest in &all {
        let gate = if open(manifest) { "open" } else { "closed" };
        let variable = manifest.gated_by_env.as_ref().map_or("the default lane".to_owned(), |name| format!("{name}=1"));
        context.output.line(&format!("{:<10} {gate:<7} {variable:<36} {}", manifest.id.as_str(), manifest.title));
    }
    context.output.line("\nAn open gate only lets an engine be recognised; admissions and stage proofs decide the rest.");
    Ok(0)
}
