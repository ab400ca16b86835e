//! `cto setup`: from an agent and an endpoint to a lane whose first two stages are proven. It asks
//! what it cannot find out, shows what will be written, writes all of it at once after the engine's
//! name was typed, and proves the stages then. Run again it shows what is stale and mends that.
//!
//! - this file: the spine; `flags.rs` its flags; `dialogue.rs` how a question is put
//! - `endpoint.rs` where the model is and what may be sent there, `variables.rs` what the environment
//!   says of the way; `model.rs` which model answers
//! - `write.rs` everything at once; `prove.rs` the stages; `report.rs` what is said at the end

mod dialogue;
mod endpoint;
mod flags;
mod model;
mod prove;
mod report;
mod variables;
mod write;

use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::gate::{Binary, LaneFacts};
use cto_core::operator::setup::answers;
use cto_core::operator::setup::drafts::{Drafts, SourceAnswers};
use cto_core::operator::setup::stale::{self, Part, Stale, Standing};
use cto_core::operator::setup::{Answers, Question, Refused};
use cto_core::records::{ExecutableAdmission, ModelAdmission, RecordKind};
use cto_core::run::event::Origin;
use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::cli::engines::admit;
use crate::host::failure::Failure;
use crate::host::{self, Home};
use crate::records::examine::{self, Examined};
use crate::records::{self, Installed, RecordStore, own_config};
use crate::supervise::cancel::Cancel;
use crate::task::lane::{LaneOptions, variable};
use dialogue::{Asked, Dialogue};
use endpoint::{Reached, Talk};
pub use flags::Args;
use report::Report;

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let manifest = context.engine(&args.engine)?;
    if !manifest.is_gated() {
        return Err(Failure::usage(
            "not_gated",
            format!("{} needs no setup: it is the default lane", manifest.id),
        )
        .so("nothing was written"));
    }
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let home = context.home()?;
    home.create()?;
    let store = RecordStore::of(&home, &manifest.id);
    let held = store.begin_dialogue().map_err(|error| {
        Failure::internal("state_unwritable", "the records cannot be locked")
            .because(&error)
            .so("nothing was written")
    })?;
    let Some(_held) = held else {
        return Err(Failure::blocked(
            "setup_under_way",
            format!("another setup of {} is under way", manifest.id),
        )
        .so("nothing was written")
        .hint("end that one, or wait for it"));
    };
    let setup = Setup {
        context,
        dialogue: Dialogue::new(context, &cancel, &manifest.id),
        manifest: &manifest,
        home: &home,
        args: &args,
    };
    setup.run(&store)
}

struct Setup<'a> {
    context: &'a Context,
    dialogue: Dialogue<'a>,
    manifest: &'a Manifest,
    home: &'a Home,
    args: &'a Args,
}

