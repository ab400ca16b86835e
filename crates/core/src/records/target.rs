//! The target admission: which repository of the operator may be changed, and which paths of it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::record;
use super::model::AdmissionStatus;
use super::{Field, Issue, Record, RecordKind, ReviewTrigger};
use crate::task::contract::Action;
use crate::values::blocker::Code;
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
