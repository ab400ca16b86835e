//! The adapter of a provider: everything that must keep a gated engine from its model, and
//! everything that must not. Each check is a run of its own, of a double that ships in this binary,
//! in a state of its own.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::engine::manifest::Manifest;
use cto_core::gate::ladder::RefusedRun;
use cto_core::task::contract::{Label, LimitChanges, Stage};
use cto_core::values::blocker::Code;
use cto_core::values::verdict::Status;
use cto_core::wire::scenario::Scenario;
use serde_json::{Value, json};

use super::{Bench, Validation, report_path};
use crate::bundles::reader;
use crate::doubles::model::Model;
use crate::evidence::SealedBundle;
use crate::host;
use crate::host::digest_cache;
use crate::host::failure::Failure;
use crate::run::stage_proof;
use crate::task::cases;
use crate::task::request::LaneOptions;
use crate::task::request::ProofOrder;
use crate::task::request::Request;

const DOUBLE: &str = include_str!("../../doubles/agent.toml");
const MODEL: &str = "scripted";
/// The model's answer when it is first asked.
const PROBE: &str = "[probe]\ntext = \"ready\"\n";
const FIX: &str = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";

/// What is checked, in the order it is reported.
const CHECKS: [&str; 21] = [
    "model_provider_gate_blocks",
    "unadmitted_pair_blocks",
    "mismatch_blocks",
    "invalid_admission_blocks",
    "decision_missing_blocks",
    "not_decided_blocks",
    "external_blocked_when_local_required",
    "external_approved_needs_all_fields",
    "class_status_mismatch_blocks",
    "credentials_missing_blocks",
    "local_config_missing_blocks",
    "reasoning_only_blocks",
    "delayed_content_allows",
    "fallback_model_refused_on_wire",
    "wrong_digest_blocks",
    "missing_binary_blocks",
    "non_executable_blocks",
    "shell_keyword_is_not_a_provider",
    "provider_timeout_fail_closed",
    "surviving_children_ended",
    "no_secret_or_endpoint_in_any_artifact",
];

/// What every run of this validator shares.
struct Lab<'b, 'e> {
    bench: &'b mut Bench<'e>,
    manifest: Manifest,
    good: LaneOptions,
    credential: String,
    /// Where models listened: none of it may stand in any bundle.
    authorities: Vec<String>,
    validation: Validation,
}

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    if bench.engine.is_some() {
        return Err(Failure::usage(
            "no_engine_here",
            "this validator runs a double; it proves nothing about a real engine",
        )
        .so("nothing ran")
        .hint("leave out --engine"));
    }
    let mut lab = Lab::open(bench)?;
    lab.records_block()?;
    lab.files_block()?;
    lab.preflight_blocks()?;
    lab.prove_stage_one()?;
    lab.runs()?;
    lab.nothing_leaked()?;
    let mut validation = lab.validation;
    let place = |name: &str| CHECKS.iter().position(|known| *known == name);
    validation.checked.sort_by_key(|check| place(&check.name));
    if validation.checked.len() != CHECKS.len() {
        validation.errors.push("not everything was checked".into());
    }
    Ok(validation.done())
}

impl<'b, 'e> Lab<'b, 'e> {
    fn open(bench: &'b mut Bench<'e>) -> Result<Self, Failure> {
        let broken = |error| {
            Failure::internal("bad_double", "the double of an agent is broken").because(&error)
        };
        let manifest = Manifest::parse("agent.toml", DOUBLE).map_err(broken)?;
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

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
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

    fn record(&self, name: &str, value: &Value) -> Result<PathBuf, Failure> {
        self.write(&format!("{name}.json"), value.to_string().as_bytes())
    }

    fn executable(&self, path: &Path) -> Result<Value, Failure> {
        let sha256 = digest_cache::digest(self.bench.home, path).map_err(|error| {
            Failure::internal("own_program", "a program cannot be read").because(&error)
        })?;
        Ok(json!({
            "engine": self.manifest.id, "path": path.display().to_string(), "sha256": sha256, "identity_output": "a double",
            "version": env!("CARGO_PKG_VERSION"), "command_shape": "__agent", "approval_source": "this validator",
            "admission_timestamp": "2026-01-01", "review_trigger": "never kept",
        }))
    }

    /// A scripted model of this process, and the file that says where it listens.
    fn model(&mut self, scenario: &str) -> Result<PathBuf, Failure> {
        let broken = |what: String| {
            Failure::internal("no_model", "the scripted model cannot be played").reason(what)
        };
        let text = format!("key = \"{}\"\n{scenario}", self.credential);
        let scenario = Scenario::parse(&text)
            .map_err(|(line, _, words)| broken(format!("{line}: {words}")))?;
        let model = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| Model::start(listener, scenario, None));
        let address = model.map_err(|error| broken(error.to_string()))?.address;
        self.authorities.push(address.to_string());
        self.write(
            &format!("url-{}", self.authorities.len()),
            format!("http://{address}/v1").as_bytes(),
        )
    }

