//! `cto project`: what is remembered of a repository, shown, set and forgotten.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use cto_core::operator::project::fields::STARTS;
use cto_core::operator::project::memory::{Kept, Values};
use cto_core::operator::project::propose::Proposal;
use cto_core::task::contract::Runner;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::args::ask;
use crate::cli::args::here::Here;
use crate::cli::args::project::{self, Given, Known};
use crate::cli::work::try_run;
use crate::host::failure::Failure;
use crate::task::projects::Project;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show what is remembered of a repository, or what its files propose
    Show(PlaceArgs),
    /// Remember flags of `cto try` for a repository; without any, ask at the terminal
    Set(Box<SetArgs>),
    /// Forget what is remembered of a repository
    Forget(PlaceArgs),
}

#[derive(clap::Args)]
struct PlaceArgs {
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
}

#[derive(clap::Args)]
struct SetArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    flags: FlagArgs,
}

/// Flags that can be remembered.
#[derive(clap::Args)]
pub struct FlagArgs {
    /// A command that must succeed (repeatable)
    #[arg(long, value_name = "COMMAND")]
    test: Vec<String>,
    /// A file or directory that may change; in place of the scope that was remembered (repeatable)
    #[arg(long, value_name = "PATH")]
    allow: Vec<String>,
    /// A file or directory that must not change, even if allowed (repeatable)
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,
    /// A command that prepares a copy (repeatable)
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// A directory that git ignores and the tests need (repeatable)
    #[arg(long, value_name = "DIR")]
    input: Vec<String>,
    /// A directory that would come along by itself and is left out (repeatable)
    #[arg(long, value_name = "DIR")]
    no_input: Vec<String>,
    /// The test runner that the tests use
    #[arg(long, value_name = "NAME", value_parser = try_run::runner)]
    runner: Option<Runner>,
    /// Seconds each test command may run
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    test_timeout: Option<u32>,
    /// What the untouched copy must be before the engine starts: green or any
    #[arg(long, value_name = "HOW", value_parser = STARTS)]
    baseline: Option<String>,
}

impl FlagArgs {
    fn given(self, here: &Here) -> Result<Given, Failure> {
        Ok(Given::from([
            ("allow", here.seen_at_top("--allow", &self.allow)?),
            ("forbid", here.seen_at_top("--forbid", &self.forbid)?),
            ("input", here.seen_at_top("--input", &self.input)?),
            ("no_input", here.seen_at_top("--no-input", &self.no_input)?),
            ("test", self.test),
            ("setup", self.setup),
            ("runner", try_run::words(self.runner)),
            ("test_timeout", try_run::words(self.test_timeout)),
            ("baseline", try_run::words(self.baseline)),
        ]))
    }
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    match args.action {
        Action::Show(place) => show(context, &place),
        Action::Set(args) => set(context, *args),
        Action::Forget(place) => forget(context, &place),
    }
}

fn known(context: &Context, place: &PlaceArgs) -> Result<Known, Failure> {
    Known::look(context, &place.repo)?.ok_or_else(|| {
        Failure::usage("no_repository", "there is no git work tree")
            .at(place.repo.display().to_string())
            .hint("name one with --repo DIR")
    })
}

fn values_json(values: &Values) -> Value {
    let rows = values.iter();
    let row = |(key, kept): (&String, &Kept)| {
        (
            key.clone(),
            json!({"values": kept.values, "from": kept.from}),
        )
    };
    Value::Object(rows.map(row).collect())
}

fn proposal_json(proposal: &Proposal) -> Value {
    let tests = proposal.tests.iter();
    let tests = tests.map(|test| json!({"command": test.command, "from": test.from}));
    let scope = proposal.scope.as_ref();
    json!({
        "tests": tests.collect::<Vec<_>>(),
        "allow": scope.map(|scope| &scope.allow),
        "forbid": scope.map(|scope| &scope.forbid),
    })
}

fn show(context: &Context, place: &PlaceArgs) -> Result<u8, Failure> {
    let mut known = known(context, place)?;
    let proposal = known.proposal(context)?;
    let top = known.top.display().to_string();
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "project show",
            "repository": top,
            "remembered": values_json(&known.remembered),
            "of_another_repository": known.is_another,
            "proposed": proposal_json(&proposal),
        }))?;
        return Ok(0);
    }
    context.output.line(&context_name(&top));
    if known.is_another {
        context.output.row(
            "note",
            "what is remembered for this path is of another repository",
        );
    }
    if !known.remembered.is_empty() {
        project::rows(context, &known.remembered);
        return Ok(0);
    }
    context.output.row("", "nothing is remembered");
    let told = project::untold(&["test", "allow"], &proposal);
    for because in &told.because {
        context.output.row("", because);
    }
    if let Some((_, flags)) = told.hint.as_deref().and_then(|hint| hint.split_once('\n')) {
        let command = context.output.command(&format!("project set {flags}"));
        context.output.line(&format!("\nnext: {command}"));
    }
    Ok(0)
}

fn context_name(top: &str) -> String {
    cto_core::values::text::tame(top)
}

fn set(context: &Context, args: SetArgs) -> Result<u8, Failure> {
    let mut known = known(context, &args.place)?;
    let given = args.flags.given(&Here::of(&args.place.repo))?;
    let typed = given.into_iter().filter(|(_, values)| !values.is_empty());
    let mut values: Values = typed
        .map(|(key, values)| {
            let from = "typed".to_owned();
            (key.to_owned(), Kept { values, from })
        })
        .collect();
    if values.is_empty() {
        let proposal = known.proposal(context)?;
        let fields = ["test", "allow"];
        if context.output.json || !ask::somebody() {
            return Err(project::untold(&fields, &proposal).at(known.top.display().to_string()));
        }
        values = project::asked(context, &fields, &proposal)?;
    }
    known.remember(context, values)?;
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "project set",
            "repository": known.top.display().to_string(),
            "remembered": values_json(&known.remembered),
        }))?;
        return Ok(0);
    }
    context
        .output
        .line(&context_name(&known.top.display().to_string()));
    project::rows(context, &known.remembered);
    Ok(0)
}

/// By its path alone: what cannot be read is forgotten too, and so is what is of a repository that is gone.
fn forget(context: &Context, place: &PlaceArgs) -> Result<u8, Failure> {
    let gone = || std::path::absolute(&place.repo).unwrap_or_else(|_| place.repo.clone());
    let top = crate::cli::args::here::top_of(&place.repo).unwrap_or_else(gone);
    let home = context.home()?;
    let forgotten = Project::at(&home, &top).forget()?;
    let shown = top.display().to_string();
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "project forget",
            "repository": shown,
            "forgotten": forgotten,
        }))?;
        return Ok(0);
    }
    context.output.line(&match forgotten {
        true => format!("Forgotten: {}", context_name(&shown)),
        false => format!("Nothing was remembered of {}", context_name(&shown)),
    });
    Ok(0)
}
