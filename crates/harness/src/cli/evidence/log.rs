//! `cto log`: the last lines of what a check, its control, the baseline or the engine printed.

use std::fs::File;
use std::path::Path;

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::bundle::report_md::describe_end;
use cto_core::checks::test_log::Section;
use cto_core::run::checked::{Check, CheckKind, ControlRun, FailedTests, VerificationCompleted};
use cto_core::run::event::Event;
use cto_core::values::text::tame_lines;
use serde_json::json;

use crate::bundles::log_tail::{self, Tail};
use crate::bundles::reader;
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::evidence::{Liveness, liveness};
use crate::host::failure::Failure;
use crate::host::files;
use crate::screen::output::{dim, tame};

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("part").args(["check", "control", "loading", "baseline", "engine"])))]
pub struct Args {
    /// A run id, a unique part of one, `last`, or a bundle directory
    #[arg(default_value = "last")]
    run: String,
    /// What the check with this number printed [default: the first red one, or the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    check: Option<u32>,
    /// What the checks printed where they had to fail
    #[arg(long)]
    control: bool,
    /// What they printed where the change fails when it is loaded
    #[arg(long, alias = "garbled")]
    loading: bool,
    /// What they printed on the untouched copy
    #[arg(long)]
    baseline: bool,
    /// What the engine printed
    #[arg(long)]
    engine: bool,
    /// How many lines to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    lines: u32,
}

/// A part of a log: what it is, how it ended, and its last lines.
struct Part {
    name: String,
    about: Option<String>,
    tail: Tail,
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let dir = last::to_show(context, &args.run)?;
    if liveness(&dir) != Liveness::Sealed {
        return Err(Failure::usage(
            "not_sealed",
            "this run is not sealed, so nothing is known of its logs",
        )
        .at(dir.display().to_string())
        .hint("wait until it has ended; `cto recover` closes one that was interrupted"));
    }
    let report = reader::sealed_report(&dir)?.report;
    let lines = args.lines as usize;
    let verified = verification(&dir, &report)?;
    let parts = match verified {
        Some(done) if !args.engine => vec![of_checks(&dir, &report, args, &done, lines)?],
        _ if args.check.is_some() || args.control || args.loading => {
            return Err(nothing("no check ran"));
        }
        _ if args.baseline || (!args.engine && red_start_log(&report).is_some()) => {
            vec![of_red_start(&dir, &report, lines)?]
        }
        _ => of_engine(&dir, &report, lines)?,
    };
    print(context, &report, &parts)?;
    Ok(0)
}

fn nothing(what: &str) -> Failure {
    Failure::usage("no_such_output", what.to_owned())
        .hint("`cto show` says which checks there were; --engine shows what the engine printed")
}

/// What the chain says of the checks, where any ran.
fn verification(dir: &Path, report: &Report) -> Result<Option<VerificationCompleted>, Failure> {
    let lines = reader::event_lines(dir, report)?;
    let done = lines.into_iter().find_map(|line| match line.event {
        Event::VerificationCompleted(done) => Some(*done),
        _ => None,
    });
    Ok(done.filter(|done| !done.checks.is_empty()))
}

/// Which section of a log is asked for: its kind, and how many of its kind come after it.
struct Wanted<'c> {
    name: String,
    section: Section,
    after: usize,
    check: Option<&'c Check>,
}

fn wanted<'c>(args: &Args, done: &'c VerificationCompleted) -> Result<Wanted<'c>, Failure> {
    let control = match &done.control {
        Some(ControlRun::Ran { checks, .. }) => checks.as_slice(),
        _ => &[],
    };
    let rounds = done.loading.iter().flat_map(|run| &run.rounds);
    let loading: Vec<&Check> = rounds.flat_map(|round| &round.checks).collect();
    for (asked, section, last) in [
        (args.control, Section::Control, control.last()),
        (args.loading, Section::Loading, loading.last().copied()),
        (
            args.baseline,
            Section::Baseline,
            done.baseline_checks.last(),
        ),
    ] {
        if asked {
            let name = section.as_str().to_owned();
            let check = last.ok_or_else(|| nothing(&format!("there was no {name}")))?;
            return Ok(Wanted {
                name,
                section,
                after: 0,
                check: Some(check),
            });
        }
    }
    let red = done.checks.iter().position(|check| !check.end.succeeded());
    let at = match args.check {
        Some(number) => number as usize - 1,
        None => red.unwrap_or(done.checks.len() - 1),
    };
    of_check(done, at).ok_or_else(|| nothing(&format!("there are {} checks", done.checks.len())))
}

