//! What `cto show` says of the checks of a run: how each ended, what it said, what it was before, and what no
//! check saw.

use std::path::Path;

use cto_core::bundle::report::Report;
use cto_core::bundle::report_md;
use cto_core::run::belief::{Belief, Substance};
use cto_core::run::checked::TestsCompared;
use cto_core::run::event::CheckKind;

use crate::cli::evidence::log;
use crate::cli::evidence::show::listed;
use crate::screen::output::tame;

/// Lines of a red check that stand in the verdict.
const LAST_WORDS: usize = 8;

/// The last words of what was red.
fn said(lines: &[String], row: &dyn Fn(&str, &str)) {
    for (at, words) in lines.iter().enumerate() {
        row(if at == 0 { "said" } else { "" }, words);
    }
}

/// One row a check, the last words of the first that is red, and what its green is worth.
pub fn tests(report: &Report, dir: &Path, row: &dyn Fn(&str, &str)) {
    if report.verification.is_empty() {
        let reason = report
            .not_applicable
            .get("tests_passed")
            .map_or("not run", String::as_str);
        row("checks", &format!("not run: {}", tame(reason)));
        said(&log::red_start(dir, report, LAST_WORDS), row);
        return;
    }
    let red = report.verification.iter().position(|line| !line.passed);
    for (number, line) in report.verification.iter().enumerate() {
        let kind = if line.kind == CheckKind::Hidden {
            "hidden  "
        } else {
            ""
        };
        let verdict = if line.passed { "green" } else { "RED" };
        row(
            "checks",
            &format!(
                "{verdict:<5}  {kind}{} ({}, {} ms)",
                tame(&line.command),
                report_md::describe_end(line.end),
                line.duration_ms
            ),
        );
        let doubted = line.belief.filter(|belief| *belief != Belief::Proven);
        if let (Some(belief), Some(because)) = (doubted, &line.because) {
            row("", &format!("believed {}: {because}", belief.loud()));
        }
        if red == Some(number) {
            if let Some(before) = log::before_the_change(dir, report, &line.command) {
                row("", &before);
            }
            said(&log::last_words(dir, report, LAST_WORDS), row);
        }
    }
    unseen(report, row);
    match report
        .verification_control
        .as_ref()
        .map(|control| (control.red, control.reason.as_deref()))
    {
        None => {}
        Some((Some(true), _)) => row("control", "red where it must be red"),
        Some((Some(false), _)) => row(
            "control",
            "GREEN where it must be red: the checks prove nothing",
        ),
        Some((None, reason)) => row(
            "control",
            &format!("NONE: {}", tame(reason.unwrap_or("no reason given"))),
        ),
    }
    if let Some(relied) = &report.baseline_relied {
        row(
            "",
            &format!(
                "baseline known since {}, made by {}",
                relied.made_at, relied.run_id
            ),
        );
    }
}

/// What no check saw, which tests changed, and what was said about that ahead.
fn unseen(report: &Report, row: &dyn Fn(&str, &str)) {
    let Some(belief) = &report.belief else {
        return;
    };
    if belief.substance == Substance::Code {
        let line = belief.seen().line();
        row("seen", line.strip_prefix("seen ").unwrap_or(&line));
    }
    for (what, paths) in [
        ("no check noticed", &belief.not_noticed),
        ("not tried alone", &belief.not_tried),
    ] {
        if !paths.is_empty() {
            row("", &format!("{what}: {}", listed(paths)));
        }
    }
    let observed = &report.observed;
    if !observed.changed_test_files.is_empty() {
        let changed = listed(&observed.changed_test_files);
        row("tests", &format!("changed: {changed}"));
    }
    for (what, names) in belief.tests.iter().flat_map(TestsCompared::notes) {
        let names: Vec<String> = names.iter().map(|name| tame(name)).collect();
        row("", &format!("{what}: {}", names.join("; ")));
    }
    for change in &belief.reasons.tests_may_change {
        row("", &format!("may change: {}", tame(&change.line())));
    }
    if !observed.rewritten_files.is_empty() {
        let written = listed(&observed.rewritten_files);
        row("note", &format!("setup or a check wrote to {written}"));
    }
    for (what, reason) in [
        ("unproven", &belief.reasons.accept_unproven),
        ("unchecked", &belief.reasons.unchecked),
    ] {
        if let Some(reason) = reason {
            row("accepted", &format!("although {what}: {}", tame(reason)));
        }
    }
}
