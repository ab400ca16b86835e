//! `cto try`: the operator's own words on a private copy of the operator's own repository.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use cto_core::bundle::report::Report;
use cto_core::operator::project::fields::STARTS;
use cto_core::task::contract::Runner;
use cto_core::values::blocker::{Blocker, Code};
use cto_core::values::verdict::Status;

use crate::cli::Context;
use crate::cli::args::here::{Here, top_of};
use crate::cli::args::project::{self, Given};
use crate::cli::args::task::LaneArgs;
use crate::cli::evidence::diff;
use crate::cli::evidence::show;
use crate::cli::work::run;
use crate::evidence::SealedBundle;
use crate::host::cpus;
use crate::host::failure::Failure;
use crate::host::workers;
use crate::screen::stat_view;
use crate::screen::terminal;
use crate::task::attempt::Attempt;
use crate::task::request::Request;

#[derive(clap::Args)]
pub struct Args {
    /// The repository; its HEAD is copied, and it is only ever read
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// What should be done, in your words
    #[arg(long, value_name = "TEXT")]
    task: String,
    /// A file or directory that may change; `.` for all of it (repeatable) [default: as remembered by
    /// `cto project`, else asked]
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,
    /// A file or directory that must not change, even if allowed (repeatable)
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,
    /// A command that must succeed, run in a copy that the engine never saw (repeatable) [default: as
    /// remembered by `cto project`, else asked]
    #[arg(long, value_name = "COMMAND")]
    test: Vec<String>,
    /// Copy the last commit although there are uncommitted changes
    #[arg(long)]
    from_head: bool,
    /// A command that prepares a copy, e.g. `make generate` (repeatable)
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// A directory that git ignores and the tests need; .venv, node_modules, target and the like come
    /// along by themselves (repeatable)
    #[arg(long, value_name = "DIR")]
    input: Vec<String>,
    /// A directory that would come along by itself and is left out, e.g. target (repeatable)
    #[arg(long, value_name = "DIR")]
    no_input: Vec<String>,
    /// Leave out .venv, node_modules, target, caches of tools and the like, but for what --input names
    #[arg(long)]
    no_env: bool,
    /// A patch that must turn the tests red, to show that they can fail; for a test command that cto
    /// does not know
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// The test runner that the tests use, where cto does not see it by itself: failing tests of its kind
    /// must turn them red
    #[arg(long, value_name = "NAME", value_parser = runner, conflicts_with = "control")]
    runner: Option<Runner>,
    /// Be content with nothing less than proven tests: failing ones turn them red, and they load the change
    #[arg(long, conflicts_with_all = ["accept_unproven", "unchecked"])]
    require_control: bool,
    /// Accept tests of which nothing shows that they could fail, and say why
    #[arg(long, value_name = "REASON")]
    accept_unproven: Option<String>,
    /// Accept tests that do not load the change, and say why
    #[arg(long, value_name = "REASON")]
    unchecked: Option<String>,
    /// A test that the task renames, moves, merges or removes, and why: it need not run again. * stands
    /// for any letters (repeatable)
    #[arg(long, value_name = "ID[=REASON]")]
    changed_test: Vec<String>,
    /// Try every changed file alone, however long that takes, to say which of them the tests load
    #[arg(long)]
    see_all: bool,
    /// How many checks to run at a time [default: the cores of this machine]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,
    /// A variable that setup and tests see, with this value or that of your shell; an admitted engine is
    /// told its name alone (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Seconds each test command may run
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    test_timeout: Option<u32>,
    /// Memory that all processes of a jail may use together, in MiB
    #[arg(long, value_name = "MIB", value_parser = RangedU64ValueParser::<u32>::new().range(16..=67_108_864))]
    memory: Option<u32>,
    /// CPUs that the run may use
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=4096))]
    cpus: Option<u32>,
    /// Let the test commands trace their own processes, for gdb, strace and LeakSanitizer; engine,
    /// setup and control never may, and leaks are not searched for there
    #[arg(long)]
    trace: bool,
    /// Run the tests of the untouched copy too, although they are known from the last week
    #[arg(long)]
    fresh_baseline: bool,
    /// What the untouched copy must be before the engine starts: green, so that nothing is spent on red
    /// tests, or any
    #[arg(long, value_name = "HOW", value_parser = STARTS)]
    baseline: Option<String>,
    /// Show what the engine and the checks print while they run
    #[arg(long, short)]
    verbose: bool,
    /// Keep the workspace of a run that does not pass
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    lane: LaneArgs,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let here = Here::of(&args.repo);
    let given = Given::from([
        ("allow", here.seen_at_top("--allow", &args.allow)?),
        ("forbid", here.seen_at_top("--forbid", &args.forbid)?),
        ("input", here.seen_at_top("--input", &args.input)?),
        ("no_input", here.seen_at_top("--no-input", &args.no_input)?),
        ("test", args.test),
        ("setup", args.setup),
        ("runner", words(args.runner)),
        ("test_timeout", words(args.test_timeout)),
        ("baseline", words(args.baseline)),
    ]);
    let settled = project::settle(context, &args.repo, &given, args.control.is_some())?;
    let mut choice = args.lane.choice(context, None)?;
    choice.limits.verification_seconds = number(&settled.get("test_timeout"));
    choice.limits.memory_mib = args.memory;
    choice.limits.cpus = args.cpus;
    if let Some(most) = args.cpus {
        cpus::limit(most)?;
    }
    let attempt = Attempt {
        top: top_of(&args.repo),
        repo: args.repo,
        task: args.task,
        allow: settled.get("allow"),
        forbid: settled.get("forbid"),
        test: settled.get("test"),
        from_head: args.from_head,
        setup: settled.get("setup"),
        input: settled.get("input"),
        no_input: settled.get("no_input"),
        no_env: args.no_env,
        control: args.control,
        runner: settled
            .get("runner")
            .first()
            .and_then(|name| Runner::parse(name)),
        env: args.env,
        trace: args.trace,
        fresh_baseline: args.fresh_baseline,
        accept_unproven: args.accept_unproven,
        unchecked: args.unchecked,
        require_control: args.require_control,
        changed_test: args.changed_test,
        see_all: args.see_all,
        green_start: settled.get("baseline") == ["green"],
    };
    let request = Request::attempt(&attempt, &choice, &context.env, context.configured_limits())?
        .keeping_workspace(args.keep)
        .at_a_time(args.jobs.map_or_else(workers::cores, usize::from));
    let (home, sealed) = run::execute(context, &request, args.verbose)?;
    let report = &sealed.report;
    let next = match report.status {
        Status::Pass => context.output.command(&format!("apply {}", report.run_id)),
        Status::Fail | Status::Blocked => {
            context.output.command(&format!("show {}", report.run_id))
        }
    };
    if context.output.json {
        let kept = run::kept_workspace(&home, &request, report);
        let mut answer = run::answer("try", &sealed, &next, kept);
        answer["remembered"] = project::remembered_json(&settled);
        context.output.document(&answer)?;
        return Ok(report.status.exit_code());
    }
    print(context, &sealed);
    run::say_kept(context, &home, &request, report);
    let lacks = |blocker: &Blocker| blocker.code == Code::ToolchainUnavailable;
    if project::is_from_memory(&settled) && report.blockers.iter().any(lacks) {
        let hint = "its command is remembered: `cto project show` shows it, `cto project set --test COMMAND` changes it";
        context.output.hanging("hint: ", hint);
    }
    context.output.line(&format!("\nnext: {next}"));
    Ok(report.status.exit_code())
}

/// A value as it is remembered.
pub fn words(value: Option<impl ToString>) -> Vec<String> {
    value.iter().map(ToString::to_string).collect()
}

/// What was remembered was read as a number before.
pub fn number(values: &[String]) -> Option<u32> {
    values.first()?.parse().ok()
}

pub fn runner(typed: &str) -> Result<Runner, String> {
    Runner::parse(typed).ok_or_else(|| {
        let known: Vec<&str> = Runner::ALL.iter().map(|runner| runner.as_str()).collect();
        format!("known are {}", known.join(", "))
    })
}

/// Lines of the patch that are shown at once.
const PREVIEW: usize = 60;

fn print(context: &Context, sealed: &SealedBundle) {
    let report: &Report = &sealed.report;
    show::print(context, report, &sealed.dir);
    // The verdict above does not rest on it: a patch that is not the sealed one is not shown.
    let patch = diff::sealed_patch(sealed).unwrap_or_default();
    if let Some(stat) = stat_view::of_patch(&patch).filter(|stat| !stat.files.is_empty()) {
        context.output.line("");
        stat_view::lines(&stat, terminal::columns())
            .iter()
            .for_each(|line| context.output.line(line));
        context.output.line("");
        diff::preview(context, &patch, PREVIEW);
    }
}
