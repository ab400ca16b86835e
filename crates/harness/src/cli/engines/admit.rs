//! `cto admit`: records that let one exact thing be used. Nothing else writes them.

use std::path::{Path, PathBuf};

use cto_core::records::{
    BuildReport, ExecutableAdmission, Field, Issue, MAX_RECORD, ModelAdmission, ModelDecision,
    Record, RecordKind, SourceAdmissionRecord, Takes, TargetAdmission, read, read_on,
};
use cto_core::values::ids::EngineId;
use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::host;
use crate::host::failure::Failure;
use crate::host::files;
use crate::records::{RecordStore, examine};
use crate::screen::output::tame;
use crate::supervise::cancel::Cancel;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    /// Who may choose a model, and what was chosen
    Decision(Action),
    /// One provider and one model
    Model(Action),
    /// One file, by its digest
    Executable(Action),
    /// Where an engine came from
    Source(Action),
    /// A repository that may be changed
    Target(Action),
}

#[derive(clap::Args)]
struct Action {
    #[command(subcommand)]
    action: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Write a record; the one before it is kept
    New(NewArgs),
    /// Say everything that is wrong with a record
    Check {
        /// The record [default: the one in the state home]
        file: Option<PathBuf>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Show the record in the state home, and those before it
    Show {
        #[command(flatten)]
        whose: Whose,
    },
}

/// Whose record: a target admission belongs to a repository, every other one to an engine.
#[derive(clap::Args)]
struct Whose {
    /// The engine the record is about
    #[arg(long)]
    engine: Option<EngineId>,
    /// Target: the repository the record is about
    #[arg(long, value_name = "DIR", conflicts_with = "engine")]
    repo: Option<PathBuf>,
}

impl Whose {
    fn named(&self) -> String {
        let engine = self.engine.as_ref().map(ToString::to_string);
        let repo = self.repo.as_ref().map(|dir| dir.display().to_string());
        engine.or(repo).unwrap_or_default()
    }

    /// Where records of this kind lie for whom they are about.
    fn store<T: Record>(&self, context: &Context) -> Result<RecordStore, Failure> {
        match (T::KIND, &self.engine, &self.repo) {
            (RecordKind::Target, None, Some(repo)) => {
                Ok(RecordStore::of_repository(&context.home()?, repo))
            }
            (RecordKind::Target, _, _) => Err(Failure::usage(
                "missing_argument",
                "a target admission is about a repository, not about an engine",
            )
            .so("nothing was read or written")
            .hint("name it with --repo DIR")),
            (_, Some(engine), _) => store(context, engine),
            (_, None, _) => Err(Failure::usage(
                "missing_argument",
                "say whose record: --engine ENGINE",
            )
            .so("nothing was read or written")),
        }
    }
}

#[derive(clap::Args)]
struct NewArgs {
    #[command(flatten)]
    whose: Whose,
    /// Begin with this record
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// A field and its value; again for every entry of a list
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Executable: the file, asked once for its identity in a jail
    #[arg(long, value_name = "FILE")]
    bin: Option<PathBuf>,
    /// Executable: a word its help or version must contain [default: the engine's name]
    #[arg(long, value_name = "WORD")]
    identity: Option<String>,
    /// Executable: what its build says about itself
    #[arg(long, value_name = "FILE")]
    build_report: Option<PathBuf>,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    match args.kind {
        Kind::Decision(action) => act::<ModelDecision>(context, action.action),
        Kind::Model(action) => act::<ModelAdmission>(context, action.action),
        Kind::Executable(action) => act::<ExecutableAdmission>(context, action.action),
        Kind::Source(action) => act::<SourceAdmissionRecord>(context, action.action),
        Kind::Target(action) => act::<TargetAdmission>(context, action.action),
    }
}

fn act<T: Record>(context: &Context, verb: Verb) -> Result<u8, Failure> {
    match verb {
        Verb::New(args) => new::<T>(context, &args),
        Verb::Check { file, whose } => check::<T>(context, file, &whose),
        Verb::Show { whose } => show::<T>(context, &whose),
    }
}

fn store(context: &Context, engine: &EngineId) -> Result<RecordStore, Failure> {
    context.engine(engine.as_str())?;
    Ok(RecordStore::of(&context.home()?, engine))
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    path.canonicalize()
        .and_then(|real| files::read_limited(&real, MAX_RECORD as u64))
        .map_err(|error| {
            Failure::usage("unreadable_record", "the record cannot be read")
                .at(path.display().to_string())
                .because(&error)
        })
}

/// Every issue, by field; no value is repeated.
pub fn refused(kind: RecordKind, place: &str, issues: &[Issue]) -> Failure {
    let mut failure = Failure::usage(
        "record_invalid",
        format!("the {} is not valid", kind.title()),
    )
    .at(place)
    .so("nothing was written")
    .hint(format!(
        "`cto schema` has the schema of every record; `cto admit {} check FILE` looks again",
        kind.as_str()
    ));
    failure.because = issues.iter().map(ToString::to_string).collect();
    failure
}

fn new<T: Record>(context: &Context, args: &NewArgs) -> Result<u8, Failure> {
    let store = args.whose.store::<T>(context)?;
    let mut map = match &args.from {
        Some(file) => match cto_core::values::json::parse_strict(&read_file(file)?) {
            Ok(Value::Object(map)) => map,
            // What exactly is wrong is said by the strict reading below.
            Ok(_) | Err(_) => {
                return Err(refused(
                    T::KIND,
                    &file.display().to_string(),
                    &issues_of::<T>(&read_file(file)?),
                ));
            }
        },
        None => Map::new(),
    };
    if T::FIELDS.iter().any(|field| field.name == "engine") {
        map.insert("engine".into(), json!(args.whose.engine));
    }
    if let Some(repo) = &args.whose.repo {
        map.insert("target_repository_path".into(), json!(real_path(repo)?));
    }
    if T::KIND == RecordKind::Executable {
        executable_facts(context, args, &mut map)?;
    }
    set_fields(T::FIELDS, &args.set, &mut map)?;
    stamp(T::FIELDS, &mut map);
    let unwritable = |error: &dyn std::error::Error| {
        Failure::internal("unwritable_record", "the record cannot be written").because(error)
    };
    if T::KIND == RecordKind::Target {
        begin_with_skeleton(&mut map);
    }
    let bytes = serde_json::to_vec(&map).map_err(|error| unwritable(&error))?;
    let record = match T::KIND == RecordKind::Target && TargetAdmission::is_not_admitted(&bytes) {
        // It admits nothing, whatever it leaves open.
        true => Value::Object(map),
        false => {
            let record: T = read_on(&bytes, host::now())
                .map_err(|issues| refused(T::KIND, "the flags of this command", &issues))?;
            serde_json::to_value(&record).map_err(|error| unwritable(&error))?
        }
    };
    let bytes = cto_core::values::json::pretty(&record).map_err(|error| unwritable(&error))?;
    let written = store.write(T::KIND, &bytes)?;
    let previous = written
        .previous
        .as_ref()
        .map(|path| path.display().to_string());
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": format!("admit {} new", T::KIND.as_str()), "engine": args.whose.engine,
            "path": written.path.display().to_string(), "previous": previous, "record": record,
        }))?;
        return Ok(0);
    }
    context
        .output
        .line(&format!("{} for {}", T::KIND.title(), args.whose.named()));
    context
        .output
        .row("written", &written.path.display().to_string());
    previous
        .iter()
        .for_each(|path| context.output.row("before", path));
    Ok(0)
}

