//! `cto approve` and `cto deny`: a person sees what a request would do, says the exact sentence, and signs with
//! their own SSH key. An engine reaches neither the store nor the key.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_core::bundle::approval::signers::Signers;
use cto_core::bundle::approval::sshsig::{Purpose, signer_of};
use cto_core::bundle::approval::{
    Answer, DEFAULT_HOURS, ExecutionRequest, MOST_HOURS, Said, wrong_sentence,
};
use cto_core::bundle::attest::PublicKey;
use cto_core::task::contract::Stage;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use cto_gateway::operator_program::{self, Limits};
use serde_json::json;

use super::request::{cannot_read, find};
use crate::cli::Context;
use crate::cli::args::ask;
use crate::evidence::signers;
use crate::host::failure::Failure;
use crate::host::{self, Home, files, programs};
use crate::run::approvals::store::{Kept, Store};
use crate::screen::output::tame;

const LIMITS: Limits = Limits {
    // Long enough for a person to unlock a key or to touch a token.
    time: Duration::from_secs(120),
    output_bytes: 16 << 10,
};
const MAX_KEY: u64 = 16 << 10;

#[derive(clap::Args)]
pub struct Args {
    /// The request, as `cto requests` lists it
    request: RunId,
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
pub struct SigningArgs {
    /// Your SSH key (Ed25519): the private key, or the public one where an agent holds the other
    /// [default: ~/.ssh/id_ed25519]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct DenyArgs {
    /// The request, as `cto requests` lists it
    request: RunId,
    #[command(flatten)]
    signing: SigningArgs,
}

pub fn approve(context: &Context, args: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    let store = Store::of(&home);
    let (request, bytes) = find(&store, &args.request)?;
    unanswered(&store, &args.request)?;
    let (key, actor) = signer(context, &home, &args.signing)?;
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
        actor: &actor,
        source,
        at,
        expiry,
    };
    let answer = Answer::to(&request, Digest::of(&bytes), &said);
    keep(context, &home, &store, &answer, &key)?;
    let next = context
        .output
        .command(&format!("run --request {}", args.request));
    told(context, "approve", &answer, &next)
}

pub fn deny(context: &Context, args: &DenyArgs) -> Result<u8, Failure> {
    let home = context.home()?;
    let store = Store::of(&home);
    let (request, bytes) = find(&store, &args.request)?;
    unanswered(&store, &args.request)?;
    let (key, actor) = signer(context, &home, &args.signing)?;
    let at = host::now();
    let said = Said {
        granted: false,
        actor: &actor,
        source: "cto deny",
        at,
        expiry: at,
    };
    let answer = Answer::to(&request, Digest::of(&bytes), &said);
    keep(context, &home, &store, &answer, &key)?;
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

/// The key that signs, and whose it is by the record of allowed signers.
fn signer(
    context: &Context,
    home: &Home,
    asked: &SigningArgs,
) -> Result<(PathBuf, String), Failure> {
    let bad = |what: &str, path: &Path| {
        Failure::usage("bad_key", what)
            .at(path.display().to_string())
            .so("nothing was written")
    };
    let key = match &asked.key {
        Some(key) => std::path::absolute(key)
            .map_err(|error| bad("the key cannot be found", key).because(&error))?,
        None => match context.env.path("HOME") {
            Some(home) => home.join(".ssh/id_ed25519"),
            None => return Err(bad("no key was named", Path::new("--key"))),
        },
    };
    let public = match key.extension().is_some_and(|extension| extension == "pub") {
        true => key.clone(),
        false => PathBuf::from(format!("{}.pub", key.display())),
    };
    let text = files::read_limited(&public, MAX_KEY).map_err(|error| {
        bad("the public half of the key cannot be read", &public).because(&error)
    })?;
    let public_key = PublicKey::from_text(&String::from_utf8_lossy(&text))
        .map_err(|error| bad("the key cannot be used", &public).because(&error))?;
    let signers: Signers = signers::of(home).map_err(|why| {
        Failure::blocked("signers_not_believed", "nobody can approve here")
            .reason(why)
            .so("nothing was written")
    })?;
    match signers.actor(&public_key, Purpose::Approval) {
        Some(actor) => Ok((key, actor.to_owned())),
        None => Err(
            Failure::blocked("not_a_signer", "this key may not approve here")
                .at(signers::path(home).display().to_string())
                .so("nothing was written")
                .hint(format!(
                    "`{}` lets it",
                    context.output.command("keys approver NAME FILE.pub")
                )),
        ),
    }
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
    output.row("checks", &tame(&request.verification_commands.join("; ")));
    output.row("undo", &tame(&request.rollback));
    let lands = match request.stage < Stage::Five {
        true => "; nothing leaves the copy",
        false => "",
    };
    output.row("blocked", &format!("{}{lands}", blocked.join(", ")));
    output.row("sentence", &tame(&request.sentence));
}

/// Signs with the operator's own program, checks what it made, and keeps it.
fn keep(
    context: &Context,
    home: &Home,
    store: &Store,
    answer: &Answer,
    key: &Path,
) -> Result<(), Failure> {
    let unsigned = |why: &dyn std::error::Error| {
        Failure::internal("not_signed", "the answer could not be signed")
            .because(why)
            .so("nothing was written")
            .hint("a key with a passphrase signs through ssh-agent: `ssh-add`, then --key FILE.pub")
    };
    let record = answer.to_bytes().map_err(|error| unsigned(&error))?;
    let program = programs::ssh_keygen(&context.env, home).map_err(|error| unsigned(&error))?;
    let words = [
        "-q",
        "-Y",
        "sign",
        "-n",
        Purpose::Approval.namespace(),
        "-f",
    ]
    .map(str::to_owned);
    let mut words: Vec<String> = words.to_vec();
    words.insert(0, program.path().display().to_string());
    words.push(key.display().to_string());
    let program =
        programs::to_start(&words, &context.env, home).map_err(|error| unsigned(&error))?;
    let made =
        operator_program::run(&program, &record, LIMITS).map_err(|error| unsigned(&error))?;
    let signature = String::from_utf8(made).map_err(|error| unsigned(&error))?;
    let signed =
        signer_of(&signature, &record, Purpose::Approval).map_err(|error| unsigned(&error))?;
    let signers = signers::of(home).unwrap_or_default();
    if signers.actor(&signed, Purpose::Approval) != Some(answer.actor.as_str()) {
        return Err(nothing(
            "it was signed with another key than the one that was named",
        ));
    }
    let record = String::from_utf8(record).map_err(|error| unsigned(&error))?;
    let kept = Kept { record, signature };
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
