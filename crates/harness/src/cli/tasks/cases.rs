//! `cto cases`: every case at a glance, or one of them in full.

use std::path::PathBuf;

use cto_core::proof::case_check::SCRIPTS;
use cto_core::task::case_file::{CaseFile, ContractIssue, ControlSource};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::screen::output::{dim, status_style, tame};
use crate::task::cases::{self, Case, Listed};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Look for cases in this directory instead of the built-in ones
    #[arg(long, value_name = "DIR", global = true)]
    cases: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show what one case asks for and how it is judged
    Show {
        /// A case, or a path to a case directory
        case: String,
    },
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match &args.action {
        Some(Action::Show { case: name }) => {
            let case = cases::find(name, args.cases.as_deref())?;
            let place = args
                .cases
                .as_ref()
                .map(|dir| format!(" --cases {}", dir.display()))
                .unwrap_or_default();
            show(context, &case, &format!("run {name}{place}"))
        }
        None => list(context, &cases::all(args.cases.as_deref())?),
    }
}

fn parse(case: &Case) -> Result<CaseFile, Vec<ContractIssue>> {
    case.parsed()
}

/// What is wrong with a listed case, if anything.
fn problems(listed: &Listed) -> Vec<String> {
    match &listed.case {
        Err(failure) => vec![format!("{}: {}", failure.code, failure.what)],
        Ok(case) => parse(case)
            .err()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

fn list(context: &Context, all: &[Listed]) -> Result<u8, Failure> {
    if context.output.json {
        let rows: Vec<Value> = all.iter().map(row_json).collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "cases", "cases": rows}))?;
        return Ok(0);
    }
    let dim = dim();
    let width = all
        .iter()
        .map(|listed| listed.name.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(4, MAX_NAME);
    let out = |text: &str| context.output.hanging("", text);
    out(&format!(
        "{dim}{:<width$} {:<9} {:>5} {:<6} {:<14} scripts{dim:#}",
        "case", "toolchain", "files", "hidden", "may change"
    ));
    for listed in all {
        let name = fit(&tame(&listed.name), width);
        match &listed
            .case
            .as_ref()
            .ok()
            .and_then(|case| Some((case, parse(case).ok()?)))
        {
            Some((case, file)) => {
                out(&format!(
                    "{name:<width$} {:<9} {:>5} {:<6} {:<14} {}",
                    fit(&toolchains(file), 9),
                    case.workspace.len(),
                    if has_hidden(case, file) { "yes" } else { "no" },
                    fit(
                        &few(
                            &file
                                .allowed_paths
                                .iter()
                                .map(ToString::to_string)
                                .collect::<Vec<_>>(),
                            1
                        ),
                        14
                    ),
                    fit(&few(&script_names(case), SCRIPTS.len()), 80 - width - FIXED),
                ));
                out(&format!("  {dim}{}{dim:#}", fit(&tame(&file.title), 77)));
            }
            None => {
                let style = status_style(cto_core::values::verdict::Status::Fail);
                out(&format!("{name:<width$} {style}cannot be used{style:#}"));
                problems(listed)
                    .iter()
                    .take(3)
                    .for_each(|problem| out(&format!("  {}", tame(problem))));
            }
        }
    }
    out(&format!(
        "\nnext: {}",
        context.output.command("cases show CASE")
    ));
    Ok(0)
}

/// What the columns between name and scripts take, with the spaces around them.
const FIXED: usize = 39;

/// Longer names are cut: a table is for the eye, `--json` for the rest.
const MAX_NAME: usize = 28;

