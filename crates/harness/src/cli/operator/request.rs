//! `cto request`: writes down what is asked for once every gate but the approval has passed (`run/approvals/asking.rs`).
//! It starts nothing. `cto requests` lists what was asked.

use std::path::PathBuf;

use cto_core::bundle::approval::{Answer, ExecutionRequest};
use cto_core::engine::manifest::Manifest;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::json as strict;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::Context;
use crate::cli::args::task::TaskArgs;
use crate::host;
use crate::host::failure::Failure;
use crate::run::approvals::asking;
pub use crate::run::approvals::asking::cannot_read;
use crate::run::approvals::store::Store;
use crate::screen::output::tame;
use crate::screen::table::{Fit, Table};
use crate::task::cases;
use crate::task::request::Request;

#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct Args {
    /// A built-in case, or a path to a case directory
    #[arg(value_name = "CASE", default_value = cases::DEFAULT_CASE)]
    case: String,
    /// What this work is called in the sentence of the approval [default: the name of the request]
    #[arg(long, value_name = "ID")]
    work_id: Option<String>,
    #[command(flatten)]
    task: TaskArgs,
}

impl Args {
    /// The run that was asked for, as it would be asked for again.
    pub fn again(&self, context: &Context, id: &RunId) -> Result<Request, Failure> {
        let mut request = self.task.request(context, &self.case)?;
        request.request_id = Some(id.clone());
        Ok(request)
    }
}

/// The newest request.
const LAST: &str = "last";

fn none_of(name: &str) -> Failure {
    let what = format!("there is no request {}", tame(name));
    Failure::usage("no_request", what)
        .so("nothing was written")
        .hint("`cto requests` lists them")
}

/// The one request that a name is meant for: its id, a part that no other one has, or `last`.
pub fn named_by(store: &Store, name: &str) -> Result<RunId, Failure> {
    let all = store.all().map_err(|error| cannot_read(&error))?;
    // Names say the second; which of two in one second is the newer one says the request itself.
    let second = |id: &RunId| id.as_str().get(..16).map(str::to_owned);
    let first = all.first().map(second);
    let asked_at = |id: &&RunId| {
        let request = find(store, id).ok();
        request.map_or(0, |(request, _)| request.requested_at.as_millis())
    };
    let newest = all
        .iter()
        .take_while(|id| name == LAST && Some(second(id)) == first)
        .max_by_key(asked_at);
    let exact = all.iter().find(|id| id.as_str() == name);
    if let Some(id) = newest.or(exact) {
        return Ok(id.clone());
    }
    let mut fits = all
        .iter()
        .filter(|id| !name.is_empty() && id.as_str().contains(name));
    match (fits.next(), fits.next()) {
        (Some(id), None) => Ok(id.clone()),
        (None, _) => Err(none_of(name)),
        (Some(_), Some(_)) => Err(Failure::usage(
            "ambiguous_request",
            "several requests have that in their names",
        )
        .so("nothing was written")
        .hint("`cto requests` lists them; give more of one name")),
    }
}

/// A request of the store, with its bytes.
pub fn find(store: &Store, id: &RunId) -> Result<(ExecutionRequest, Vec<u8>), Failure> {
    let bytes = store.request(id).map_err(|error| cannot_read(&error))?;
    let bytes = bytes.ok_or_else(|| none_of(id.as_str()))?;
    let request = strict::read(&bytes).map_err(|error| cannot_read(&error))?;
    Ok((request, bytes))
}

/// The run that a request asks for, as it was asked for.
pub fn recorded(context: &Context, id: &RunId) -> Result<Request, Failure> {
    asked_with(context, id)?.again(context, id)
}

/// The engine of a request, and the admission it named. The case may be another by now, or gone.
pub fn target_of(context: &Context, id: &RunId) -> Result<(Manifest, Option<PathBuf>), Failure> {
    asked_with(context, id)?.task.named_target(context)
}

fn asked_with(context: &Context, id: &RunId) -> Result<Args, Failure> {
    let home = context.home()?;
    let store = Store::of(&home);
    find(&store, id)?;
    let asked: Option<Args> = store.asked_with(id).map_err(|error| cannot_read(&error))?;
    let none = || {
        cannot_read(&std::io::Error::other(
            "what it was asked with is not there",
        ))
    };
    asked.ok_or_else(none)
}

pub fn run(context: &Context, mut args: Args) -> Result<u8, Failure> {
    args.task.name_from_anywhere()?;
    if let Ok(dir) = std::path::Path::new(&args.case).canonicalize()
        && dir.is_dir()
    {
        args.case = dir.display().to_string();
    }
    let request = args.task.request(context, &args.case)?;
    args.task.keep_target(&request, &context.env)?;
    let home = context.home()?;
    let place = (&home, &context.env);
    let asked = asking::ask(place, &request, args.work_id.as_deref(), &args)?;
    answer(context, &asked)
}

fn answer(context: &Context, asked: &ExecutionRequest) -> Result<u8, Failure> {
    let next = context
        .output
        .command(&format!("approve {}", asked.request_id));
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "request", "request": asked, "next": next,
        }))?;
        return Ok(0);
    }
    context
        .output
        .line(&format!("requested {}", asked.request_id));
    context.output.row("sentence", &tame(&asked.sentence));
    context.output.line(&format!("\nnext: {next}"));
    Ok(0)
}

#[derive(clap::Args)]
pub struct ListArgs {}

/// What became of a request, as far as the store says.
fn state(store: &Store, id: &RunId) -> &'static str {
    if store.used(id).is_some() {
        return "used";
    }
    let said = store.answer(id).ok().flatten();
    let said = said.map(|kept| strict::read::<Answer>(kept.record.as_bytes()));
    match said {
        None => "requested",
        Some(Ok(answer)) if !answer.approval_granted => "denied",
        Some(Ok(answer)) if host::now() >= answer.expiry => "expired",
        Some(Ok(_)) => "approved",
        Some(Err(_)) => "unreadable",
    }
}

pub fn list(context: &Context, _: &ListArgs) -> Result<u8, Failure> {
    let home = context.home()?;
    let store = Store::of(&home);
    let mut rows = Vec::new();
    for id in store.all().map_err(|error| cannot_read(&error))? {
        if let Ok((request, bytes)) = find(&store, &id) {
            rows.push((state(&store, &id), request, Digest::of(&bytes)));
        }
    }
    if context.output.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(state, request, sha256)| {
                json!({"request_id": request.request_id, "state": state, "work_id": request.work_id,
                    "engine": request.engine, "stage": request.stage, "sha256": sha256})
            })
            .collect();
        let document = json!({"schema_version": 1, "command": "requests", "requests": rows});
        context.output.document(&document)?;
        return Ok(0);
    }
    let mut table = Table::new(&[
        ("request", Fit::Whole),
        ("state", Fit::Whole),
        ("engine", Fit::Whole),
        ("title", Fit::Cut),
    ]);
    for (state, request, _) in &rows {
        table.row(vec![
            request.request_id.as_str().into(),
            (*state).into(),
            request.engine.as_str().into(),
            tame(&request.title).as_str().into(),
        ]);
    }
    context.output.table(&table);
    let open = rows.iter().find_map(|(state, request, _)| match *state {
        "requested" => Some(format!("approve {}", request.request_id)),
        "approved" => Some(format!("run --request {}", request.request_id)),
        _ => None,
    });
    let next = open.unwrap_or_else(|| "request CASE --stage 4".to_owned());
    let line = format!("\nnext: {}", context.output.command(&next));
    context.output.line(&line);
    Ok(0)
}