/// A target admission that does not say otherwise admits nothing.
fn begin_with_skeleton(map: &mut Map<String, Value>) {
    let path = map.get("target_repository_path").and_then(Value::as_str);
    let skeleton = TargetAdmission::skeleton(path.unwrap_or_default());
    let status = map.get("admission_status").and_then(Value::as_str);
    if status.is_none_or(|status| status == "not_admitted")
        && let Value::Object(skeleton) = skeleton
    {
        for (name, value) in skeleton {
            map.entry(name).or_insert(value);
        }
    }
}

/// A directory by its physical path.
fn real_path(dir: &Path) -> Result<String, Failure> {
    let bad = || {
        Failure::usage("bad_path", "the repository cannot be found")
            .at(dir.display().to_string())
            .so("nothing was written")
    };
    let real = dir.canonicalize().map_err(|error| bad().because(&error))?;
    let text = real.to_str().map(str::to_owned);
    text.ok_or_else(|| bad().reason("its path is not text"))
}

fn issues_of<T: Record>(bytes: &[u8]) -> Vec<Issue> {
    if T::KIND == RecordKind::Target && TargetAdmission::is_not_admitted(bytes) {
        return Vec::new();
    }
    read_on::<T>(bytes, host::now()).err().unwrap_or_default()
}

/// What the file itself says: path, digest, identity, and what its build says.
fn executable_facts(
    context: &Context,
    args: &NewArgs,
    map: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let report = args.build_report.as_deref().map(build_report).transpose()?;
    let (Some(bin), Some(engine)) = (&args.bin, &args.whose.engine) else {
        return Ok(());
    };
    let word = args.identity.as_deref();
    let home = context.home()?;
    let cancel = Cancel::on_signals().map_err(|error| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&error)
    })?;
    let manifest = context.engine(engine.as_str())?;
    let bin = examine::named(bin);
    let admitted = examine::examine(&manifest, (&bin, word), &cancel, &context.env, &home)?;
    if let Some(wanted) = report.as_ref().and_then(|report| report.executable_sha256)
        && wanted != admitted.sha256
    {
        return Err(
            examine::not_admitted("the build report is about another file")
                .so("nothing was written"),
        );
    }
    map.append(&mut admitted.fields());
    map.insert("command_shape".into(), json!(admitted.path));
    if let Some(report) = report {
        let mut told = serde_json::to_value(&report).unwrap_or_default();
        if let Some(told) = told.as_object_mut() {
            told.remove("executable_sha256");
            map.append(told);
        }
    }
    Ok(())
}

