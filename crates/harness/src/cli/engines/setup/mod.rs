//! `cto setup ENGINE`: from a program on this machine to a lane whose first two stages are proven,
//! step by step, with a person's typed word in between. Everything it does other commands can do
//! too.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use cto_core::containment::Containment;
use cto_core::engine::manifest::Manifest;
use cto_core::records::{
    ExecutableAdmission, ModelAdmission, ModelDecision, ProviderClass, Record, read,
};
use cto_core::wire::endpoint::EndpointClass;
use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::cli::engines::admit;
use crate::cli::engines::validate::answer_with;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::{self, Home};
use crate::proof::matrix::make_root;
use crate::proof::validate::{self, Bench, Validation};
use crate::records::examine::Examined;
use crate::records::{RecordStore, examine};
use crate::screen::output::tame;
use crate::screen::progress;
use crate::supervise::cancel::Cancel;
use crate::task::cases;
use crate::task::engines;
use crate::task::lane::LaneOptions;
use crate::task::lane::variable;

#[derive(clap::Args)]
pub struct Args {
    /// The engine to set up
    engine: String,
    /// Its program [default: the one of that name on PATH]
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// A word that must appear in its --help or --version [default: the engine's name]
    #[arg(long, value_name = "WORD")]
    identity: Option<String>,
    /// The model provider to admit
    #[arg(long, value_name = "NAME")]
    model_provider: Option<String>,
    /// The model to admit
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Where the credential is read from: none, env:NAME, file:/PATH or command:/PROGRAM
    #[arg(long, value_name = "WAY")]
    credential: Option<String>,
    /// Where the endpoint is: loopback, local or hosted
    #[arg(long, value_name = "CLASS")]
    endpoint_class: Option<String>,
    /// What the provider is: local_case_compatible, external_anthropic or external_openai_codex
    #[arg(long, value_name = "CLASS")]
    provider_class: Option<String>,
    /// Who approves this, and where that is written down
    #[arg(long, value_name = "TEXT")]
    approval: Option<String>,
    /// A file that holds the base URL, for the proof of stage 2
    #[arg(long, value_name = "FILE")]
    base_url_file: Option<PathBuf>,
    /// The engine's name, typed here instead of at the terminal
    #[arg(long, value_name = "ENGINE")]
    confirm: Option<String>,
    /// The case to prove stages with
    #[arg(long, value_name = "CASE", default_value = cases::DEFAULT_CASE)]
    case: String,
}

/// The records that are about to be written.
struct Drafts {
    decision: ModelDecision,
    model: ModelAdmission,
    executable: ExecutableAdmission,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let manifest = engines::find(&args.engine)?;
    if !manifest.is_gated() {
        return Err(Failure::usage(
            "not_gated",
            format!("{} needs no setup: it is the default lane", manifest.id),
        )
        .so("nothing was written"));
    }
    let home = context.home()?;
    let examined = examined(context, &manifest, &args)?;
    let say = |text: &str| {
        if context.output.json {
            context.output.note(text)
        } else {
            context.output.line(text)
        }
    };
    say(&format!("{} {}", manifest.title, tame(&examined.version)));
    say(&format!("  file    {}", tame(&examined.path)));
    say(&format!("  sha256  {}", examined.sha256));
    if examined.is_temporary {
        say("  note    it lies in a temporary directory: stages from 3 on will refuse it");
    }
    let drafts = drafts(context, &manifest, &args, &examined)?;
    say(&format!(
        "  model   {} by {}",
        drafts.model.model, drafts.model.provider
    ));
    say(
        "Three records will be written: a decision, a model-provider admission and an executable admission.",
    );
    confirmed(context, &manifest, args.confirm.as_deref())?;
    let store = RecordStore::of(&home, &manifest.id);
    let paths = [
        write(&store, &drafts.decision)?,
        write(&store, &drafts.model)?,
        write(&store, &drafts.executable)?,
    ];
    let (stage1, stage2) = prove(context, &manifest, &args, &home)?;
    let remains = remains(&manifest, &stage1, &stage2, &args);
    let code = if stage1.ok && stage2.ok { 0 } else { 3 };
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "setup", "engine": manifest.id, "records": paths,
            "executable": {"path": examined.path, "sha256": examined.sha256, "version": examined.version},
            "stage1": stage1, "stage2": stage2, "remains": remains, "exit_code": code,
        }))?;
        return Ok(code);
    }
    for (name, validation) in [("stage1", &stage1), ("stage2", &stage2)] {
        context.output.line(&format!("\n{name}"));
        answer_with(context, validate::find(name)?, validation)?;
    }
    context.output.line("\nwhat remains");
    remains
        .iter()
        .for_each(|line| context.output.hanging("  - ", &tame(line)));
    Ok(code)
}

