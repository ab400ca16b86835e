//! `cto show`: what happened in a run, for a tired person. `checks.rs` its checks; `closeout.rs` who asked for it,
//! who approved it, and what was said of its result.

mod checks;
mod closeout;

use std::path::Path;

use anstyle::AnsiColor;
use cto_core::bundle::report::Report;
use cto_core::bundle::settlement::{Effective, Standing};
use cto_core::containment::Containment;
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::operator::agent_line::{claimed_text, seen_text};
use cto_core::operator::timeline;
use cto_core::task::contract::Label;
use cto_core::task::source::CopiedRepo;
use cto_core::values::hint::{Reader, hint};
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::with_your;
use serde_json::json;

use closeout::Closeout;

use crate::bundles::reader::{self, SealedReport};
use crate::bundles::settlements;
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::cli::evidence::markdown;
use crate::cli::evidence::runs::Seal;
use crate::cli::evidence::verify;
use crate::evidence::{Liveness, liveness};
use crate::host::failure::Failure;
use crate::host::repositories;
use crate::host::toolchains;
use crate::screen::output::{dim, status_style, tame};

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique part of one, `last`, or a bundle directory
    #[arg(default_value = "last")]
    run: String,
    /// Also list the events in order
    #[arg(long)]
    events: bool,
    /// Also say how long each step took
    #[arg(long, short)]
    verbose: bool,
    /// Print a summary in Markdown, for a pull request
    #[arg(long, conflicts_with_all = ["events", "verbose"])]
    markdown: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    if args.markdown && context.output.json {
        let what = "--markdown is text, and --json asks for a document";
        return Err(Failure::usage("argument_conflict", what));
    }
    let dir = last::to_show(context, &args.run)?;
    match liveness(&dir) {
        Liveness::Sealed => {}
        state => return unsealed(context, &dir, state),
    }
    let SealedReport { report, sealed_by } = reader::sealed_report(&dir)?;
    let seal = Seal::of(&context.trust()?, &sealed_by);
    if context.output.json {
        let said = said_of(context, &report, &dir)?;
        let mut document = json!({
            "schema_version": 1,
            "command": "show",
            "state": "sealed",
            "bundle": host_path(&dir),
            "seal": seal.word(),
            "report": report,
        });
        if let Some(said) = said {
            document["effective"] = json!(said);
        }
        if let Some(closeout) = Closeout::of(&context.home()?, &context.trust()?, &report, &dir) {
            document["closeout"] = json!(closeout);
        }
        context.output.document(&document)?;
        return Ok(seal.exit_code());
    }
    if args.markdown {
        let summary = markdown::summary(&dir, &report, seal.doubt());
        context.output.line(summary.trim_end());
        return Ok(seal.exit_code());
    }
    if let Some(doubt) = seal.doubt() {
        context.output.line(&format!(
            "{style}NOT PROVEN{style:#}  {doubt}. What follows is what it says of itself.\n",
            style = AnsiColor::Yellow.on_default().bold()
        ));
    }
    body(context, &report, &dir);
    if let Some(closeout) = Closeout::of(&context.home()?, &context.trust()?, &report, &dir) {
        closeout.print(&context.output);
    }
    if let Some(said) = said_of(context, &report, &dir)? {
        let by = said
            .by
            .as_ref()
            .map_or(String::new(), |by| format!(", by {by}"));
        let text = format!("{}: {}{by}", said.status.as_str(), said.words());
        context.output.row("counts", &text);
        if said.standing == Standing::Waits {
            hinted(context, &report);
        }
    } else {
        hinted(context, &report);
    }
    if let Some(times) = report.timings.as_ref().filter(|_| args.verbose) {
        context.output.row("time", &tame(&times.line()));
    }
    if args.events {
        events(context, &dir, &report)?;
    }
    context.output.line(&format!(
        "\nnext: {}",
        context.output.command(&format!("verify {}", report.run_id))
    ));
    Ok(seal.exit_code())
}

/// What a run comes to with what was said of it afterwards.
fn said_of(context: &Context, report: &Report, dir: &Path) -> Result<Option<Effective>, Failure> {
    let (home, trust) = (context.home()?, context.trust()?);
    Ok(settlements::effective_at(&home, dir, report, &trust))
}

fn host_path(dir: &Path) -> String {
    std::path::absolute(dir)
        .unwrap_or_else(|_| dir.to_owned())
        .display()
        .to_string()
}

