//! `cto engines open` and `close`: the operator's standing word for one engine and one program.

use cto_core::engine::manifest::Manifest;
use cto_core::records::{GateRecord, RecordKind};
use cto_core::values::digest::Digest;
use serde_json::json;

use crate::cli::Context;
use crate::cli::args::ask;
use crate::cli::engines::admit;
use crate::host::failure::Failure;
use crate::records::{self, RecordStore};
use crate::screen::output::tame;
use crate::task::lane::LaneOptions;

#[derive(clap::Subcommand)]
pub enum Command {
    /// Let a gated engine be chosen at this terminal from now on, for as long as its program stays
    /// the same
    Open {
        /// The engine to open
        engine: String,
        /// Who approves this, and where that is written down [default: whoever types its name]
        #[arg(long, value_name = "TEXT")]
        approval: Option<String>,
        /// The engine's name, typed here instead of at the terminal
        #[arg(long, value_name = "ENGINE")]
        confirm: Option<String>,
    },
    /// End that; what the record said is kept
    Close {
        /// The engine to close
        engine: String,
    },
}

pub fn run(context: &Context, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Open {
            engine,
            approval,
            confirm,
        } => open(context, &gated(context, &engine)?, approval, confirm),
        Command::Close { engine } => close(context, &gated(context, &engine)?),
    }
}

fn gated(context: &Context, engine: &str) -> Result<Manifest, Failure> {
    let manifest = context.engine(engine)?;
    match manifest.is_gated() {
        true => Ok(manifest),
        false => Err(Failure::usage(
            "not_gated",
            format!("{} has no gate: it is the default lane", manifest.id),
        )
        .so("nothing was written")),
    }
}

fn open(
    context: &Context,
    manifest: &Manifest,
    approval: Option<String>,
    confirm: Option<String>,
) -> Result<u8, Failure> {
    let home = context.home()?;
    let (path, sha256) = admitted(context, manifest)?;
    if !context.output.json {
        context.output.line(&manifest.title);
        context.output.row("file", &tame(&path));
        context.output.row("sha256", &sha256.to_string());
    }
    let how = confirmed(context, manifest, confirm.as_deref())?;
    let approval = approval.unwrap_or_else(|| how.to_owned());
    let record: GateRecord = records::gate::draft(&manifest.id, sha256, &approval)
        .map_err(|issues| admit::refused(RecordKind::Gate, "the answers given", &issues))?;
    let bytes = cto_core::values::json::pretty(&record).map_err(|error| {
        Failure::internal("unwritable_record", "a record cannot be written").because(&error)
    })?;
    let written = RecordStore::of(&home, &manifest.id).write(RecordKind::Gate, &bytes)?;
    let previous = written.previous.map(|path| path.display().to_string());
    let path = written.path.display().to_string();
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "engines open", "engine": manifest.id,
            "path": path, "previous": previous, "record": record,
        }))?;
        return Ok(0);
    }
    context.output.row("written", &path);
    let close = context
        .output
        .command(&format!("engines close {}", manifest.id));
    context.output.hanging(
        "",
        &format!("{} is open at a terminal of yours; scripts, CI and hooks still say --allow-engine {} or set its variable. `{close}` ends it.", manifest.id, manifest.id),
    );
    Ok(0)
}

/// The program this gate is opened for: the admitted one, as it lies there now.
fn admitted(context: &Context, manifest: &Manifest) -> Result<(String, Digest), Failure> {
    let setup = context.output.command(&format!("setup {}", manifest.id));
    let no = |why: String| {
        Failure::blocked("executable_not_admitted", why)
            .so("the gate stays as it was")
            .hint(format!("`{setup}` admits a program and opens its gate"))
    };
    let lane = LaneOptions::default();
    let (found, binary) = records::program(&manifest.id, &lane, &context.env, &context.home()?);
    let record = found
        .known()
        .filter(|record| record.engine == manifest.id)
        .ok_or_else(|| no(format!("no program is admitted for {}", manifest.id)))?;
    match binary.sha256() {
        Some(sha256) if sha256 == record.sha256 => Ok((record.path.clone(), sha256)),
        Some(_) => Err(no("the admitted program is another file by now".into())),
        None => Err(no(
            "the admitted program is not there, or may not be run".into()
        )),
    }
}

/// A person types the engine's name. Nothing else is a yes.
fn confirmed(
    context: &Context,
    manifest: &Manifest,
    given: Option<&str>,
) -> Result<&'static str, Failure> {
    let no = |what: String| Failure::blocked("not_confirmed", what).so("the gate stays as it was");
    let (typed, how) = match given {
        Some(typed) => (typed.to_owned(), "--confirm of `cto engines open`"),
        None if ask::somebody() => {
            context.output.note(&format!(
                "Type {} to let it be chosen at your terminals; anything else leaves.",
                manifest.id
            ));
            (ask::line()?, "its name, typed at a terminal")
        }
        None => {
            let hint = format!("type it into the command: --confirm {}", manifest.id);
            let what = "nobody confirmed it, and there is no terminal to ask at";
            return Err(no(what.into()).hint(hint));
        }
    };
    match typed == manifest.id.as_str() {
        true => Ok(how),
        false => Err(no(format!("that is not {:?}", manifest.id.as_str()))),
    }
}

/// Always allowed: whatever the record holds, and whatever became of its program.
fn close(context: &Context, manifest: &Manifest) -> Result<u8, Failure> {
    let ended = RecordStore::of(&context.home()?, &manifest.id).end(RecordKind::Gate)?;
    let ended = ended.map(|path| path.display().to_string());
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "engines close", "engine": manifest.id,
            "closed": ended.is_some(), "previous": ended,
        }))?;
        return Ok(0);
    }
    match ended {
        Some(path) => {
            context.output.line(&format!("{} is closed", manifest.id));
            context.output.row("before", &path);
        }
        None => context.output.line(&format!(
            "{} had no gate record; nothing was open by one",
            manifest.id
        )),
    }
    Ok(0)
}
