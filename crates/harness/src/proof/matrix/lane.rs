//! The lane of rows that start a program of their own: that program, records that let it be run here
//! and nowhere else, proofs of the stages before, and a scripted model for each row.
//!
//! `cto matrix` prepares it once, below its own temporary directory; every row has a copy of the
//! state in it, and a model in its own process.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::containment::Containment;
use cto_core::engine::manifest::{Manifest, Program};
use cto_core::gate::Binary;
use cto_core::gate::ladder::RefusedRun;
use cto_core::proof::matrix::{Fixture, Row, Words};
use cto_core::records::{ExecutableAdmission, RecordKind};
use cto_core::task::contract::Stage;
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;
use cto_core::wire::scenario::Scenario;
use serde_json::{Value, json};

use super::asked::{self, Playing};
use crate::doubles::model::Model;
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::{self, Env, Home};
use crate::proof::lane_records;
use crate::records::{self, RecordStore, examine, packages};
use crate::run;
use crate::screen::progress::Quiet;
use crate::supervise::cancel::Cancel;
use crate::task::lane::{LaneOptions, variable};
use crate::task::request::{ProofOrder, Request};

/// What a row's process needs of the operator's environment, and nothing else of it.
pub(super) const KEPT: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];
/// The file with the credential of every model of the lane.
const KEY: &str = "key";
/// The file with a part of every address that is this lane's alone: the rest is of any machine, and no secret.
const PRIVATE: &str = "private";

/// A lane on disk.
pub struct Lane {
    dir: PathBuf,
}

/// What rows need of it.
pub struct Needs {
    /// Containments that rows ask for.
    pub contain: Vec<Containment>,
    /// A row stands on the second stage.
    pub stage2: bool,
}

impl Needs {
    pub fn of<'r>(rows: impl Iterator<Item = &'r Row>) -> Self {
        let mut needs = Self {
            contain: Vec::new(),
            stage2: false,
        };
        for row in rows {
            let contain = row.contain.unwrap_or(Containment::Strict);
            if !needs.contain.contains(&contain) {
                needs.contain.push(contain);
            }
            needs.stage2 |= row.stage == Some(Stage::Three);
        }
        needs
    }
}

/// The program that is tried.
struct Tried {
    path: PathBuf,
    sha256: Digest,
    is_temporary: bool,
    packages: Option<Digest>,
}

/// Why there is no lane: what rows are told, or what ends the command.
pub enum NoLane {
    Reason(String),
    Failed(Failure),
}

impl From<Failure> for NoLane {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What a lane is made from.
pub struct Making<'a> {
    pub manifest: &'a Manifest,
    /// The operator's word for the program.
    pub bin: Option<&'a Path>,
    pub env: &'a Env,
    /// Where the operator's own records are; nothing is written there.
    pub home: &'a Home,
    pub fixture: &'a Fixture,
    /// A row that has nothing wrong with it.
    pub sound: &'a Row,
    pub cancel: &'a Cancel,
}

impl Lane {
    pub fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn home(&self) -> Home {
        let root = self.dir.join("state");
        Home {
            runs: root.join("harness-runs"),
            root,
        }
    }

    /// Runs that lie in every copy of its state: they are no row's.
    pub fn proofs(&self) -> BTreeSet<OsString> {
        runs_of(&self.home())
    }

    /// Makes one: finds the program, writes records for it, and proves the stages that rows stand on.
    pub fn make(dir: &Path, making: &Making<'_>, needs: &Needs) -> Result<Self, NoLane> {
        let lane = Self::at(dir);
        host::make_private_dir(dir).map_err(unwritable)?;
        let home = lane.home();
        home.create()?;
        let tried = making.program(&home).map_err(NoLane::Reason)?;
        if needs.stage2 && tried.is_temporary {
            let why = "its program lies in a temporary directory, which no stage from 3 on allows; \
                       --row names rows that need none";
            return Err(NoLane::Reason(why.into()));
        }
        let id = &making.manifest.id;
        let file = making
            .manifest
            .invocation
            .as_ref()
            .and_then(|own| own.version_file.as_deref());
        let version = file.and_then(|name| records::package_version(&tried.path, name));
        let said = version.as_deref().unwrap_or("not said");
        let mut executable = lane_records::executable(id, &tried.path, tried.sha256, said);
        if let Some(packages) = tried.packages {
            executable["packages_sha256"] = json!(packages);
        }
        let (manifest, program) = (making.manifest, &tried.path);
        let interpreter =
            examine::interpreter_of(manifest, program, making.cancel, making.env, &home)?;
        if let (Some(own), Some(map)) = (interpreter, executable.as_object_mut()) {
            map.extend(own.fields());
        }
        for (name, record) in [
            ("decision", lane_records::decision()),
            ("model", lane_records::model()),
            ("source", lane_records::source(id)),
            ("executable", executable),
        ] {
            lane.record(name, &record).map_err(unwritable)?;
        }
        let key = format!("validator-{}", host::random_name(24)?);
        lane.put(KEY, key.as_bytes()).map_err(unwritable)?;
        let private = format!("tenant-{}", host::random_name(10)?);
        lane.put(PRIVATE, private.as_bytes()).map_err(unwritable)?;
        for contain in &needs.contain {
            lane.prove_stage1(making, *contain)?;
        }
        if needs.stage2 {
            lane.prove_stage2(making)?;
        }
        Ok(lane)
    }