fn of_check(done: &VerificationCompleted, at: usize) -> Option<Wanted<'_>> {
    let check = done.checks.get(at)?;
    let section = match check.kind {
        CheckKind::Visible => Section::Check,
        CheckKind::Hidden => Section::Hidden,
    };
    let later = done.checks[at + 1..].iter();
    Some(Wanted {
        name: format!("check {} of {}", at + 1, done.checks.len()),
        section,
        after: later.filter(|other| other.kind == check.kind).count(),
        check: Some(check),
    })
}

fn of_checks(
    dir: &Path,
    report: &Report,
    args: &Args,
    done: &VerificationCompleted,
    lines: usize,
) -> Result<Part, Failure> {
    let wanted = wanted(args, done)?;
    let mut file = opened(dir, report, bundle::TEST_LOG)?;
    let tail = section(&mut file, done, &wanted, lines)
        .map_err(|error| unreadable(dir, bundle::TEST_LOG, &error))?
        .ok_or_else(|| nothing("its section is not in the log"))?;
    Ok(Part {
        about: wanted
            .check
            .map(|check| format!("{}, {}", check.command, describe_end(check.end))),
        name: wanted.name,
        tail,
    })
}

fn section(
    file: &mut File,
    done: &VerificationCompleted,
    wanted: &Wanted<'_>,
    lines: usize,
) -> std::io::Result<Option<Tail>> {
    // Logs of long ago have no frames.
    let Some(nonce) = &done.log_nonce else {
        return log_tail::of_file(file, lines).map(Some);
    };
    let mut after = wanted.after;
    let is_it = |number: u64, section: Section| {
        let counts = done.not_counted.iter().all(|left| left.section != number);
        if section != wanted.section || !counts {
            return false;
        }
        let found = after == 0;
        after = after.saturating_sub(1);
        found
    };
    log_tail::of_section(file, nonce, is_it, lines)
}

/// The log of the first command that was red before the engine was to start, and the command's number.
fn red_start_log(report: &Report) -> Option<(usize, String)> {
    let mut numbers = 1..=report.artifact_digests.len();
    numbers.find_map(|number| {
        let name = bundle::red_start_log(number);
        let there = report.artifact_digests.contains_key(&name);
        there.then_some((number, name))
    })
}

fn of_red_start(dir: &Path, report: &Report, lines: usize) -> Result<Part, Failure> {
    let (number, name) =
        red_start_log(report).ok_or_else(|| nothing("the checks did not run on the baseline"))?;
    let mut file = opened(dir, report, &name)?;
    let tail =
        log_tail::of_file(&mut file, lines).map_err(|error| unreadable(dir, &name, &error))?;
    Ok(Part {
        name: format!("baseline, check {number}"),
        about: Some("red before the engine was to start".to_owned()),
        tail,
    })
}

/// The last lines of what was red before the engine was to start.
pub fn red_start(dir: &Path, report: &Report, lines: usize) -> Vec<String> {
    let found = || -> Option<Tail> {
        let (_, name) = red_start_log(report)?;
        let size = dir.join(&name).metadata().ok()?.len();
        let mut file = opened(dir, report, &name)
            .ok()
            .filter(|_| size <= COMPARED)?;
        log_tail::of_file(&mut file, lines).ok()
    };
    words_of(&found().unwrap_or_default())
}

/// Lines that say something, safe to show.
fn words_of(tail: &Tail) -> Vec<String> {
    let words = tail.lines.iter().map(|line| String::from_utf8_lossy(line));
    // The command itself stands above.
    let words = words.filter(|line| !line.starts_with("$ ") && !line.trim().is_empty());
    words.map(|line| tame(&line)).collect()
}

