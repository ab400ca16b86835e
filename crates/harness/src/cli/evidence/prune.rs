//! `cto runs prune`: what would go and why, and with `--yes` its going.

use cto_core::operator::amounts::{Age, Size};
use cto_core::operator::listing;
use cto_core::operator::retention::{self, Candidate, Fate, Kept, Policy, Removed};
use cto_core::values::verdict::Status;
use serde_json::{Value, json};

use crate::bundles::prune::{self, PruneError};
use crate::cli::Context;
use crate::cli::evidence::runs::{headed, when};
use crate::host;
use crate::host::failure::{self, Failure};
use crate::run::checks;
use crate::screen::output::{dim, status_style};
use crate::screen::table::{Cell, Fit};
use crate::screen::terminal;

#[derive(clap::Args)]
pub struct Args {
    /// Remove runs that began longer ago than this, like 30d
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    /// Remove the oldest runs until all together take no more than this, like 5G
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Size>,
    /// Remove only runs with this status: pass, fail or blocked
    #[arg(long, value_parser = listing::parse_word::<Status>)]
    status: Option<Status>,
    /// Keep the newest N (of that status) whatever the other rules say
    #[arg(long, value_name = "N")]
    keep_last: Option<usize>,
    /// Remove them; without this nothing is changed
    #[arg(long)]
    yes: bool,
}

/// A run that goes, and what became of it.
struct Going<'a> {
    run: &'a Candidate,
    why: Removed,
    error: Option<PruneError>,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let policy = Policy {
        older_than: args.older_than,
        max_size: args.max_size,
        status: args.status,
        keep_last: args.keep_last,
    };
    if policy.says_nothing() {
        return Err(Failure::usage(
            "no_rule",
            "no rule given: say which runs to delete, e.g. --older-than 30d",
        )
        .so("nothing was removed")
        .hint("give --older-than, --max-size, --status or --keep-last"));
    }
    let home = context.home()?;
    if args.yes {
        prune::sweep(&home);
        checks::forget_old_baselines(&home);
    }
    let mut runs = prune::candidates(&home)?;
    runs.sort_by_cached_key(|run| run.listed.run_id.sort_key());
    let fates = retention::decide_fates(&runs, &policy, host::now());
    let mut going: Vec<Going<'_>> = runs
        .iter()
        .zip(&fates)
        .filter_map(|(run, fate)| match fate {
            Fate::Remove(why) => Some(Going {
                run,
                why: *why,
                error: None,
            }),
            Fate::Keep(_) => None,
        })
        .collect();
    if args.yes {
        for one in &mut going {
            one.error = prune::remove(&home, one.run).err();
        }
    }
    let failed = going.iter().filter(|one| one.error.is_some()).count();
    match context.output.json {
        true => context
            .output
            .document(&document(args.yes, &runs, &fates, &going))?,
        false => print(context, args.yes, &runs, &fates, &going),
    }
    Ok(if failed == 0 { 0 } else { 70 })
}

fn size_of<'a>(runs: impl Iterator<Item = &'a Candidate>) -> Size {
    Size(runs.fold(0, |sum: u64, run| sum.saturating_add(run.size.0)))
}

fn gone<'a>(going: &'a [Going<'a>]) -> impl Iterator<Item = &'a Candidate> {
    going
        .iter()
        .filter(|one| one.error.is_none())
        .map(|one| one.run)
}

/// Runs that no rule can remove, with the reason.
fn protected<'a>(
    runs: &'a [Candidate],
    fates: &'a [Fate],
) -> impl Iterator<Item = (&'a Candidate, &'a Kept)> {
    runs.iter().zip(fates).filter_map(|(run, fate)| match fate {
        Fate::Keep(kept) if kept.is_protection() => Some((run, kept)),
        _ => None,
    })
}

fn document(is_done: bool, runs: &[Candidate], fates: &[Fate], going: &[Going<'_>]) -> Value {
    let row = |one: &Going<'_>| {
        json!({
            "run_id": one.run.listed.run_id,
            "status": one.run.listed.summary().map(|run| run.status),
            "started_at": one.run.listed.started(),
            "bytes": one.run.size.0,
            "why": one.why.as_str(),
            "removed": is_done && one.error.is_none(),
            "error": one.error.as_ref().map(|error| failure::chain(error)),
        })
    };
    let kept = |(run, kept): (&Candidate, &Kept)| {
        let by = if let Kept::ReferredToBy(by) = kept {
            Some(by)
        } else {
            None
        };
        json!({"run_id": run.listed.run_id, "why": kept.as_str(), "by": by})
    };
    json!({
        "schema_version": 1,
        "command": "runs prune",
        "dry_run": !is_done,
        "total": runs.len(),
        "bytes": size_of(runs.iter()).0,
        "freed_bytes": size_of(gone(going)).0,
        "runs": going.iter().map(row).collect::<Vec<_>>(),
        "protected": protected(runs, fates).map(kept).collect::<Vec<_>>(),
    })
}

/// More than this is a matter for `--json`.
const SHOWN: usize = 20;

fn print(
    context: &Context,
    is_done: bool,
    runs: &[Candidate],
    fates: &[Fate],
    going: &[Going<'_>],
) {
    let out = |text: &str| context.output.line(text);
    let width = terminal::columns();
    let rows = going.iter().take(SHOWN).map(|one| {
        let listed = &one.run.listed;
        let (status, style) = listed.summary().map_or(("", dim()), |run| {
            (run.status.as_str(), status_style(run.status))
        });
        let why = one.error.as_ref().map_or_else(
            || one.why.as_str().to_owned(),
            |error| format!("kept: {}", failure::chain(error)),
        );
        vec![
            when(listed),
            Cell::styled(status, style),
            Cell::from(listed.case()),
            Cell::from(one.run.size.to_string()),
            Cell::from(if width.is_some() {
                listed.run_id.suffix()
            } else {
                listed.run_id.as_str()
            }),
            Cell::from(why),
        ]
    });
    let fits = [
        Fit::Whole,
        Fit::Whole,
        Fit::Cut,
        Fit::Right,
        Fit::Whole,
        Fit::Cut,
    ];
    let mut table = headed(
        ["when (UTC)", "status", "case", "size", "run", "why"],
        fits,
        width,
    );
    rows.for_each(|row| table.row(row));
    context.output.table(&table);
    if going.len() > SHOWN {
        out(&format!(
            "… and {} more; --json lists them all",
            going.len() - SHOWN
        ));
    }
    if !going.is_empty() {
        out("");
    }
    let mut reasons: Vec<&str> = protected(runs, fates)
        .map(|(_, kept)| kept.as_str())
        .collect();
    reasons.sort_unstable();
    for group in reasons.chunk_by(|a, b| a == b) {
        out(&format!(
            "  {} kept whatever the rules say: {}",
            group.len(),
            group[0].replace('_', " ")
        ));
    }
    let (freed, all) = (size_of(gone(going)), size_of(runs.iter()));
    match (going.len(), is_done) {
        (0, _) => out("Nothing to remove."),
        (count, false) => {
            out(&format!(
                "{count} of {} runs would go, {freed} of {all}. Nothing was removed; add --yes to do it.",
                runs.len()
            ));
        }
        (_, true) => out(&format!(
            "Removed {} of {} runs, {freed} of {all}.",
            gone(going).count(),
            runs.len()
        )),
    }
}
