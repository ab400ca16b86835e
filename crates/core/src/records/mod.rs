//! Admission records: which engine program, model and repository may be used.
//!
//! - `executable.rs` `source_admission.rs` `model.rs` `target.rs` `gate.rs` `repository.rs` one kind of record each
//! - `packages.rs` the packages around a program, as one digest; `python_tree.rs` what an environment imports from elsewhere
//! - `fields.rs` reads a record by its table of fields; `secret_shape.rs` what looks like a secret
//! - `model_endpoint.rs` what a model admission says of the way to its endpoint
//! - `credential.rs` `trigger.rs` fields with a meaning of their own
//!
//! A record with any problem is refused. Errors name the field and never repeat its value: it may
//! be a secret. Imports: values to wire. Imported by run, gate and the rooms above them.

pub mod credential;
mod executable;
mod fields;
mod gate;
mod model;
pub mod model_endpoint;
pub mod packages;
pub mod python_tree;
mod repository;
mod secret_shape;
mod source_admission;
mod target;
mod trigger;

pub use executable::{BuildReport, ExecutableAdmission};
pub use fields::{
    Field, Issue, MAX_RECORD, Need, Record, Takes, is_name, read, read_on, text_problem,
};
pub use gate::GateRecord;
pub use model::{
    AdmissionStatus, DecisionStatus, Difference, ModelAdmission, ModelDecision, ModelResult,
    ProviderClass, is_admitted_name, name_difference,
};
pub use repository::SourceRepositoryRecord;
pub use secret_shape::{secret_key, secret_shape, secret_variable};
pub use source_admission::{ExecutionMode, LicenseStatus, SourceAdmissionRecord};
pub use target::{MUST_FORBID, RiskClassification, TargetAdmission};
pub use trigger::{Circumstance, ReviewTrigger, Trigger};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::digest::Digest;
use crate::values::time::Utc;

/// The kinds of record, and what each is called.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    Decision,
    Model,
    Executable,
    Source,
    Target,
    Gate,
    Repository,
}

impl RecordKind {
    pub const ALL: [Self; 7] = [
        Self::Decision,
        Self::Model,
        Self::Executable,
        Self::Source,
        Self::Target,
        Self::Gate,
        Self::Repository,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Model => "model",
            Self::Executable => "executable",
            Self::Source => "source",
            Self::Target => "target",
            Self::Gate => "gate",
            Self::Repository => "repository",
        }
    }

    /// What a person calls it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Decision => "model decision record",
            Self::Model => "model-provider admission",
            Self::Executable => "executable admission",
            Self::Source => "source admission",
            Self::Target => "target-repository admission",
            Self::Gate => "gate record",
            Self::Repository => "source-repository record",
        }
    }
}

/// A record as it was found on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded<T> {
    pub record: T,
    /// The file that holds it.
    pub path: String,
    pub sha256: Digest,
}

/// The result of looking for a record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Found<T> {
    #[default]
    Missing,
    /// There is one, but it is refused; at least one reason.
    Invalid(Vec<Issue>),
    Known(Box<Recorded<T>>),
}

impl<T: Record> Found<T> {
    /// Reads the bytes of a file, as of a moment.
    pub fn of(path: &str, bytes: &[u8], now: Utc) -> Self {
        match read_on(bytes, now) {
            Ok(record) => Self::Known(Box::new(Recorded {
                record,
                path: path.to_owned(),
                sha256: Digest::of(bytes),
            })),
            Err(issues) => Self::Invalid(issues),
        }
    }
}

impl<T> Found<T> {
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(recorded) => Some(&recorded.record),
            Self::Missing | Self::Invalid(_) => None,
        }
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
pub(crate) mod tests;