/// Readers never write: an interrupted run is shown as it stands.
fn unsealed(context: &Context, dir: &Path, state: Liveness) -> Result<u8, Failure> {
    let word = verify::word(state);
    if context.output.json {
        context.output.document(
            &json!({"schema_version": 1, "command": "show", "state": word, "bundle": host_path(dir), "report": null}),
        )?;
    } else {
        context.output.line(&format!(
            "{} {}",
            word.to_uppercase(),
            dir.file_name().unwrap_or_default().display()
        ));
        context.output.line(match state {
            Liveness::Live => "This run is still being written; it has no verdict yet.",
            Liveness::Foreign => {
                "Another program made this; it is no evidence, and is left as it is."
            }
            Liveness::Interrupted | Liveness::Sealed => {
                "This run has no report: it was never sealed, or its report is gone. It proves nothing."
            }
        });
        if state == Liveness::Interrupted {
            context
                .output
                .line(&format!("\nnext: {}", context.output.command("recover")));
        }
    }
    Ok(3)
}

/// The verdict, its reasons, and what to do about them; shared with `cto run`.
pub fn print(context: &Context, report: &Report, dir: &Path) {
    body(context, report, dir);
    hinted(context, report);
}

fn hinted(context: &Context, report: &Report) {
    if let Some(blocker) = cto_core::values::blocker::headline(&report.blockers) {
        context.output.line("");
        let reader = Reader {
            engine: &report.backend,
            is_try: report.label == Label::Try,
        };
        let hint = hint(blocker.code, blocker.detail.as_deref(), reader);
        context.output.hanging("hint: ", &hint);
    }
}

fn body(context: &Context, report: &Report, dir: &Path) {
    let (style, dim) = (status_style(report.status), dim());
    let out = |text: &str| context.output.line(text);
    let row = |name: &str, text: &str| context.output.row(name, text);
    let beginning = format!(
        "{style}{}{style:#}  ",
        report.status.as_str().to_uppercase()
    );
    let verdict = format!(
        "{}  {dim}engine{dim:#} {}  {dim}stage{dim:#} {}{}{}{}",
        report.case_id,
        report.backend,
        report.stage.number(),
        containment(report),
        warmth(report),
        worth(report),
    );
    context.output.hanging(&beginning, &verdict);
    out("");
    again(report, &row);
    for blocker in &report.blockers {
        row(
            "why",
            &format!(
                "{style}{}{style:#}: {}",
                blocker.code.as_str(),
                blocker.message
            ),
        );
        blocker
            .detail
            .iter()
            .for_each(|detail| row("", &tame(detail)));
    }
    if let (Some(told), Some(run)) = (&report.settlement, &report.continues) {
        row("settles", run.run_id.as_str());
        row("word", &tame(&told.sentence()));
    } else if report.blockers.is_empty() {
        row(
            "why",
            "gates passed, scope kept, checks green where the engine never was",
        );
    }
    report
        .engine
        .warnings
        .iter()
        .for_each(|warning| row("warning", &tame(warning)));
    row("changed", &changed(report));
    if !report.observed.leftovers.is_empty() {
        let left = listed(&report.observed.leftovers);
        row("", &format!("left behind by tools, and left out: {left}"));
    }
    guarded(report, &row);
    if let Some(text) = source(context, dir, report) {
        row("source", &text);
    }
    environments(report, &row);
    checks::tests(report, dir, &row);
    claimed(report, &row);
    if let Some(used) = &report.model_use {
        row("model", &used.line());
    }
    row("run", report.run_id.as_str());
    row("bundle", &host_path(dir));
}

/// What the engine claims; of one that speaks for itself with its words, beside what was seen.
fn claimed(report: &Report, row: &dyn Fn(&str, &str)) {
    let (dim, scripted) = (dim(), report.backend.as_str() == DEFAULT_ENGINE);
    let text = match (scripted, &report.claimed.status) {
        (true, Some(status)) => Some(tame(status)),
        (true, None) => None,
        (false, _) => claimed_text(&report.claimed),
    };
    let Some(text) = text else { return };
    row(
        "claimed",
        &format!("{text} {dim}(the engine's word; not evidence){dim:#}"),
    );
    if !scripted {
        let green = report.verification.iter().filter(|line| line.passed);
        let (green, all) = (green.count(), report.verification.len());
        row(
            "observed",
            &seen_text(report.changed_files.len(), green, all),
        );
    }
}

/// Whose patch it is, where it is judged again, and what differs from the checks of that run.
fn again(report: &Report, row: &dyn Fn(&str, &str)) {
    let Some(first) = &report.reverifies else {
        return;
    };
    let differ = report.checks_differ.clone().unwrap_or_default();
    let what = format!(
        "the patch of {}, without an engine; that run stays what it was",
        first.run_id
    );
    row("again", &what);
    row("differs", &tame(&differ.short()));
    differ.lines().iter().for_each(|line| row("", &tame(line)));
}

/// Was anything of the contract started?
fn worked(report: &Report) -> bool {
    report.process_started || (report.reverifies.is_some() && report.result.is_some())
}