    fn request(&self, asked: LaneOptions, stage: Stage) -> Request {
        Request {
            case: self.bench.case.clone(),
            manifest: self.manifest.clone(),
            stage,
            engine_opened: true,
            script: None,
            own_script: false,
            // The double is no slow starter: what stays silent is the model.
            limits: LimitChanges {
                engine_idle_seconds: Some(8),
                ..LimitChanges::default()
            },
            contain: self.bench.contain,
            records: asked,
            proof: None,
            origin: self.bench.origin(),
            label: Label::Case,
            source: None,
            keep: false,
        }
    }

    fn run(&mut self, asked: LaneOptions) -> Result<SealedBundle, Failure> {
        let request = self.request(asked, Stage::Two);
        self.run_request(&request)
    }

    fn run_request(&mut self, request: &Request) -> Result<SealedBundle, Failure> {
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
    fn blocks(
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

    fn records_block(&mut self) -> Result<(), Failure> {
        let good = self.good.clone();
        let url = Some(self.model(PROBE)?);
        let with = |change: &dyn Fn(&mut LaneOptions)| {
            let mut asked = LaneOptions {
                base_url_file: url.clone(),
                ..good.clone()
            };
            change(&mut asked);
            asked
        };
        let nothing = LaneOptions {
            base_url_file: url.clone(),
            ..LaneOptions::default()
        };
        self.blocks(
            "model_provider_gate_blocks",
            Code::ModelNotAdmitted,
            "missing_admission",
            nothing,
        )?;
        let mut admissions = Vec::new();
        for (name, field, value) in [
            ("not-admitted", "status", json!("not_admitted")),
            ("invalid", "approval_source", Value::Null),
            ("another", "provider", json!("another")),
        ] {
            let mut record = model();
            record[field] = value;
            admissions.push(self.record(name, &record)?);
        }
        let admission = |at: usize| {
            let file = admissions[at].clone();
            with(&|asked| asked.model_admission = Some(file.clone()))
        };
        self.blocks(
            "unadmitted_pair_blocks",
            Code::ModelNotAdmitted,
            "not_admitted",
            admission(0),
        )?;
        let asks_another = with(&|asked| asked.model = Some("Scripted".into()));
        self.blocks(
            "mismatch_blocks",
            Code::ModelNotAdmitted,
            "mismatch",
            asks_another,
        )?;
        self.blocks(
            "invalid_admission_blocks",
            Code::ModelNotAdmitted,
            "invalid_admission",
            admission(1),
        )?;
        let mut decisions = Vec::new();
        for (name, status, class, whole) in [
            ("undecided", "not_decided", "local_case_compatible", true),
            (
                "partial",
                "external_provider_approved",
                "external_anthropic",
                false,
            ),
            (
                "disagreeing",
                "external_provider_approved",
                "local_case_compatible",
                true,
            ),
        ] {
            let mut record = decision();
            (record["decision_status"], record["provider_class"]) = (status.into(), class.into());
            if !whole && let Some(fields) = record.as_object_mut() {
                fields.remove("effect");
            }
            decisions.push(self.record(name, &record)?);
        }
        let decided = |file: PathBuf| with(&|asked| asked.decision = Some(file.clone()));
        let code = Code::ProviderDecisionClosed;
        let nowhere = self.bench.root.join("no-such-record.json");
        self.blocks(
            "decision_missing_blocks",
            code,
            "no decision record",
            decided(nowhere),
        )?;
        self.blocks(
            "not_decided_blocks",
            code,
            "not_decided",
            decided(decisions[0].clone()),
        )?;
        self.blocks(
            "external_blocked_when_local_required",
            code,
            "local_provider_required",
            admission(2),
        )?;
        self.blocks(
            "external_approved_needs_all_fields",
            code,
            "effect",
            decided(decisions[1].clone()),
        )?;
        self.blocks(
            "class_status_mismatch_blocks",
            code,
            "does not agree",
            decided(decisions[2].clone()),
        )
    }

    fn files_block(&mut self) -> Result<(), Failure> {
        let url = Some(self.model(PROBE)?);
        let with = |lab: &Self, record: Option<PathBuf>, bin: Option<PathBuf>| LaneOptions {
            base_url_file: url.clone(),
            executable_admission: record.or_else(|| lab.good.executable_admission.clone()),
            bin,
            ..lab.good.clone()
        };
        let code = Code::ExecutableNotAdmitted;
        let plain = self.write("program", b"#!/bin/sh\n")?;
        let admitted = self.executable(&plain)?;
        let not_executable = self.record("not-executable", &admitted)?;
        let mut other = admitted.clone();
        other["sha256"] = "0".repeat(64).into();
        let other = self.record("other-digest", &other)?;
        let mut gone = admitted.clone();
        gone["path"] = self.bench.root.join("gone").display().to_string().into();
        let gone = self.record("gone", &gone)?;
        let asked = with(self, Some(not_executable), None);
        self.blocks("non_executable_blocks", code, "may not be executed", asked)?;
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o700)).map_err(|error| {
            Failure::internal("no_fixture", "a fixture cannot be changed").because(&error)
        })?;
        let asked = with(self, Some(other), None);
        self.blocks("wrong_digest_blocks", code, "another digest", asked)?;
        let asked = with(self, Some(gone), None);
        self.blocks(
            "missing_binary_blocks",
            Code::ProviderUnavailable,
            "no longer at its path",
            asked,
        )?;
        let asked = with(self, None, Some("case".into()));
        self.blocks(
            "shell_keyword_is_not_a_provider",
            code,
            "not an absolute path",
            asked,
        )
    }

