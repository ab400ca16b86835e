//! `cto replay`: how a run went, from its events. Only what the hash chain proves is shown.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::bundle::report::Report;
use cto_core::operator::agent_phases::{AgentPhases, WireCost};
use cto_core::operator::timeline::{self, Entry, Timeline, Voice, clock_text, duration_text};
use cto_core::run::chain;
use cto_core::run::trace::{TraceLine, TraceOutcome};
use cto_core::task::contract::ContractDocument;
use cto_core::values::ids::RunId;
use cto_core::values::json as strict;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;
use serde_json::json;

use crate::bundles::reader;
use crate::bundles::verifier;
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::evidence::{Liveness, liveness};
use crate::host::failure::Failure;
use crate::screen::output::{dim, status_style, tame};
use crate::screen::table::{Fit, Table};
use crate::screen::terminal;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique part of one, `last`, or a bundle directory
    #[arg(default_value = "last")]
    run: String,
    /// Also show what the harness did, from its trace
    #[arg(long)]
    trace: bool,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let dir = last::to_show(context, &args.run)?;
    let tape = Tape::of(&dir, &context.trust()?)?;
    let trace = if args.trace {
        tape.trace()
    } else {
        Ok(Vec::new())
    };
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "replay",
            "run_id": tape.run_id,
            "bundle": dir.display().to_string(),
            "standing": tape.standing,
            "state": tape.state,
            "good_events": tape.told.entries.len(),
            "problem": tape.problem,
            "chain_problem": tape.chain_problem,
            "duration_ms": tape.told.duration_ms,
            "phases": tape.told.phases,
            "agent_phases": tape.told.agent_phases,
            "gaps": tape.told.gaps,
            "entries": tape.told.entries,
            "trace": args.trace.then(|| trace.as_ref().ok()),
        }))?;
        return Ok(tape.exit_code());
    }
    headline(context, &tape);
    phases(context, &tape.told);
    agent_phases(context, &tape.told.agent_phases);
    entries(context, &tape.told, trace.as_deref().unwrap_or_default());
    footer(context, &tape, trace.as_ref().err().map(String::as_str));
    Ok(tape.exit_code())
}

/// What could be read of a run, and how far it can be believed.
struct Tape {
    run_id: RunId,
    standing: Standing,
    state: &'static str,
    status: Option<Status>,
    /// What is wrong with the bundle, be it with its chain or with anything else.
    problem: Option<String>,
    /// What ends the good part of the chain before its last line.
    chain_problem: Option<String>,
    told: Timeline,
    /// The trace is bound by nothing but the digests of a sealed bundle.
    trace: Option<Vec<u8>>,
}

/// The documents a replay is made of.
const DOCUMENTS: [&str; 4] = [
    bundle::CONTRACT,
    bundle::REPORT,
    bundle::EVENTS,
    bundle::TRACE,
];

impl Tape {
    fn of(dir: &Path, trust: &Trust) -> Result<Self, Failure> {
        let unreadable = |error: &dyn std::error::Error| {
            Failure::usage("unreadable_events", "the events of this run cannot be read")
                .at(dir.display().to_string())
                .because(error)
                .hint("`cto verify` says what is wrong with the bundle")
        };
        let liveness = liveness(dir);
        let (documents, verification) = match liveness {
            Liveness::Sealed => {
                let (found, verification) =
                    verifier::examine(dir, trust).map_err(|error| unreadable(&error))?;
                (found.documents, Some(verification))
            }
            Liveness::Foreign => {
                return Err(Failure::usage(
                    "foreign",
                    "another program made this; it has no events of ours",
                )
                .at(dir.display().to_string()));
            }
            Liveness::Live | Liveness::Interrupted => {
                let read = |name: &str| Some((name.to_owned(), reader::document(dir, name).ok()?));
                (DOCUMENTS.into_iter().filter_map(read).collect(), None)
            }
        };
        let bytes = |name: &str| documents.get(name).map(Vec::as_slice).unwrap_or_default();
        let (_, contract) =
            ContractDocument::read(bytes(bundle::CONTRACT)).map_err(|error| unreadable(&error))?;
        // A copy of a bundle may have any name; one that was never sealed has only its own.
        let reported = strict::read::<Report>(bytes(bundle::REPORT))
            .ok()
            .map(|report| report.run_id);
        let named = dir
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let run_id = reported
            .map_or_else(|| named.parse::<RunId>(), Ok)
            .map_err(|error| unreadable(&error))?;
        let start = chain::chain_start(&run_id, &contract.contract_digest);
        let (lines, broken) = timeline::good_beginning(bytes(bundle::EVENTS), start, &run_id);
        let standing = verification
            .as_ref()
            .map_or(Standing::Unknown, |found| found.standing);
        let first = verification
            .as_ref()
            .and_then(|found| found.problems.iter().chain(&found.unknowns).next());
        Ok(Self {
            run_id,
            standing,
            state: match liveness {
                Liveness::Sealed => "sealed",
                Liveness::Live => "live",
                Liveness::Interrupted | Liveness::Foreign => "unsealed",
            },
            status: verification.as_ref().and_then(|found| found.status),
            problem: first.map(|problem| format!("{}: {}", problem.artifact, problem.message)),
            chain_problem: broken,
            told: timeline::build_timeline(&lines),
            trace: documents
                .get(bundle::TRACE)
                .filter(|_| standing == Standing::Good)
                .cloned(),
        })
    }

