//! `cto apply`: a verified patch, into the work tree of the person who types it; `land.rs` as a commit.

mod land;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::task::again::ChecksDiffer;
use cto_core::task::source::CopiedRepo;
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::values::paths::TreePath;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;
use serde_json::json as document;

use crate::bundles::verifier;
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::programs;
use crate::host::repositories;
use crate::screen::output::{dim, tame};
use crate::supervise::cancel::Cancel;
use crate::workspace::apply::{self, ApplyError, Order, Ready};
use crate::workspace::own_dir::OwnDir;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique part of one, `last` (the last try of this repository), or a bundle directory
    run: String,
    /// The work tree to change [default: the repository the run copied]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Only say whether it would apply
    #[arg(long)]
    check: bool,
    /// Commit it on the branch that is checked out: only its own paths, whatever else is staged; no hook runs
    #[arg(long, conflicts_with = "branch")]
    commit: bool,
    /// Commit it on a new branch of this name: a ref only, the work tree stays as it is
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// The message of the commit; the trailer `Cto-Run` is added
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Take a patch that passed when `cto reverify` judged it again
    #[arg(long)]
    reverified: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    only_by_a_person(context)?;
    if args.message.is_some() && !land::is_asked(args) {
        return Err(Failure::usage("no_commit", "--message is for a commit")
            .hint("add --commit, or --branch NAME"));
    }
    let home = context.home()?;
    let dir = last::to_change(&home, &args.run, args.repo.as_deref())?;
    let pass = verified_pass(context, &dir)?;
    known_checks(context, args, &pass.report)?;
    let (repository, only) = match &args.repo {
        Some(named) => (named.clone(), None),
        None => copied_from(context, &home, &pass.copied)?,
    };
    home.create()?;
    let aside = OwnDir::make(&home).map_err(|e| {
        Failure::internal("state_unwritable", "a private copy cannot be made").because(&e)
    })?;
    if land::is_asked(args) {
        return land::run(context, args, &pass, (&repository, only), aside.path());
    }
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let ready = prepare(context, &pass, (&repository, only), aside.path())?;
    if !args.check && !ready.is_applied {
        ready
            .apply(&cancel)
            .map_err(|error| refused(&repository, &error))?;
    }
    print(context, args, &pass.report, &ready)?;
    Ok(0)
}

/// Git sets these for its hooks; nothing that runs by itself may change a work tree.
fn only_by_a_person(context: &Context) -> Result<(), Failure> {
    let set = [
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_WORK_TREE",
        "GIT_EXEC_PATH",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
    ]
    .into_iter()
    .find(|name| context.env.get(name).is_some());
    match set {
        None => Ok(()),
        Some(name) => Err(Failure::blocked(
            "not_typed_by_a_person",
            "cto apply does not run inside git or a hook",
        )
        .reason(format!("{name} is set"))
        .so("nothing was changed")
        .hint("type it yourself in a shell")),
    }
}

/// A pass, in the very bytes that were verified: nothing of its bundle is read a second time.
struct VerifiedPass {
    report: Report,
    copied: CopiedRepo,
    patch: Vec<u8>,
    paths: BTreeSet<TreePath>,
}

/// Only a pass whose bundle verifies is applied.
fn verified_pass(context: &Context, dir: &Path) -> Result<VerifiedPass, Failure> {
    let shown = dir.display().to_string();
    let unfit = |what: &str| {
        Failure::blocked("not_a_verified_pass", what.to_owned())
            .at(shown.clone())
            .so("nothing was changed")
    };
    let (mut found, verification) = verifier::examine_with_patch(dir, &context.trust()?)
        .map_err(|error| unfit("the bundle cannot be read").because(&error))?;
    if verification.standing != Standing::Good {
        let verify = context.output.command(&format!("verify {shown}"));
        return Err(
            unfit("the bundle does not verify").hint(format!("`{verify}` lists what is wrong"))
        );
    }
    let mut document = |name: &str| found.documents.remove(name).unwrap_or_default();
    let report: Report = json::read(&document(bundle::REPORT))
        .map_err(|error| unfit("the report cannot be read").because(&error))?;
    if verification.status != Some(Status::Pass) {
        return Err(unfit("the run did not pass").reason(report.failure_reason.unwrap_or_default()));
    }
    let copied = json::read(&document(bundle::SOURCE)).map_err(|_| {
        Failure::blocked(
            "no_source",
            "this run did not copy a repository, so its patch belongs to none",
        )
        .at(shown.clone())
        .so("nothing was changed")
        .hint("only runs of `cto try` can be applied")
    })?;
    let patch = document(bundle::PATCH);
    let paths = match found.patch_paths {
        Some(Ok(paths)) => paths,
        Some(Err(error)) => return Err(unfit("the patch cannot be read").because(&error)),
        None => return Err(unfit("the patch cannot be read")),
    };
    Ok(VerifiedPass {
        report,
        copied,
        patch,
        paths,
    })
}

/// Who takes a patch that passed when it was judged again says that they know it: by other commands, with
/// another control or environment, or only at another time, its run may have failed for a reason.
fn known_checks(context: &Context, args: &Args, report: &Report) -> Result<(), Failure> {
    match report.reverifies.as_ref().filter(|_| !args.reverified) {
        None => Ok(()),
        Some(first) => Err(Failure::blocked(
            "other_checks",
            "this patch passed when it was judged again, not in its run",
        )
        .at(report.run_id.to_string())
        .reason(format!("run {}; {}", first.run_id, differs(report)))
        .so("nothing was changed")
        .hint(format!(
            "`{}` if that is as it should be",
            context
                .output
                .command(&format!("apply {} --reverified", report.run_id))
        ))),
    }
}