    fn preflight_blocks(&mut self) -> Result<(), Failure> {
        let url = Some(self.model(PROBE)?);
        let missing = format!("file:{}", self.bench.root.join("no-such-key").display());
        let keyless = LaneOptions {
            base_url_file: url,
            credential: Some(missing),
            ..self.good.clone()
        };
        self.blocks(
            "credentials_missing_blocks",
            Code::ProviderAuthUnavailable,
            "",
            keyless,
        )?;
        let nowhere = LaneOptions {
            base_url_file: None,
            ..self.good.clone()
        };
        self.blocks(
            "local_config_missing_blocks",
            Code::ProviderLocalConfigUnavailable,
            "",
            nowhere,
        )
    }

    /// The proof of stage 1, for runs of this validator and for nobody else.
    fn prove_stage_one(&mut self) -> Result<(), Failure> {
        let closed = Request {
            engine_opened: false,
            ..self.request(self.good.clone(), Stage::One)
        };
        let refused = self.bench.run(&closed)?;
        let refused = RefusedRun {
            run_id: refused.report.run_id.clone(),
            sums_sha256: stage_proof::sums_of(&refused.dir)?,
            blocker: Code::EngineGateClosed,
        };
        let opened = Request {
            proof: Some(ProofOrder::Stage1 { refused }),
            ..self.request(self.good.clone(), Stage::One)
        };
        self.bench.run(&opened)?;
        Ok(())
    }

    fn plays(&mut self, scenario: &str) -> Result<SealedBundle, Failure> {
        let asked = LaneOptions {
            base_url_file: Some(self.model(scenario)?),
            ..self.good.clone()
        };
        self.run(asked)
    }