    fn record(&self, name: &str, record: &Value) -> io::Result<()> {
        self.put(&format!("{name}.json"), record.to_string().as_bytes())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.dir.join(name))?;
        file.write_all(bytes)
    }

    /// With what its runs are run. Without a model nothing of them gets as far as one.
    fn options(&self, model: Option<PathBuf>) -> LaneOptions {
        let record = |name: &str| Some(self.dir.join(format!("{name}.json")));
        LaneOptions {
            decision: record("decision"),
            model_admission: record("model"),
            executable_admission: record("executable"),
            source_admission: record("source"),
            credential: Some(format!("file:{}", self.dir.join(KEY).display())),
            base_url_file: model,
            ..LaneOptions::default()
        }
    }

    /// Starts the model that plays a row, in this process, and says what the row is run with.
    pub fn playing(
        &self,
        row: &Row,
        manifest: &Manifest,
        words: &Words,
    ) -> Result<LaneOptions, Failure> {
        let broken = |what: String| {
            Failure::internal("no_model", "the scripted model cannot be played").reason(what)
        };
        let own = manifest.invocation.as_ref();
        let own = own.ok_or_else(|| broken("the manifest says nothing of a program".into()))?;
        let scenario = row.scenario_for(own, words).map_err(broken)?;
        self.serving(&row.name, scenario)
    }

    /// Starts a model in this process, and says what a run with it is run with.
    pub fn serving(&self, name: &str, scenario: Scenario) -> Result<LaneOptions, Failure> {
        let url = self.start(name, scenario).map_err(|error| {
            Failure::internal("no_model", "the scripted model cannot be played").because(&error)
        })?;
        Ok(self.options(Some(url)))
    }

    fn start(&self, name: &str, scenario: Scenario) -> io::Result<PathBuf> {
        let key = fs::read_to_string(self.dir.join(KEY))?;
        let scenario = Scenario {
            key: Some(key),
            ..scenario
        };
        let model = Model::start(TcpListener::bind("127.0.0.1:0")?, scenario, None)?;
        let url = format!("url-{name}");
        let private = fs::read_to_string(self.dir.join(PRIVATE))?;
        let text = format!("http://{}/{private}/v1", model.address);
        self.put(&url, text.as_bytes())?;
        Ok(self.dir.join(url))
    }

    /// What no bundle of a row may hold: the credential, and both parts of where its model listened.
    pub fn secrets(&self, row: &Row) -> Vec<String> {
        let read = |name: &str| fs::read_to_string(self.dir.join(name)).ok();
        let address = read(&format!("url-{}", row.name)).unwrap_or_default();
        let address = address.trim_start_matches("http://").split('/');
        let parts = address.filter(|part| part.len() > 2).map(str::to_owned);
        read(KEY).into_iter().chain(parts).collect()
    }

    /// Its proofs, its keys and what is known of its program, for a state home that is not there yet.
    pub fn lay(&self, home: &Home) -> io::Result<()> {
        copy(&self.home().root, &home.root)
    }

    fn prove_stage1(&self, making: &Making<'_>, contain: Containment) -> Result<(), Failure> {
        let request = |open: bool| {
            let request = making.request(Playing::Lane(self.options(None)))?;
            Ok::<_, Failure>(request.at_stage(Stage::One).contained(contain).opened(open))
        };
        let closed = making.run(self, &request(false)?)?;
        let refused = RefusedRun {
            run_id: closed.report.run_id.clone(),
            sums_sha256: closed.sums_sha256,
            blocker: Code::EngineGateClosed,
        };
        let order = ProofOrder::Stage1 { refused };
        making.run(self, &request(true)?.proving(Some(order)))?;
        Ok(())
    }

    /// One good run of the engine, compared with `fake`. If it is not good, rows say so.
    fn prove_stage2(&self, making: &Making<'_>) -> Result<(), Failure> {
        let options = self.playing(making.sound, making.manifest, &Words::new())?;
        let mut request = making.request(Playing::Lane(options))?;
        request.compared = true;
        let script = making.sound.script_text(&Words::new());
        let script = script.map_err(|error| asked::broken(&error))?;
        let oracle = ("oracle".to_owned(), script.into_bytes());
        request.case.scripts.extend([oracle]);
        making.run(self, &request)?;
        Ok(())
    }
}

