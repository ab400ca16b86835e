//! Trying an engine out: its program asked who it is, then one run of it with a scripted model, in a
//! state of its own that is gone afterwards. What the run must show is decided in core. It proves no
//! stage and admits nothing.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::containment::Containment;
use cto_core::containment::mounts::stand::NEUTRAL;
use cto_core::engine::manifest::{Manifest, tools};
use cto_core::gate::ladder::RefusedRun;
use cto_core::proof::case_check::{Line, Mark};
use cto_core::proof::engine_check::{self, Seen};
use cto_core::run::event::{EngineEnded, Event, Origin};
use cto_core::task::contract::Stage;
use cto_core::values::blocker::Code;
use cto_core::wire::scenario::{Scenario, Select, Turn};
use serde_json::{Value, json};

use super::lane_records;
use crate::bundles::reader;
use crate::doubles::model::Model;
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::{self, Env, Home};
use crate::records::examine::{self, Examined};
use crate::run;
use crate::screen::progress::Progress;
use crate::supervise::cancel::Cancel;
use crate::task::cases;
use crate::task::lane::LaneOptions;
use crate::task::request::{ProofOrder, Request};

/// What the model tells the engine to write.
const FILE: &str = "strings.py";
const FIX: &str = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";
/// Last lines of a log that are shown.
const LOG_LINES: usize = 12;
const MAX_LOG: u64 = 64 << 20;

/// What is tried, and with what.
pub struct Order<'a> {
    pub manifest: &'a Manifest,
    pub bin: &'a Path,
    /// A word that must be in what the program says of itself, where it is not the manifest's.
    pub word: Option<&'a str>,
    /// An empty directory for everything.
    pub dir: &'a Path,
    pub env: &'a Env,
    pub cancel: &'a Cancel,
}

/// What came of it.
pub struct Trial {
    pub lines: Vec<Line>,
    /// The last words of the engine, where something was wrong.
    pub log: Vec<String>,
    /// The run, as long as its directory is there.
    pub bundle: Option<PathBuf>,
    /// It could not be tried at all on this host.
    pub unable: bool,
}

impl Trial {
    fn ended(lines: Vec<Line>) -> Self {
        Self {
            lines,
            log: Vec::new(),
            bundle: None,
            unable: false,
        }
    }
}

/// Tries an engine, from its program to a verdict.
pub fn run(order: &Order<'_>, progress: &mut dyn Progress) -> Result<Trial, Failure> {
    let home = Home {
        root: order.dir.join("state"),
        runs: order.dir.join("state/harness-runs"),
    };
    home.create()?;
    let mut lines = Vec::new();
    let asked = (order.bin, order.word);
    let examined = examine::examine(order.manifest, asked, order.cancel, order.env, &home);
    let examined = match examined {
        Ok(examined) => examined,
        Err(failure) if failure.code == "executable_not_admitted" => {
            lines.push(Line::new("identity", Mark::Wrong, told(&failure)));
            return Ok(Trial::ended(lines));
        }
        Err(failure) => return Err(failure),
    };
    lines.extend(identity(order.manifest, &examined));
    let place = Place { order, home: &home };
    let options = place.records(&examined)?;
    place.prove_stage1(&options)?;
    let (scenario, told) = scenario(order.manifest);
    let options = LaneOptions {
        base_url_file: Some(place.model(scenario)?),
        ..options
    };
    let request = place.request(&options, Stage::Two)?;
    let sealed = run::run(&home, order.env, &request, order.cancel, progress)?;
    let ended = engine_ended(&sealed)?;
    lines.extend(engine_check::lines(&Seen {
        manifest: order.manifest,
        report: &sealed.report,
        ended: ended.as_ref(),
        told,
    }));
    let wrong = lines.iter().any(|line| line.mark == Mark::Wrong);
    let is_unable = |code: Code| matches!(code, Code::ContainmentUnavailable | Code::Interrupted);
    Ok(Trial {
        log: match wrong {
            true => last_words(&sealed),
            false => Vec::new(),
        },
        unable: sealed.report.blockers.iter().any(|b| is_unable(b.code)),
        bundle: Some(sealed.dir),
        lines,
    })
}

fn told(failure: &Failure) -> String {
    let because = failure.because.join("; ");
    match because.is_empty() {
        true => failure.what.clone(),
        false => format!("{}: {because}", failure.what),
    }
}

/// Who it says it is, and around it: packages, interpreter, version.
fn identity(manifest: &Manifest, examined: &Examined) -> Vec<Line> {
    let mut lines = vec![Line::new("identity", Mark::Ok, examined.version.as_str())];
    if let Some(own) = &examined.interpreter {
        let text = format!("{} {} ({})", own.name, own.version, own.path);
        lines.push(Line::new("runs on", Mark::Ok, text));
    }
    let Some(own) = &manifest.invocation else {
        return lines;
    };
    if own.packages.is_some() {
        lines.push(match &examined.packages_sha256 {
            Some(sha256) => Line::new("packages", Mark::Ok, format!("pinned, {sha256}")),
            None => {
                let detail = "none are around the program, so nothing but its file is pinned";
                Line::new("packages", Mark::Wrong, detail)
            }
        });
    }
    if own.version_file.is_some() {
        lines.push(match &examined.package_version {
            None => Line::new("version", Mark::Wrong, "its version_file names none"),
            Some(version) if own.is_untested(Some(version)) => {
                let detail = format!("{version}, which tested_versions does not name");
                Line::new("version", Mark::Note, detail)
            }
            Some(version) => Line::new("version", Mark::Ok, version.as_str()),
        });
    }
    lines
}

