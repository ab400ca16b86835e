//! `cto engines`: every engine there is, how far each is, and the first thing that is missing.

use anstyle::AnsiColor;
use cto_core::engine::manifest::Manifest;
use cto_core::engine::registry::{Broken, From};
use cto_core::gate::opening::{self, By, Opening, Why};
use cto_core::gate::{Binary, LaneFacts};
use cto_core::operator::setup::overview::{Overview, overview};
use cto_core::records::Found;
use cto_core::run::event::Origin;
use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::cli::engines::{check, gate, new};
use crate::host::failure::Failure;
use crate::host::{self, Home};
use crate::records;
use crate::screen::output::{dim, tame};
use crate::screen::table::{Cell, Fit, Table};
use crate::task::engines;
use crate::task::lane::LaneOptions;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Gate(gate::Command),
    /// Write a manifest to begin with, for an agent that is not in the list
    New(new::Args),
    /// Start an engine of your own in a jail, with a scripted model, and say what works
    Check(check::Args),
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    match args.command {
        Some(Command::Gate(command)) => gate::run(context, command),
        Some(Command::New(args)) => new::run(context, &args),
        Some(Command::Check(args)) => check::run(context, &args),
        None => list(context),
    }
}

/// One engine and what is known of it.
struct Row<'a> {
    from: From,
    manifest: &'a Manifest,
    opening: Opening,
    program: Option<String>,
    version: Option<String>,
    overview: Overview,
}

