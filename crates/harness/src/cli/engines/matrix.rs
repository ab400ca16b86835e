//! `cto matrix`: how this harness and an engine fail together, row by row.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::proof::matrix::{self, Matrix, MatrixReport, Row, RowVerdict};
use cto_core::values::verdict::Status;

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::host::files;
use crate::proof::matrix::{Order, attack_matrix, built_in, make_root, run as run_rows};
use crate::proof::unnamed;
use crate::screen::output::{dim, status_style, tame};
use crate::screen::progress::Rows;
use crate::screen::table::{Cell, Fit, Table};

#[derive(clap::Args)]
pub struct Args {
    /// The engine to try
    #[arg(long, default_value = DEFAULT_ENGINE)]
    engine: String,
    /// The engine's program, tried although nothing admits it; without it, the one that is admitted [env:
    /// CTO_HARNESS_<ENGINE>_BIN]
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// Only rows with this name, base name or theme (repeatable)
    #[arg(long, value_name = "NAME")]
    row: Vec<String>,
    /// Run the attack suite (with honest work as control) instead of the failure matrix
    #[arg(long)]
    hostile: bool,
    /// Also write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Keep the directory of every row, and say where
    #[arg(long)]
    keep: bool,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let Matrix { fixture, rows } = if args.hostile {
        attack_matrix()?
    } else {
        built_in()?
    };
    let manifest = context.engine(&args.engine)?;
    let home = context.home()?;
    let double = unnamed::double_of(&manifest, args.bin.as_deref(), &context.env, &home);
    if double.is_some() {
        context.output.note(&unnamed::note(&manifest));
    }
    let order = Order {
        fixture,
        rows: chosen(rows, &args.row)?,
        doubled: double.is_some(),
        manifest: double.unwrap_or(manifest),
        bin: args.bin,
        engines: context.directory_of(&args.engine)?,
        keep: args.keep,
    };
    // A file that cannot be written is said before anything runs.
    let junit = args
        .junit
        .as_deref()
        .map(|path| Ok((path, File::create(path).map_err(|e| unwritable(path, &e))?)))
        .transpose()?;
    let root = make_root(&context.env)?;
    let mut progress = Rows::for_stderr(context.output.json, order.rows.len());
    let report = run_rows(&order, &root, (&context.env, &home), &mut |row| {
        progress.ended(&row.row)
    });
    progress.done();
    if !args.keep {
        let _ = files::remove_tree(&root);
    }
    let report = report?;
    if let Some((path, mut file)) = junit {
        file.write_all(matrix::junit_xml(&report).as_bytes())
            .map_err(|error| unwritable(path, &error))?;
    }
    match context.output.json {
        true => context.output.document(&report)?,
        false => print(context, &report, args.keep.then_some(root.as_path())),
    }
    Ok(report.exit_code)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage("unwritable_file", "the JUnit file cannot be written")
        .at(path.display().to_string())
        .because(error)
}

fn chosen(rows: Vec<Row>, names: &[String]) -> Result<Vec<Row>, Failure> {
    if let Some(unknown) = names
        .iter()
        .find(|name| !rows.iter().any(|row| row.is_called(name)))
    {
        let known: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        return Err(
            Failure::usage("unknown_row", format!("no row is called {unknown:?}"))
                .so("nothing ran")
                .hint(format!("rows: {}", known.join(", "))),
        );
    }
    Ok(rows
        .into_iter()
        .filter(|row| names.is_empty() || names.iter().any(|name| row.is_called(name)))
        .collect())
}