impl Making<'_> {
    fn request(&self, playing: Playing) -> Result<Request, Failure> {
        asked::request(
            self.sound,
            self.fixture,
            self.manifest.clone(),
            None,
            playing,
        )
    }

    fn run(&self, lane: &Lane, request: &Request) -> Result<SealedBundle, Failure> {
        let env = self.env.only(&KEPT);
        run::run(&lane.home(), &env, request, self.cancel, &mut Quiet)
    }

    /// The program somebody named, or the one that is admitted, if it still is what was admitted; or
    /// why none can be tried, and what to do.
    fn program(&self, own: &Home) -> Result<Tried, String> {
        let manifest = self.manifest;
        let id = &manifest.id;
        let is_itself = |invocation: &cto_core::engine::manifest::Invocation| {
            invocation.program == Program::Itself
        };
        if manifest.invocation.as_ref().is_some_and(is_itself) {
            let path = std::env::current_exe().and_then(|path| path.canonicalize());
            let path = path.map_err(|error| format!("this program cannot find itself: {error}"))?;
            return self.look(&path, own);
        }
        let named = self.bin.map(examine::named);
        let named = named.or_else(|| self.env.path(&variable(id, "BIN")));
        if let Some(path) = named {
            return self.look(&path, own);
        }
        let record = self
            .env
            .path(&variable(id, "EXECUTABLE_ADMISSION_FILE"))
            .unwrap_or_else(|| RecordStore::of(self.home, id).path(RecordKind::Executable));
        let found = records::find::<ExecutableAdmission>(&record);
        let Some(admitted) = found.known() else {
            return Err(format!(
                "no program of {id} is admitted here; `cto setup {id}` admits one, --bin FILE names one for this command"
            ));
        };
        let tried = self.look(Path::new(&admitted.path), own)?;
        let other = |what: &str| {
            format!(
                "{what} of {id} changed since it was admitted; `cto setup {id}` admits what is there, --bin FILE tries it unadmitted"
            )
        };
        if tried.sha256 != admitted.sha256 {
            return Err(other("the program"));
        }
        if tried.packages != admitted.packages_sha256 {
            return Err(other("a package"));
        }
        Ok(tried)
    }

    fn look(&self, path: &Path, own: &Home) -> Result<Tried, String> {
        let id = &self.manifest.id;
        let Binary::Found {
            path,
            sha256,
            is_temporary,
        } = records::look_at(path, self.env, own)
        else {
            return Err(format!(
                "the program of {id} is not a file that can be run: {}; `cto setup {id}` looks for it, --bin FILE names it",
                path.display()
            ));
        };
        let path = PathBuf::from(path);
        let root = records::packages_root(self.manifest, &path);
        let packages = root
            .map(|root| packages::pin(own, &root))
            .transpose()
            .map_err(|problem| problem.to_string())?;
        Ok(Tried {
            path,
            sha256,
            is_temporary,
            packages,
        })
    }
}

fn unwritable(error: io::Error) -> Failure {
    Failure::internal("no_temporary_directory", "a lane cannot be prepared").because(&error)
}

/// Every run of a state home, by name.
pub(super) fn runs_of(home: &Home) -> BTreeSet<OsString> {
    let entries = fs::read_dir(&home.runs).into_iter().flatten();
    entries.flatten().map(|entry| entry.file_name()).collect()
}

pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    host::make_private_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&from, &to)?,
            kind if kind.is_file() => drop(fs::copy(&from, &to)?),
            _ => {}
        }
    }
    Ok(())
}
