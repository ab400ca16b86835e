//! `cto schema`: the JSON Schemas of every artifact, from the types themselves.

use serde_json::json;

use crate::cli::Context;
use crate::host::failure::Failure;

#[derive(clap::Args)]
pub struct Args {
    /// Which document; without one, the names are listed
    name: Option<String>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let all = cto_core::operator::schema::all_schemas();
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let Some(wanted) = &args.name else {
        match context.output.json {
            true => context
                .output
                .document(&json!({"schema_version": 1, "command": "schema", "schemas": names()}))?,
            false => names().iter().for_each(|name| context.output.line(name)),
        }
        return Ok(0);
    };
    match all.iter().find(|(name, _)| name == wanted) {
        Some((_, schema)) => context.output.document(schema).map(|()| 0),
        None => Err(
            Failure::usage("unknown_schema", format!("no schema is called {wanted:?}"))
                .hint(format!("known schemas: {}", names().join(", "))),
        ),
    }
}