    fn exit_code(&self) -> u8 {
        match self.standing {
            Standing::Good => 0,
            Standing::Bad => 1,
            Standing::Unknown => 3,
        }
    }

    fn trace(&self) -> Result<Vec<TraceLine>, String> {
        let Some(bytes) = &self.trace else {
            return Err("the trace of a bundle that does not verify is not shown".to_owned());
        };
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| strict::read(line).map_err(|error| error.to_string()))
            .collect()
    }
}

fn headline(context: &Context, tape: &Tape) {
    let yellow = AnsiColor::Yellow.on_default().bold();
    let (word, style) = match (tape.standing, tape.status) {
        (Standing::Good, Some(status)) => (status.as_str().to_uppercase(), status_style(status)),
        (Standing::Bad, _) => ("BAD".to_owned(), AnsiColor::Red.on_default().bold()),
        _ => (tape.state.to_uppercase(), yellow),
    };
    let dim = dim();
    let sum = format!(
        "{} events, {}",
        tape.told.entries.len(),
        duration_text(tape.told.duration_ms)
    );
    context.output.line(&format!(
        "{style}{word}{style:#}  {}  {dim}{sum}{dim:#}\n",
        tape.run_id
    ));
}

/// Each phase where it was in the run, as long as it was.
fn phases(context: &Context, told: &Timeline) {
    if told.phases.is_empty() {
        return;
    }
    let names = told
        .phases
        .iter()
        .map(|phase| phase.name.len())
        .max()
        .unwrap_or(0);
    let bar = terminal::columns()
        .unwrap_or(80)
        .saturating_sub(names + 15)
        .clamp(10, 60);
    let mut table = Table::new(&[("", Fit::Whole), ("", Fit::Whole), ("", Fit::Right)]);
    for phase in &told.phases {
        let (from, length) = stretch(phase.start_ms, phase.duration_ms, told.duration_ms, bar);
        let marks = format!(
            "{}{}{}",
            "·".repeat(from),
            "█".repeat(length),
            "·".repeat(bar - from - length)
        );
        table.row(vec![
            format!("  {}", phase.name).into(),
            marks.into(),
            duration_text(phase.duration_ms).into(),
        ]);
    }
    context.output.table(&table);
    context.output.line("");
}

/// The phases that the engine tells of, and what each cost on the wire.
fn agent_phases(context: &Context, told: &AgentPhases) {
    if told.phases.is_empty() {
        return;
    }
    let mut table = Table::new(&[
        ("  PHASE", Fit::Cut),
        ("ENDED", Fit::Cut),
        ("TOOK", Fit::Right),
        ("CALLS", Fit::Right),
        ("TOKENS IN", Fit::Right),
        ("OUT", Fit::Right),
    ]);
    let costs = |cost: &WireCost| {
        [cost.calls, cost.input_tokens, cost.output_tokens].map(|count| count.to_string().into())
    };
    for phase in &told.phases {
        let name = match phase.revision {
            Some(revision) => format!("  {}, revision {revision}", tame(&phase.phase)),
            None => format!("  {}", tame(&phase.phase)),
        };
        let outcome = tame(phase.outcome.as_deref().unwrap_or("not said"));
        let took = duration_text(phase.duration_ms);
        let mut row = vec![name.into(), outcome.into(), took.into()];
        row.extend(costs(&phase.cost));
        table.row(row);
    }
    if told.elsewhere != WireCost::default() {
        let mut row = vec!["  outside of them".into(), "".into(), "".into()];
        row.extend(costs(&told.elsewhere));
        table.row(row);
    }
    context.output.table(&table);
    context.output.line("");
}

/// Where a phase begins on a bar and how much of it it takes: at least one mark, never beyond the
/// end.
fn stretch(start: i64, length: i64, total: i64, bar: usize) -> (usize, usize) {
    let marks = |ms: i64| {
        let share = i128::from(ms.max(0)) * bar as i128 / i128::from(total.max(1));
        usize::try_from(share).unwrap_or(bar).min(bar)
    };
    let from = marks(start).min(bar.saturating_sub(1));
    let until = marks(start.saturating_add(length)).clamp(from + 1, bar.max(from + 1));
    (from, until - from)
}

