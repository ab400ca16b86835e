//! `cto run`: one governed run; several of them are in `run_all.rs`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::RangedU64ValueParser;
use cto_core::bundle::report::Report;
use cto_core::containment::Containment;
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::engine::profile::Profile;
use cto_core::task::contract::LimitChanges;
use cto_core::values::ids::EngineId;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bundles::index;
use crate::bundles::verifier;
use crate::cli::Context;
use crate::cli::args::records::RecordArgs;
use crate::cli::evidence::recover as recovered;
use crate::cli::evidence::show;
use crate::cli::operator;
use crate::cli::operator::outcome::AheadArgs;
use crate::cli::work::run_all;
use crate::evidence::SealedBundle;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::records;
use crate::run;
use crate::run::approvals::store::Store;
use crate::run::recover;
use crate::screen::output::dim;
use crate::screen::progress::{self, Progress, bell};
use crate::supervise::cancel::Cancel;
use crate::task::cases::{self, Case};
use crate::task::engines;
use crate::task::request::{EngineChoice, Request};
use crate::workspace::landing;

#[derive(clap::Args)]
pub struct Args {
    /// A built-in case, or a path to a case directory; several are run as with --all
    #[arg(value_name = "CASE", default_value = cases::DEFAULT_CASE)]
    names: Vec<String>,
    /// Run every case, each as an ordinary run with a bundle of its own
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// How many cases to run at a time
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Show what the engine and the checks print while they run
    #[arg(long, short, conflicts_with = "all")]
    verbose: bool,
    /// Keep the workspace of a run that does not pass; at stage 4 the disposable repository, however the run ends
    #[arg(long)]
    keep: bool,
    /// Run exactly what was requested and approved: a request's id, a part of it that no other has, or `last`
    #[arg(long, value_name = "ID", conflicts_with_all = ["names", "all"])]
    request: Option<String>,
    #[command(flatten)]
    ahead: AheadArgs,
    #[command(flatten)]
    task: TaskArgs,
}

/// Who works on it; shared with `cto try`.
#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct LaneArgs {
    /// The engine that works on it [default: fake]
    #[arg(long)]
    engine: Option<String>,
    /// Knobs of an engine under one name: its engine, model, stage and limits (qwen-local). Program, records and the
    /// address of the model still come from you
    #[arg(long, value_name = "NAME", hide_short_help = true, conflicts_with_all = ["model_provider", "model"])]
    #[serde(default)]
    profile: Option<String>,
    /// Open a gated engine for this command
    #[arg(long, value_name = "ENGINE")]
    allow_engine: Vec<EngineId>,
    /// What `fake` plays: a script of the case (oracle, nop, cheat), a script file, or a patch file
    #[arg(long, value_name = "NAME|FILE")]
    script: Option<String>,
    /// How the engine is confined: strict, or contained (all of its copy is writable, and judged
    /// afterwards)
    #[arg(long, value_name = "HOW", default_value = "strict", value_parser = ["strict", "contained"])]
    contain: String,
    /// Seconds the engine may run
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    timeout: Option<u32>,
    /// Seconds the engine may stay silent
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    idle: Option<u32>,
    /// A program, or the directory of an installation, to show read-only where cto does not find it
    /// by itself (repeatable)
    #[arg(long, value_name = "PATH")]
    toolchain: Vec<PathBuf>,
    /// A text the engine is told beside the task (an AGENTS.md, say); none is by default
    #[arg(long, value_name = "FILE")]
    instructions: Option<PathBuf>,
    #[command(flatten)]
    records: RecordArgs,
}

/// What shapes the contract; shared with `cto contract`.
#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct TaskArgs {
    /// The stage of the proof ladder to run at [default: 2 for fake; for others 1, and 2 once 1 is proven]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=6))]
    stage: Option<u8>,
    /// Stage 3: the record of a repository of yours; the case is run on a copy of its last commit
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Stage 5: the admission of the repository that may be changed [env:
    /// CTO_HARNESS_<ENGINE>_STAGE5_TARGET_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    target: Option<PathBuf>,
    /// Look for cases in this directory instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    // Last: its records have a heading of their own, and what follows would stand below it.
    #[command(flatten)]
    lane: LaneArgs,
}

