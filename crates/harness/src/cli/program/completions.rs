//! `cto completions`: what a shell needs to complete our command line.

use clap_complete::Shell;
use serde_json::json;

use crate::cli::Context;
use crate::cli::public_tree;
use crate::host::failure::Failure;

#[derive(clap::Args)]
pub struct Args {
    /// The shell to write it for
    shell: Shell,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut public_tree(), "cto", &mut script);
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "completions",
            "shell": args.shell.to_string(),
            "script": String::from_utf8_lossy(&script),
        }))?;
    } else {
        context.output.bytes(&script);
    }
    Ok(0)
}
