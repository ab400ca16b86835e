//! `cto run`: one governed run; several of them are in `run_all.rs`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::bundle::report::Report;
use cto_core::values::blocker::{Code, headline};
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;
use serde_json::{Value, json};

use crate::bundles::index;
use crate::bundles::verifier;
use crate::cli::Context;
use crate::cli::args::task::TaskArgs;
use crate::cli::evidence::recover as recovered;
use crate::cli::evidence::show;
use crate::cli::operator;
use crate::cli::operator::outcome::AheadArgs;
use crate::cli::work::run_all;
use crate::evidence::SealedBundle;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::run;
use crate::run::approvals::settlement::landing::drop_settled;
use crate::run::approvals::store::Store;
use crate::run::recover;
use crate::screen::output::dim;
use crate::screen::progress::{self, Progress, bell};
use crate::supervise::cancel::Cancel;
use crate::task::cases::{self, Case};
use crate::task::request::Request;
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
    let next = context.output.command(&next_of(report, settled.is_some()));
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

/// What to type after a run.
fn next_of(report: &Report, is_settled: bool) -> String {
    let id = &report.run_id;
    match headline(&report.blockers).map(|blocker| blocker.code) {
        _ if is_settled => format!("show {id}"),
        Some(Code::MissingOperatorOutcome) => format!("outcome {id} accept"),
        _ => format!("verify {id}"),
    }
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
    drop_journals(context, home);
}

/// Journals that nobody needs any more; one that stays says nothing new.
pub fn drop_journals(context: &Context, home: &Home) {
    let dropped = context.trust().map(|trust| drop_settled(home, &trust));
    if let Ok(Err(error)) = dropped {
        context
            .output
            .note(&format!("note: a journal stays: {error}"));
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
