//! The source admission: where an engine's source came from and what it may be used for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::record;
use super::model::AdmissionStatus;
use super::{Field, Issue, Record, RecordKind, ReviewTrigger};
use crate::task::contract::MutationMode;
use crate::values::ids::EngineId;

/// What an engine of this source may be run for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutionMode {
    PlanningOnly,
    CopiedFixture,
    CopiedRepo,
    SandboxRepo,
    OwnedNoncriticalRepo,
    CandidateDefault,
}

const MODES: &[&str] = &[
    "planning-only",
    "copied-fixture",
    "copied-repo",
    "sandbox-repo",
    "owned-noncritical-repo",
    "candidate-default",
];

impl ExecutionMode {
    /// The mode a run of this mutation mode needs.
    pub fn needed(mode: MutationMode) -> Self {
        match mode {
            MutationMode::None => Self::PlanningOnly,
            MutationMode::CopiedFixture => Self::CopiedFixture,
            MutationMode::CopiedRepo => Self::CopiedRepo,
            MutationMode::SandboxRepo => Self::SandboxRepo,
            MutationMode::OwnedNoncriticalRepo => Self::OwnedNoncriticalRepo,
            MutationMode::CandidateDefault => Self::CandidateDefault,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LicenseStatus {
    Resolved,
    Unresolved,
}

record! {
    /// A source admission. A moving branch is not a pin.
    SourceAdmissionRecord
    required {
        engine: EngineId => Takes::Engine;
        source_admission_status: AdmissionStatus => Takes::OneOf(AdmissionStatus::WORDS);
        source_name: String => Takes::Word;
        source_url: String => Takes::Address;
        source_type: String => Takes::Word;
        retrieval_date: String => Takes::When;
        retrieval_command: String => Takes::Text;
        integrity_reference: String => Takes::Integrity;
        license_note: String => Takes::Text;
        license_status: LicenseStatus => Takes::OneOf(&["resolved", "unresolved"]);
        allowed_execution_modes: Vec<ExecutionMode> => Takes::SeveralOf(MODES);
        blocked_execution_modes: Vec<ExecutionMode> => Takes::SeveralOf(MODES);
        protected_source_boundary: String => Takes::Text;
        review_trigger: ReviewTrigger => Takes::Trigger;
    }
    optional {
        web_url: String => Takes::Address;
        observed_branch: String => Takes::Name;
        pinned_commit: String => Takes::Commit;
        pinned_tag: String => Takes::Name;
        commit_date: String => Takes::When;
        /// Where the pin changed: what it was, and what it is.
        previous_id: String => Takes::Name;
        new_id: String => Takes::Name;
    }
}

impl Record for SourceAdmissionRecord {
    const KIND: RecordKind = RecordKind::Source;
    const FIELDS: &'static [Field] = Self::TABLE;

    fn agree(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut say = |field: &str, problem: &str| issues.push(Issue::new(field, problem));
        if self.pinned_commit.is_none() && self.pinned_tag.is_none() {
            say(
                "pinned_commit",
                "is missing, and so is pinned_tag; a moving branch is not a pin",
            );
        }
        if self.pinned_tag.is_some() && self.pinned_tag == self.observed_branch {
            say(
                "pinned_tag",
                "is the observed branch; a moving branch is not a pin",
            );
        }
        if self.allowed_execution_modes.is_empty() {
            say(
                "allowed_execution_modes",
                "is empty; say planning-only where nothing may run",
            );
        }
        if self
            .allowed_execution_modes
            .iter()
            .any(|mode| self.blocked_execution_modes.contains(mode))
        {
            say(
                "blocked_execution_modes",
                "names a mode that is also allowed",
            );
        }
        if self.previous_id.is_some() != self.new_id.is_some() {
            say(
                "new_id",
                "a changed pin names the previous and the new id, or neither",
            );
        }
        if self.new_id.is_some()
            && self.new_id != self.pinned_commit
            && self.new_id != self.pinned_tag
        {
            say("new_id", "is not the pin of this record");
        }
        issues
    }
}

impl SourceAdmissionRecord {
    /// The pin that is part of a lane.
    pub fn pin(&self) -> Option<&str> {
        self.pinned_commit.as_deref().or(self.pinned_tag.as_deref())
    }

    /// May a run of this mode use the source?
    pub fn covers(&self, mode: MutationMode) -> bool {
        let mode = ExecutionMode::needed(mode);
        self.allowed_execution_modes.contains(&mode)
            && !self.blocked_execution_modes.contains(&mode)
    }
}