fn of_engine(dir: &Path, report: &Report, lines: usize) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for name in ["backend/stdout.log", "backend/stderr.log"] {
        if !report.artifact_digests.contains_key(name) {
            continue;
        }
        let mut file = opened(dir, report, name)?;
        let tail =
            log_tail::of_file(&mut file, lines).map_err(|error| unreadable(dir, name, &error))?;
        parts.push(Part {
            name: format!("engine, {}", name.trim_start_matches("backend/")),
            about: None,
            tail,
        });
    }
    match parts.is_empty() {
        true => Err(nothing("no engine ran")),
        false => Ok(parts),
    }
}

/// Logs up to this size are compared with their digest before a line of them is shown.
const COMPARED: u64 = 16 << 20;

fn opened(dir: &Path, report: &Report, name: &str) -> Result<File, Failure> {
    let path = dir.join(name);
    let (file, size) = files::open_regular(&path)
        .and_then(|file| Ok((file.metadata()?.len(), file)))
        .map(|(size, file)| (file, size))
        .map_err(|error| unreadable(dir, name, &error))?;
    if size <= COMPARED {
        let found =
            files::scan_file(&path, |_| {}).map_err(|error| unreadable(dir, name, &error))?;
        if report.artifact_digests.get(name) != Some(&found.sha256) {
            let mut failure = Failure::usage(
                "seal_broken",
                "the log is not what was sealed, so it is not shown",
            )
            .at(path.display().to_string())
            .hint("`cto verify` lists what is wrong with the bundle");
            failure.exits_with = Some(1);
            return Err(failure);
        }
    }
    Ok(file)
}

fn unreadable(dir: &Path, name: &str, error: &std::io::Error) -> Failure {
    Failure::usage("unreadable_log", "the log cannot be read")
        .at(dir.join(name).display().to_string())
        .because(error)
}

fn print(context: &Context, report: &Report, parts: &[Part]) -> Result<(), Failure> {
    let shown = |line: &Vec<u8>| tame_lines(&String::from_utf8_lossy(line));
    if context.output.json {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| {
                let lines: Vec<String> = part.tail.lines.iter().map(shown).collect();
                json!({"part": part.name, "about": part.about, "is_cut": part.tail.is_cut, "lines": lines})
            })
            .collect();
        return context.output.document(
            &json!({"schema_version": 1, "command": "log", "run_id": report.run_id, "parts": parts}),
        );
    }
    let dim = dim();
    for part in parts {
        let about = part.about.as_deref().map(tame).unwrap_or_default();
        let cut = if part.tail.is_cut { "  (its end)" } else { "" };
        context
            .output
            .line(&format!("{dim}-- {}  {about}{cut}{dim:#}", part.name));
        for line in &part.tail.lines {
            context.output.line(&shown(line));
        }
    }
    Ok(())
}

/// The last lines of the first red check, for a verdict; nothing where the log is not the sealed one, or
/// too large to be compared with it at once.
pub fn last_words(dir: &Path, report: &Report, lines: usize) -> Vec<String> {
    let red = report.verification.iter().position(|line| !line.passed);
    let found = || -> Option<Tail> {
        let done = verification(dir, report).ok()??;
        let size = dir.join(bundle::TEST_LOG).metadata().ok()?.len();
        let mut file = opened(dir, report, bundle::TEST_LOG)
            .ok()
            .filter(|_| size <= COMPARED)?;
        section(&mut file, &done, &of_check(&done, red?)?, lines).ok()?
    };
    words_of(&found().unwrap_or_default())
}

/// What the same command did before the change, where the bundle knows.
pub fn before_the_change(dir: &Path, report: &Report, command: &str) -> Option<String> {
    let done = verification(dir, report).ok()??;
    let same = done
        .checks
        .iter()
        .position(|check| check.kind == CheckKind::Visible && check.command == command)?;
    let was_green = match done.baseline_checks.get(same) {
        Some(before) => before.end.succeeded(),
        // Only a green baseline is kept for later runs.
        None => done.relied.is_some().then_some(true)?,
    };
    let failed = done.failed_tests.iter().find(|of| of.command == command);
    let which = failed.map_or_else(String::new, FailedTests::words);
    Some(match (was_green, done.checks[same].end.succeeded()) {
        (true, _) => "green before the change".to_owned(),
        (false, true) => "red before the change".to_owned(),
        (false, false) => format!("red before the change too{which}"),
    })
}
