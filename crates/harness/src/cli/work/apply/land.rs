//! `cto apply --commit` and `--branch`: the verified patch as a commit, by the room that writes to repositories.

use std::path::Path;

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::message::Who;
use cto_core::workspace::landing::refusal::{Reason, Refusal};
use serde_json::json as document;

use super::{Args, VerifiedPass};
use crate::cli::Context;
use crate::host;
use crate::host::failure::Failure;
use crate::host::programs;
use crate::screen::output::{dim, tame};
use crate::supervise::cancel::Cancel;
use crate::workspace::git::Settings;
use crate::workspace::landing::{self, Change, Clean, LandingError, Order, recover};

/// What is said of it, landed or not yet.
struct Told {
    way: Way,
    commit: String,
    parent: String,
    tree: String,
    branch: String,
    top: String,
    paths: Vec<TreePath>,
    was_landed: bool,
}

/// Whether this is what was asked for.
pub fn is_asked(args: &Args) -> bool {
    args.commit || args.branch.is_some()
}

pub fn run(
    context: &Context,
    args: &Args,
    pass: &VerifiedPass,
    (repository, only): (&Path, Option<Digest>),
    aside: &Path,
) -> Result<u8, Failure> {
    let home = context.home()?;
    // What an earlier one left half done, here or elsewhere, is ended first.
    recover::landings(&home, &context.env);
    let git = programs::git(&context.env, &home).map_err(|none| {
        Failure::blocked("toolchain_unavailable", "there is no git to commit it with")
            .because(&none)
            .so("nothing was changed")
            .hint("install git with the system, or name one with `git` in the config file")
    })?;
    let users_home = context.env.path("HOME");
    let who = Settings::around(&git, repository, users_home.as_deref())
        .who()
        .unwrap_or_else(Who::harness);
    let words = match &args.message {
        Some(words) => words.clone(),
        None => format!("Apply the patch of {}", pass.report.run_id),
    };
    let order = Order {
        git: &git,
        home: &home,
        repository,
        only,
        users_home: users_home.as_deref(),
        way: if args.commit { Way::Merge } else { Way::Branch },
        change: Change::Patch {
            tree: &pass.copied.tree,
            bytes: &pass.patch,
            paths: pass.paths.clone(),
        },
        branch: args.branch.as_deref(),
        head: None,
        clean: Clean::Paths,
        run: &pass.report.run_id,
        approval: None,
        words: &words,
        author: who.clone(),
        committer: who,
        when: host::now(),
        awaits_settlement: false,
        aside,
    };
    let refused = |error| refused(repository, error);
    let told = match args.check {
        true => {
            let ready = landing::prepare(&order).map_err(refused)?;
            Told {
                way: order.way,
                paths: ready.paths(),
                was_landed: ready.is_landed,
                top: ready.top.display().to_string(),
                commit: ready.commit,
                parent: ready.parent,
                tree: ready.tree,
                branch: ready.branch,
            }
        }
        false => {
            let cancel = Cancel::on_signals().map_err(|e| {
                Failure::internal("no_signals", "signals cannot be listened to").because(&e)
            })?;
            let landed = landing::land(&order, &cancel).map_err(refused)?;
            let told = Told {
                way: order.way,
                paths: landed.paths.clone(),
                was_landed: false,
                top: landed.top.display().to_string(),
                commit: landed.commit.clone(),
                parent: landed.parent.clone(),
                tree: landed.tree.clone(),
                branch: landed.branch.clone(),
            };
            landed.settled().map_err(|error| {
                Failure::internal(
                    "state_unwritable",
                    "the commit landed, and its journal stays",
                )
                .because(&error)
                .hint("`cto recover` removes it")
            })?;
            told
        }
    };
    print(context, args, pass, &told)?;
    Ok(0)
}