fn build_report(path: &Path) -> Result<BuildReport, Failure> {
    read(&read_file(path)?).map_err(|issues| {
        let mut failure = Failure::usage("build_report_invalid", "the build report is not valid")
            .at(path.display().to_string())
            .so("nothing was written");
        failure.because = issues.iter().map(ToString::to_string).collect();
        failure
    })
}

/// `--set FIELD=VALUE`, by the table of the record.
fn set_fields(
    fields: &[Field],
    sets: &[String],
    map: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let bad = |what: &str| {
        Failure::usage("bad_field", what)
            .so("nothing was written")
            .hint("--set FIELD=VALUE")
    };
    let mut begun: Vec<&str> = Vec::new();
    for set in sets {
        let (name, value) = set
            .split_once('=')
            .ok_or_else(|| bad("a field is set as FIELD=VALUE"))?;
        let field = fields
            .iter()
            .find(|field| field.name == name)
            .ok_or_else(|| {
                // A name that is not known may be what should not be shown.
                let known = fields
                    .iter()
                    .map(|field| field.name)
                    .collect::<Vec<_>>()
                    .join(", ");
                bad("a field is set that this record does not have")
                    .hint(format!("fields: {known}"))
            })?;
        let first = !begun.contains(&field.name);
        begun.push(field.name);
        let slot = map.entry(field.name).or_insert(Value::Null);
        match field.takes {
            Takes::Flag | Takes::Yes => *slot = Value::Bool(value == "true"),
            Takes::Names | Takes::Texts | Takes::Rules | Takes::SeveralOf(_) | Takes::Trigger => {
                match slot {
                    Value::Array(items) if !first => items.push(value.into()),
                    _ => *slot = json!([value]),
                }
            }
            Takes::Versions => {
                let (tool, version) = value
                    .split_once('=')
                    .ok_or_else(|| bad("a version is set as FIELD=TOOL=VERSION"))?;
                match slot {
                    Value::Object(tools) if !first => {
                        drop(tools.insert(tool.into(), version.into()))
                    }
                    _ => *slot = json!({tool: version}),
                }
            }
            _ => *slot = value.into(),
        }
    }
    Ok(())
}

/// The time of admission is now, unless somebody says otherwise.
fn stamp(fields: &[Field], map: &mut Map<String, Value>) {
    for name in [
        "admission_timestamp",
        "approval_timestamp",
        "retrieval_date",
    ] {
        if fields.iter().any(|field| field.name == name) && !map.contains_key(name) {
            map.insert(name.into(), json!(host::now()));
        }
    }
}

fn check<T: Record>(
    context: &Context,
    file: Option<PathBuf>,
    whose: &Whose,
) -> Result<u8, Failure> {
    let path = match file {
        Some(file) => file,
        None => whose.store::<T>(context)?.path(T::KIND),
    };
    let issues = issues_of::<T>(&read_file(&path)?);
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": format!("admit {} check", T::KIND.as_str()),
            "file": path.display().to_string(), "ok": issues.is_empty(), "issues": issues,
        }))?;
    } else if issues.is_empty() {
        context.output.line(&format!(
            "ok: {} is a valid {}",
            path.display(),
            T::KIND.title()
        ));
    } else {
        context.output.line(&format!(
            "not valid: {} as a {}",
            path.display(),
            T::KIND.title()
        ));
        issues
            .iter()
            .for_each(|issue| context.output.hanging("  ", &tame(&issue.to_string())));
    }
    Ok(if issues.is_empty() { 0 } else { 1 })
}

fn show<T: Record>(context: &Context, whose: &Whose) -> Result<u8, Failure> {
    let (store, named) = (whose.store::<T>(context)?, whose.named());
    let path = store.path(T::KIND);
    if !path.exists() {
        let flag = match whose.engine {
            Some(_) => "--engine",
            None => "--repo",
        };
        return Err(Failure::usage(
            "no_record",
            format!("there is no {} for {named}", T::KIND.title()),
        )
        .at(path.display().to_string())
        .hint(format!(
            "`cto admit {} new {flag} {named}` writes one",
            T::KIND.as_str()
        )));
    }
    let bytes = read_file(&path)?;
    let issues = issues_of::<T>(&bytes);
    if !issues.is_empty() {
        return Err(refused(T::KIND, &path.display().to_string(), &issues));
    }
    let record: Value = cto_core::values::json::read(&bytes).map_err(|error| {
        Failure::internal("unreadable_record", "the record cannot be read").because(&error)
    })?;
    let history = store.history(T::KIND).map_err(|error| {
        Failure::internal("unreadable_history", "earlier records cannot be listed").because(&error)
    })?;
    let history: Vec<String> = history
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": format!("admit {} show", T::KIND.as_str()), "engine": whose.engine,
            "path": path.display().to_string(), "history": history, "record": record,
        }))?;
        return Ok(0);
    }
    context.output.document(&record)?;
    context.output.row("path", &path.display().to_string());
    history
        .iter()
        .for_each(|path| context.output.row("before", path));
    Ok(0)
}