fn fit(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        false => text.to_owned(),
        true => text
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// The first few, and how many more there are.
fn few(items: &[String], shown: usize) -> String {
    let more = items.len().saturating_sub(shown);
    let head = items
        .iter()
        .take(shown)
        .map(|item| tame(item))
        .collect::<Vec<_>>()
        .join(" ");
    if more > 0 {
        format!("{head} +{more}")
    } else {
        head
    }
}

/// What the case says it needs, or failing that the program its first check begins with.
fn toolchains(file: &CaseFile) -> String {
    match file.toolchains.as_slice() {
        [] => file
            .verification_commands
            .first()
            .and_then(|command| command.split_whitespace().next())
            .unwrap_or("-")
            .to_owned(),
        names => few(names, 1),
    }
}

fn has_hidden(case: &Case, file: &CaseFile) -> bool {
    !case.hidden.is_empty() && !file.hidden_commands.is_empty()
}

/// Those with a meaning first, then the others by name.
fn script_names(case: &Case) -> Vec<String> {
    let mut names: Vec<String> = case.scripts.keys().cloned().collect();
    names.sort_by_key(|name| {
        SCRIPTS
            .iter()
            .position(|known| known == name)
            .unwrap_or(SCRIPTS.len())
    });
    names
}

fn row_json(listed: &Listed) -> Value {
    let problems = problems(listed);
    let mut row = json!({"case": listed.name, "usable": problems.is_empty(), "problems": problems});
    if let Ok(case) = &listed.case {
        row["built_in"] = json!(case.built_in);
        row["files"] = json!(case.workspace.len());
        row["scripts"] = json!(script_names(case));
        if let Ok(file) = parse(case) {
            row["title"] = json!(file.title);
            row["toolchains"] = json!(file.toolchains);
            row["allowed_paths"] = json!(file.allowed_paths);
            row["forbidden_paths"] = json!(file.forbidden_paths);
            row["hidden"] = json!(has_hidden(case, &file));
        }
    }
    row
}

fn show(context: &Context, case: &Case, next: &str) -> Result<u8, Failure> {
    let file = parse(case).map_err(|issues| {
        let mut failure =
            Failure::usage("contract_invalid", "the case file is not valid").at(&case.label);
        failure.because = issues.iter().map(ToString::to_string).collect();
        failure.hint("`cto case check` looks a case over")
    })?;
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "cases show",
            "case": case.id,
            "built_in": case.built_in,
            "title": file.title,
            "objective": file.objective,
            "files": case.workspace.len(),
            "allowed_paths": file.allowed_paths,
            "forbidden_paths": file.forbidden_paths,
            "verification_commands": file.verification_commands,
            "verification_control": control(&file),
            "hidden_verification": file.hidden_commands,
            "setup": file.setup,
            "toolchains": file.toolchains,
            "success_criteria": file.success_criteria,
            "scripts": script_names(case),
        }))?;
        return Ok(0);
    }
    let dim = dim();
    let out = |text: &str| context.output.line(text);
    let row = |name: &str, items: &[String]| {
        for (index, item) in items.iter().enumerate() {
            out(&format!(
                "  {dim}{:<11}{dim:#} {}",
                if index == 0 { name } else { "" },
                tame(item)
            ));
        }
    };
    let texts = |rules: &[cto_core::values::paths::PathRule]| {
        rules.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    out(&format!("{}  {}\n", case.id, tame(&file.title)));
    file.objective
        .trim()
        .lines()
        .for_each(|line| out(&format!("  {}", tame(line))));
    out("");
    row("may change", &texts(&file.allowed_paths));
    row("never", &texts(&file.forbidden_paths));
    row("files", &[case.workspace.len().to_string()]);
    row("needs", &file.toolchains);
    row("setup", &file.setup);
    row("checks", &file.verification_commands);
    row("hidden", &file.hidden_commands);
    row("control", &[control(&file)]);
    row("succeeds", &file.success_criteria);
    row("scripts", &[script_names(case).join(", ")]);
    out(&format!("\nnext: {}", context.output.command(next)));
    Ok(0)
}

fn control(file: &CaseFile) -> String {
    match &file.verification_control {
        None => "inferred from the first check".into(),
        Some(ControlSource::Runner(runner)) => format!(
            "failing tests added for {}",
            json!(runner).as_str().unwrap_or("it")
        ),
        Some(ControlSource::Patch(patch)) => format!("the patch {patch}"),
        Some(ControlSource::None(reason)) => format!("none: {reason}"),
    }
}