fn refused(repository: &Path, error: LandingError) -> Failure {
    const AGAIN: &str = "try again from the present commit";
    let (code, hint) = match &error {
        LandingError::Refused(all) => of_reasons(all),
        LandingError::Busy | LandingError::Moved => ("busy", "apply again when it is quiet"),
        LandingError::Interrupted => ("interrupted", "apply again when there is time"),
        LandingError::OtherRepository(_) | LandingError::Elsewhere(_) => (
            "other_repository",
            "name the repository the run copied with --repo DIR",
        ),
        LandingError::Repository(_) => (
            "no_repository",
            "name a git work tree of your own with --repo DIR",
        ),
        LandingError::Changed(_) => ("dirty_path", AGAIN),
        LandingError::Nothing => ("nothing_to_commit", "`git log` shows it"),
        LandingError::Patch(_) => ("patch_refused", AGAIN),
        LandingError::Words(_) => ("bad_message", "give plain words with --message"),
        LandingError::Name(_) => ("bad_branch", "letters, digits, `-`, `_`, `.` and `/`"),
        LandingError::Symbolic(_) => (
            "landing_unsupported",
            "`git checkout` the branch that it stands for",
        ),
        LandingError::Stuck { .. } => ("half_written", "`cto recover`"),
        LandingError::Git(_)
        | LandingError::Aside(_)
        | LandingError::Journal(_)
        | LandingError::Place { .. }
        | LandingError::Write(_) => (
            "not_written",
            "free space or fix permissions, then apply again",
        ),
    };
    let failure = match &error {
        LandingError::Stuck { .. } => {
            Failure::internal(code, "the patch is only partly in the repository")
        }
        LandingError::Words(_) | LandingError::Name(_) => {
            Failure::usage(code, "the patch was not committed").so("nothing was changed")
        }
        _ => Failure::blocked(code, "the patch was not committed").so("every path is as it was"),
    };
    let failure = failure.at(repository.display().to_string());
    let failure = match &error {
        LandingError::Refused(all) => all.iter().fold(failure, |failure, refusal| {
            failure.reason(refusal.to_string())
        }),
        other => failure.because(other),
    };
    failure.hint(hint)
}

/// One code for all of them: what is dirty or busy passes, anything else is not supported here.
fn of_reasons(all: &[Refusal]) -> (&'static str, &'static str) {
    let hint = all.first().map_or("", |refusal| refusal.reason.hint());
    let only = |reasons: &[Reason]| all.iter().all(|refusal| reasons.contains(&refusal.reason));
    let code = if only(&[Reason::Dirty, Reason::Unfinished]) {
        "dirty_path"
    } else if only(&[Reason::Locked, Reason::Maintenance]) {
        "busy"
    } else {
        "landing_unsupported"
    };
    (code, hint)
}

fn print(context: &Context, args: &Args, pass: &VerifiedPass, told: &Told) -> Result<(), Failure> {
    let (report, dim) = (&pass.report, dim());
    let name = told
        .branch
        .strip_prefix("refs/heads/")
        .unwrap_or(&told.branch);
    if context.output.json {
        return context.output.document(&document!({
            "schema_version": 1,
            "command": "apply",
            "run_id": report.run_id,
            "applied": told.was_landed || !args.check,
            "was_applied_before": told.was_landed,
            "would_apply": true,
            "repository": told.top,
            "changed_files": told.paths,
            "reverifies": report.reverifies,
            "checks_differ": report.checks_differ,
            "landed": {
                "way": told.way,
                "branch": told.branch,
                "commit": told.commit,
                "parent": told.parent,
                "tree": told.tree,
            },
        }));
    }
    let word = match (told.was_landed, args.check) {
        (true, _) => "ALREADY COMMITTED",
        (false, true) => "WOULD COMMIT",
        (false, false) => "COMMITTED",
    };
    let how = match told.way {
        Way::Merge => "",
        Way::Branch => " (a ref only, nothing checked out)",
    };
    let short: String = told.commit.chars().take(12).collect();
    context.output.line(&format!(
        "{word}  {}  {dim}as{dim:#} {short} {dim}on{dim:#} {}{dim}{how}, in{dim:#} {}\n",
        report.run_id,
        tame(name),
        told.top
    ));
    for path in &told.paths {
        context.output.line(&format!("  {path}"));
    }
    let next = match (args.check && !told.was_landed, told.way) {
        (true, _) => context
            .output
            .command(&format!("apply {} …", report.run_id)),
        (false, Way::Merge) => "git show".to_owned(),
        (false, Way::Branch) => format!("git merge {}", tame(name)),
    };
    context.output.line(&format!("\nnext: {next}"));
    Ok(())
}