impl TaskArgs {
    pub fn request(&self, context: &Context, case: &str) -> Result<Request, Failure> {
        let dir = self.cases_dir(context)?;
        self.request_for(context, cases::find(case, dir.as_deref())?)
    }

    /// Who would work on something that is no case.
    pub fn choice(&self, context: &Context) -> Result<EngineChoice, Failure> {
        self.lane.choice(context, self.stage)
    }

    fn request_for(&self, context: &Context, case: Case) -> Result<Request, Failure> {
        let choice = self.choice(context)?;
        let mut request = choice.request(case, &context.env, context.configured_limits())?;
        self.check_stage(&request)?;
        request.target.clone_from(&self.target);
        Ok(match &self.source {
            None => request,
            Some(file) => request.on_source(records::sources::named(file)),
        })
    }

    /// Names files as they are found from anywhere: a request is run again from another directory.
    pub fn name_from_anywhere(&mut self) -> Result<(), Failure> {
        let lane = &mut self.lane;
        let named = [&mut self.source, &mut self.target, &mut self.cases];
        let paths = named.into_iter().flatten().chain(&mut lane.toolchain);
        for path in paths {
            *path = absolute(path)?;
        }
        if let Some(script) = &mut lane.script
            && Path::new(script).is_file()
        {
            *script = absolute(Path::new(script))?.display().to_string();
        }
        Ok(())
    }

    /// What belongs to one stage is refused at any other.
    fn check_stage(&self, request: &Request) -> Result<(), Failure> {
        let stage = request.stage.number();
        let misplaced = [
            ("--source", self.source.is_some(), stage == 3, 3),
            ("--target", self.target.is_some(), stage >= 5, 5),
        ];
        match misplaced.iter().find(|(_, given, fits, _)| *given && !fits) {
            None => Ok(()),
            Some((flag, _, _, wanted)) => Err(Failure::usage(
                "wrong_stage",
                format!("{flag} belongs to stage {wanted}, and this run is at stage {stage}"),
            )
            .so("nothing ran")
            .hint(format!("add --stage {wanted}, or leave {flag} out"))),
        }
    }

    fn cases_dir(&self, context: &Context) -> Result<Option<PathBuf>, Failure> {
        self.cases
            .clone()
            .map_or_else(|| context.configured_cases(), |dir| Ok(Some(dir)))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        Failure::usage("bad_path", "a path cannot be made absolute")
            .at(path.display().to_string())
            .because(&error)
    })
}

impl LaneArgs {
    /// The flags as names; `stage` is the flag, where there is one.
    pub fn choice(&self, context: &Context, stage: Option<u8>) -> Result<EngineChoice, Failure> {
        let profile = self.profile()?;
        let mut lane = self.records.asked(context.configured_prices()?)?;
        if let Some(profile) = &profile {
            lane.provider = Some(profile.provider.clone());
            lane.model = Some(profile.model.clone());
        }
        let of_profile = profile.as_ref().map(|profile| profile.engine.as_str());
        let engine = self.engine.as_deref().or(of_profile);
        Ok(EngineChoice {
            manifest: context.engine(engine.unwrap_or(DEFAULT_ENGINE))?,
            allowed: self.allow_engine.clone(),
            script: self.script.clone(),
            stage,
            contain: if self.contain == "contained" {
                Containment::Contained
            } else {
                Containment::Strict
            },
            limits: LimitChanges {
                engine_wall_seconds: self.timeout,
                engine_idle_seconds: self.idle,
                model_calls: self.records.model_calls(),
                model_tokens: self.records.tokens(),
                ..LimitChanges::default()
            },
            lane,
            toolchains: self.toolchain.clone(),
            instructions: self.instructions.clone(),
            profile,
        })
    }

