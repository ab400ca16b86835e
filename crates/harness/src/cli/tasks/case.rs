//! `cto case new` begins a case, `cto case check` finds out whether one is sound.

use std::path::PathBuf;

use anstyle::AnsiColor;
use cto_core::proof::case_check::{Line, Mark};
use cto_core::values::ids::CaseId;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::workers;
use crate::proof::case_trial::{self, Attempt};
use crate::run;
use crate::screen::output::{dim, tame};
use crate::screen::progress::Board;
use crate::supervise::cancel::Cancel;
use crate::task::case_template::{self, Language};
use crate::task::cases::{self, Case, Listed};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Write a small case, whole and runnable, to begin with
    New {
        /// The name of the case and of its directory
        name: CaseId,
        /// Where to put it
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// What it is written in
        #[arg(long, value_enum, default_value_t = Language::Python)]
        lang: Language,
    },
    /// Look cases over and try them: oracle must pass, nop, cheats and the untouched baseline must
    /// not
    Check(CheckArgs),
}

#[derive(clap::Args)]
struct CheckArgs {
    /// Cases, or paths to case directories [default: every case]
    #[arg(value_name = "CASE|DIR")]
    names: Vec<String>,
    /// Look for cases in this directory instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Only look; run nothing
    #[arg(long = "static")]
    only_look: bool,
    /// How many runs to make at a time
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    match args.action {
        Action::New { name, dir, lang } => new(context, &name, &dir, lang),
        Action::Check(args) => check(context, &args),
    }
}

fn new(
    context: &Context,
    name: &CaseId,
    parent: &std::path::Path,
    lang: Language,
) -> Result<u8, Failure> {
    let dir = case_template::create(parent, name, lang)?;
    // With a separator in it, so that it is taken for a path and not for a name.
    let shown = if dir.components().count() == 1 {
        PathBuf::from(".").join(&dir)
    } else {
        dir
    };
    let next = context
        .output
        .command(&format!("case check {}", shown.display()));
    if context.output.json {
        let place = shown.display().to_string();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "case new", "case": name, "directory": place, "next": next}))?;
    } else {
        context
            .output
            .line(&format!("A case to begin with is in {}.", shown.display()));
        context
            .output
            .line("Its case.toml says what each part is for.");
        context.output.line(&format!("\nnext: {next}"));
    }
    Ok(0)
}

/// A case and everything found about it.
struct Checked {
    name: String,
    lines: Vec<(Line, Vec<String>)>,
}

impl Checked {
    fn wrong(&self) -> usize {
        self.lines
            .iter()
            .filter(|(line, _)| line.mark == Mark::Wrong)
            .count()
    }
}

fn check(context: &Context, args: &CheckArgs) -> Result<u8, Failure> {
    let listed = match args.names.as_slice() {
        [] => cases::all(args.cases.as_deref())?,
        names => names
            .iter()
            .map(|name| named(name, args))
            .collect::<Result<_, _>>()?,
    };
    let mut checked: Vec<Checked> = listed.iter().map(look).collect();
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    if !args.only_look {
        try_out(
            context,
            &listed,
            &mut checked,
            usize::from(args.jobs),
            &cancel,
        )?;
    }
    let wrong: usize = checked.iter().map(Checked::wrong).sum();
    let code = match (cancel.requested(), wrong) {
        (true, _) => 3,
        (false, 0) => 0,
        (false, _) => 1,
    };
    if context.output.json {
        let rows: Vec<Value> = checked.iter().map(row_json).collect();
        let command = "case check";
        context
            .output
            .document(&json!({"schema_version": 1, "command": command, "ok": code == 0, "exit_code": code, "cases": rows}))?;
    } else {
        print(context, &checked, wrong);
        if let ([only], 0) = (checked.as_slice(), code) {
            let place = args
                .cases
                .as_ref()
                .map(|dir| format!(" --cases {}", dir.display()))
                .unwrap_or_default();
            context.output.line(&format!(
                "\nnext: {}",
                context
                    .output
                    .command(&format!("run {}{place}", tame(&only.name)))
            ));
        }
    }
    Ok(code)
}

/// A case that is not there is a mistake on the command line; one that cannot be read is what a
/// check is for.
fn named(name: &str, args: &CheckArgs) -> Result<Listed, Failure> {
    let mut found = cases::find(name, args.cases.as_deref());
    let unknown = found
        .as_ref()
        .is_err_and(|failure| failure.code == "unknown_case");
    // One that was just begun here, by its name alone. Nothing but a check takes it for one.
    let beside = PathBuf::from(".").join(name);
    if unknown && args.cases.is_none() && beside.join(cases::CASE_FILE).is_file() {
        found = cases::find(&beside.to_string_lossy(), None);
    }
    match found {
        Err(failure) if failure.code != "unreadable_case" => Err(failure),
        case => Ok(Listed {
            name: name.to_owned(),
            case,
        }),
    }
}

