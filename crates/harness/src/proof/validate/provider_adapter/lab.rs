//! The place of this validator: its double of an agent, its scripted models, and the records it is
//! run with.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::engine::manifest::Manifest;
use cto_core::task::contract::{LimitChanges, Stage};
use cto_core::values::blocker::Code;
use cto_core::values::verdict::Status;
use cto_core::wire::scenario::Scenario;
use serde_json::Value;

use super::super::{Bench, Validation, report_path};
use crate::bundles::reader;
use crate::doubles::agent;
use crate::doubles::model::Model;
use crate::evidence::SealedBundle;
use crate::host;
use crate::host::digest_cache;
use crate::host::failure::Failure;
use crate::proof::lane_records;
use crate::task::cases;
use crate::task::lane::LaneOptions;
use crate::task::request::Request;

pub(super) use lane_records::{decision, model};

/// Stands in a scenario for where the model listens.
pub(super) const ADDRESS: &str = "{address}";

/// What every run of this validator shares.
pub(super) struct Lab<'b, 'e> {
    pub bench: &'b mut Bench<'e>,
    pub manifest: Manifest,
    pub good: LaneOptions,
    pub credential: String,
    /// Where models listened: none of it may stand in any bundle.
    pub authorities: Vec<String>,
    pub validation: Validation,
}