    /// The profile that was named. It is of one engine, and of no other.
    fn profile(&self) -> Result<Option<Profile>, Failure> {
        let Some(name) = &self.profile else {
            return Ok(None);
        };
        let profile = engines::profile(name)?;
        match self.engine.as_deref() {
            Some(engine) if engine != profile.engine.as_str() => Err(Failure::usage(
                "another_engine",
                format!(
                    "the profile {name} is of {}, and --engine names {engine}",
                    profile.engine
                ),
            )
            .so("nothing ran")
            .hint("leave --engine out, or the profile")),
            _ => Ok(Some(profile)),
        }
    }
}

/// A pass is printed only over evidence that bears it out: nobody may have written into the bundle
/// meanwhile.
fn confirm(context: &Context, dir: &Path) -> Result<(), Failure> {
    let refused = || {
        Failure::internal(
            "evidence_touched",
            "the bundle just written does not verify; its verdict cannot be trusted",
        )
        .at(dir.display().to_string())
        .so("nothing counts as passed")
        .hint(
            "`cto verify` lists what is wrong; something outside the harness wrote into the bundle",
        )
    };
    let found =
        verifier::verify_dir(dir, &context.trust()?).map_err(|error| refused().because(&error))?;
    match (
        found.standing,
        found.problems.iter().chain(&found.unknowns).next(),
    ) {
        (Standing::Good, _) => Ok(()),
        (_, Some(problem)) => {
            Err(refused().reason(format!("{}: {}", problem.artifact, problem.message)))
        }
        (_, None) => Err(refused()),
    }
}

/// Everything that was asked for, found and understood before anything runs.
fn requests(context: &Context, args: &Args) -> Result<Vec<Request>, Failure> {
    if let Some(name) = &args.request {
        let id = operator::request::named_by(&Store::of(&context.home()?), name)?;
        let request = operator::request::recorded(context, &id)?;
        return Ok(vec![request.keeping_workspace(args.keep)]);
    }
    if !args.all {
        return args
            .names
            .iter()
            .map(|name| {
                Ok(args
                    .task
                    .request(context, name)?
                    .keeping_workspace(args.keep))
            })
            .collect();
    }
    let listed = cases::all(args.task.cases_dir(context)?.as_deref())?;
    let request = |case: Case| {
        Ok(args
            .task
            .request_for(context, case)?
            .keeping_workspace(args.keep))
    };
    listed
        .into_iter()
        .map(|listed| request(listed.case?))
        .collect()
}

/// A run and, where it passed, a second look at its evidence.
pub fn run_one(
    context: &Context,
    home: &Home,
    request: &Request,
    cancel: &Cancel,
    progress: &mut dyn Progress,
) -> Result<SealedBundle, Failure> {
    let sealed = run::run(home, &context.env, request, cancel, progress)?;
    index::ingest(home, &sealed.report.run_id);
    if sealed.report.status == Status::Pass {
        confirm(context, &sealed.dir)?;
    }
    Ok(sealed)
}

/// Adds what `--json` tells of one run.
pub fn describe(sealed: &SealedBundle, answer: &mut Value) {
    let report = &sealed.report;
    answer["run_id"] = json!(report.run_id);
    answer["status"] = json!(report.status);
    answer["failure_reason"] = json!(report.failure_reason);
    answer["exit_code"] = json!(report.status.exit_code());
    answer["bundle"] = json!(sealed.dir.display().to_string());
    answer["report"] = json!(report);
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let requests = requests(context, &args)?;
    if args.verbose && requests.len() > 1 {
        return Err(Failure::usage(
            "verbose_batch",
            "--verbose shows one run, and several were asked for",
        )
        .so("nothing ran"));
    }
    let (home, cancel) = begin(context)?;
    let request = match requests.as_slice() {
        [request] if !args.all => request,
        several => {
            args.ahead.not_for_several()?;
            return run_all::run(context, &home, several, usize::from(args.jobs), &cancel);
        }
    };
    let ahead = args
        .ahead
        .given(context, &request.manifest, request.stage)?;
    let sealed = watched(context, &home, request, &cancel, args.verbose)?;
    let settled = match ahead {
        None => None,
        Some(ahead) => ahead.settle(context, &home, &sealed.dir, &cancel)?,
    };
    let report = &sealed.report;
    let next = context.output.command(&format!("verify {}", report.run_id));
    if context.output.json {
        let kept = kept_workspace(&home, request, report);
        let mut answer = answer("run", &sealed, &next, kept);
        if let Some(settled) = &settled {
            settled.describe(&mut answer);
            answer["exit_code"] = json!(settled.exit_code());
        }
        context.output.document(&answer)?;
    } else {
        show::print(context, report, &sealed.dir);
        say_kept(context, &home, request, report);
        if let Some(settled) = &settled {
            settled.say(context);
        }
        context.output.line(&format!("\nnext: {next}"));
    }
    Ok(settled.map_or(report.status.exit_code(), |settled| settled.exit_code()))
}