/// What differs from the checks of the run, in one line.
fn differs(report: &Report) -> String {
    let lines = report
        .checks_differ
        .as_ref()
        .map_or_else(Vec::new, ChecksDiffer::lines);
    match lines.is_empty() {
        true => "the same checks, at another time".to_owned(),
        false => lines.join("; "),
    }
}

/// The repository that was copied: where this state home saw it, or, in a bundle of before, where
/// the bundle says. That it is still the one there, and has the tree of the run, is found out when
/// the patch is prepared.
pub fn copied_from(
    context: &Context,
    home: &Home,
    copied: &CopiedRepo,
) -> Result<(PathBuf, Option<Digest>), Failure> {
    let unknown = || {
        Failure::blocked(
            "no_repository",
            "this state home does not know where the repository is that the run copied",
        )
        .so("nothing was changed")
        .hint("name it with --repo DIR")
    };
    match (&copied.repository, &copied.record.path) {
        (Some(repository), _) => repositories::find(home, &repository.path_sha256)
            .map(|path| (path, Some(repository.path_sha256)))
            .ok_or_else(|| unknown().at(repository.name.clone())),
        (None, Some(path)) => Ok((expand(context, path), None)),
        (None, None) => Err(unknown()),
    }
}

/// A path as bundles write it, on this host.
pub fn expand(context: &Context, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), context.env.path("HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn prepare(
    context: &Context,
    pass: &VerifiedPass,
    (repository, only): (&Path, Option<Digest>),
    aside: &Path,
) -> Result<Ready, Failure> {
    let git = programs::git(&context.env, &context.home()?).map_err(|none| {
        Failure::blocked("toolchain_unavailable", "there is no git to apply it with")
            .because(&none)
            .so("nothing was changed")
            .hint("install git with the system, or name one with `git` in the config file")
    })?;
    // A file of our own, where no jail can reach it: git reads patches from files.
    let patch = aside.join(bundle::PATCH);
    fs::write(&patch, &pass.patch).map_err(|error| {
        Failure::internal("state_unwritable", "a private copy cannot be made").because(&error)
    })?;
    let home = context.env.path("HOME");
    let order = Order {
        git: &git,
        repository,
        only,
        home: home.as_deref(),
        tree: &pass.copied.tree,
        patch: &patch,
        paths: pass.paths.clone(),
        aside,
    };
    apply::prepare(order).map_err(|error| refused(repository, &error))
}

fn refused(repository: &Path, error: &ApplyError) -> Failure {
    let place = repository.display().to_string();
    let (code, hint) = match error {
        ApplyError::Changed(_) => (
            "dirty_path",
            "commit, stash or undo those paths; where a later commit changed them, try again from it",
        ),
        ApplyError::Busy => ("busy", "wait until it is done, then apply again"),
        ApplyError::Interrupted => ("interrupted", "apply again when there is time"),
        ApplyError::Unfinished(_) => ("dirty_path", "finish or abort it, then apply again"),
        ApplyError::OtherRepository(_) | ApplyError::Elsewhere(_) => (
            "other_repository",
            "name the repository the run copied with --repo DIR",
        ),
        ApplyError::Repository(_) => (
            "no_repository",
            "name a git work tree of your own with --repo DIR",
        ),
        ApplyError::Patch(_) => ("patch_refused", "try again from the present commit"),
        ApplyError::Write { .. } | ApplyError::Aside(_) => (
            "not_written",
            "free space or fix permissions, then apply again",
        ),
        ApplyError::Torn { .. } => (
            "half_written",
            "`git diff` shows what is there; `git restore` puts tracked files back",
        ),
    };
    let failure = match error {
        ApplyError::Torn { .. } => {
            Failure::internal(code, "the patch is only partly in the work tree")
        }
        _ => Failure::blocked(code, "the patch was not applied").so("nothing was changed"),
    };
    failure.at(place).because(error).hint(hint)
}

fn print(context: &Context, args: &Args, report: &Report, ready: &Ready) -> Result<(), Failure> {
    let (top, dim) = (ready.top.display().to_string(), dim());
    if context.output.json {
        return context.output.document(&document!({
            "schema_version": 1,
            "command": "apply",
            "run_id": report.run_id,
            "applied": ready.is_applied || !args.check,
            "was_applied_before": ready.is_applied,
            "would_apply": true,
            "repository": top,
            "changed_files": ready.paths(),
            "reverifies": report.reverifies,
            "checks_differ": report.checks_differ,
            "landed": null,
        }));
    }
    let word = match (ready.is_applied, args.check) {
        (true, _) => "ALREADY APPLIED",
        (false, true) => "WOULD APPLY",
        (false, false) => "APPLIED",
    };
    context.output.line(&format!(
        "{word}  {}  {dim}to{dim:#} {top}  {dim}(nothing staged, nothing committed){dim:#}\n",
        report.run_id
    ));
    if let Some(first) = &report.reverifies {
        let differ = report.checks_differ.clone().unwrap_or_default();
        context.output.line(&format!(
            "  {dim}the patch of {}, judged again:{dim:#} {}\n",
            first.run_id,
            tame(&differ.short())
        ));
    }
    for path in ready.paths() {
        context
            .output
            .line(&format!("  {}", TreePath::to_string(path)));
    }
    let next = match args.check && !ready.is_applied {
        true => {
            let word = report.reverifies.as_ref().map_or("", |_| " --reverified");
            let line = format!("apply {}{word}", report.run_id);
            context.output.command(&line)
        }
        false => "git status".to_owned(),
    };
    context.output.line(&format!("\nnext: {next}"));
    Ok(())
}