/// Finds the program as a file, and asks it who it is.
fn examined(context: &Context, manifest: &Manifest, args: &Args) -> Result<Examined, Failure> {
    let found = args
        .bin
        .clone()
        .or_else(|| context.env.path(&variable(&manifest.id, "BIN")));
    let found = found.or_else(|| context.env.find_program(manifest.id.as_str()));
    let bin = found.ok_or_else(|| {
        Failure::usage(
            "provider_unavailable",
            format!("no program called {} is on PATH", manifest.id),
        )
        .so("nothing was written")
        .hint("install it, or name it with --bin FILE")
    })?;
    let word = args
        .identity
        .clone()
        .unwrap_or_else(|| manifest.id.to_string());
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let bin = examine::named(&bin);
    examine::examine(
        manifest,
        (&bin, &word),
        &cancel,
        &context.env,
        &context.home()?,
    )
}

/// An answer from its flag, or from the person at the terminal.
fn answer(
    context: &Context,
    given: Option<&str>,
    flag: &str,
    question: &str,
) -> Result<String, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "missing_answer",
            format!("{flag} is missing, and there is no terminal to ask at"),
        )
        .so("nothing was written"));
    }
    context.output.note(&format!("{question} ({flag})"));
    Ok(line()?.trim().to_owned())
}

fn line() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|error| {
        Failure::usage("missing_answer", "the answer cannot be read")
            .because(&error)
            .so("nothing was written")
    })?;
    Ok(line)
}

fn drafts(
    context: &Context,
    manifest: &Manifest,
    args: &Args,
    examined: &Examined,
) -> Result<Drafts, Failure> {
    let ask = |given: &Option<String>, flag: &str, question: &str| {
        answer(context, given.as_deref(), flag, question)
    };
    let provider = ask(&args.model_provider, "--model-provider", "Which provider?")?;
    let model = ask(&args.model, "--model", "Which model, exactly?")?;
    let class = ask(
        &args.provider_class,
        "--provider-class",
        &format!("What is the provider? {}", ProviderClass::WORDS.join(", ")),
    )?;
    let credential = ask(
        &args.credential,
        "--credential",
        "How does the credential come? none, env:NAME, file:/PATH, command:/PROGRAM",
    )?;
    let network = ask(
        &args.endpoint_class,
        "--endpoint-class",
        "Where is the endpoint? loopback, local, hosted",
    )?;
    let approval = ask(
        &args.approval,
        "--approval",
        "Who approves this, and where is that written down?",
    )?;
    if EndpointClass::parse(&network).is_none() {
        return Err(Failure::usage(
            "bad_answer",
            "the endpoint class is loopback, local or hosted",
        )
        .so("nothing was written"));
    }
    let status = if class == "local_case_compatible" {
        "local_provider_required"
    } else {
        "external_provider_approved"
    };
    let pair = format!("model_pair:{provider}/{model}");
    let triggers = json!([
        pair,
        format!("endpoint_class:{network}"),
        format!("credential_class:{credential}"),
        "stage_beyond:3"
    ]);
    let now = host::now();
    let decision = json!({
        "decision_status": status, "provider_class": class, "provider": provider, "model": model, "approval_source": approval,
        "credential_source_class": credential, "allowed_network_class": network, "review_trigger": triggers,
        "evidence_sources": ["cto setup"], "effect": format!("{} may be run with this pair, as its stages are proven", manifest.id),
    });
    let admission = json!({
        "status": "admitted", "provider": provider, "model": model, "credential_source_class": credential,
        "allowed_network_class": network, "approval_source": approval, "admission_timestamp": now, "review_trigger": triggers,
    });
    let mut executable = examined.fields();
    for (name, value) in [
        ("engine", json!(manifest.id)),
        ("command_shape", json!(command_shape(manifest))),
        ("approval_source", json!(approval)),
        ("admission_timestamp", json!(now)),
        (
            "review_trigger",
            json!([
                format!("path:{}", examined.path),
                "stage_beyond:3".to_owned()
            ]),
        ),
    ] {
        executable.insert(name.to_owned(), value);
    }
    Ok(Drafts {
        decision: draft(decision)?,
        model: draft(admission)?,
        executable: draft(Value::Object(executable))?,
    })
}