/// The repository that was copied, and whether it is as it was.
fn source(context: &Context, dir: &Path, report: &Report) -> Option<String> {
    let copied = reader::source(dir, report)?;
    let short: String = copied.source_head_before.chars().take(10).collect();
    let state = copied.meanwhile().words();
    let left_out = if copied.from_head && copied.source_status_before.dirt().is_some() {
        "; uncommitted changes left out"
    } else {
        ""
    };
    Some(format!(
        "{} at {short}, {state}{left_out}",
        tame(&whereabouts(context, &copied))
    ))
}

/// Where the repository is, if this state home knows it: a bundle has only its name.
fn whereabouts(context: &Context, copied: &CopiedRepo) -> String {
    let Some(named) = &copied.repository else {
        return copied.record.path.clone().unwrap_or_default();
    };
    let home = context.home().ok();
    match home.and_then(|home| repositories::find(&home, &named.path_sha256)) {
        Some(path) => toolchains::shorten(&path, &context.env),
        None => named.name.clone(),
    }
}

/// Where nothing was started, nothing had to be contained.
fn containment(report: &Report) -> String {
    let dim = dim();
    match (worked(report), report.containment) {
        (false, _) => String::new(),
        (true, Containment::None) => format!("  {dim}containment{dim:#} NONE"),
        (true, contained) => {
            let why = report
                .workspace_guard
                .as_ref()
                .and_then(|guard| guard.fallback.as_ref());
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            let unseen = report
                .forbidden_actions
                .as_ref()
                .is_some_and(|seen| !seen.recorded);
            let attempts = if unseen {
                format!("  {dim}attempts{dim:#} NOT RECORDED")
            } else {
                String::new()
            };
            let traced = match &report.workspace_guard {
                Some(guard) if guard.traced_checks => format!("  {dim}tracing{dim:#} in checks"),
                _ => String::new(),
            };
            format!(
                "  {dim}containment{dim:#} {}{why}{traced}{attempts}",
                contained.as_str()
            )
        }
    }
}

/// What came with the repository for agents or by the name of a secret, and whether the engine saw
/// it.
fn guarded(report: &Report, row: &dyn Fn(&str, &str)) {
    const LISTED: usize = 5;
    let (dim, started) = (dim(), report.process_started);
    let Some(guard) = report.workspace_guard.as_ref().filter(|_| started) else {
        return;
    };
    for (name, paths, note) in [
        ("masked", &guard.masked, "the engine saw them empty"),
        (
            "visible",
            &guard.shown,
            "asked for by name, or source; the engine saw them",
        ),
    ] {
        let listed: Vec<String> = paths
            .iter()
            .take(LISTED)
            .map(|path| tame(&path.to_string()))
            .collect();
        let more = match paths.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !paths.is_empty() {
            let listed = listed.join(", ");
            let text = format!("{listed}{more} {dim}(agent configuration, secrets; {note}){dim:#}");
            row(name, &text);
        }
    }
}

/// What came along of the operator's work tree: it is their word, and part of the verdict.
fn warmth(report: &Report) -> String {
    let with = with_your(&report.environments).filter(|_| worked(report));
    with.map_or_else(String::new, |with| format!("  {}", tame(&with)))
}

/// What came along and cannot be written, what did not, and what there is to be said.
fn environments(report: &Report, row: &dyn Fn(&str, &str)) {
    if !worked(report) {
        return;
    }
    for used in &report.environments {
        if used.why.is_some() {
            row("env", &tame(&used.line()));
        }
    }
    for note in &report.environment_notes {
        row("note", &tame(note));
    }
}

/// What the green is worth.
fn worth(report: &Report) -> String {
    let belief = report.belief.as_ref();
    belief.map_or_else(String::new, |belief| format!("  {}", belief.clause()))
}

fn changed(report: &Report) -> String {
    match report.changed_files.as_slice() {
        [] if worked(report) && report.result.is_none() => "not measured".into(),
        [] => "nothing".into(),
        files => listed(files),
    }
}

pub fn listed(paths: &[TreePath]) -> String {
    let shown = paths
        .iter()
        .take(5)
        .map(|path| tame(&path.to_string()))
        .collect::<Vec<_>>()
        .join(", ");
    match paths.len().saturating_sub(5) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The chain as a list. Reading it here proves nothing; `cto verify` does.
fn events(context: &Context, dir: &Path, report: &Report) -> Result<(), Failure> {
    context.output.line("");
    for line in reader::event_lines(dir, report)? {
        let (event, style) = (&line.event, dim());
        let detail = timeline::event_sentence(event);
        // The day is in the run id; here the time of day is enough.
        let time: String = line.ts.to_string().chars().skip(11).take(12).collect();
        let beginning = format!(
            "  {style}{:>3}  {time}{style:#}  {:<23} ",
            line.seq,
            event.kind().as_str()
        );
        context.output.hanging(&beginning, &tame(&detail));
    }
    Ok(())
}
