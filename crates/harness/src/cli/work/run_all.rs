//! `cto run --all`, or several cases: ordinary runs, some at a time, one answer.

use std::time::{Duration, Instant};

use cto_core::bundle::report::Report;
use cto_core::containment::Containment;
use cto_core::run::belief::Belief;
use cto_core::values::blocker::Code;
use cto_core::values::verdict::Status;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::work::run::{describe, run_one};
use crate::evidence::SealedBundle;
use crate::host::Home;
use crate::host::accounts::{Cost, Meter};
use crate::host::failure::Failure;
use crate::host::workers;
use crate::screen::output::{dim, status_style, tame};
use crate::screen::progress::Board;
use crate::supervise::cancel::Cancel;
use crate::task::request::Request;

/// How one case ended.
struct Ended {
    case: String,
    result: Result<SealedBundle, Failure>,
    took: Duration,
}

/// A case asked for, and how it ended, if it was begun.
struct Row<'a> {
    case: &'a str,
    ended: Option<&'a Ended>,
}

pub fn run(
    context: &Context,
    home: &Home,
    requests: &[Request],
    jobs: usize,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    let meter = Meter::start();
    let board = Board::for_stderr(context.output.json, &context.env);
    let width = requests
        .iter()
        .map(|request| request.case.id.as_str().len())
        .max()
        .unwrap_or(0);
    let ended = workers::each(
        requests,
        jobs,
        &|| cancel.requested(),
        &|index, request: &Request| {
            let case = request.case.id.to_string();
            let since = Instant::now();
            let result = run_one(
                context,
                home,
                request,
                cancel,
                &mut board.line(index, &case),
            );
            let ended = Ended {
                case,
                result,
                took: since.elapsed(),
            };
            let row = Row {
                case: &ended.case,
                ended: Some(&ended),
            };
            let line = format!(
                "{:<8} {:<width$}  {:>6} ms  {}",
                word(row.ended),
                row.case,
                ended.took.as_millis(),
                reason(&row)
            );
            board.ended(index, line.trim_end());
            ended
        },
    );
    let cost = meter.read();
    let rows: Vec<Row<'_>> = requests
        .iter()
        .zip(&ended)
        .map(|(request, ended)| Row {
            case: request.case.id.as_str(),
            ended: ended.as_ref(),
        })
        .collect();
    let lost = rows.iter().any(|row| row.ended.is_none()) && !cancel.requested();
    let code = if lost { LOST } else { exit_code(&rows) };
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "run",
            "exit_code": code,
            "jobs": jobs,
            "interrupted": cancel.requested(),
            "cost": cost.to_json(),
            "runs": rows.iter().map(row_json).collect::<Vec<_>>(),
        }))?;
    } else {
        print(context, home, &rows, width, cost);
    }
    Ok(code)
}

/// The exit code of a harness that could not do its job.
const LOST: u8 = 70;

/// The worst one. A case that was not begun did not pass.
fn exit_code(rows: &[Row<'_>]) -> u8 {
    let failures = rows
        .iter()
        .filter_map(|row| row.ended?.result.as_ref().err());
    let statuses = rows
        .iter()
        .map(|row| match row.ended.map(|ended| &ended.result) {
            Some(Ok(sealed)) => sealed.report.status,
            Some(Err(_)) | None => Status::Blocked,
        });
    let worst = statuses.max().unwrap_or(Status::Blocked);
    failures
        .map(Failure::exit_code)
        .max()
        .unwrap_or(worst.exit_code())
}

fn word(ended: Option<&Ended>) -> &'static str {
    match ended.map(|ended| &ended.result) {
        None => "not run",
        Some(Err(_)) => "ERROR",
        Some(Ok(sealed)) => sealed.report.status.as_str(),
    }
}

/// The code of the headline: the first blocker of the run's own status.
fn code(ended: Option<&Ended>) -> Option<&'static str> {
    match ended.map(|ended| &ended.result) {
        None => Some(Code::Interrupted.as_str()),
        Some(Err(failure)) => Some(failure.code),
        Some(Ok(SealedBundle { report, .. })) => {
            let headline = report
                .blockers
                .iter()
                .find(|blocker| blocker.code.info().status == report.status);
            headline.map(|blocker| blocker.code.as_str())
        }
    }
}