impl Setup<'_> {
    fn run(&self, store: &RecordStore) -> Result<u8, Failure> {
        let (manifest, args) = (self.manifest, self.args);
        if let Some(typed) = args.confirm.as_deref() {
            self.typed_name(typed)?;
        }
        let bin = self.program()?;
        let lane = self.lane(&bin);
        let package = match &lane.binary {
            Binary::Found { path, .. } => self.package(Path::new(path)),
            // Why it cannot be admitted is said before anything is asked.
            _ => {
                self.examined(&bin)?;
                let why = "it changed while it was looked at";
                return Err(examine::not_admitted(why).so("nothing was written"));
            }
        };
        let stale = self.stale(&lane, package.as_ref());
        let is = |part: Part| stale.iter().any(|stale| stale.part == part);
        self.show(&lane, &stale);
        if stale.is_empty() {
            return report::nothing_to_do(self.context, manifest, &lane);
        }
        if args.confirm.is_none() && !self.dialogue.has_somebody() {
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
        let claims = package
            .as_ref()
            .is_some_and(|found| found.package.license.is_some());
        self.announce(&stale::questions(&stale, true, claims));
        let examined = match is(Part::Executable) {
            true => Some(self.examined(&bin)?),
            false => None,
        };
        let reached = match is(Part::Model) {
            true => Some(self.reach(lane.model.known())?),
            false => None,
        };
        let source = package.filter(|_| is(Part::Source));
        let writes = examined.is_some() || reached.is_some() || source.is_some();
        let mut files = Vec::new();
        if writes {
            let answers = self.answers(examined.as_ref(), reached.as_ref(), source)?;
            let drafts = answers
                .drafts()
                .map_err(|bad| admit::refused(bad.kind, "the answers given", &bad.issues))?;
            files = self.files(&drafts, &answers.approval)?;
        }
        self.confirmed(&files, reached.as_ref())?;
        let url = reached.as_ref().map(|reached| &reached.place);
        let url = url.and_then(|place| Some((place.file.as_path(), place.typed.as_ref()?)));
        let written = match files.is_empty() {
            true => Vec::new(),
            false => write::write(store, &files, url)?,
        };
        let (stage1, stage2) = prove::prove(
            self.context,
            &self.dialogue,
            manifest,
            &args.case,
            self.home,
        )?;
        let report = Report {
            stale: &stale,
            written: &written,
            lane: &self.lane(&bin),
            url_file: reached.as_ref().map(|reached| reached.place.file.as_path()),
            questions: self.dialogue.asked(),
            stage1: &stage1,
            stage2: &stage2,
        };
        report.print(self.context, manifest)
    }

    /// The program as a path: named, on record, or found by its name.
    fn program(&self) -> Result<PathBuf, Failure> {
        let env = &self.context.env;
        let engine = &self.manifest.id;
        let named = self.args.bin.clone();
        let named = named.or_else(|| env.path(&variable(engine, "BIN")));
        let store = RecordStore::of(self.home, engine);
        let recorded = || {
            let found = records::find::<ExecutableAdmission>(&store.path(RecordKind::Executable));
            let path = found.known().map(|record| PathBuf::from(&record.path));
            path.filter(|path| path.is_file())
        };
        let found = named.map(|path| examine::named(&path));
        let found = found.or_else(recorded);
        if let Some(found) = found.or_else(|| env.find_program(engine.as_str())) {
            return Ok(found);
        }
        if !self.dialogue.has_somebody() {
            return Err(Failure::usage(
                "provider_unavailable",
                format!("no program called {engine} is on PATH"),
            )
            .so("nothing was written")
            .hint("install it, or name it with --bin FILE"));
        }
        let words = format!("No program called {engine} is on PATH. Where is it? Its path.");
        let asked = Asked {
            question: Question::Program,
            given: None,
            words: &words,
            hidden: false,
        };
        self.dialogue.ask(&asked, |text| {
            let path = examine::named(Path::new(text));
            match records::look_at(&path, env, self.home) {
                Binary::Found { .. } => Ok(path),
                _ if text.is_empty() => Err(Refused::Empty),
                _ => Err(Refused::Found("no program that may be run is there".into())),
            }
        })
    }

    fn lane(&self, bin: &Path) -> LaneFacts {
        let asked = LaneOptions {
            bin: Some(bin.to_owned()),
            base_url_file: self.args.base_url_file.clone(),
            ..LaneOptions::default()
        };
        let env = &self.context.env;
        records::gather_with_proofs(self.manifest, &asked, Origin::Operator, env, self.home)
    }

    fn package(&self, program: &Path) -> Option<Installed> {
        let invocation = self.manifest.invocation.as_ref()?;
        records::installed(program, invocation.packages.as_deref())
    }

    fn stale(&self, lane: &LaneFacts, package: Option<&Installed>) -> Vec<Stale> {
        let standing = Standing {
            manifest: self.manifest,
            lane,
            package: package.map(|found| (&found.package, &found.integrity)),
            other_model_asked: lane
                .model
                .known()
                .is_some_and(|model| self.asks_other(model)),
        };
        standing.stale()
    }

    /// Do flags ask for another model, endpoint or credential than the record names?
    fn asks_other(&self, model: &ModelAdmission) -> bool {
        let args = self.args;
        let differs = |asked: Option<&str>, have: &str| asked.is_some_and(|asked| asked != have);
        let file = args
            .base_url_file
            .as_deref()
            .and_then(|file| std::path::absolute(file).ok());
        let recorded = serde_json::to_value(model).unwrap_or_default();
        let own = &args.endpoint;
        let other_field = own
            .fields()
            .iter()
            .any(|(name, value)| recorded[name] != *value);
        let aliases = model.aliases.as_deref().unwrap_or_default();
        other_field
            || differs(args.model.as_deref(), &model.model)
            || differs(args.credential.as_deref(), &model.credential_source_class)
            || differs(own.model_provider.as_deref(), &model.provider)
            || own
                .model_protocol
                .is_some_and(|asked| model.protocol != Some(asked))
            || own.ca_file.is_some()
            || own.headers_file.is_some()
            || args.alias.iter().any(|alias| !aliases.contains(alias))
            || file.is_some_and(|file| model.base_url_file.as_deref() != file.to_str())
    }

    fn show(&self, lane: &LaneFacts, stale: &[Stale]) {
        self.dialogue.say(&self.manifest.title);
        if let Binary::Found {
            path,
            sha256,
            is_temporary,
        } = &lane.binary
        {
            self.dialogue.row("file", path);
            self.dialogue.row("sha256", &sha256.to_string());
            if *is_temporary {
                let note = "it lies in a temporary directory: stages from 3 on will refuse it";
                self.dialogue.row("note", note);
            }
        }
        for Stale { part, why } in stale {
            self.dialogue
                .row("to do", &format!("{}: {why}", part.title()));
        }
    }

    /// How much will be asked, before anything is.
    fn announce(&self, questions: &[Question]) {
        if self.dialogue.has_somebody() && self.args.confirm.is_none() {
            // One more where the endpoint answers by another name.
            let most = questions.len() + usize::from(questions.contains(&Question::Model));
            let text = format!("at most {most} questions; Ctrl-C leaves, and nothing is written");
            self.dialogue.row("asks", &text);
        }
    }

    /// Asks the program who it is.
    fn examined(&self, bin: &Path) -> Result<Examined, Failure> {
        let word = self.args.identity.as_deref();
        let env = &self.context.env;
        let found = examine::examine(
            self.manifest,
            (bin, word),
            self.dialogue.cancel,
            env,
            self.home,
        )?;
        self.dialogue.row("version", &found.version);
        if let Some(own) = &found.interpreter {
            let text = format!("{} {} ({})", own.name, own.version, own.path);
            self.dialogue.row("runs on", &text);
        }
        Ok(found)
    }

    fn reach(&self, before: Option<&ModelAdmission>) -> Result<Reached, Failure> {
        let engine = self.manifest.id.as_str();
        let talk = Talk {
            context: self.context,
            dialogue: &self.dialogue,
            manifest: self.manifest,
            home: self.home,
            args: self.args,
            own: own_config::look(self.manifest, &self.context.env),
            before: before.cloned(),
            url_file: write::url_file(engine, &self.context.env)?,
            taken: Default::default(),
            listed: Default::default(),
        };
        talk.reach()
    }

    fn answers(
        &self,
        examined: Option<&Examined>,
        reached: Option<&Reached>,
        source: Option<Installed>,
    ) -> Result<Answers, Failure> {
        let approval = self.approval()?;
        let source = source.map(|found| self.source(found)).transpose()?;
        Ok(Answers {
            engine: self.manifest.id.clone(),
            approval,
            now: host::now(),
            model: reached.map(|reached| reached.answers.clone()),
            executable: examined.map(|found| self.program_fields(found)),
            source,
        })
    }

    fn program_fields(&self, examined: &Examined) -> Map<String, Value> {
        let mut fields = examined.fields();
        let shape = match &self.manifest.invocation {
            Some(invocation) => format!("{} {}", self.manifest.id, invocation.argv.join(" ")),
            None => format!("{}, not started by this version", self.manifest.id),
        };
        fields.insert("command_shape".into(), json!(shape));
        fields
    }

    fn approval(&self) -> Result<String, Failure> {
        let env = &self.context.env;
        let user = env.get("USER").or_else(|| env.get("LOGNAME"));
        let user = user.and_then(|name| name.to_str());
        let default = user.map(|name| format!("{name}, at this terminal"));
        let default = default.filter(|text| answers::words(text, None).is_ok());
        let mut words = String::from("Who approves this, and where is that written down?");
        if let Some(default) = &default {
            words.push_str(&format!(" An empty line takes {default:?}."));
        }
        let asked = Asked {
            question: Question::Approval,
            given: self.args.approval.as_deref(),
            words: &words,
            hidden: false,
        };
        self.dialogue
            .ask(&asked, |text| answers::words(text, default.as_deref()))
    }

    /// What its package claims, and whether the person accepts the licence by typing it.
    fn source(&self, found: Installed) -> Result<SourceAnswers, Failure> {
        let Installed { package, integrity } = found;
        let text = format!("{}@{}, as it claims", package.name, package.version);
        self.dialogue.row("package", &text);
        match &integrity {
            Ok(_) => self.dialogue.row("integrity", "as its lock file names it"),
            Err(why) => self.dialogue.row(
                "integrity",
                &format!(
                    "unknown: {why}; the source stays not_admitted, and stages from 3 on refuse it"
                ),
            ),
        }
        let claimed = package.license.clone();
        let license_accepted = match claimed {
            None => false,
            // A script that does not say it has not accepted it.
            Some(_) if self.args.license.is_none() && !self.dialogue.has_somebody() => false,
            Some(claimed) => {
                let words = format!(
                    "The package claims the licence {claimed}. Type {claimed} to accept it; an empty line leaves it open."
                );
                let asked = Asked {
                    question: Question::License,
                    given: self.args.license.as_deref(),
                    words: &words,
                    hidden: false,
                };
                self.dialogue
                    .ask(&asked, |text| answers::license(text, &claimed))?
            }
        };
        Ok(SourceAnswers {
            package,
            integrity,
            license_accepted,
        })
    }

    /// The bytes of every record; the gate's among them where the program is admitted anew, because
    /// typing the name is what opens it.
    fn files(
        &self,
        drafts: &Drafts,
        approval: &str,
    ) -> Result<Vec<(RecordKind, Vec<u8>)>, Failure> {
        let unwritable = |error: &dyn std::error::Error| {
            Failure::internal("unwritable_record", "a record cannot be written").because(error)
        };
        let mut files = drafts.files().map_err(|error| unwritable(&error))?;
        if let Some(program) = &drafts.executable {
            let gate = records::gate::draft(&self.manifest.id, program.sha256, approval)
                .map_err(|issues| admit::refused(RecordKind::Gate, "the answers given", &issues))?;
            let bytes =
                cto_core::values::json::pretty(&gate).map_err(|error| unwritable(&error))?;
            files.push((RecordKind::Gate, bytes));
        }
        Ok(files)
    }

    fn typed_name(&self, typed: &str) -> Result<(), Failure> {
        let name = self.manifest.id.as_str();
        let no = || {
            Failure::blocked("not_confirmed", format!("that is not {name:?}"))
                .so("nothing was written")
                .hint(format!("--confirm {name}"))
        };
        match answers::engine(typed, name) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(no()),
        }
    }

    /// What will be written is shown, and a person types the engine's name. Nothing else is a yes.
    fn confirmed(
        &self,
        files: &[(RecordKind, Vec<u8>)],
        reached: Option<&Reached>,
    ) -> Result<(), Failure> {
        let name = self.manifest.id.as_str();
        for (kind, _) in files {
            self.dialogue.row("writes", kind.title());
        }
        if let Some(place) = reached
            .map(|reached| &reached.place)
            .filter(|place| place.typed.is_some())
        {
            let text = format!("the base URL, to {}", place.file.display());
            self.dialogue.row("writes", &text);
        }
        let what = match files.is_empty() {
            true => "to prove its first stages",
            false => "to write them and to prove its first stages",
        };
        let words = format!("Type {name} {what}; an empty line leaves.");
        let asked = Asked {
            question: Question::Name,
            given: self.args.confirm.as_deref(),
            words: &words,
            hidden: false,
        };
        match self
            .dialogue
            .ask(&asked, |text| answers::engine(text, name))?
        {
            true => self.dialogue.go_on("nothing was written"),
            false => Err(Failure::blocked("not_confirmed", "nobody typed its name")
                .so("nothing was written")
                .hint(format!("begin again: cto setup {name}"))),
        }
    }
}
