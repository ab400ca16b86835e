//! `cto reverify`: the patch of an earlier run, judged again without its engine.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use cto_core::bundle;
use cto_core::bundle::again::{FirstRun, NotAgain, may_be_judged_again};
use cto_core::bundle::report::Report;
use cto_core::task::again::Reverifies;
use cto_core::task::contract::{Contract, ContractDocument, Label, LimitChanges, Runner};
use cto_core::task::source::CopiedRepo;
use cto_core::values::json;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;

use crate::bundles::verifier;
use crate::cli::Context;
use crate::cli::args::here::{Here, top_of};
use crate::cli::evidence::last;
use crate::cli::evidence::show;
use crate::cli::work::apply;
use crate::cli::work::run;
use crate::cli::work::try_run::runner;
use crate::host::Home;
use crate::host::cpus;
use crate::host::failure::Failure;
use crate::host::workers;
use crate::plan::source;
use crate::task::again::{self, First, TypedChecks};
use crate::task::attempt::Attempt;
use crate::task::cases;
use crate::task::request::{self, Request, SourceRequest};

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique part of one, or `last` (the last try of this repository)
    run: String,
    /// A command that must succeed, in place of those of the run (repeatable)
    #[arg(long, value_name = "COMMAND")]
    test: Vec<String>,
    /// A directory that git ignores and the tests need, besides those of the run (repeatable)
    #[arg(long, value_name = "DIR")]
    input: Vec<String>,
    /// A directory that would come along by itself and is left out, e.g. target (repeatable)
    #[arg(long, value_name = "DIR")]
    no_input: Vec<String>,
    /// Leave out .venv, node_modules, target, caches of tools and the like, but for what --input names
    #[arg(long)]
    no_env: bool,
    /// A patch that must turn the tests red, in place of the control of the run
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// The test runner that the tests use, where cto does not see it by itself
    #[arg(long, value_name = "NAME", value_parser = runner, conflicts_with = "control")]
    runner: Option<Runner>,
    /// Seconds each test command may run
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    test_timeout: Option<u32>,
    /// A program, or the directory of an installation, to show read-only besides those of the run
    /// (repeatable)
    #[arg(long, value_name = "PATH")]
    toolchain: Vec<PathBuf>,
    /// The repository to copy [default: the one the run copied]; its HEAD must be the run's commit
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The case of the run, where it is not built in: a name, or a directory
    #[arg(long, value_name = "CASE")]
    case: Option<String>,
    /// How many checks to run at a time [default: the cores of this machine]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,
    /// Keep the workspace of a run that does not pass
    #[arg(long)]
    keep: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    if Path::new(&args.run).is_file() {
        let what = "a packed bundle is not judged again";
        return Err(Failure::usage("packed_bundle", what)
            .at(args.run.clone())
            .so("nothing ran")
            .hint("only runs that lie in this state home are; `cto runs` lists them"));
    }
    let dir = last::to_judge(&home, &args.run, args.repo.as_deref())?;
    let (first, copied) = verified(context, &home, &dir)?;
    let request = asked(context, &home, args, first, copied.as_ref())?
        .keeping_workspace(args.keep)
        .at_a_time(args.jobs.map_or_else(workers::cores, usize::from));
    let (home, sealed) = run::execute(context, &request, false)?;
    let report = &sealed.report;
    let next = context.output.command(&next_step(report));
    if context.output.json {
        let kept = run::kept_workspace(&home, &request, report);
        let answer = run::answer("reverify", &sealed, &next, kept);
        context.output.document(&answer)?;
        return Ok(report.status.exit_code());
    }
    show::print(context, report, &sealed.dir);
    run::say_kept(context, &home, &request, report);
    context.output.line(&format!("\nnext: {next}"));
    Ok(report.status.exit_code())
}

fn next_step(report: &Report) -> String {
    match (report.status, report.source.is_some()) {
        (Status::Pass, true) => format!("apply {} --reverified", report.run_id),
        (Status::Pass, false) => format!("verify {}", report.run_id),
        (Status::Fail | Status::Blocked, _) => format!("show {}", report.run_id),
    }
}

/// A run that may be judged again, in the very bytes that were verified, and the repository it copied.
fn verified(
    context: &Context,
    home: &Home,
    dir: &Path,
) -> Result<(First, Option<CopiedRepo>), Failure> {
    let shown = dir.display().to_string();
    let unfit = |what: &str| {
        Failure::blocked("not_verified", what.to_owned())
            .at(shown.clone())
            .so("nothing ran")
    };
    let real = |path: &Path| path.canonicalize().ok();
    if real(dir).and_then(|dir| dir.parent().map(Path::to_owned)) != real(&home.runs) {
        // Whoever verifies the new bundle must find the first one beside it.
        return Err(unfit("the bundle does not lie in this state home")
            .hint("only runs of this state home are judged again; `cto runs` lists them"));
    }
    let (mut found, verification) = verifier::examine_with_patch(dir, &context.trust()?)
        .map_err(|error| unfit("the bundle cannot be read").because(&error))?;
    if verification.standing != Standing::Good {
        let verify = context.output.command(&format!("verify {shown}"));
        return Err(
            unfit("the bundle does not verify").hint(format!("`{verify}` lists what is wrong"))
        );
    }
    let sums = found.files.get(bundle::SUMS).map(|file| file.sha256);
    let mut document = |name: &str| found.documents.remove(name).unwrap_or_default();
    let report: Report = json::read(&document(bundle::REPORT))
        .map_err(|error| unfit("the report cannot be read").because(&error))?;
    let (contract, _) = ContractDocument::read(&document(bundle::CONTRACT))
        .map_err(|error| unfit("the contract cannot be read").because(&error))?;
    let asked = FirstRun::of(&report, contract.valid());
    let contract = may_be_judged_again(&asked).map_err(|why| not_again(&report, why))?;
    let copied = match contract.source {
        Some(_) => Some(
            json::read(&document(bundle::SOURCE))
                .map_err(|error| unfit("what was copied cannot be read").because(&error))?,
        ),
        None => None,
    };
    let patch = document(bundle::PATCH);
    let (Some(sums_sha256), Some(Ok(paths))) = (sums, found.patch_paths) else {
        return Err(unfit("the patch cannot be read"));
    };
    let first = First {
        reverifies: Reverifies {
            run_id: report.run_id,
            sums_sha256,
        },
        contract: Box::new(contract.clone()),
        patch,
        paths: paths.into_iter().collect(),
    };
    Ok((first, copied))
}

