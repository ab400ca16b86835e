//! `cto runs`: the list, newest first, of all runs or of those asked for.

use anstyle::AnsiColor;
use cto_core::bundle::attest::trust::{self, KeySource, Trust};
use cto_core::bundle::settlement::Effective;
use cto_core::operator::amounts::{self, Edge};
use cto_core::operator::listing::{self, Again, Filter, Listed, ListedState, Summary};
use cto_core::run::event::Kind;
use cto_core::run::event::Origin;
use cto_core::task::contract::Stage;
use cto_core::values::blocker::{BLOCKERS, Code};
use cto_core::values::ids::{CaseId, EngineId};
use cto_core::values::time::Utc;
use cto_core::values::verdict::Status;
use cto_core::verify::seal::SealedBy;
use serde_json::json;

use crate::bundles::index::{self, Listing, Question};
use crate::bundles::{reader, settlements};
use crate::cli::Context;
use crate::cli::evidence::prune;
use crate::host;
use crate::host::Home;
use crate::host::failure::{self, Failure};
use crate::screen::output::{dim, status_style, tame};
use crate::screen::table::{Cell, Fit, Table};
use crate::screen::terminal;

/// Reading this many bundles takes about a second; somebody may wonder.
const MANY: usize = 10_000;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Only runs with this status: pass, fail or blocked
    #[arg(long, value_parser = listing::parse_word::<Status>)]
    status: Option<Status>,
    /// Only runs of this engine
    #[arg(long)]
    engine: Option<EngineId>,
    /// Only runs of this case
    #[arg(long)]
    case: Option<CaseId>,
    /// Only runs with this blocker, as docs/blockers.md lists them
    #[arg(long, value_name = "CODE", value_parser = blocker)]
    blocker: Option<Code>,
    /// Only runs at this stage
    #[arg(long, value_name = "N", value_parser = stage)]
    stage: Option<Stage>,
    /// Only runs of this origin: operator, validator or ci
    #[arg(long, value_parser = listing::parse_word::<Origin>)]
    origin: Option<Origin>,
    /// Only runs that began then or later: a date, a time (RFC 3339) or an age like 7d
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Utc>,
    /// Only runs that began then or earlier; a date means its whole day
    #[arg(long, value_name = "WHEN", value_parser = until)]
    until: Option<Utc>,
    /// How many to show
    #[arg(long, short = 'n', default_value_t = 20)]
    limit: usize,
    /// Read every bundle again, whatever the index says
    #[arg(long)]
    reindex: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Remove old runs by rules; shows what would go unless --yes is given
    Prune(prune::Args),
}

