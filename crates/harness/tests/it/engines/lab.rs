//! A lab for engines with a model: records that admit one program and one scripted model, and the
//! proof of stage 1.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;

use cto_testkit::{Answer, Bundle, Case, House, sha256_hex, wait_until};
use serde_json::{Value, json};

use crate::house;

/// The credential of the scripted model; no engine and no bundle may ever hold it.
pub const KEY: &str = "lab-key-0123456789-abcdef";
/// Its variable in the operator's environment.
const KEY_VARIABLE: &str = "LAB_KEY";

pub struct Lab {
    pub house: House,
    pub case: String,
}

/// A scripted model that listens; dropping it ends it.
pub struct Model {
    child: Mutex<Child>,
    log: PathBuf,
    /// `127.0.0.1:PORT`, which no bundle may ever hold.
    pub authority: String,
    /// The file that holds its base URL.
    pub url_file: String,
}

impl Drop for Model {
    fn drop(&mut self) {
        self.end();
    }
}

impl Model {
    /// Nobody listens any more.
    pub fn end(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }

    pub fn requests(&self) -> usize {
        fs::read_to_string(&self.log)
            .unwrap_or_default()
            .lines()
            .count()
    }
}

/// Pi as the tests' own script installed it. Without it a test skips itself, loudly; `REQUIRE_PI=1`
/// makes that a failure.
pub fn pi() -> Option<PathBuf> {
    let own =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pi-0.74.2/node_modules/.bin/pi");
    let found = std::env::var_os("CTO_TEST_PI")
        .map_or(own, PathBuf::from)
        .canonicalize();
    match found {
        Ok(path) => Some(path),
        Err(error) if std::env::var_os("REQUIRE_PI").is_some() => {
            panic!("scripts/pi has not installed Pi: {error}")
        }
        Err(_) => {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: Pi is not installed; scripts/pi installs it"
            );
            None
        }
    }
}

/// A case that starts no interpreter, whose endpoint may be silent for two seconds.
pub fn quick() -> Case {
    Case::new("quick").extra("\n[limits]\nmodel_stall_seconds = 2\nengine_idle_seconds = 120\n")
}

impl Lab {
    /// Everything a run of Pi at stage 2 needs, but for the model itself.
    pub fn new(program: &Path, case: &Case) -> Self {
        let house = house()
            .with(KEY_VARIABLE, KEY)
            .with("CTO_HARNESS_ALLOW_PI", "1");
        let case = house.case(case);
        let lab = Self { house, case };
        lab.record("decision", &decision());
        lab.record("model", &model());
        lab.record("executable", &executable(program));
        lab.record("source", &source());
        let proven = lab.house.cto(&["validate", "stage1", "--engine", "pi"]);
        assert_eq!(proven.code, Some(0), "{proven:?}");
        lab
    }

    /// Writes a record where the operator's commands would.
    pub fn record(&self, kind: &str, value: &Value) {
        let dir = self.house.state().join("records/pi");
        fs::create_dir_all(&dir).unwrap();
        fs::write(
            dir.join(format!("{kind}.json")),
            serde_json::to_vec(value).unwrap(),
        )
        .unwrap();
    }

    /// Starts the scripted model with a scenario.
    pub fn model(&self, scenario: &str) -> Model {
        let place = tempfile::Builder::new()
            .prefix("model-")
            .tempdir_in(self.house.root())
            .unwrap()
            .keep();
        let file = |name: &str| place.join(name).display().to_string();
        fs::write(
            file("scenario.toml"),
            format!("key = \"{KEY}\"\n{scenario}"),
        )
        .unwrap();
        let child = self.house.start(&[
            "__model",
            &file("scenario.toml"),
            "--port-file",
            &file("port"),
            "--log",
            &file("log"),
        ]);
        assert!(
            wait_until(|| place.join("port").exists()),
            "the scripted model does not listen"
        );
        let authority = format!("127.0.0.1:{}", fs::read_to_string(file("port")).unwrap());
        fs::write(file("url"), format!("http://{authority}/v1\n")).unwrap();
        Model {
            child: Mutex::new(child),
            log: place.join("log"),
            authority,
            url_file: file("url"),
        }
    }

