//! `cto approve` and `cto deny`: a person sees what a request would do, says the exact sentence, and signs with
//! their own SSH key. An engine reaches neither the store nor the key.

use std::io::{self, BufRead, Read};

use cto_core::bundle::approval::sshsig::Purpose;
use cto_core::bundle::approval::{
    Answer, DEFAULT_HOURS, ExecutionRequest, MOST_HOURS, Reach, Said, wrong_sentence,
};
use cto_core::task::contract::Stage;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use serde_json::json;

use super::request::{cannot_read, find, named_by};
use super::signing::{Signer, SigningArgs};
use crate::cli::Context;
use crate::cli::args::ask;
use crate::host::failure::Failure;
use crate::host::{self, Home};
use crate::run::approvals::store::Store;
use crate::screen::output::tame;

#[derive(clap::Args)]
pub struct Args {
    /// A request of `cto requests`, a part of its name that no other has, or `last`
    request: String,
    /// The exact sentence, instead of typing it at the terminal; needs --key
    #[arg(long, value_name = "TEXT", requires = "key")]
    sentence: Option<String>,
    #[command(flatten)]
    signing: SigningArgs,
    /// Hours the approval counts
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HOURS, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_HOURS)))]
    hours: u32,
}

#[derive(clap::Args)]
pub struct DenyArgs {
    /// A request of `cto requests`, a part of its name that no other has, or `last`
    request: String,
    #[command(flatten)]
    signing: SigningArgs,
}

pub fn approve(context: &Context, args: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    let store = Store::of(&home);
    let id = named_by(&store, &args.request)?;
    let (request, bytes) = find(&store, &id)?;
    unanswered(&store, &id)?;
    let signer = args.signing.signer(context, &home, Purpose::Approval)?;
    show(context, &request);
    let (said, source) = match &args.sentence {
        Some(text) => (text.clone(), "the sentence and a key, given to the command"),
        None if ask::somebody() => {
            context
                .output
                .note("Type the sentence to approve; anything else leaves.");
            (typed()?, "the sentence, typed at a terminal")
        }
        None => {
            return Err(
                nothing("nobody said the sentence, and there is no terminal to ask at")
                    .hint("--sentence TEXT and --key FILE give both"),
            );
        }
    };
    if let Some(why) = wrong_sentence(&said, &request.sentence) {
        return Err(nothing("that is not the sentence of this request")
            .reason(why)
            .hint("it is compared word for word, every space and letter"));
    }
    let at = host::now();
    let expiry = at.as_millis() + i64::from(args.hours) * 3_600_000;
    let expiry = Utc::from_millis(expiry)
        .map_err(|error| nothing("it would count beyond all time").because(&error))?;
    let said = Said {
        granted: true,
        actor: &signer.actor,
        source,
        at,
        expiry,
    };
    let answer = Answer::to(&request, Digest::of(&bytes), &said);
    keep(context, &home, &store, &answer, &signer)?;
    let next = context.output.command(&format!("run --request {id}"));
    told(context, "approve", &answer, &next)
}

pub fn deny(context: &Context, args: &DenyArgs) -> Result<u8, Failure> {
    let home = context.home()?;
    let store = Store::of(&home);
    let id = named_by(&store, &args.request)?;
    let (request, bytes) = find(&store, &id)?;
    unanswered(&store, &id)?;
    let signer = args.signing.signer(context, &home, Purpose::Approval)?;
    let at = host::now();
    let said = Said {
        granted: false,
        actor: &signer.actor,
        source: "cto deny",
        at,
        expiry: at,
    };
    let answer = Answer::to(&request, Digest::of(&bytes), &said);
    keep(context, &home, &store, &answer, &signer)?;
    let next = context.output.command("requests");
    told(context, "deny", &answer, &next)
}

fn nothing(what: &str) -> Failure {
    Failure::blocked("not_approved", what).so("nothing was approved, and nothing was written")
}

/// A line as it was typed: not a space of it is taken away.
fn typed() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .take(16 << 10)
        .read_line(&mut line)
        .map_err(|error| nothing("there was no answer").because(&error))?;
    Ok(line.strip_suffix('\n').unwrap_or(&line).to_owned())
}

fn unanswered(store: &Store, id: &RunId) -> Result<(), Failure> {
    match store.answer(id).map_err(|error| cannot_read(&error))? {
        None => Ok(()),
        Some(_) => Err(answered()),
    }
}