/// One run, whole: for a command that makes exactly one.
pub fn execute(
    context: &Context,
    request: &Request,
    verbose: bool,
) -> Result<(Home, SealedBundle), Failure> {
    let (home, cancel) = begin(context)?;
    let sealed = watched(context, &home, request, &cancel, verbose)?;
    Ok((home, sealed))
}

/// A run that somebody may watch, and is called back to when it took long.
fn watched(
    context: &Context,
    home: &Home,
    request: &Request,
    cancel: &Cancel,
    verbose: bool,
) -> Result<SealedBundle, Failure> {
    let (since, quiet) = (Instant::now(), context.output.json);
    let mut progress = progress::for_stderr(quiet, verbose, &context.env);
    let sealed = run_one(context, home, request, cancel, progress.as_mut());
    drop(progress);
    if !quiet {
        let verdict = match &sealed {
            Ok(sealed) => sealed.report.status.as_str().to_uppercase(),
            Err(_) => "no verdict".to_owned(),
        };
        bell::ring(
            since,
            &context.env,
            &format!("cto: {verdict} {}", request.case.id),
        );
    }
    sealed
}

/// Landings that a killed process left half done, in whatever repository.
fn end_landings(context: &Context, home: &Home) {
    for one in landing::recover::landings(home, &context.env) {
        let name = recovered::name(&one);
        let note = match &one.result {
            Ok(end) => format!("{name}: {}", recovered::said(*end)),
            Err(error) => format!("a landing could not be ended: {name}: {error}"),
        };
        context.output.note(&note);
    }
}

/// Ends what a killed process left half done: landings, then bundles that were never sealed.
pub fn end_what_was_left(context: &Context, home: &Home) {
    end_landings(context, home);
    for recovered in recover::recover_listed(home, &context.env) {
        match recovered.result {
            Ok(()) => context
                .output
                .note(&format!("closed an interrupted run: {}", recovered.run_id)),
            Err(error) => context.output.note(&format!(
                "an interrupted run could not be closed: {}: {error}",
                recovered.run_id
            )),
        }
    }
}

/// Closes what was interrupted, and listens for signals from here on.
fn begin(context: &Context) -> Result<(Home, Cancel), Failure> {
    let home = context.home()?;
    end_what_was_left(context, &home);
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    Ok((home, cancel))
}

/// The document of a command that ran one contract.
pub fn answer(
    command: &str,
    sealed: &SealedBundle,
    next: &str,
    workspace: Option<PathBuf>,
) -> Value {
    let workspace = workspace.map(|dir| dir.display().to_string());
    let mut answer =
        json!({"schema_version": 1, "command": command, "next": next, "workspace": workspace});
    describe(sealed, &mut answer);
    answer
}

/// Where a kept workspace lies; none is kept of a run that never had one, nor of a pass below stage 4.
pub fn kept_workspace(home: &Home, request: &Request, report: &Report) -> Option<PathBuf> {
    let dir = home
        .work()
        .join(report.run_id.as_str())
        .join(crate::workspace::of_run::PLAIN);
    (request.keep && dir.is_dir()).then_some(dir)
}

pub fn say_kept(context: &Context, home: &Home, request: &Request, report: &Report) {
    if let Some(dir) = kept_workspace(home, request, report) {
        context.output.line(&format!(
            "  {dim}kept{dim:#}      {}",
            dir.display(),
            dim = dim()
        ));
    }
}