fn command_shape(manifest: &Manifest) -> String {
    match &manifest.invocation {
        Some(invocation) => format!("{} {}", manifest.id, invocation.argv.join(" ")),
        None => format!("{}, not started by this version", manifest.id),
    }
}

fn draft<T: Record>(value: Value) -> Result<T, Failure> {
    let bytes = serde_json::to_vec(&value).map_err(|error| {
        Failure::internal("unwritable_record", "a record cannot be written").because(&error)
    })?;
    read(&bytes).map_err(|issues| admit::refused(T::KIND, "the answers given", &issues))
}

/// A person types the engine's name. Nothing else is a yes.
fn confirmed(context: &Context, manifest: &Manifest, given: Option<&str>) -> Result<(), Failure> {
    let typed = match given {
        Some(typed) => typed.to_owned(),
        None if io::stdin().is_terminal() => {
            context.output.note(&format!(
                "Type {} to write them and to prove its first stages; anything else leaves.",
                manifest.id
            ));
            line()?.trim().to_owned()
        }
        None => {
            return Err(Failure::blocked(
                "not_confirmed",
                "nobody confirmed it, and there is no terminal to ask at",
            )
            .so("nothing was written")
            .hint(format!(
                "type it into the command: --confirm {}",
                manifest.id
            )));
        }
    };
    match typed == manifest.id.as_str() {
        true => Ok(()),
        false => Err(Failure::blocked(
            "not_confirmed",
            format!("that is not {:?}", manifest.id.as_str()),
        )
        .so("nothing was written")),
    }
}

fn write<T: Record>(store: &RecordStore, record: &T) -> Result<String, Failure> {
    let bytes = cto_core::values::json::pretty(record).map_err(|error| {
        Failure::internal("unwritable_record", "a record cannot be written").because(&error)
    })?;
    Ok(store.write(T::KIND, &bytes)?.path.display().to_string())
}

/// The proofs of stages 1 and 2, by the same validators as `cto validate`.
fn prove(
    context: &Context,
    manifest: &Manifest,
    args: &Args,
    home: &Home,
) -> Result<(Validation, Validation), Failure> {
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let root = make_root(&context.env)?;
    let mut progress = progress::for_stderr(context.output.json, false, &context.env);
    let mut one = |name: &str| {
        let fixtures = root.join(name);
        host::make_private_dir(&fixtures).map_err(|e| {
            Failure::internal(
                "no_temporary_directory",
                "no place for fixtures can be made",
            )
            .because(&e)
        })?;
        let mut bench = Bench {
            env: &context.env,
            home,
            root: fixtures,
            engine: Some(manifest.clone()),
            asked: LaneOptions {
                base_url_file: args.base_url_file.clone(),
                ..LaneOptions::default()
            },
            contain: Containment::Strict,
            case: cases::find(&args.case, None)?,
            cancel: &cancel,
            progress: progress.as_mut(),
        };
        (validate::find(name)?.run)(&mut bench)
    };
    let proven = one("stage1").and_then(|first| Ok((first, one("stage2")?)));
    // Litter at most: the fixtures' own bundles.
    let _ = files::remove_tree(&root);
    proven
}

/// What a person still has to do, in order.
fn remains(
    manifest: &Manifest,
    stage1: &Validation,
    stage2: &Validation,
    args: &Args,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut told: Map<String, Value> = Map::new();
    for validation in [stage1, stage2]
        .into_iter()
        .filter(|validation| !validation.ok)
    {
        for error in &validation.errors {
            if told.insert(error.clone(), Value::Null).is_none() {
                lines.push(error.clone());
            }
        }
    }
    let opens = manifest.gated_by_env.as_deref().unwrap_or_default();
    lines.push(format!(
        "open it for a run: --allow-engine {} or {opens}=1",
        manifest.id
    ));
    if args.base_url_file.is_none() {
        lines.push(format!(
            "supply the base URL of a run: --base-url-file FILE or {}",
            variable(&manifest.id, "LOCAL_BASE_URL")
        ));
    }
    lines.push(format!(
        "before stage 3: cto admit source new --engine {}",
        manifest.id
    ));
    if !stage2.ok {
        lines.push(format!(
            "then prove stage 2 again: cto validate stage2 --engine {}",
            manifest.id
        ));
    }
    lines
}