    fn runs(&mut self) -> Result<(), Failure> {
        let url = self.model("[probe]\nreasoning = \"let me think about that\"\n")?;
        let thinking = LaneOptions {
            base_url_file: Some(url),
            ..self.good.clone()
        };
        let code = Code::ProviderResponseShapeUnavailable;
        self.blocks("reasoning_only_blocks", code, "", thinking)?;

        let write = turn("write", &json!({"path": "strings.py", "content": FIX}));
        let done = "[[turn]]\ntext = \"Done.\"\n";
        let slow = format!(
            "[probe]\nreasoning = \"{}\"\ntext = \"ready\"\nlatency_ms = 5\n{write}{done}",
            "hm ".repeat(60)
        );
        let sealed = self.plays(&slow)?;
        self.validation.check(
            "delayed_content_allows",
            sealed.report.status == Status::Pass,
            || told(&sealed),
        );

        self.fallback(&format!("{PROBE}{write}{done}"))?;

        let sealed = self.plays(&format!(
            "{PROBE}[[turn]]\ntext = \"one two three four five\"\nsilent_after = 1\n"
        ))?;
        let closed = sealed.report.status == Status::Blocked
            && sealed
                .report
                .blockers
                .iter()
                .any(|b| matches!(b.code, Code::ProviderUnavailable | Code::Timeout));
        self.validation
            .check("provider_timeout_fail_closed", closed, || told(&sealed));

        let leave = turn(
            "bash",
            &json!({"command": "setsid sleep 600 >/dev/null 2>&1 & echo begun"}),
        );
        let sealed = self.plays(&format!("{PROBE}{write}{leave}{done}"))?;
        let containment: Value = document(&sealed, bundle::CONTAINMENT);
        let engine = containment["processes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|row| row["process"] == "engine")
            .cloned();
        let ended = engine
            .is_some_and(|row| row["survivors"] == 0 && row["ended_with_it"].as_u64() >= Some(1));
        let held = ended && sealed.report.status == Status::Pass;
        self.validation
            .check("surviving_children_ended", held, || told(&sealed));
        Ok(())
    }

    /// An engine that also asks for another model gets no answer from it, on the wire.
    fn fallback(&mut self, scenario: &str) -> Result<(), Failure> {
        let asked = LaneOptions {
            base_url_file: Some(self.model(scenario)?),
            ..self.good.clone()
        };
        let mut request = self.request(asked, Stage::Two);
        if let Some(invocation) = &mut request.manifest.invocation {
            invocation.argv = ["__agent", "--also", "another-model", "{prompt}"]
                .map(str::to_owned)
                .to_vec();
        }
        let sealed = self.run_request(&request)?;
        let text = reader::document(&sealed.dir, bundle::MODEL_CALLS).unwrap_or_default();
        let calls: Vec<Value> = text
            .split(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let other = |call: &&Value| call["model_asked"] != MODEL;
        let refused = calls.iter().filter(other).count() >= 1
            && calls
                .iter()
                .filter(other)
                .all(|call| call["forwarded"] == false && call["outcome"] == "refused")
            && calls.iter().any(|call| call["forwarded"] == true);
        self.validation
            .check("fallback_model_refused_on_wire", refused, || told(&sealed));
        Ok(())
    }

    /// Every byte of every bundle this validator made.
    fn nothing_leaked(&mut self) -> Result<(), Failure> {
        let unreadable = |error| {
            Failure::internal("unreadable_bundle", "a bundle cannot be read").because(&error)
        };
        let mut pending = vec![self.bench.home.runs.clone()];
        let mut found = Vec::new();
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.is_dir() {
                    pending.push(path);
                    continue;
                }
                let bytes = fs::read(&path).map_err(unreadable)?;
                let holds =
                    |needle: &String| memchr::memmem::find(&bytes, needle.as_bytes()).is_some();
                if holds(&self.credential) || self.authorities.iter().any(holds) {
                    found.push(path.file_name().unwrap_or_default().display().to_string());
                }
            }
        }
        let clean = found.is_empty() && !self.authorities.is_empty();
        self.validation
            .check("no_secret_or_endpoint_in_any_artifact", clean, || {
                format!("found in {}", found.join(", "))
            });
        Ok(())
    }
}

fn turn(tool: &str, arguments: &Value) -> String {
    format!("[[turn]]\ntool = [{{ name = \"{tool}\", raw = '''{arguments}''' }}]\n")
}

fn document(sealed: &SealedBundle, name: &str) -> Value {
    reader::document(&sealed.dir, name)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn told(sealed: &SealedBundle) -> String {
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

fn model() -> Value {
    json!({
        "status": "admitted", "provider": "validator", "model": MODEL, "credential_source_class": "a file of this validator",
        "allowed_network_class": "loopback", "approval_source": "this validator", "admission_timestamp": "2026-01-01",
        "review_trigger": "never kept",
    })
}

fn decision() -> Value {
    json!({
        "decision_status": "local_provider_required", "provider_class": "local_case_compatible", "provider": "validator",
        "model": MODEL, "approval_source": "this validator", "credential_source_class": "a file of this validator",
        "allowed_network_class": "loopback", "review_trigger": "never kept", "evidence_sources": ["this validator"],
        "effect": "a scripted model may be used by a double",
    })
}