fn answered() -> Failure {
    Failure::usage("already_answered", "this request was answered already")
        .so("the first answer stays")
        .hint("an answer is never changed; `cto request` asks anew")
}

/// What would happen, and what would not be possible.
fn show(context: &Context, request: &ExecutionRequest) {
    let output = &context.output;
    if output.json {
        return;
    }
    let paths = |rules: &[cto_core::values::paths::PathRule]| {
        let names: Vec<&str> = rules.iter().map(|rule| rule.as_str()).collect();
        names.join(", ")
    };
    let digest = match request.executable_sha256.known() {
        Some(digest) => digest.to_string(),
        None => "not looked at".into(),
    };
    let blocked: Vec<String> = request
        .blocked_actions
        .iter()
        .filter_map(|action| {
            serde_json::to_value(action)
                .ok()?
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    output.line(&tame(&request.title));
    output.row("target", &tame(&request.target));
    output.row(
        "stage",
        &format!(
            "{}, {}",
            request.stage.number(),
            request.allowed_mutation_scope
        ),
    );
    output.row("changes", &paths(&request.allowed_paths));
    output.row("never", &paths(&request.forbidden_paths));
    output.row("engine", &format!("{} {digest}", request.engine));
    if let Some(reach) = &request.reach {
        show_reach(context, reach);
    }
    let why_none = request.reach.as_ref();
    let why_none = why_none.and_then(|reach| reach.no_test_rationale.as_deref());
    let checks = match request.verification_commands.is_empty() {
        true => format!("none: {}", why_none.unwrap_or("no reason is given")),
        false => request.verification_commands.join("; "),
    };
    output.row("checks", &tame(&checks));
    let undo = match request.stage < Stage::Five {
        true => request.rollback.clone(),
        false => format!("{} What has landed: `cto revert RUN`.", request.rollback),
    };
    output.row("undo", &tame(&undo));
    let lands = match request.stage < Stage::Five {
        true => "; nothing leaves the copy",
        false => "; nothing lands before you accept the result (`cto outcome`)",
    };
    output.row("blocked", &format!("{}{lands}", blocked.join(", ")));
    output.row("sentence", &tame(&request.sentence));
}

fn show_reach(context: &Context, reach: &Reach) {
    let output = &context.output;
    if let Some(packages) = reach.packages_sha256 {
        output.row("packages", &packages.to_string());
    }
    if let Some(branch) = &reach.branch {
        output.row("branch", &tame(branch));
    }
    if let Some(model) = &reach.model {
        output.row(
            "model",
            &tame(&format!("{}/{}", model.provider, model.model)),
        );
    }
    output.row("network", &reach.network);
    let limits = &reach.limits;
    let mut shown = vec![
        format!(
            "{} s, {} s silent",
            limits.engine_wall_seconds, limits.engine_idle_seconds
        ),
        format!("{} MiB", limits.memory_mib),
        format!("{} processes", limits.processes),
    ];
    if let Some(tokens) = limits.model_tokens {
        shown.push(format!("{tokens} tokens"));
    }
    if let Some(calls) = limits.model_calls {
        shown.push(format!("{calls} model calls"));
    }
    output.row("limits", &shown.join(", "));
}

/// Signs an answer and keeps it.
fn keep(
    context: &Context,
    home: &Home,
    store: &Store,
    answer: &Answer,
    signer: &Signer,
) -> Result<(), Failure> {
    let record = answer.to_bytes().map_err(|error| {
        Failure::internal("not_signed", "the answer could not be signed")
            .because(&error)
            .so("nothing was written")
    })?;
    let kept = signer.sign(context, home, record)?;
    match store.put_answer(&answer.request_id, &kept) {
        Ok(true) => Ok(()),
        Ok(false) => Err(answered()),
        Err(error) => Err(cannot_read(&error)),
    }
}

fn told(context: &Context, command: &str, answer: &Answer, next: &str) -> Result<u8, Failure> {
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": command, "answer": answer, "next": next,
        }))?;
        return Ok(0);
    }
    let word = match answer.approval_granted {
        true => "approved",
        false => "denied",
    };
    context
        .output
        .line(&format!("{word} {} by {}", answer.request_id, answer.actor));
    context.output.line(&format!("\nnext: {next}"));
    Ok(0)
}