    /// One run of Pi at stage 2 against a model.
    pub fn run(&self, model: &Model, more: &[&str]) -> (Answer, Bundle) {
        let args = [
            "run",
            &self.case,
            "--engine",
            "pi",
            "--stage",
            "2",
            "--base-url-file",
            &model.url_file,
            "--json",
        ];
        self.house.run_args(&[&args[..], more].concat())
    }

    pub fn run_on(&self, url_file: &str) -> Bundle {
        self.house
            .run_args(&[
                "run",
                &self.case,
                "--engine",
                "pi",
                "--stage",
                "2",
                "--base-url-file",
                url_file,
                "--json",
            ])
            .1
    }

    /// A scenario played once, and what it left.
    pub fn play(&self, scenario: &str, more: &[&str]) -> Bundle {
        let model = self.model(scenario);
        let (answer, bundle) = self.run(&model, more);
        assert!(!answer.panicked(), "{answer:?}");
        assert_no_leak(&bundle, &model);
        bundle
    }
}

/// Neither the endpoint nor the credential stands anywhere in a bundle.
pub fn assert_no_leak(bundle: &Bundle, model: &Model) {
    for needle in [KEY, &model.authority] {
        assert_eq!(
            bundle.anywhere(needle),
            Vec::<String>::new(),
            "{needle} in {}",
            bundle.run_id()
        );
    }
}

pub fn model() -> Value {
    json!({
        "status": "admitted", "provider": "lab", "model": "scripted", "credential_source_class": format!("env:{KEY_VARIABLE}"),
        "allowed_network_class": "loopback", "approval_source": "the owner", "admission_timestamp": "2026-06-01",
        "review_trigger": "before the model changes",
    })
}

pub fn decision() -> Value {
    json!({
        "decision_status": "local_provider_required", "provider_class": "local_case_compatible", "provider": "lab",
        "model": "scripted", "approval_source": "the owner", "credential_source_class": format!("env:{KEY_VARIABLE}"),
        "allowed_network_class": "loopback", "review_trigger": "before any change", "evidence_sources": ["notes"],
        "effect": "the scripted model may be used",
    })
}

pub fn executable(program: &Path) -> Value {
    let sha256 = sha256_hex(&fs::read(program).unwrap());
    json!({
        "engine": "pi", "path": program.display().to_string(), "sha256": sha256, "identity_output": "pi", "version": "0.74.2",
        "command_shape": "pi -p", "approval_source": "the owner", "admission_timestamp": "2026-06-01",
        "review_trigger": "before another version",
    })
}

fn source() -> Value {
    json!({
        "engine": "pi", "source_admission_status": "admitted", "source_name": "Pi", "source_url": "https://example.com/pi",
        "source_type": "npm package", "retrieval_date": "2026-06-01", "retrieval_command": "scripts/pi",
        "integrity_reference": format!("sha256:{}", "0".repeat(64)), "license_note": "MIT", "license_status": "resolved",
        "allowed_execution_modes": ["copied-fixture", "copied-repo"], "blocked_execution_modes": ["owned-noncritical-repo"],
        "protected_source_boundary": "its own directory", "review_trigger": "before another version", "pinned_tag": "v0.74.2",
    })
}

/// A turn that calls one tool.
pub fn tool(name: &str, arguments: Value) -> String {
    format!("[[turn]]\ntool = [{{ name = \"{name}\", raw = '''{arguments}''' }}]\n")
}

/// The probe's good answer.
pub const PROBE: &str = "[probe]\ntext = \"ready\"\n";
/// The model's last word.
pub const DONE: &str = "[[turn]]\ntext = \"Done.\"\n";

/// Solves the quick case with the tool that edits.
pub fn edit() -> String {
    tool(
        "edit",
        json!({"path": "answer.txt", "edits": [{"oldText": "wrong", "newText": "right"}]}),
    )
}