/// One line of the story.
enum Row<'a> {
    Event(&'a Entry),
    Trace(&'a TraceLine),
}

/// Events keep their order; a trace line stands before the first event that came later.
fn merged<'a>(told: &'a Timeline, trace: &'a [TraceLine]) -> Vec<Row<'a>> {
    let mut rows = Vec::with_capacity(told.entries.len() + trace.len());
    let mut waiting = trace.iter().peekable();
    let at = |line: &TraceLine| i64::try_from(line.at_ms).unwrap_or(i64::MAX);
    for entry in &told.entries {
        while let Some(line) = waiting.next_if(|line| at(line) < entry.at_ms) {
            rows.push(Row::Trace(line));
        }
        rows.push(Row::Event(entry));
    }
    rows.extend(waiting.map(Row::Trace));
    rows
}

fn entries(context: &Context, told: &Timeline, trace: &[TraceLine]) {
    let names = told.entries.iter().map(|entry| entry.event.as_str().len());
    let names = names
        .chain(trace.iter().map(|line| line.action.len()))
        .max()
        .unwrap_or(0)
        .min(25);
    let dim = dim();
    for row in merged(told, trace) {
        match row {
            Row::Event(entry) => {
                silence(context, told, entry);
                let (mark, style) = match entry.voice {
                    Voice::Observed => (" ", Style::new()),
                    Voice::Claimed => ("┊", dim.italic()),
                };
                print_row(
                    context,
                    (clock_text(entry.at_ms), mark, style),
                    (entry.event.as_str(), names),
                    &entry.text,
                );
            }
            Row::Trace(line) => {
                let outcome = match line.outcome {
                    TraceOutcome::Ok => "",
                    TraceOutcome::Refused => "REFUSED ",
                    TraceOutcome::Failed => "FAILED ",
                };
                let lasted = duration_text(i64::try_from(line.duration_ms).unwrap_or(i64::MAX));
                let detail = line
                    .detail
                    .as_deref()
                    .map(|detail| format!(", {detail}"))
                    .unwrap_or_default();
                let at = clock_text(i64::try_from(line.at_ms).unwrap_or(i64::MAX));
                print_row(
                    context,
                    (at, "+", dim),
                    (&line.action, names),
                    &format!("{outcome}{lasted}{detail}"),
                );
            }
        }
    }
}

/// A noticeable gap before an event, or a clock that went back.
fn silence(context: &Context, told: &Timeline, entry: &Entry) {
    let dim = dim();
    if told.gaps.iter().any(|gap| gap.before_seq == entry.seq) {
        context.output.line(&format!(
            "{dim}{:>10}    {} without an event{dim:#}",
            "⋮",
            duration_text(entry.since_previous_ms)
        ));
    } else if entry.since_previous_ms < 0 {
        context.output.line(&format!(
            "{dim}{:>10}    the clock went back by {}{dim:#}",
            "⋮",
            duration_text(-entry.since_previous_ms)
        ));
    }
}

fn print_row(
    context: &Context,
    (time, mark, style): (String, &str, Style),
    (name, names): (&str, usize),
    text: &str,
) {
    let dim = dim();
    let name = terminal::cut(&tame(name), names);
    let beginning = format!("{dim}{time:>10}{dim:#}  {mark} {style}{name:<names$}{style:#}  ");
    context
        .output
        .hanging(&beginning, &format!("{style}{}{style:#}", tame(text)));
}

fn footer(context: &Context, tape: &Tape, no_trace: Option<&str>) {
    let out = |text: &str| context.output.line(text);
    let said = tape
        .told
        .entries
        .iter()
        .any(|entry| entry.voice == Voice::Claimed);
    if said {
        let dim = dim();
        out(&format!(
            "\n{dim}┊ claimed by the engine; not evidence{dim:#}"
        ));
    }
    if let Some(why) = no_trace {
        out(&format!("\nnote: {}", tame(why)));
    }
    let say = |text: &str| {
        out("");
        context.output.hanging("", text);
    };
    if let Some(problem) = tape.chain_problem.as_ref().filter(|_| tape.state != "live") {
        let count = tape.told.entries.len();
        say(&format!(
            "The chain is good up to event {count}. What follows is not shown: {}.",
            tame(problem)
        ));
    }
    match (tape.standing, tape.state) {
        (Standing::Good, _) => {}
        (_, "live") => return say("This run is still being written; these are its events so far."),
        (_, "unsealed") => say(
            "This run has no report: it was never sealed, or its report is gone. It proves nothing.",
        ),
        _ => say(&format!(
            "Do not rely on this bundle: {}.",
            tame(tape.problem.as_deref().unwrap_or("it does not verify"))
        )),
    }
    let next = if tape.state == "unsealed" {
        "recover".to_owned()
    } else {
        format!("verify {}", tape.run_id)
    };
    out(&format!("\nnext: {}", context.output.command(&next)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_inside() {
        for (start, length, total) in [
            (0, 0, 0),
            (0, 10, 10),
            (10, 0, 10),
            (3, 4, 10),
            (-5, 2, 10),
            (i64::MAX, i64::MAX, 1),
        ] {
            for bar in [1, 10, 60] {
                let (from, marks) = stretch(start, length, total, bar);
                assert!(
                    marks >= 1 && from + marks <= bar,
                    "{start} {length} {total} {bar}: {from}+{marks}"
                );
            }
        }
        assert_eq!(stretch(25, 50, 100, 40), (10, 20));
    }
}
