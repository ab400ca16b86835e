//! The target admission: which repository of the operator may be changed, and which paths of it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::record;
use super::model::AdmissionStatus;
use super::{Field, Issue, MAX_RECORD, Record, RecordKind, ReviewTrigger, Takes};
use crate::task::contract::Action;
use crate::values::blocker::Code;
use crate::values::json;
use crate::values::paths::PathRule;

/// The only class of target there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskClassification {
    LowRiskNoncritical,
}

/// What every target admission forbids.
pub const MUST_FORBID: &[Action] = &Action::ALL;

const ACTIONS: &[&str] = &[
    "push",
    "merge",
    "deploy",
    "close",
    "pr_open",
    "issue_close",
    "public_publication",
    "credential_change",
    "vendor_source_mutation",
    "cortex_core_mutation",
];

record! {
    /// A target-repository admission.
    TargetAdmission
    required {
        admission_status: AdmissionStatus => Takes::OneOf(AdmissionStatus::WORDS);
        target_repository_path: String => Takes::Path;
        repository_owner: String => Takes::Word;
        ownership_evidence: String => Takes::Text;
        risk_classification: RiskClassification => Takes::OneOf(&["low_risk_noncritical"]);
        noncritical_rationale: String => Takes::Text;
        allowed_paths: Vec<PathRule> => Takes::Rules;
        forbidden_paths: Vec<PathRule> => Takes::Rules;
        forbidden_actions: BTreeSet<Action> => Takes::SeveralOf(ACTIONS);
        approval_source: String => Takes::Text;
        approval_timestamp: String => Takes::When;
        operator_outcome_required: bool => Takes::Yes;
        review_trigger: ReviewTrigger => Takes::Trigger;
    }
    optional {}
}

impl Record for TargetAdmission {
    const KIND: RecordKind = RecordKind::Target;
    const FIELDS: &'static [Field] = Self::TABLE;

    fn agree(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        if self.allowed_paths.is_empty() {
            issues.push(Issue::new("allowed_paths", "is empty"));
        }
        if self.allowed_paths.iter().any(PathRule::names_git_metadata) {
            issues.push(Issue::new(
                "allowed_paths",
                "names git metadata, which no task may change",
            ));
        }
        let missing = MUST_FORBID
            .iter()
            .filter(|action| !self.forbidden_actions.contains(action))
            .count();
        if missing > 0 {
            issues.push(Issue::new(
                "forbidden_actions",
                format!("does not forbid {missing} of the actions every target forbids"),
            ));
        }
        issues
    }
}

impl TargetAdmission {
    /// Is this the record of a repository that nobody admitted? Such a record is a safe state whatever it
    /// leaves open: empty fields of it are no errors. Fields that no record has, and what looks like a
    /// secret in a name, are.
    pub fn is_not_admitted(bytes: &[u8]) -> bool {
        let Ok(Value::Object(map)) = json::parse_strict(bytes) else {
            return false;
        };
        let is_known = |name: &String| Self::TABLE.iter().any(|field| field.name == name);
        bytes.len() <= MAX_RECORD
            && map.keys().all(is_known)
            && map.get("admission_status").and_then(Value::as_str) == Some("not_admitted")
    }

    /// A record to begin with: nothing is admitted by it.
    pub fn skeleton(path: &str) -> Value {
        let mut map = serde_json::Map::new();
        for field in Self::TABLE {
            let empty = match field.takes {
                Takes::Rules | Takes::SeveralOf(_) | Takes::Trigger => Value::Array(Vec::new()),
                Takes::Yes | Takes::Flag => Value::Bool(true),
                _ => Value::String(String::new()),
            };
            map.insert(field.name.to_owned(), empty);
        }
        map.insert("admission_status".into(), "not_admitted".into());
        map.insert("target_repository_path".into(), path.into());
        Value::Object(map)
    }

    /// The blocker an issue of this field is.
    pub fn code_of(field: &str) -> Code {
        match field {
            "repository_owner" | "ownership_evidence" => Code::TargetUnowned,
            "risk_classification" | "noncritical_rationale" => Code::TargetCritical,
            "allowed_paths" => Code::TargetPathsEmpty,
            "forbidden_actions" => Code::TargetForbiddenActionMissing,
            "approval_source" | "approval_timestamp" => Code::TargetApprovalMissing,
            "operator_outcome_required" => Code::TargetOutcomeNotRequired,
            _ => Code::TargetNotAdmitted,
        }
    }
}