impl<'b, 'e> Lab<'b, 'e> {
    pub fn open(bench: &'b mut Bench<'e>) -> Result<Self, Failure> {
        let manifest = agent::manifest()?;
        bench.case = cases::find(cases::DEFAULT_CASE, None)?;
        let mut lab = Self {
            credential: format!("validator-{}", host::random_name(24)?),
            bench,
            manifest,
            good: LaneOptions::default(),
            authorities: Vec::new(),
            validation: Validation::default(),
        };
        let key = lab.write("key", lab.credential.clone().as_bytes())?;
        let own = std::env::current_exe().and_then(|own| own.canonicalize());
        let own = own.map_err(|e| {
            Failure::internal("own_program", "this program cannot find itself").because(&e)
        })?;
        lab.good = LaneOptions {
            decision: Some(lab.record("decision", &decision())?),
            model_admission: Some(lab.record("model", &model())?),
            executable_admission: Some(lab.record("executable", &lab.executable(&own)?)?),
            credential: Some(format!("file:{}", key.display())),
            ..LaneOptions::default()
        };
        Ok(lab)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        use std::io::Write;
        let path = self.bench.root.join(name);
        let file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path);
        let failed =
            |error| Failure::internal("no_fixture", "a fixture cannot be written").because(&error);
        file.and_then(|mut file| file.write_all(bytes))
            .map_err(failed)?;
        Ok(path)
    }

    pub fn record(&self, name: &str, value: &Value) -> Result<PathBuf, Failure> {
        self.write(&format!("{name}.json"), value.to_string().as_bytes())
    }

    pub fn executable(&self, path: &Path) -> Result<Value, Failure> {
        let sha256 = digest_cache::digest(self.bench.home, path).map_err(|error| {
            Failure::internal("own_program", "a program cannot be read").because(&error)
        })?;
        let version = env!("CARGO_PKG_VERSION");
        Ok(lane_records::executable(
            &self.manifest.id,
            path,
            sha256,
            version,
        ))
    }

    /// A scripted model of this process, and the file that says where it listens.
    pub fn model(&mut self, scenario: &str) -> Result<PathBuf, Failure> {
        let broken = |what: String| {
            Failure::internal("no_model", "the scripted model cannot be played").reason(what)
        };
        let unable = |error: std::io::Error| broken(error.to_string());
        // Not where a jail's own door is: one of its ports may be this one by chance, and that leaks nothing.
        let listener = TcpListener::bind("127.0.0.2:0").map_err(unable)?;
        let address = listener.local_addr().map_err(unable)?;
        let text = format!("key = \"{}\"\n{scenario}", self.credential)
            .replace(ADDRESS, &address.to_string());
        let scenario = Scenario::parse(&text)
            .map_err(|(line, _, words)| broken(format!("{line}: {words}")))?;
        Model::start(listener, scenario, None).map_err(unable)?;
        self.authorities.push(address.to_string());
        self.write(
            &format!("url-{}", self.authorities.len()),
            format!("http://{address}/v1").as_bytes(),
        )
    }

    pub fn request(&self, asked: LaneOptions, stage: Stage) -> Request {
        // The double is no slow starter: what stays silent is the model.
        let limits = LimitChanges {
            engine_idle_seconds: Some(8),
            ..LimitChanges::default()
        };
        Request::case(self.bench.case.clone(), self.manifest.clone())
            .at_stage(stage)
            .opened(true)
            .limited(limits)
            .contained(self.bench.contain)
            .in_lane(asked)
            .asked_by(self.bench.origin())
    }

    pub fn run(&mut self, asked: LaneOptions) -> Result<SealedBundle, Failure> {
        let request = self.request(asked, Stage::Two);
        self.run_request(&request)
    }

    pub fn run_request(&mut self, request: &Request) -> Result<SealedBundle, Failure> {
        let sealed = self.bench.run(request)?;
        match sealed.report.status {
            Status::Pass => self.validation.pass_reports.push(report_path(&sealed)),
            Status::Blocked | Status::Fail => {
                self.validation.failure_reports.push(report_path(&sealed))
            }
        }
        Ok(sealed)
    }

    /// A lane that must be blocked by this code, in these words and with the marker of the code,
    /// before anything is started.
    pub fn blocks(
        &mut self,
        name: &str,
        code: Code,
        words: &str,
        asked: LaneOptions,
    ) -> Result<(), Failure> {
        let sealed = self.run(asked)?;
        let report = &sealed.report;
        let said = |blocker: &cto_core::values::blocker::Blocker| {
            blocker.code == code
                && blocker
                    .detail
                    .as_deref()
                    .unwrap_or_default()
                    .contains(words)
        };
        let marked = bundle::note_of(code).is_none_or(|note| sealed.dir.join(note).is_file());
        let held = report.status == Status::Blocked
            && !report.process_started
            && report.blockers.iter().any(said);
        self.validation
            .check(name, held && marked, || told(&sealed));
        Ok(())
    }

    /// A run of the double with these words before its prompt.
    pub fn plays_with(&mut self, scenario: &str, words: &[&str]) -> Result<SealedBundle, Failure> {
        let asked = LaneOptions {
            base_url_file: Some(self.model(scenario)?),
            ..self.good.clone()
        };
        let mut request = self.request(asked, Stage::Two);
        if let Some(invocation) = &mut request.manifest.invocation {
            let words = ["__agent"].iter().chain(words).chain(&["{prompt}"]);
            invocation.argv = words.map(|word| (*word).to_owned()).collect();
        }
        self.run_request(&request)
    }

    pub fn plays(&mut self, scenario: &str) -> Result<SealedBundle, Failure> {
        let asked = LaneOptions {
            base_url_file: Some(self.model(scenario)?),
            ..self.good.clone()
        };
        self.run(asked)
    }
}

pub(super) fn turn(tool: &str, arguments: &Value) -> String {
    format!("[[turn]]\ntool = [{{ name = \"{tool}\", raw = '''{arguments}''' }}]\n")
}

/// The calls of a run, as its bundle has them.
pub(super) fn calls(sealed: &SealedBundle) -> Vec<Value> {
    let text =
        reader::digested(&sealed.dir, &sealed.report, bundle::MODEL_CALLS).unwrap_or_default();
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// A document of a bundle, as it was sealed.
pub(super) fn document(sealed: &SealedBundle, name: &str) -> Value {
    reader::digested(&sealed.dir, &sealed.report, name)
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

pub(super) fn told(sealed: &SealedBundle) -> String {
    let line = |blocker: &cto_core::values::blocker::Blocker| {
        format!(
            "{}: {}",
            blocker.code.as_str(),
            blocker.detail.as_deref().unwrap_or("no detail")
        )
    };
    let blockers: Vec<String> = sealed.report.blockers.iter().map(line).collect();
    format!(
        "{} ended {} ({})",
        sealed.report.run_id,
        sealed.report.status.as_str(),
        blockers.join("; ")
    )
}
