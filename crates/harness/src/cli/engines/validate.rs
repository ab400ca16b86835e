//! `cto validate`: what a stage or an adapter must show, checked by running it.

use std::path::PathBuf;

use anstyle::AnsiColor;
use cto_core::containment::Containment;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::args::records::RecordArgs;
use crate::doubles::agent;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::{Env, Home};
use crate::proof::matrix::make_root;
use crate::proof::unnamed;
use crate::proof::validate::{self, Bench, VALIDATORS, Validation, Validator};
use crate::records::is_temporary;
use crate::screen::output::{dim, tame};
use crate::screen::progress;
use crate::screen::table::{Fit, Table};
use crate::supervise::cancel::Cancel;
use crate::task::cases;

#[derive(clap::Args)]
pub struct Args {
    /// What to validate, as --list shows it
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the validators
    #[arg(long)]
    list: bool,
    /// Prove the stage for this engine and keep the proof. Without it, built-in stand-ins run in a
    /// temporary directory and nothing is proven about a real engine
    #[arg(long)]
    engine: Option<String>,
    /// The case to run
    #[arg(long, value_name = "CASE", default_value = cases::DEFAULT_CASE)]
    case: String,
    /// Look for cases in this directory instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Keep the temporary directory of the stand-ins, and say where it is
    #[arg(long)]
    keep: bool,
    /// The containment to prove it with: strict, or contained
    #[arg(long, value_name = "HOW", default_value = "strict", value_parser = ["strict", "contained"])]
    contain: String,
    #[command(flatten)]
    records: RecordArgs,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let Some(name) = &args.name else {
        return list(context);
    };
    let validator = validate::find(name)?;
    let root = make_root(&context.env)?;
    let answer = validated(context, validator, &args, root.clone());
    if !args.keep {
        let _ = files::remove_tree(&root);
    }
    let validation = answer?;
    answer_with(context, validator, &validation)?;
    if args.keep && !context.output.json {
        context.output.line(&format!(
            "{dim}kept in{dim:#} {}",
            root.display(),
            dim = dim()
        ));
    }
    Ok(if validation.ok { 0 } else { 1 })
}

fn validated(
    context: &Context,
    validator: &Validator,
    args: &Args,
    root: PathBuf,
) -> Result<Validation, Failure> {
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let engine = args.engine.as_deref();
    let engine = engine.map(|id| context.engine(id)).transpose()?;
    let doubled = engine.as_ref().filter(|_| validator.doubles);
    let doubled = doubled.map(|engine| {
        let home = context.home()?;
        let double = unnamed::double_of(engine, args.records.bin(), &context.env, &home);
        Ok::<_, Failure>(double.map(|double| (unnamed::note(engine), double)))
    });
    let double = doubled.transpose()?.flatten();
    let engine = engine.filter(|_| double.is_none());
    let double = match (double, &engine) {
        (Some((note, double)), _) => {
            context.output.note(&note);
            Some(double)
        }
        (None, None) if validator.doubles => Some(agent::manifest()?),
        (None, _) => None,
    };
    if double.is_some() && validator.lasting {
        lies_to_stay(&context.env)?;
    }
    let home = match engine {
        Some(_) => context.home()?,
        None => Home {
            root: root.join("state"),
            runs: root.join("state/harness-runs"),
        },
    };
    let case = cases::find(&args.case, args.cases.as_deref())?;
    let mut progress = progress::for_stderr(context.output.json, false, &context.env);
    let fixtures = root.join("rows");
    crate::host::make_private_dir(&fixtures).map_err(|error| {
        Failure::internal(
            "no_temporary_directory",
            "no place for fixtures can be made",
        )
        .because(&error)
    })?;
    let mut bench = Bench {
        env: &context.env,
        home: &home,
        root: fixtures,
        engine,
        double,
        asked: args.records.asked(context.configured_prices()?)?,
        contain: if args.contain == "contained" {
            Containment::Contained
        } else {
            Containment::Strict
        },
        case,
        cancel: &cancel,
        progress: progress.as_mut(),
        lane: None,
        closed: Default::default(),
    };
    (validator.run)(&mut bench)
}

/// A double is this very program, and stages from 3 on refuse an engine in a temporary directory.
fn lies_to_stay(env: &Env) -> Result<(), Failure> {
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    let own = own.map_err(|error| {
        Failure::internal("own_program", "this program cannot find itself").because(&error)
    })?;
    if !is_temporary(&own, env) {
        return Ok(());
    }
    Err(Failure::blocked(
        "temporary_program",
        "this program plays the engine, and it lies in a temporary directory",
    )
    .reason("no stage from 3 on allows an engine there")
    .so("nothing ran")
    .hint("copy cto to a directory that stays, such as ~/.local/bin, and run it from there"))
}

fn list(context: &Context) -> Result<u8, Failure> {
    if context.output.json {
        let rows: Vec<Value> = VALIDATORS
            .iter()
            .map(|row| json!({"name": row.name, "what": row.what}))
            .collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "validate", "validators": rows}))?;
        return Ok(0);
    }
    let mut table = Table::new(&[("name", Fit::Whole), ("what it shows", Fit::Cut)]);
    VALIDATORS
        .iter()
        .for_each(|row| table.row(vec![row.name.into(), row.what.into()]));
    context.output.table(&table);
    Ok(0)
}

/// What a validator prints, for people or as the one document.
pub fn answer_with(
    context: &Context,
    validator: &Validator,
    validation: &Validation,
) -> Result<(), Failure> {
    if context.output.json {
        let mut document = serde_json::to_value(validation).map_err(|error| {
            Failure::internal("unprintable", "the answer cannot be printed").because(&error)
        })?;
        document["schema_version"] = 1.into();
        document["command"] = format!("validate {}", validator.name).into();
        return context.output.document(&document);
    }
    let (green, red) = (
        AnsiColor::Green.on_default(),
        AnsiColor::Red.on_default().bold(),
    );
    for check in &validation.checked {
        let (word, style) = if check.ok {
            ("ok    ", green)
        } else {
            ("NOT OK", red)
        };
        context
            .output
            .line(&format!("  {style}{word}{style:#} {}", check.name));
    }
    validation
        .errors
        .iter()
        .for_each(|error| context.output.hanging("  because ", &tame(error)));
    validation
        .proof_paths
        .iter()
        .for_each(|path| context.output.row("proof", path));
    Ok(())
}
