//! `cto run`: one governed run.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use cto_core::contract::{LimitChanges, Stage};
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::event::Origin;
use cto_core::ids::EngineId;
use cto_core::verdict::Status;
use cto_core::verify::Standing;
use serde_json::json;

use super::Context;
use super::show;
use crate::cancel::Cancel;
use crate::cases::{self, Case};
use crate::doubles::fake;
use crate::engines;
use crate::failure::Failure;
use crate::files;
use crate::host::Home;
use crate::keys::KeyStore;
use crate::progress;
use crate::recover;
use crate::run::{self, Request};
use crate::verifier;

const MAX_SCRIPT: u64 = 16 << 20;

#[derive(clap::Args)]
pub struct Args {
    /// A built-in case, or a path to a case directory
    #[arg(default_value = cases::DEFAULT_CASE)]
    case: String,
    /// Show the engine's output while it runs
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    task: TaskArgs,
}

/// What shapes the contract; shared with `cto contract`.
#[derive(clap::Args)]
pub struct TaskArgs {
    /// The engine that works on it
    #[arg(long, default_value = DEFAULT_ENGINE)]
    engine: String,
    /// Open a gated engine for this command
    #[arg(long, value_name = "ENGINE")]
    allow_engine: Vec<EngineId>,
    /// The stage of the proof ladder to run at [default: 2 for fake, 1 for others]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=6))]
    stage: Option<u8>,
    /// What `fake` plays: a script of the case (oracle, nop, cheat) or a file
    #[arg(long, value_name = "NAME|FILE")]
    script: Option<String>,
    /// Seconds the engine may take
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    timeout: Option<u32>,
    /// Seconds the engine may stay silent
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    idle: Option<u32>,
    /// Look for cases in this directory instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
}

impl TaskArgs {
    pub fn request(self, context: &Context, case: &str) -> Result<Request, Failure> {
        let case = cases::find(case, self.cases.as_deref())?;
        let manifest = engines::find(&self.engine)?;
        let stage = stage(&manifest, self.stage, context)?;
        let own_script = case.built_in && self.script.as_deref().is_none_or(|name| case.scripts.contains_key(name));
        let script = script(&manifest, &case, self.script.as_deref())?;
        let engine_opened = engines::is_opened(&manifest, &self.allow_engine, &context.env);
        let limits = LimitChanges { engine_wall_seconds: self.timeout, engine_idle_seconds: self.idle };
        Ok(Request { case, manifest, stage, engine_opened, script, own_script, limits, origin: Origin::Operator })
    }
}

/// The flag and the engine's own variable must agree.
fn stage(manifest: &Manifest, flag: Option<u8>, context: &Context) -> Result<Stage, Failure> {
    let bad = |text: String| Failure::usage("bad_stage", text).so("nothing ran");
    let variable = format!("CTO_HARNESS_{}_STAGE", manifest.id.as_str().to_uppercase().replace('-', "_"));
    let from_env = match context.env.get(&variable).filter(|_| manifest.is_gated()) {
        None => None,
        Some(value) => Some(
            value.to_str().and_then(|text| text.parse::<u8>().ok()).ok_or_else(|| bad(format!("{variable} is not a stage")))?,
        ),
    };
    let number = match (flag, from_env) {
        (Some(flag), Some(env)) if flag != env => return Err(bad(format!("--stage {flag} and {variable}={env} disagree"))),
        (Some(number), _) | (None, Some(number)) => number,
        (None, None) => return Ok(manifest.default_stage),
    };
    Stage::try_from(number).map_err(bad)
}

fn script(manifest: &Manifest, case: &Case, asked: Option<&str>) -> Result<Option<Vec<u8>>, Failure> {
    let plays = manifest.id.as_str() == DEFAULT_ENGINE;
    let bytes = match asked {
        Some(_) if !plays => {
            return Err(Failure::usage("script_without_fake", "only the fake engine plays scripts")
                .so("nothing ran")
                .hint("drop --script, or use --engine fake"));
        }
        None if !plays => return Ok(None),
        None => case.scripts.get("oracle").cloned().unwrap_or_default(),
        Some(name) if case.scripts.contains_key(name) => case.scripts.get(name).cloned().unwrap_or_default(),
        Some(file) => files::read_limited(&PathBuf::from(file), MAX_SCRIPT).map_err(|error| {
            let known = case.scripts.keys().cloned().collect::<Vec<_>>().join(", ");
            Failure::usage("unreadable_script", "the script cannot be read")
                .at(file)
                .because(&error)
                .so("nothing ran")
                .hint(format!("scripts of this case: {known}"))
        })?,
    };
    fake::parse(&bytes).map_err(|error| {
        Failure::usage("bad_script", "the script cannot be played")
            .at(asked.unwrap_or("oracle"))
            .because(&error)
            .so("nothing ran")
    })?;
    Ok(Some(bytes))
}

/// A pass is printed only over evidence that bears it out: nobody may have written into the bundle meanwhile.
fn confirm(home: &Home, dir: &Path) -> Result<(), Failure> {
    let refused = || {
        Failure::internal("evidence_touched", "the sealed bundle does not bear out its own verdict")
            .at(dir.display().to_string())
            .so("nothing counts as passed")
            .hint("`cto verify` lists what is wrong; something outside the harness wrote into the bundle")
    };
    let trust = KeyStore::of(home).trust().map_err(|error| refused().because(&error))?;
    let found = verifier::verify_dir(dir, &trust).map_err(|error| refused().because(&error))?;
    match (found.standing, found.problems.iter().chain(&found.unknowns).next()) {
        (Standing::Good, _) => Ok(()),
        (_, Some(problem)) => Err(refused().reason(format!("{}: {}", problem.artifact, problem.message))),
        (_, None) => Err(refused()),
    }
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let request = args.task.request(context, &args.case)?;
    let home = context.home()?;
    for recovered in recover::recover_listed(&home) {
        match recovered.result {
            Ok(()) => context.output.note(&format!("closed an interrupted run: {}", recovered.run_id)),
            Err(error) => context.output.note(&format!("an interrupted run could not be closed: {}: {error}", recovered.run_id)),
        }
    }
    let cancel =
        Cancel::on_signals().map_err(|e| Failure::internal("no_signals", "signals cannot be listened to").because(&e))?;
    let mut progress = progress::for_stderr(context.output.json);
    if args.verbose {
        progress = Box::new(progress::Verbose::over(progress));
    }
    let sealed = run::run(&home, &context.env, &request, &cancel, progress.as_mut())?;
    let report = &sealed.report;
    let next = context.output.command(&format!("verify {}", report.run_id));
    if report.status == Status::Pass {
        confirm(&home, &sealed.dir)?;
    }
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "run",
            "run_id": report.run_id,
            "status": report.status,
            "failure_reason": report.failure_reason,
            "exit_code": report.status.exit_code(),
            "bundle": sealed.dir.display().to_string(),
            "next": next,
            "report": report,
        }))?;
    } else {
        show::print(context, report, &sealed.dir);
        context.output.line(&format!("\nnext: {next}"));
    }
    Ok(report.status.exit_code())
}