fn look(listed: &Listed) -> Checked {
    let lines = match &listed.case {
        Ok(case) => case_trial::look_over(case)
            .into_iter()
            .map(|line| (line, Vec::new()))
            .collect(),
        Err(failure) => vec![(
            Line::new("files", Mark::Wrong, why(failure)),
            failure.because.clone(),
        )],
    };
    Checked {
        name: listed.name.clone(),
        lines,
    }
}

fn why(failure: &Failure) -> String {
    match &failure.place {
        Some(place) => format!("{place}: {}", failure.what),
        None => failure.what.clone(),
    }
}

/// Runs every trial of the cases that looked sound, in a state home that is gone afterwards.
fn try_out(
    context: &Context,
    listed: &[Listed],
    checked: &mut [Checked],
    jobs: usize,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let place = tempfile::Builder::new()
        .prefix("cto-check-")
        .tempdir()
        .map_err(|error| {
            Failure::internal("no_temporary_state", "no temporary directory can be made")
                .because(&error)
                .so("nothing ran")
        })?;
    let home = Home {
        root: place.path().to_owned(),
        runs: place.path().join("harness-runs"),
    };
    let mut attempts: Vec<(usize, &Case, Attempt)> = Vec::new();
    for (index, (listed, checked)) in listed.iter().zip(checked.iter_mut()).enumerate() {
        match &listed.case {
            Ok(case) if checked.wrong() == 0 => {
                attempts.extend(
                    case_trial::attempts(case)
                        .into_iter()
                        .map(|attempt| (index, case, attempt)),
                );
            }
            _ => checked.lines.push((
                Line::new("trials", Mark::Note, "not tried: mend what is wrong first"),
                Vec::new(),
            )),
        }
    }
    let board = Board::for_stderr(context.output.json, &context.env);
    let done = workers::each(&attempts, jobs, &|| cancel.requested(), &|number,
                                                                        (
        index,
        case,
        attempt,
    )| {
        let name = tame(&format!("{} {}", checked[*index].name, attempt.name));
        let request = case_trial::request(case, attempt)?;
        let sealed = run::run(
            &home,
            &context.env,
            &request,
            cancel,
            &mut board.line(number, &name),
        )?;
        let judged = case_trial::judge(attempt, &sealed);
        board.ended(number, &format!("{} {name}", mark(judged.0.mark).0));
        Ok::<_, Failure>(judged)
    });
    for ((index, _, attempt), result) in attempts.iter().zip(done) {
        let line = match result {
            Some(judged) => judged?,
            None if cancel.requested() => (
                Line::new(&attempt.name, Mark::Wrong, "not tried: interrupted"),
                Vec::new(),
            ),
            None => {
                return Err(
                    Failure::internal("trial_lost", "a trial did not come to its end")
                        .at(attempt.name.clone()),
                );
            }
        };
        checked[*index].lines.push(line);
    }
    Ok(())
}

fn mark(mark: Mark) -> (char, AnsiColor) {
    match mark {
        Mark::Ok => ('✓', AnsiColor::Green),
        Mark::Note => ('·', AnsiColor::Yellow),
        Mark::Wrong => ('✗', AnsiColor::Red),
    }
}

fn row_json(checked: &Checked) -> Value {
    let lines: Vec<Value> = checked
        .lines
        .iter()
        .map(|(line, told)| json!({"check": line.check, "mark": line.mark, "detail": line.detail, "more": told}))
        .collect();
    json!({"case": checked.name, "ok": checked.wrong() == 0, "checks": lines})
}

fn print(context: &Context, checked: &[Checked], wrong: usize) {
    let dim = dim();
    let out = |text: &str| context.output.line(text);
    for case in checked {
        out(&tame(&case.name));
        for (line, told) in &case.lines {
            let (sign, colour) = mark(line.mark);
            let style = colour.on_default();
            out(&format!(
                "  {style}{sign}{style:#} {:<14} {}",
                tame(&line.check),
                tame(&line.detail)
            ));
            told.iter()
                .for_each(|more| out(&format!("      {dim}{}{dim:#}", tame(more))));
        }
    }
    out(&format!(
        "\n{} case(s), {}",
        checked.len(),
        if wrong == 0 {
            "all sound".to_owned()
        } else {
            format!("{wrong} thing(s) wrong")
        }
    ));
}
