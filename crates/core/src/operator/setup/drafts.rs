//! Answers as records. Each is read again by its own table before anybody may write it.

use serde_json::{Map, Value, json};

use super::answers::way_text;
use super::package::{self, NoIntegrity, Package};
use crate::records::credential::CredentialWay;
use crate::records::{
    ExecutableAdmission, Issue, ModelAdmission, ModelDecision, ProviderClass, Record, RecordKind,
    SourceAdmissionRecord, read,
};
use crate::task::contract::ModelPair;
use crate::values::digest::Digest;
use crate::values::ids::EngineId;
use crate::values::json::{self, JsonError};
use crate::values::time::Utc;
use crate::wire::endpoint::EndpointClass;

/// What the source record of a package calls it. Records of another type are somebody's own work.
pub const PACKAGE: &str = "npm package";

/// What was answered about the model and the way to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelAnswers {
    pub pair: ModelPair,
    pub provider_class: ProviderClass,
    pub aliases: Vec<String>,
    pub way: CredentialWay,
    pub class: EndpointClass,
    /// The file that holds the base URL, and the digest of what it holds.
    pub base_url_file: String,
    pub endpoint_sha256: Digest,
    /// Further fields of the model's admission, by name.
    pub more: Map<String, Value>,
}

/// Where the engine came from, by its package.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceAnswers {
    pub package: Package,
    pub integrity: Result<String, NoIntegrity>,
    /// The person typed the licence that the package claims.
    pub license_accepted: bool,
}

/// Everything that was answered; what is absent is not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answers {
    pub engine: EngineId,
    pub approval: String,
    pub now: Utc,
    pub model: Option<ModelAnswers>,
    /// What was found out about the program, as fields of its record.
    pub executable: Option<Map<String, Value>>,
    pub source: Option<SourceAnswers>,
}

/// Records that are good and not yet written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Drafts {
    pub decision: Option<ModelDecision>,
    pub model: Option<ModelAdmission>,
    pub executable: Option<ExecutableAdmission>,
    pub source: Option<SourceAdmissionRecord>,
}

/// A record that its own table refuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadDraft {
    pub kind: RecordKind,
    pub issues: Vec<Issue>,
}

impl Answers {
    pub fn drafts(&self) -> Result<Drafts, BadDraft> {
        let mut drafts = Drafts::default();
        if let Some(model) = &self.model {
            drafts.decision = Some(good(self.decision(model))?);
            drafts.model = Some(good(self.admission(model))?);
        }
        if let Some(found) = &self.executable {
            drafts.executable = Some(good(self.program(found))?);
        }
        if let Some(source) = &self.source {
            drafts.source = Some(good(self.package(source))?);
        }
        Ok(drafts)
    }

    fn decision(&self, model: &ModelAnswers) -> Value {
        let status = match model.provider_class.is_local() {
            true => "local_provider_required",
            false => "external_provider_approved",
        };
        json!({
            "decision_status": status, "provider_class": model.provider_class, "provider": model.pair.provider,
            "model": model.pair.model, "approval_source": self.approval, "credential_source_class": way_text(&model.way),
            "allowed_network_class": model.class, "review_trigger": triggers(model), "evidence_sources": ["cto setup"],
            "effect": format!("{} may be run with this pair, as its stages are proven", self.engine),
        })
    }

    fn admission(&self, model: &ModelAnswers) -> Value {
        let mut map = model.more.clone();
        let mut put = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
        put("status", json!("admitted"));
        put("provider", json!(model.pair.provider));
        put("model", json!(model.pair.model));
        put("credential_source_class", json!(way_text(&model.way)));
        put("allowed_network_class", json!(model.class));
        put("approval_source", json!(self.approval));
        put("admission_timestamp", json!(self.now));
        put("review_trigger", triggers(model));
        put("endpoint_sha256", json!(model.endpoint_sha256));
        put("base_url_file", json!(model.base_url_file));
        if !model.aliases.is_empty() {
            put("aliases", json!(model.aliases));
        }
        Value::Object(map)
    }

    fn program(&self, found: &Map<String, Value>) -> Value {
        let mut map = found.clone();
        let path = map.get("path").and_then(Value::as_str).unwrap_or_default();
        let triggers = json!([format!("path:{path}"), "stage_beyond:3"]);
        let mut put = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
        put("engine", json!(self.engine));
        put("approval_source", json!(self.approval));
        put("admission_timestamp", json!(self.now));
        put("review_trigger", triggers);
        Value::Object(map)
    }

    fn package(&self, source: &SourceAnswers) -> Value {
        let Package {
            name,
            version,
            license,
        } = &source.package;
        let claimed = license.as_deref().unwrap_or("none");
        let accepted = source.license_accepted && license.is_some();
        let note = match accepted {
            true => format!(
                "{claimed}, as the package claims; accepted by typing it ({})",
                self.approval
            ),
            false => format!("{claimed}, as the package claims; accepted by nobody"),
        };
        let integrity = source.integrity.as_ref();
        let status = match integrity {
            Ok(_) => "admitted",
            Err(_) => "not_admitted",
        };
        let reference = integrity.map_or_else(|why| format!("none: {why}"), String::clone);
        json!({
            "engine": self.engine, "source_admission_status": status, "source_name": name,
            "source_url": format!("npm:{name}"), "source_type": PACKAGE, "retrieval_date": self.now,
            "retrieval_command": format!("found installed, as npm install {name}@{version} leaves it"),
            "integrity_reference": reference, "license_note": note,
            "license_status": if accepted { "resolved" } else { "unresolved" },
            "allowed_execution_modes": ["copied-fixture", "copied-repo"],
            "blocked_execution_modes": ["owned-noncritical-repo", "candidate-default"],
            "protected_source_boundary": "the installed packages, shown to a jail read-only",
            "review_trigger": [format!("before another version than {version}"), "stage_beyond:3".to_owned()],
            "pinned_tag": package::pin(&source.package, integrity.ok().map(String::as_str)),
        })
    }
}

/// What makes the two records about a model due for another look.
fn triggers(model: &ModelAnswers) -> Value {
    json!([
        format!("model_pair:{}/{}", model.pair.provider, model.pair.model),
        format!("endpoint_class:{}", model.class.as_str()),
        format!("credential_class:{}", way_text(&model.way)),
        "stage_beyond:3"
    ])
}

fn good<T: Record>(value: Value) -> Result<T, BadDraft> {
    let bad = |issues| BadDraft {
        kind: T::KIND,
        issues,
    };
    let bytes = serde_json::to_vec(&value)
        .map_err(|_| bad(vec![Issue::new("record", "cannot be written as JSON")]))?;
    read(&bytes).map_err(bad)
}

impl Drafts {
    /// The bytes of each record that is to be written, by its kind.
    pub fn files(&self) -> Result<Vec<(RecordKind, Vec<u8>)>, JsonError> {
        fn file<T: Record>(record: &Option<T>) -> Option<Result<(RecordKind, Vec<u8>), JsonError>> {
            let record = record.as_ref()?;
            Some(json::pretty(record).map(|bytes| (T::KIND, bytes)))
        }
        [
            file(&self.decision),
            file(&self.model),
            file(&self.executable),
            file(&self.source),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
#[path = "drafts_tests.rs"]
pub(super) mod tests;