fn print(context: &Context, report: &MatrixReport, kept: Option<&Path>) {
    let out = |text: &str| context.output.line(text);
    let dim = dim();
    context.output.table(&table(report));
    for row in report
        .rows
        .iter()
        .filter(|row| row.verdict == RowVerdict::Red)
    {
        out(&format!("\n{} {dim}{}{dim:#}", row.row, tame(&row.trigger)));
        for wrong in row.wrong() {
            context
                .output
                .hanging(&format!("  {}: ", wrong.check), &tame(&wrong.want));
            let found = wrong.found.as_deref().unwrap_or("it is not so");
            context
                .output
                .hanging(&format!("    {dim}but:{dim:#} "), &tame(found));
        }
    }
    for reason in reasons(report) {
        out("");
        context
            .output
            .hanging(&format!("{dim}–{dim:#} "), &tame(&reason));
    }
    summary(context, report);
    match kept {
        Some(root) => out(&format!("{dim}kept in{dim:#} {}", root.display())),
        None if report.counts.red > 0 => {
            out(&format!(
                "\nhint: `{}` leaves the bundles to look at",
                context.output.command("matrix --keep")
            ));
        }
        None => {}
    }
}

fn summary(context: &Context, report: &MatrixReport) {
    let (dim, counts, time) = (dim(), &report.counts, &report.time);
    let (word, style) = match report.exit_code {
        0 => ("GREEN", status_style(Status::Pass)),
        1 => ("RED", status_style(Status::Fail)),
        _ => ("NOTHING PROVEN", status_style(Status::Blocked)),
    };
    context.output.line(&format!(
        "\n{style}{word}{style:#}  {} green, {} red, {} not applicable {dim}({}){dim:#}",
        counts.green, counts.red, counts.not_applicable, report.engine
    ));
    context.output.line(&format!(
        "{dim}{} wall, {} in rows, {} % of it in engines and checks{dim:#}",
        seconds(time.wall_ms),
        seconds(time.rows_ms),
        time.share_in_children()
    ));
}

fn table(report: &MatrixReport) -> Table {
    let columns = [
        ("", Fit::Whole),
        ("row", Fit::Whole),
        ("blocker", Fit::Cut),
        ("event", Fit::Whole),
        ("ms", Fit::Right),
    ];
    let mut table = Table::new(&columns);
    for row in &report.rows {
        let (mark, style) = match row.verdict {
            RowVerdict::Green => ("✓", AnsiColor::Green.on_default()),
            RowVerdict::Red => ("✗", AnsiColor::Red.on_default().bold()),
            RowVerdict::NotApplicable => ("–", dim()),
        };
        let ms = if row.verdict == RowVerdict::NotApplicable {
            String::new()
        } else {
            row.duration_ms.to_string()
        };
        table.row(vec![
            Cell::styled(mark, style),
            row.row.as_str().into(),
            row.blocker.map_or("none", |code| code.as_str()).into(),
            row.event.map_or("", |event| event.as_str()).into(),
            ms.into(),
        ]);
    }
    table
}

/// Each reason once, with the rows it stands for.
fn reasons(report: &MatrixReport) -> Vec<String> {
    let mut found: Vec<(&str, u64)> = Vec::new();
    for reason in report.rows.iter().filter_map(|row| row.reason.as_deref()) {
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => found.push((reason, 1)),
        }
    }
    found
        .into_iter()
        .map(|(reason, count)| format!("{count} rows: {reason}"))
        .collect()
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::proof::matrix::RowOutcome;

    #[test]
    fn every_row_fits_eighty_columns() {
        let engine: cto_core::values::ids::EngineId = "fake".parse().unwrap();
        let rows: Vec<Row> = built_in()
            .unwrap()
            .rows
            .into_iter()
            .chain(attack_matrix().unwrap().rows)
            .collect();
        let outcome = |row: &Row| RowOutcome {
            duration_ms: 12_345,
            ..RowOutcome::judged(row, &engine, Vec::new())
        };
        let report =
            MatrixReport::new(engine.clone(), rows.iter().map(outcome).collect(), 1, false);
        for line in table(&report).lines(Some(80)) {
            assert!(crate::screen::terminal::width(&line) <= 80, "{line}");
        }
    }
}