/// Without one, what a pass does not rest on, if anything.
fn reason(row: &Row<'_>) -> &'static str {
    let word = |report: &Report| {
        let belief = report.belief.as_ref();
        belief.map_or(Belief::None, |belief| belief.word)
    };
    code(row.ended).unwrap_or_else(|| {
        let passed = sealed(row);
        match passed.map(|report| (report.containment == Containment::None, word(report))) {
            Some((true, Belief::None)) => "containment, checks NONE",
            Some((true, Belief::Partly)) => "containment NONE, checks partly",
            Some((true, Belief::Proven)) => "containment NONE",
            Some((false, Belief::None)) => "checks NONE",
            Some((false, Belief::Partly)) => "checks partly",
            Some((false, Belief::Proven)) | None => "",
        }
    })
}

fn row_json(row: &Row<'_>) -> Value {
    let took = row
        .ended
        .map(|ended| u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX));
    let mut answer = json!({"case_id": row.case, "started": row.ended.is_some(), "wall_ms": took, "reason": code(row.ended)});
    match row.ended.map(|ended| &ended.result) {
        Some(Ok(sealed)) => describe(sealed, &mut answer),
        Some(Err(failure)) => answer["error"] = failure.to_json(None)["error"].clone(),
        None => {}
    }
    answer
}

fn sealed<'a>(row: &Row<'a>) -> Option<&'a Report> {
    row.ended
        .and_then(|ended| ended.result.as_ref().ok())
        .map(|sealed| &sealed.report)
}

fn print(context: &Context, home: &Home, rows: &[Row<'_>], width: usize, cost: Cost) {
    let dim = dim();
    let out = |text: &str| context.output.line(text);
    out(&format!(
        "{dim}{:<width$}  {:<8} {:<25} {:>7}  run{dim:#}",
        "case", "status", "reason", "ms"
    ));
    for row in rows {
        let style = match row.ended.map(|ended| &ended.result) {
            Some(Ok(sealed)) => status_style(sealed.report.status),
            _ => status_style(Status::Fail),
        };
        // A run id ends in letters of its own, and every command finds a run by them.
        let run = sealed(row).map_or("", |report| report.run_id.as_str());
        let short = run.rsplit('-').next().unwrap_or_default();
        let took = row
            .ended
            .map_or(String::new(), |ended| ended.took.as_millis().to_string());
        out(&format!(
            "{:<width$}  {style}{:<8}{style:#} {:<25} {took:>7}  {short}",
            tame(row.case),
            word(row.ended),
            reason(row)
        ));
    }
    let count = |wanted: &str| rows.iter().filter(|row| word(row.ended) == wanted).count();
    let summary: Vec<String> = ["pass", "blocked", "fail", "ERROR", "not run"]
        .into_iter()
        .filter(|name| count(name) > 0)
        .map(|name| format!("{} {name}", count(name)))
        .collect();
    out(&format!("\n{}: {}", summary.join(", "), cost.line()));
    let bare = |row: &&Row<'_>| {
        sealed(row)
            .is_some_and(|report| report.process_started && report.containment == Containment::None)
    };
    match rows.iter().filter(bare).count() {
        0 => {}
        count => out(&format!(
            "{count} of them ran with containment NONE; `cto doctor` says why"
        )),
    }
    out(&format!("{dim}bundles{dim:#} {}", home.runs.display()));
    for row in rows {
        if let Some(Err(failure)) = row.ended.map(|ended| &ended.result) {
            context.output.note(&format!("\n{}:", tame(row.case)));
            context.output.failure(failure);
        }
    }
    let worth_a_look = rows
        .iter()
        .find(|row| word(row.ended) != "pass")
        .or(rows.first());
    let run = worth_a_look
        .and_then(sealed)
        .map_or("last", |report| report.run_id.as_str());
    out(&format!(
        "\nnext: {}",
        context.output.command(&format!("show {run}"))
    ));
}
