//! `cto verify`: good, bad or unknown, from the bundle's own bytes.

use std::path::Path;

use anstyle::AnsiColor;
use cto_core::verify::{Signature, Standing, Verification};
use serde_json::json;

use super::Context;
use super::output::{dim, status_style, tame};
use crate::evidence::{Liveness, liveness};
use crate::failure::Failure;
use crate::reader;

#[derive(clap::Args)]
pub struct Args {
    /// Run ids, unique parts of them, `last`, or bundle directories
    #[arg(default_value = "last")]
    runs: Vec<String>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let mut worst = 0;
    let mut documents = Vec::new();
    for name in &args.runs {
        let dir = reader::find(&context.home()?, name)?;
        let code = match liveness(&dir) {
            Liveness::Sealed => {
                let verification = reader::verify_dir(&dir).map_err(|error| {
                    Failure::internal("unreadable_bundle", "the bundle cannot be read")
                        .at(dir.display().to_string())
                        .because(&error)
                })?;
                if !context.output.json {
                    print(context, &verification, &dir);
                }
                let code = exit_code(&verification);
                documents.push(json!({"bundle": dir.display().to_string(), "exit_code": code, "verification": verification}));
                code
            }
            state => {
                documents.push(unsealed(context, &dir, state));
                3
            }
        };
        worst = worse(worst, code);
    }
    if context.output.json {
        context.output.document(&json!({"schema_version": 1, "command": "verify", "bundles": documents}))?;
    }
    Ok(worst)
}

fn exit_code(verification: &Verification) -> u8 {
    match verification.standing {
        Standing::Good => 0,
        Standing::Bad => 1,
        Standing::Unknown => 3,
    }
}

/// Bad beats unknown beats good.
fn worse(a: u8, b: u8) -> u8 {
    let rank = |code: u8| match code {
        0 => 0,
        3 => 1,
        _ => 2,
    };
    if rank(b) > rank(a) { b } else { a }
}

fn unsealed(context: &Context, dir: &Path, state: Liveness) -> serde_json::Value {
    let word = if state == Liveness::Live { "live" } else { "unsealed" };
    if !context.output.json {
        let style = AnsiColor::Yellow.on_default().bold();
        context.output.line(&format!(
            "{style}UNKNOWN{style:#}  {}  {word}: there is no result to check",
            dir.file_name().unwrap_or_default().display()
        ));
        if state == Liveness::Interrupted {
            context.output.line(&format!("\nhint: `{}` closes interrupted runs", context.output.command("recover")));
        }
    }
    json!({"bundle": dir.display().to_string(), "exit_code": 3, "verification": null, "state": word})
}

fn print(context: &Context, verification: &Verification, dir: &Path) {
    let out = |text: &str| context.output.line(text);
    let dim = dim();
    let (word, style) = match verification.standing {
        Standing::Good => ("GOOD", AnsiColor::Green.on_default().bold()),
        Standing::Bad => ("BAD", AnsiColor::Red.on_default().bold()),
        Standing::Unknown => ("UNKNOWN", AnsiColor::Yellow.on_default().bold()),
    };
    let name = verification.run_id.clone().unwrap_or_else(|| dir.display().to_string());
    let signature = match verification.signature {
        Signature::Unsigned => "unsigned",
    };
    out(&format!("{style}{word}{style:#}  {}  {dim}{signature}{dim:#}", tame(&name)));
    let checks = verification.checked.iter().map(|check| if check.ok { check.name.clone() } else { format!("{}!", check.name) });
    context.output.hanging(&format!("  {dim}checked{dim:#}  "), &checks.collect::<Vec<_>>().join(", "));
    for problem in &verification.problems {
        let text = format!("{}: {} {dim}[{}]{dim:#}", tame(&problem.artifact), tame(&problem.message), problem.check);
        context.output.hanging(&format!("  {dim}problem{dim:#}  "), &text);
    }
    match verification.status {
        Some(status) => {
            let style = status_style(status);
            out(&format!("  {dim}verdict{dim:#}  {style}{}{style:#}, re-derived from the evidence", status.as_str()));
            out("");
            context.output.hanging("", "The bundle is whole and consistent. Without a signature this does not say who made it.");
        }
        None => out("\nDo not rely on this bundle: what it says is not what its evidence says."),
    }
}
