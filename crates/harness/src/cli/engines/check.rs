//! `cto engines check`: an engine started in a jail with a scripted model, and what works, line by line.

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use cto_core::engine::manifest::{Manifest, Program};
use cto_core::engine::registry::Named;
use cto_core::proof::case_check::{Line, Mark};
use cto_core::records::{ExecutableAdmission, RecordKind};
use serde_json::json;

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::proof::engine_trial::{self, Order, Trial};
use crate::records::{self, RecordStore, examine};
use crate::screen::output::{dim, tame};
use crate::screen::progress;
use crate::supervise::cancel::Cancel;
use crate::task::lane::variable;
use crate::task::{engines, own_engines};

#[derive(clap::Args)]
pub struct Args {
    /// The name of an engine, or the file of a manifest
    #[arg(value_name = "NAME|FILE")]
    engine: String,
    /// Its program [default: the one on record, then the one of that name on PATH]
    #[arg(long, visible_alias = "program", value_name = "FILE")]
    bin: Option<PathBuf>,
    /// A word that must appear in its --help or --version [default: the manifest's `identity`, or the engine's name]
    #[arg(long, value_name = "WORD")]
    identity: Option<String>,
    /// Keep the directory of the trial, and say where
    #[arg(long)]
    keep: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let (manifest, parsed) = match manifest(context, &args.engine)? {
        Ok(found) => found,
        Err((file, why)) => {
            let detail = format!("{file}: {why}");
            let lines = vec![Line::new("manifest", Mark::Wrong, detail)];
            return answer(context, args, &nothing_ran(lines), None);
        }
    };
    let bin = program(context, &manifest, args)?;
    let found = Line::new("program", Mark::Ok, bin.display().to_string());
    let mut lines = vec![parsed, found];
    let place = tempfile::Builder::new()
        .prefix("cto-check-")
        .tempdir()
        .map_err(|error| {
            Failure::internal("no_temporary_state", "no temporary directory can be made")
                .because(&error)
                .so("nothing ran")
        })?;
    let cancel = Cancel::on_signals().map_err(|error| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&error)
    })?;
    let order = Order {
        manifest: &manifest,
        bin: &bin,
        word: args.identity.as_deref(),
        dir: place.path(),
        env: &context.env,
        cancel: &cancel,
    };
    let mut progress = progress::for_stderr(context.output.json, false, &context.env);
    let trial = engine_trial::run(&order, progress.as_mut());
    let kept = args.keep.then(|| place.keep());
    let trial = trial?;
    lines.extend(trial.lines);
    let trial = Trial { lines, ..trial };
    answer(context, args, &trial, kept.as_deref())
}

fn nothing_ran(lines: Vec<Line>) -> Trial {
    Trial {
        lines,
        log: Vec::new(),
        bundle: None,
        unable: false,
    }
}

/// A manifest and the first line of the answer, or the file that is none and why.
type Parsed = Result<(Manifest, Line), (String, String)>;

fn manifest(context: &Context, named: &str) -> Result<Parsed, Failure> {
    let is_file = named.contains('/') || named.ends_with(".toml");
    let found = if is_file {
        own_engines::manifest(Path::new(named), &engines::all()?).map_err(|why| (tame(named), why))
    } else {
        match context.engines()?.named(named) {
            Named::Broken(broken) => Err((broken.file.clone(), broken.why.clone())),
            // One that nobody knows is a mistake on the command line.
            Named::Known(_) | Named::Unknown => Ok(context.engine(named)?),
        }
    };
    let manifest = match found {
        Ok(manifest) => manifest,
        Err(broken) => return Ok(Err(broken)),
    };
    let own = manifest.invocation.as_ref();
    if !own.is_some_and(|own| own.program == Program::Admitted) {
        let what = format!("{} has no program of its own to be tried", manifest.id);
        return Err(Failure::usage("nothing_to_check", what).so("nothing ran"));
    }
    let sha256 = manifest.sha256.map(|sum| sum.to_string());
    let line = Line::new("manifest", Mark::Ok, sha256.unwrap_or_default());
    Ok(Ok((manifest, line)))
}

/// The program as a path: named, on record, or found by its name.
fn program(context: &Context, manifest: &Manifest, args: &Args) -> Result<PathBuf, Failure> {
    let (id, env) = (&manifest.id, &context.env);
    let named = args.bin.as_deref().map(examine::named);
    let named = named.or_else(|| env.path(&variable(id, "BIN")));
    let recorded = || {
        let store = RecordStore::of(&context.home().ok()?, id);
        let found = records::find::<ExecutableAdmission>(&store.path(RecordKind::Executable));
        let path = PathBuf::from(&found.known()?.path);
        path.is_file().then_some(path)
    };
    let found = named.or_else(recorded);
    found
        .or_else(|| env.find_program(id.as_str()))
        .ok_or_else(|| {
            Failure::blocked(
                "provider_unavailable",
                format!("no program of {id} is named, on record or on PATH"),
            )
            .so("nothing ran")
            .hint("name it with --bin FILE")
        })
}

fn answer(
    context: &Context,
    args: &Args,
    trial: &Trial,
    kept: Option<&Path>,
) -> Result<u8, Failure> {
    let wrong = trial.lines.iter().filter(|line| line.mark == Mark::Wrong);
    let code = match (trial.unable, wrong.count()) {
        (true, _) => 3,
        (false, 0) => 0,
        (false, _) => 1,
    };
    let kept_bundle = trial.bundle.as_ref().filter(|_| kept.is_some());
    let kept_bundle = kept_bundle.map(|dir| dir.display().to_string());
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "engines check", "engine": args.engine, "ok": code == 0,
            "exit_code": code, "checks": trial.lines, "log": trial.log, "bundle": kept_bundle,
        }))?;
        return Ok(code);
    }
    for line in &trial.lines {
        let (sign, colour) = match line.mark {
            Mark::Ok => ('✓', AnsiColor::Green),
            Mark::Note => ('·', AnsiColor::Yellow),
            Mark::Wrong => ('✗', AnsiColor::Red),
        };
        let style = colour.on_default();
        let beginning = format!("  {style}{sign}{style:#} {:<10} ", line.check);
        context.output.hanging(&beginning, &tame(&line.detail));
    }
    let dim = dim();
    let log = trial.log.iter();
    log.for_each(|line| {
        context
            .output
            .line(&format!("      {dim}{}{dim:#}", tame(line)))
    });
    kept_bundle
        .iter()
        .for_each(|dir| context.output.row("kept in", dir));
    if code == 0 {
        let next = context
            .output
            .command(&format!("setup {}", tame(&args.engine)));
        context.output.line(&format!("\nnext: {next}"));
    }
    Ok(code)
}