impl<'a> Row<'a> {
    fn look(
        context: &Context,
        home: Option<&Home>,
        (from, manifest): (From, &'a Manifest),
    ) -> Self {
        let opening = standing(context, home, manifest);
        let lane = match home.filter(|_| manifest.is_gated()) {
            Some(home) => lane(context, home, manifest),
            None => LaneFacts::nothing(host::now()),
        };
        let program = match &lane.binary {
            Binary::Found { path, .. } => Some(path.clone()),
            _ => None,
        };
        let overview = overview(manifest, &opening, &lane);
        Self {
            from,
            opening,
            program,
            version: lane.package_version,
            overview,
            manifest,
        }
    }

    /// Was the installed version tried? Nothing is said where none is named.
    fn tried(&self) -> Option<bool> {
        let own = self.manifest.invocation.as_ref()?;
        let known = self.program.is_some() && !own.tested_versions.is_empty();
        known.then(|| !own.is_untested(self.version.as_deref()))
    }
}

/// What is on record, at a glance. Proofs are looked for only where there is something to prove.
fn lane(context: &Context, home: &Home, manifest: &Manifest) -> LaneFacts {
    let mut lane = records::glance(manifest, &LaneOptions::default(), &context.env, home);
    if matches!(lane.executable, Found::Known(_)) {
        lane.proofs = records::proofs(&manifest.id, home, Origin::Operator);
    }
    lane
}

/// Whether an engine is open for a command like this one.
fn standing(context: &Context, home: Option<&Home>, manifest: &Manifest) -> Opening {
    let asked = engines::asked(manifest, &[], &context.env);
    let lane = LaneOptions::default();
    match home {
        Some(home) => records::gate::opening(manifest, &asked, &lane, &context.env, home),
        // Without a state home there is no record.
        None if manifest.is_gated() => opening::decide(&manifest.id, &asked, None),
        None => Opening::Opened(By::Default),
    }
}

fn list(context: &Context) -> Result<u8, Failure> {
    let home = context.home_if_any()?;
    let registry = context.engines()?;
    let rows: Vec<Row<'_>> = registry
        .all()
        .map(|engine| Row::look(context, home.as_ref(), engine))
        .collect();
    if context.output.json {
        let own = context.own_engines()?.map(|dir| dir.path);
        context.output.document(&json!({
            "schema_version": 1,
            "command": "engines",
            "engines": rows.iter().map(|row| document(context, row)).collect::<Vec<_>>(),
            "broken": registry.broken().iter().map(broken).collect::<Vec<_>>(),
            "own_engines": own.map(|path| path.display().to_string()),
        }))?;
        return Ok(0);
    }
    context.output.table(&table(&rows));
    context.output.line("");
    missing(context, &rows);
    for broken in registry.broken() {
        context
            .output
            .hanging("", &format!("{} is not used: {}", broken.file, broken.why));
    }
    context.output.hanging(
        "",
        "A variable opens its engine when it is 1 and closes it when it is anything else; `cto engines open ENGINE` opens it for you at a terminal. An open gate only lets an engine be recognised; admissions and stage proofs decide the rest. `cto engines new NAME` adds an agent of your own.",
    );
    Ok(0)
}

/// Without any program there is no version to be shown.
fn table(rows: &[Row<'_>]) -> Table {
    let versions = rows.iter().any(|row| row.program.is_some());
    let columns = [
        ("name", Fit::Whole),
        ("gate", Fit::Whole),
        ("stage", Fit::Whole),
        ("version", Fit::Whole),
        ("engine", Fit::Cut),
        ("opened by", Fit::Whole),
    ];
    let is_shown = |title: &str| versions || title != "version";
    let shown: Vec<_> = columns
        .into_iter()
        .filter(|(title, _)| is_shown(title))
        .collect();
    let mut table = Table::new(&shown);
    for row in rows {
        let gate = match row.opening.is_open() {
            true => Cell::styled("open", AnsiColor::Green.on_default()),
            false => Cell::styled("closed", dim()),
        };
        let stage = match row.overview.stage {
            0 => "-".to_owned(),
            stage => stage.to_string(),
        };
        let cells: Vec<(&str, Cell)> = vec![
            ("name", row.manifest.id.as_str().into()),
            ("gate", gate),
            ("stage", stage.into()),
            ("version", version(row).into()),
            ("engine", tame(&row.manifest.title).into()),
            ("opened by", opened_by(row.manifest, &row.opening).into()),
        ];
        let cells = cells.into_iter().filter(|(title, _)| is_shown(title));
        table.row(cells.map(|(_, cell)| cell).collect());
    }
    table
}

fn version(row: &Row<'_>) -> String {
    let said = row.version.as_deref().map(tame);
    match (said, row.tried(), &row.program) {
        (Some(version), Some(false), _) => format!("{version}, not tried"),
        (Some(version), _, _) => version,
        (None, _, Some(_)) => "not known".into(),
        (None, _, None) => "-".into(),
    }
}

/// What each engine needs next, one line each. An engine nobody began with needs no line of its own.
fn missing(context: &Context, rows: &[Row<'_>]) {
    let begun = |row: &&Row<'_>| {
        let not_begun = row
            .overview
            .next
            .as_deref()
            .is_none_or(|next| next.ends_with("--bin FILE"));
        row.from == From::Operator || !not_begun
    };
    let mut told = false;
    for row in rows.iter().filter(begun) {
        let Some(missing) = &row.overview.missing else {
            continue;
        };
        let next = row.overview.next.as_deref();
        let next = next.map(|words| format!("; next: {}", context.output.command(words)));
        let text = format!("{}{}", tame(&missing.what), next.unwrap_or_default());
        context
            .output
            .hanging(&format!("{}: ", row.manifest.id), &text);
        told = true;
    }
    // A word of the operator's that closes is worth a sentence also where nothing else is begun.
    for row in rows.iter().filter(|row| !begun(row)) {
        if let Opening::Closed(why) = &row.opening
            && !matches!(why, Why::NotOpened | Why::NotAdmitted)
        {
            context
                .output
                .hanging("", &tame(&sentence(row.manifest, why)));
            told = true;
        }
    }
    if told {
        context.output.line("");
    }
}

fn document(context: &Context, row: &Row<'_>) -> Value {
    let (opened_by, closed_because) = match &row.opening {
        Opening::Opened(by) => (Some(by.word()), None),
        Opening::Closed(why) => (None, Some(sentence(row.manifest, why))),
    };
    let admissions: Map<String, Value> = row
        .overview
        .admissions
        .iter()
        .map(|(kind, word)| (kind.as_str().to_owned(), json!(word)))
        .collect();
    let next = row.overview.next.as_deref();
    json!({
        "engine": row.manifest.id,
        "title": row.manifest.title,
        "from": row.from.as_str(),
        "default": !row.manifest.is_gated(),
        "gate": if row.opening.is_open() { "open" } else { "closed" },
        "opened_by": opened_by,
        "closed_because": closed_because,
        "gated_by_env": row.manifest.gated_by_env,
        "default_stage": row.manifest.default_stage,
        "runnable": row.manifest.invocation.is_some(),
        "manifest_sha256": row.manifest.sha256,
        "program": row.program,
        "version": row.version,
        "version_tried": row.tried(),
        "admissions": admissions,
        "proven_stage": row.overview.stage,
        "missing": row.overview.missing.as_ref().map(|missing| &missing.what),
        "next": next.map(|words| context.output.command(words)),
    })
}

fn broken(broken: &Broken) -> Value {
    json!({"engine": broken.id, "file": broken.file, "because": broken.why})
}

fn sentence(manifest: &Manifest, why: &Why) -> String {
    let variable = manifest.gated_by_env.as_deref().unwrap_or_default();
    why.sentence(&manifest.id, variable)
}

/// What opened it, or what would.
fn opened_by(manifest: &Manifest, opening: &Opening) -> String {
    match (opening, manifest.gated_by_env.as_deref()) {
        (_, None) => "nothing: it always is".into(),
        (Opening::Opened(by), Some(variable)) => match by.word() {
            "variable" => variable.to_owned(),
            word => word.to_owned(),
        },
        (Opening::Closed(_), Some(variable)) => variable.to_owned(),
    }
}