/// What the model says, and which file it thereby tells the engine to write.
fn scenario(manifest: &Manifest) -> (Scenario, Option<&'static str>) {
    let own = manifest.invocation.as_ref();
    let say = |text: &str| Turn {
        text: text.to_owned(),
        ..Turn::default()
    };
    let calls = |call| Turn {
        tool: vec![call],
        ..Turn::default()
    };
    let tools = own.and_then(|own| own.tools.as_ref());
    let tools = tools.map(|tools| tools.at(Some(NEUTRAL)));
    let read = tools.as_ref().and_then(|tools| tools.read(FILE)).map(calls);
    let finish = tools.as_ref().and_then(tools::Tools::finish).map(calls);
    let called = tools.map(|tools| calls(tools.write(FILE, FIX)));
    let said = || {
        let template = own.and_then(|own| own.answer.as_deref())?;
        Some(say(&tools::answer(template, FILE, FIX)))
    };
    let first = called.or_else(said);
    let told = first.as_ref().map(|_| FILE);
    let scenario = Scenario {
        probe: Some(say("ready")),
        turn: read
            .into_iter()
            .chain(first)
            .chain([finish.unwrap_or_else(|| say("Done."))])
            .collect(),
        // What an engine sends before its first answer is its own affair: some show examples, as if
        // the model had spoken before.
        select: Select::Requests,
        ..Scenario::default()
    };
    (scenario, told)
}

/// The directory of one trial.
struct Place<'a> {
    order: &'a Order<'a>,
    home: &'a Home,
}

impl Place<'_> {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.order.dir.join(name);
        let write = || {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(bytes)
        };
        write().map_err(|error: io::Error| {
            Failure::internal("no_temporary_directory", "a trial cannot be prepared")
                .because(&error)
        })?;
        Ok(path)
    }

    /// Records of this place and no other.
    fn records(&self, examined: &Examined) -> Result<LaneOptions, Failure> {
        let id = &self.order.manifest.id;
        let path = Path::new(&examined.path);
        let mut executable = lane_records::executable(id, path, examined.sha256, &examined.version);
        if let Value::Object(map) = &mut executable {
            map.extend(examined.fields());
        }
        let put = |name: &str, value: &Value| {
            self.put(&format!("{name}.json"), value.to_string().as_bytes())
        };
        let key = format!("validator-{}", host::random_name(24)?);
        let key = self.put("key", key.as_bytes())?;
        Ok(LaneOptions {
            decision: Some(put("decision", &lane_records::decision())?),
            model_admission: Some(put("model", &self.model_record())?),
            executable_admission: Some(put("executable", &executable)?),
            credential: Some(format!("file:{}", key.display())),
            ..LaneOptions::default()
        })
    }

    /// The first protocol that the manifest names.
    fn model_record(&self) -> Value {
        let mut record = lane_records::model();
        let own = self.order.manifest.invocation.as_ref();
        let spoken = own.and_then(|own| own.model.as_ref()?.protocols.first());
        if let Some(spoken) = spoken {
            record["protocol"] = json!(spoken.wire);
        }
        record
    }

    fn model(&self, scenario: Scenario) -> Result<PathBuf, Failure> {
        let unable = |error: io::Error| {
            Failure::internal("no_model", "the scripted model cannot be played").because(&error)
        };
        let key = fs::read_to_string(self.order.dir.join("key")).map_err(unable)?;
        let scenario = Scenario {
            key: Some(key),
            ..scenario
        };
        let listener = TcpListener::bind("127.0.0.1:0").map_err(unable)?;
        let model = Model::start(listener, scenario, None).map_err(unable)?;
        let url = format!("http://{}/v1", model.address);
        self.put("url", url.as_bytes())
    }

    fn request(&self, options: &LaneOptions, stage: Stage) -> Result<Request, Failure> {
        let case = cases::find(cases::DEFAULT_CASE, None)?;
        let request = Request::case(case, self.order.manifest.clone());
        Ok(request
            .at_stage(stage)
            .opened(true)
            .contained(Containment::Strict)
            .in_lane(options.clone())
            .asked_by(Origin::Validator)
            .uncompared())
    }

    /// A run of stage 2 stands on the first, here as everywhere.
    fn prove_stage1(&self, options: &LaneOptions) -> Result<(), Failure> {
        let (cancel, env) = (self.order.cancel, self.order.env);
        let mut quiet = crate::screen::progress::Quiet;
        let closed = self.request(options, Stage::One)?.opened(false);
        let closed = run::run(self.home, env, &closed, cancel, &mut quiet)?;
        let refused = RefusedRun {
            run_id: closed.report.run_id.clone(),
            sums_sha256: closed.sums_sha256,
            blocker: Code::EngineGateClosed,
        };
        let order = ProofOrder::Stage1 { refused };
        let opened = self.request(options, Stage::One)?.proving(Some(order));
        run::run(self.home, env, &opened, cancel, &mut quiet)?;
        Ok(())
    }
}

fn engine_ended(sealed: &SealedBundle) -> Result<Option<EngineEnded>, Failure> {
    let lines = reader::event_lines(&sealed.dir, &sealed.report)?;
    Ok(lines.into_iter().find_map(|line| match line.event {
        Event::EngineEnded(ended) => Some(ended),
        _ => None,
    }))
}

/// The end of what it printed: standard error, or where that is empty the other.
fn last_words(sealed: &SealedBundle) -> Vec<String> {
    let read = |name: &str| {
        let bytes = files::read_limited(&sealed.dir.join(name), MAX_LOG).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let stderr = read(bundle::STDERR_LOG);
    let text = match stderr.trim().is_empty() {
        true => read(bundle::STDOUT_LOG),
        false => stderr,
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(LOG_LINES);
    lines[from..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}