fn not_again(report: &Report, why: NotAgain) -> Failure {
    let hint = match why {
        NotAgain::NoRun => match &report.reverifies {
            Some(first) => format!(
                "judge the run itself again: `cto reverify {}`",
                first.run_id
            ),
            None => "name a run of `cto try` or `cto run`".to_owned(),
        },
        NotAgain::HigherStage | NotAgain::NeedsApproval => "run it again".to_owned(),
        NotAgain::NotOfChecks(_) | NotAgain::EngineFailed => {
            "other checks cannot mend what the engine did; try again".to_owned()
        }
        NotAgain::NoContract | NotAgain::NoPatch => {
            "nothing was changed by it; try again once what stopped it is gone".to_owned()
        }
    };
    Failure::blocked("not_judged_again", "this run cannot be judged again")
        .at(report.run_id.to_string())
        .reason(why.to_string())
        .so("nothing ran")
        .hint(hint)
}

/// The request: the task of the first contract, with the checks that were typed.
fn asked(
    context: &Context,
    home: &Home,
    args: &Args,
    first: First,
    copied: Option<&CopiedRepo>,
) -> Result<Request, Failure> {
    let source = copied
        .map(|copied| repository(context, home, args, &first, copied))
        .transpose()?;
    let contract = &first.contract;
    let here = Here::of(args.repo.as_deref().unwrap_or(Path::new(".")));
    let typed = TypedChecks {
        test: args.test.clone(),
        input: here.seen_at_top("--input", &args.input)?,
        control: args.control.clone(),
        runner: args.runner,
    };
    let own = match contract.label {
        Label::Case => {
            let name = args.case.as_deref().unwrap_or(contract.case_id.as_str());
            Some(cases::find(name, context.configured_cases()?.as_deref())?)
        }
        Label::Try => None,
    };
    let top = source.as_ref().map(|source| source.path.as_path());
    let case = again::case(contract, &typed, own, top)?;
    let environments = Attempt {
        no_input: here.seen_at_top("--no-input", &args.no_input)?,
        no_env: args.no_env,
        ..Attempt::default()
    }
    .environments()?;
    if let Some(most) = contract.limits.cpus {
        cpus::limit(most)?;
    }
    let shown = toolchains(context, contract, &args.toolchain)?;
    let limits = LimitChanges {
        verification_seconds: args.test_timeout,
        ..LimitChanges::default()
    };
    let request = Request::again(first, case, source, environments)?;
    Ok(request.showing(shown).limited(limits))
}

/// Those the run was shown, where they were, and more.
fn toolchains(
    context: &Context,
    contract: &Contract,
    more: &[PathBuf],
) -> Result<Vec<PathBuf>, Failure> {
    let then = contract.lane.toolchains.iter();
    let then = then.map(|path| apply::expand(context, path));
    request::shown(&then.chain(more.iter().cloned()).collect::<Vec<_>>())
}

/// The repository, found as `cto apply` finds it, at the commit that the patch was made on.
fn repository(
    context: &Context,
    home: &Home,
    args: &Args,
    first: &First,
    copied: &CopiedRepo,
) -> Result<SourceRequest, Failure> {
    let path = match &args.repo {
        Some(named) => named.clone(),
        None => apply::copied_from(context, home, copied)?.0,
    };
    let path = top_of(&path).unwrap_or(path);
    let refused = |code, what: &str| {
        Failure::blocked(code, what.to_owned())
            .at(path.display().to_string())
            .so("nothing ran")
    };
    home.create()?;
    let view = source::look(&path, Label::Try, &context.env, home).map_err(|why| {
        refused(
            "no_repository",
            "the repository that the run copied cannot be read",
        )
        .reason(why)
        .hint("name it with --repo DIR")
    })?;
    if let Some(why) = first.other_commit(&view.look) {
        return Err(refused("other_commit", "the patch was made on another commit")
            .reason(why)
            .hint("check that commit out, here or in a clone that --repo DIR names; or try again from this one"));
    }
    let mut record = copied.record.clone();
    // Bundles of before said where it is.
    record.path = None;
    Ok(SourceRequest {
        path: path.clone(),
        record,
        // The commit is the run's, whatever was edited since.
        from_head: true,
    })
}
