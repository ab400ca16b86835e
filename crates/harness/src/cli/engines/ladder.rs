//! `cto ladder`: which stages are proven for a lane, by which run, and what the next one needs. Runs nothing.

use anstyle::AnsiColor;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::LaneFacts;
use cto_core::gate::ladder::LaneKey;
use cto_core::gate::ladder::rungs::{Rung, RungStanding, next_rung, rungs};
use cto_core::run::event::Origin;
use cto_core::values::maybe_known::MaybeKnown;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::host::{self, Home, OwnProgram};
use crate::plan;
use crate::records;
use crate::screen::output::dim;
use crate::screen::table::{Cell, Fit, Table};
use crate::task::cases;
use crate::task::lane::LaneOptions;
use crate::task::request::Request;

#[derive(clap::Args)]
pub struct Args {
    /// The engine; without it, every engine this program can run
    #[arg(long)]
    engine: Option<String>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let asked = match &args.engine {
        Some(engine) => vec![context.engine(engine)?],
        None => {
            let all = context.engines()?.all().map(|(_, manifest)| manifest);
            all.filter(|manifest| manifest.invocation.is_some())
                .cloned()
                .collect()
        }
    };
    let home = context.home()?;
    let own = OwnProgram::find(&home)?;
    let mut ladders = Vec::new();
    for manifest in asked {
        let rungs = of_engine(context, &home, &own, &manifest)?;
        ladders.push((manifest, rungs));
    }
    if context.output.json {
        let engines: Vec<Value> = ladders
            .iter()
            .map(|(manifest, rungs)| document(manifest, rungs))
            .collect();
        let answer = json!({"schema_version": 1, "command": "ladder", "engines": engines});
        context.output.document(&answer)?;
        return Ok(0);
    }
    for (manifest, rungs) in &ladders {
        print(context, manifest, rungs);
    }
    Ok(0)
}

/// The lane as it is now, whether its gate is open or not, held against every proof.
fn of_engine(
    context: &Context,
    home: &Home,
    own: &OwnProgram,
    manifest: &Manifest,
) -> Result<Vec<Rung>, Failure> {
    let facts = match manifest.is_gated() {
        true => records::gather(
            manifest,
            &LaneOptions::default(),
            Origin::Operator,
            &context.env,
            home,
        ),
        false => LaneFacts::nothing(host::now()),
    };
    let request = Request::case(cases::find(cases::DEFAULT_CASE, None)?, manifest.clone());
    let document = plan::contract_of(&request, own, &MaybeKnown::Known(facts), &context.env);
    let lane = document.valid().map(|contract| LaneKey {
        // That of a case says nothing about another tree.
        containment: None,
        ..LaneKey::of(&contract.lane)
    });
    let proofs = records::proofs(&manifest.id, home, Origin::Operator);
    Ok(lane.map_or_else(Vec::new, |lane| rungs(manifest.is_gated(), &proofs, &lane)))
}

fn document(manifest: &Manifest, rungs: &[Rung]) -> Value {
    let next = next_rung(&manifest.id, rungs);
    let next =
        next.map(|next| json!({"stage": next.stage, "needs": next.needs, "command": next.command}));
    json!({"engine": manifest.id, "rungs": rungs, "next": next})
}

fn print(context: &Context, manifest: &Manifest, rungs: &[Rung]) {
    let output = &context.output;
    output.line(manifest.id.as_str());
    let mut table = Table::new(&[
        ("stage", Fit::Whole),
        ("standing", Fit::Whole),
        ("by", Fit::Whole),
        ("what may change", Fit::Cut),
    ]);
    for rung in rungs {
        let by = match &rung.standing {
            RungStanding::Proven { run_id } => run_id.to_string(),
            RungStanding::Demoted { changed } => format!("changed: {}", changed.join(", ")),
            RungStanding::NotNeeded | RungStanding::Unproven => String::new(),
        };
        let word = match &rung.standing {
            RungStanding::Proven { .. } => Cell::styled("proven", AnsiColor::Green.on_default()),
            RungStanding::Demoted { .. } => Cell::styled("demoted", AnsiColor::Yellow.on_default()),
            RungStanding::NotNeeded => Cell::styled("not needed", dim()),
            RungStanding::Unproven => Cell::styled("not proven", dim()),
        };
        let stage = rung.stage.number().to_string();
        let scope = rung.stage.allowed_mutation_scope();
        table.row(vec![
            stage.as_str().into(),
            word,
            by.as_str().into(),
            scope.into(),
        ]);
    }
    output.table(&table);
    if let Some(next) = next_rung(&manifest.id, rungs) {
        output.hanging(
            &format!("stage {} needs: ", next.stage.number()),
            &next.needs,
        );
        output.line(&format!("next: {}", output.command(&next.command)));
    }
    output.line("");
}
