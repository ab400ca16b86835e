//! `cto engines`: every engine this binary knows, and what keeps it closed or opened it.

use anstyle::AnsiColor;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::opening::{self, By, Opening, Why};
use serde_json::json;

use crate::cli::Context;
use crate::cli::engines::gate;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::records;
use crate::screen::output::{dim, tame};
use crate::screen::table::{Cell, Fit, Table};
use crate::task::engines;
use crate::task::lane::LaneOptions;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<gate::Command>,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    match args.command {
        Some(command) => gate::run(context, command),
        None => list(context),
    }
}

/// Whether an engine is open for a command like this one.
fn standing(context: &Context, home: Option<&Home>, manifest: &Manifest) -> Opening {
    let asked = engines::asked(manifest, &[], &context.env);
    let lane = LaneOptions::default();
    match home {
        Some(home) => records::gate::opening(manifest, &asked, &lane, &context.env, home),
        // Without a state home there is no record.
        None if manifest.is_gated() => opening::decide(&manifest.id, &asked, None),
        None => Opening::Opened(By::Default),
    }
}

fn list(context: &Context) -> Result<u8, Failure> {
    let home = context.home().ok();
    let registry = context.engines()?;
    let all: Vec<(Manifest, Opening)> = registry
        .all()
        .map(|(_, manifest)| {
            let opening = standing(context, home.as_ref(), manifest);
            (manifest.clone(), opening)
        })
        .collect();
    if context.output.json {
        let rows: Vec<_> = all
            .iter()
            .map(|(manifest, opening)| row(manifest, opening))
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
    for (manifest, opening) in &all {
        let gate = match opening.is_open() {
            true => Cell::styled("open", AnsiColor::Green.on_default()),
            false => Cell::styled("closed", dim()),
        };
        table.row(vec![
            manifest.id.as_str().into(),
            gate,
            manifest.title.as_str().into(),
            opened_by(manifest, opening).as_str().into(),
        ]);
    }
    context.output.table(&table);
    context.output.line("");
    for (manifest, opening) in &all {
        // A record that does not count is worth a sentence; an engine nobody opened is not.
        if let Opening::Closed(why) = opening
            && !matches!(why, Why::NotOpened | Why::NotAdmitted)
        {
            context.output.hanging("", &tame(&sentence(manifest, why)));
        }
    }
    context.output.hanging(
        "",
        "A variable opens its engine when it is 1 and closes it when it is anything else; `cto engines open ENGINE` opens it for you at a terminal. An open gate only lets an engine be recognised; admissions and stage proofs decide the rest.",
    );
    Ok(0)
}

fn row(manifest: &Manifest, opening: &Opening) -> serde_json::Value {
    let (opened_by, closed_because) = match opening {
        Opening::Opened(by) => (Some(by.word()), None),
        Opening::Closed(why) => (None, Some(sentence(manifest, why))),
    };
    json!({
        "engine": manifest.id,
        "title": manifest.title,
        "default": !manifest.is_gated(),
        "gate": if opening.is_open() { "open" } else { "closed" },
        "opened_by": opened_by,
        "closed_because": closed_because,
        "gated_by_env": manifest.gated_by_env,
        "default_stage": manifest.default_stage,
        "runnable": manifest.invocation.is_some(),
    })
}

fn sentence(manifest: &Manifest, why: &Why) -> String {
    let variable = manifest.gated_by_env.as_deref().unwrap_or_default();
    why.sentence(&manifest.id, variable)
}

/// What opened it, or what would.
fn opened_by(manifest: &Manifest, opening: &Opening) -> String {
    match (opening, manifest.gated_by_env.as_deref()) {
        (_, None) => "nothing: it always is".into(),
        (Opening::Opened(by), Some(variable)) => match by.word() {
            "variable" => variable.to_owned(),
            word => word.to_owned(),
        },
        (Opening::Closed(_), Some(variable)) => variable.to_owned(),
    }
}