fn blocker(text: &str) -> Result<Code, String> {
    let known = || BLOCKERS.iter().map(|info| info.name);
    let near = || {
        known()
            .filter(|name| name.contains(text) || text.contains(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    listing::parse_word(text).map_err(|_| match near() {
        near if text.is_empty() || near.is_empty() => {
            "no such blocker; docs/blockers.md lists them".to_owned()
        }
        near => format!("no such blocker; there is {near}"),
    })
}

fn stage(text: &str) -> Result<Stage, String> {
    text.parse::<u8>()
        .map_err(|error| error.to_string())?
        .try_into()
}

fn since(text: &str) -> Result<Utc, amounts::NotAnAmount> {
    amounts::parse_moment(text, host::now(), Edge::First)
}

fn until(text: &str) -> Result<Utc, amounts::NotAnAmount> {
    amounts::parse_moment(text, host::now(), Edge::Last)
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    if let Some(Action::Prune(args)) = args.action {
        return prune::run(context, &args);
    }
    let filter = Filter {
        status: args.status,
        engine: args.engine,
        case: args.case,
        blocker: args.blocker,
        stage: args.stage,
        origin: args.origin,
        since: args.since,
        until: args.until,
    };
    let mut many = |count: usize| {
        if count >= MANY {
            context.output.note(&format!("reading {count} bundles"));
        }
    };
    let listing = index::list(
        &context.home()?,
        &Question {
            filter: &filter,
            limit: args.limit,
            reindex: args.reindex,
        },
        &mut many,
    )?;
    if let Some(why) = &listing.bypassed {
        context.output.note(&format!(
            "{}; the bundles themselves were read",
            tame(&failure::chain(why))
        ));
    }
    let trust = context.trust()?;
    if context.output.json {
        let home = context.home()?;
        let rows: Vec<_> = listing
            .runs
            .iter()
            .map(|run| {
                let mut row = row_json(run, &home.runs.join(run.run_id.as_str()), &trust);
                if let Some(said) = said_of(run, &home, &trust) {
                    row["effective"] = json!(said);
                }
                row
            })
            .collect();
        context.output.document(
            &json!({"schema_version": 1, "command": "runs", "total": listing.total, "runs": rows}),
        )?;
        return Ok(0);
    }
    let home = context.home()?;
    let said = |run: &Listed| said_of(run, &home, &trust);
    print(
        context,
        &listing,
        filter == Filter::default(),
        &trust,
        &said,
    );
    Ok(0)
}

/// What a run that waits for its operator comes to, by what was said of it.
fn said_of(run: &Listed, home: &Home, trust: &Trust) -> Option<Effective> {
    let waits = run.summary()?.headline() == Some(Code::MissingOperatorOutcome);
    let dir = home.runs.join(run.run_id.as_str());
    let sealed = reader::sealed_report(&dir).ok().filter(|_| waits)?;
    settlements::effective_at(home, &dir, &sealed.report, trust)
}

fn print(
    context: &Context,
    listing: &Listing,
    is_everything: bool,
    trust: &Trust,
    said: &dyn Fn(&Listed) -> Option<Effective>,
) {
    if listing.total == 0 {
        match is_everything {
            true => context.output.line(&format!(
                "No runs yet.\n\nnext: {}",
                context.output.command("run")
            )),
            false => context.output.line("No run matches."),
        }
        return;
    }
    let width = terminal::columns();
    let fits = [
        Fit::Whole,
        Fit::Whole,
        Fit::Cut,
        Fit::Whole,
        Fit::Whole,
        Fit::Cut,
    ];
    let mut table = headed(
        ["when (UTC)", "status", "case", "engine", "run", "reason"],
        fits,
        width,
    );
    listing
        .runs
        .iter()
        .for_each(|run| table.row(row(run, width, trust, said(run).as_ref())));
    context.output.table(&table);
    let hidden = listing.total - listing.runs.len();
    if hidden > 0 {
        context.output.note(&format!(
            "{hidden} more; show them with -n {}",
            listing.total
        ));
    }
}

/// Titles are for eyes; in a pipe every line is a run.
pub fn headed(titles: [&'static str; 6], fits: [Fit; 6], width: Option<usize>) -> Table {
    let columns: Vec<_> = titles
        .into_iter()
        .map(|title| if width.is_some() { title } else { "" })
        .zip(fits)
        .collect();
    Table::new(&columns)
}

/// A terminal this wide has room for whole run ids and sentences.
const WIDE: usize = 132;

/// What the key that sealed a report is worth here.
pub enum Seal {
    /// By a key that counts, of this machine or not.
    Counts(KeySource),
    Unknown(String),
    Revoked(String),
}

impl Seal {
    pub fn of(trust: &Trust, sealed_by: &SealedBy) -> Self {
        match trust.standing(sealed_by.key_id, sealed_by.signed_at) {
            trust::Standing::Counts(known) => Self::Counts(known.source),
            trust::Standing::Open(why) => Self::Unknown(why),
            trust::Standing::Refused(why) => Self::Revoked(why),
        }
    }

    /// As `cto verify` calls it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Counts(KeySource::Own) => "own",
            Self::Counts(KeySource::Operator) => "trusted",
            Self::Unknown(_) => "unknown",
            Self::Revoked(_) => "revoked",
        }
    }

    /// Why a verdict under this seal is only a claim.
    pub fn doubt(&self) -> Option<&str> {
        match self {
            Self::Counts(_) => None,
            Self::Unknown(why) | Self::Revoked(why) => Some(why),
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Counts(_) => 0,
            Self::Unknown(_) => 3,
            Self::Revoked(_) => 1,
        }
    }
}

fn row(run: &Listed, width: Option<usize>, trust: &Trust, said: Option<&Effective>) -> Vec<Cell> {
    let red = AnsiColor::Red.on_default().bold();
    let (status, style, engine, sentence, short) = match &run.state {
        ListedState::Live => (
            "live",
            dim(),
            "",
            "still running".to_owned(),
            "still running",
        ),
        ListedState::Unsealed => (
            "unsealed",
            dim(),
            "",
            "interrupted; proves nothing".to_owned(),
            "proves nothing",
        ),
        ListedState::Unreadable(why) => ("unreadable", dim(), "", why.clone(), "proves nothing"),
        ListedState::Broken(why) => ("BROKEN", red, "", why.clone(), "seal does not fit"),
        ListedState::Foreign => (
            "foreign",
            dim(),
            "",
            "another program's; left as it is".to_owned(),
            "another program's",
        ),
        ListedState::Sealed(run) if doubt(run, trust).is_some() => (
            "unproven",
            AnsiColor::Yellow.on_default(),
            run.engine.as_str(),
            doubt(run, trust).unwrap_or_default(),
            "key not trusted",
        ),
        ListedState::Sealed(run) => {
            let again = run.again.as_ref().map(Again::words);
            let reason = run.failure_reason.clone();
            let settles = (run.kind == Kind::Settlement).then(|| "a settlement".to_owned());
            let said: Vec<String> = settles.into_iter().chain(again).chain(reason).collect();
            let sentence = said.join("; ");
            let passed = match (run.kind, &run.again) {
                (Kind::Settlement, _) => "a settlement",
                (_, Some(_)) => "judged again",
                (_, None) => "",
            };
            let code = run.headline().map_or(passed, Code::as_str);
            (
                run.status.as_str(),
                status_style(run.status),
                run.engine.as_str(),
                sentence,
                code,
            )
        }
    };
    // A sealed verdict never changes; the one that counts is shown in its place.
    let (status, style, sentence, short) = match said {
        Some(said) => (
            said.status.as_str(),
            status_style(said.status),
            said.words().to_owned(),
            said.words(),
        ),
        None => (status, style, sentence, short),
    };
    let mut cells = vec![when(run), Cell::styled(status, style)];
    // The last part of an id is as good as the whole wherever a run is asked for, and a double
    // click takes it. A blocker's code says in a word what its sentence says, and `--blocker` takes
    // it.
    cells.extend(match width.is_some_and(|width| width < WIDE) {
        true => [run.case(), engine, run.run_id.suffix(), short].map(Cell::from),
        false => [run.case(), engine, run.run_id.as_str(), sentence.as_str()].map(Cell::from),
    });
    cells
}

/// Why the status of a sealed run is only a claim, if it is.
fn doubt(run: &Summary, trust: &Trust) -> Option<String> {
    match &run.sealed_by {
        None => Some("nobody has looked at its seal".to_owned()),
        Some(sealed_by) => Seal::of(trust, sealed_by).doubt().map(str::to_owned),
    }
}

/// When a run began, as a list shows it.
pub fn when(run: &Listed) -> Cell {
    Cell::styled(
        run.started()
            .map_or_else(|| "?".to_owned(), |started| started.short(host::now())),
        dim(),
    )
}

fn row_json(run: &Listed, dir: &std::path::Path, trust: &Trust) -> serde_json::Value {
    let state = match &run.state {
        ListedState::Live => "live",
        ListedState::Unsealed => "unsealed",
        ListedState::Unreadable(_) => "unreadable",
        ListedState::Broken(_) => "broken",
        ListedState::Foreign => "foreign",
        ListedState::Sealed(_) => "sealed",
    };
    let mut row =
        json!({"run_id": run.run_id, "state": state, "bundle": dir.display().to_string()});
    if let ListedState::Unreadable(why) = &run.state {
        row["unreadable_because"] = json!(why);
    }
    if let ListedState::Broken(why) = &run.state {
        row["broken_because"] = json!(why);
    }
    if let Some(summary) = run.summary() {
        // A status is shown as one only where the seal bears it out.
        let doubt = doubt(summary, trust);
        row["status"] = json!(doubt.is_none().then_some(summary.status));
        if let Some(doubt) = doubt {
            row["claimed_status"] = json!(summary.status);
            row["unproven_because"] = json!(doubt);
        }
        row["kind"] = json!(summary.kind);
        row["case_id"] = json!(summary.case_id);
        row["engine"] = json!(summary.engine);
        row["stage"] = json!(summary.stage);
        row["failure_reason"] = json!(summary.failure_reason);
        row["duration_ms"] = json!(summary.duration_ms());
        row["origin"] = json!(summary.origin);
        row["started_at"] = json!(summary.started_at);
        row["finished_at"] = json!(summary.finished_at);
        row["blockers"] = json!(summary.blockers);
        if let Some(again) = &summary.again {
            row["reverifies"] = json!(again.run_id);
            row["differs"] = json!(again.differs);
        }
    }
    row
}
