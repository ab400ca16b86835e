//! `cto __row NAME`: one row of the failure matrix as a run of its own. `cto matrix` starts it.

use std::path::PathBuf;

use cto_core::proof::matrix::{Scripted, Words};
use rustix::process::Signal;
use serde_json::json;

use crate::cli::Context;
use crate::doubles::{self, agent};
use crate::host::failure::Failure;
use crate::proof::matrix::asked::{self, Playing};
use crate::proof::matrix::lane::Lane;
use crate::proof::matrix::owned::{Climbed, RowDesk};
use crate::proof::matrix::{self, VALIDATOR, fault};
use crate::run;
use crate::run::approvals::{Answer, Approvals};
use crate::supervise::cancel::Cancel;

#[derive(clap::Args)]
pub struct Args {
    name: String,
    #[arg(long)]
    engine: String,
    #[arg(long)]
    source: Option<PathBuf>,
    /// The lane of a row that starts a program of its own, as `cto matrix` prepared it
    #[arg(long)]
    lane: Option<PathBuf>,
    /// The admission of the row's repository
    #[arg(long)]
    target: Option<PathBuf>,
    /// A state with the proofs that the row stands on, as `cto matrix` made it
    #[arg(long)]
    climbed: Option<PathBuf>,
    /// The engine is played by the double of it that ships here
    #[arg(long)]
    double: bool,
    /// A word of the row's steps and what it means: `place=DIR`
    #[arg(long)]
    word: Vec<String>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    // When the matrix dies, so do its rows.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let (mut matrix, kit) = (matrix::built_in()?, matrix::attack_matrix()?);
    matrix.rows.extend(kit.rows);
    let row = matrix.rows.iter().find(|row| row.name == args.name);
    let row = row.ok_or_else(|| {
        Failure::usage("unknown_row", format!("no row is called {:?}", args.name)).so("nothing ran")
    })?;
    let home = context.home()?;
    if home.root.exists() || home.runs.exists() {
        return Err(
            Failure::usage("not_fresh", "a row runs in a state home of its own")
                .at(home.root.display().to_string())
                .so("nothing ran"),
        );
    }
    let cancel = Cancel::on_signals().map_err(|error| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&error)
    })?;
    let double = agent::manifest()?;
    let manifest = match args.engine == double.id.as_str() {
        true => double,
        false => context.engine(&args.engine)?,
    };
    let doubled = doubles::in_place_of(&manifest).filter(|_| args.double);
    let manifest = doubled.unwrap_or(manifest);
    let playing = match &args.lane {
        None => Playing::Script(words(args)),
        Some(dir) => {
            let lane = Lane::at(dir);
            lane.lay(&home).map_err(|error| {
                Failure::internal("no_lane", "the state of a lane cannot be copied").because(&error)
            })?;
            Playing::Lane(lane.playing(row, &manifest, &words(args))?)
        }
    };
    let mut request = asked::request(
        row,
        &matrix.fixture,
        manifest,
        args.source.as_deref(),
        playing,
    )?;
    request.target.clone_from(&args.target);
    if let Some(dir) = &args.climbed {
        Climbed::at(dir).lay(&home).map_err(|error| {
            Failure::internal("no_proofs", "the state of a row cannot be copied").because(&error)
        })?;
    }
    let place = (&home, &context.env);
    let desk = || RowDesk::open(place, args.target.as_deref());
    let approvals = match row.approval {
        None => Approvals::store(&home, None),
        Some(Scripted::Granted) => Approvals::scripted(Answer::Granted {
            actor: VALIDATOR.into(),
        }),
        Some(Scripted::Denied) => Approvals::scripted(Answer::Denied {
            actor: VALIDATOR.into(),
        }),
        Some(stored) => {
            let id = desk()?.answer(&request, stored)?;
            let approvals = Approvals::store(&home, Some(&id));
            request.request_id = Some(id);
            approvals
        }
    };
    let mut progress = fault::apply(row.fault, args.source.as_deref())?;
    let mut sealed = run::run_asking(
        &approvals,
        &home,
        &context.env,
        &request,
        &cancel,
        progress.as_mut(),
    )?;
    if let Some(word) = row.word {
        sealed = desk()?.say(row, word, &sealed.dir, &cancel)?;
    }
    context.output.document(&json!({"schema_version": 1, "command": "__row", "bundle": sealed.dir.display().to_string()}))?;
    Ok(sealed.report.status.exit_code())
}

/// What the words of a row mean, this process among them.
fn words(args: &Args) -> Words {
    let given = args.word.iter().filter_map(|word| word.split_once('='));
    let mut words: Words = given
        .map(|(word, meant)| (word.to_owned(), meant.to_owned()))
        .collect();
    words.insert("harness".into(), std::process::id().to_string());
    words
}
