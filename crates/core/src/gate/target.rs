//! The repository that a run may change, as its admission says. Each defect has its own code, and all of them
//! are found before anything of that repository is looked at.

use super::admissions::blocked;
use super::checks::{ENGINE_CLOSED, closed, with_contract};
use super::{GateInput, Outcome};
use crate::records::{AdmissionStatus, Issue, Recorded, TargetAdmission, read_on};
use crate::task::contract::{Contract, Stage};
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::time::Utc;

/// The admission of a target, as it was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum TargetFound {
    /// The stage has no target.
    #[default]
    NotAsked,
    /// None was named.
    Missing,
    /// It cannot be read, or somebody else could have written it.
    NotBelieved(String),
    /// A record that admits nothing, whatever it leaves open.
    NotAdmitted,
    /// At least one issue.
    Invalid(Vec<Issue>),
    Known(Box<Recorded<TargetAdmission>>),
}

impl TargetFound {
    /// Reads the bytes of the record, as of a moment.
    pub fn read(path: &str, bytes: &[u8], now: Utc) -> Self {
        if TargetAdmission::is_not_admitted(bytes) {
            return Self::NotAdmitted;
        }
        match read_on::<TargetAdmission>(bytes, now) {
            Err(issues) => Self::Invalid(issues),
            Ok(record) if record.admission_status != AdmissionStatus::Admitted => Self::NotAdmitted,
            Ok(record) => Self::Known(Box::new(Recorded {
                record,
                path: path.to_owned(),
                sha256: Digest::of(bytes),
            })),
        }
    }
}

/// Is exactly this repository admitted, for what the contract may change?
pub fn target_admission(input: &GateInput<'_>) -> Outcome {
    if input.stage < Stage::Five {
        return Outcome::NotApplicable("no repository is changed below stage 5");
    }
    match input.target {
        _ if closed(input) => ENGINE_CLOSED,
        TargetFound::NotAsked | TargetFound::Missing => {
            Outcome::Blocked(Code::TargetAdmissionMissing, None)
        }
        TargetFound::NotBelieved(why) => {
            blocked(Code::TargetNotAdmitted, format!("the record {why}"))
        }
        TargetFound::NotAdmitted => blocked(
            Code::TargetNotAdmitted,
            "its admission_status is not_admitted",
        ),
        TargetFound::Invalid(issues) => {
            let first = issues.first().map_or("record", |issue| &issue.field);
            let listed: Vec<String> = issues.iter().map(ToString::to_string).collect();
            blocked(TargetAdmission::code_of(first), listed.join("; "))
        }
        TargetFound::Known(found) => {
            with_contract(input, |contract| within(contract, &found.record))
        }
    }
}

/// The contract's paths lie within those of the admission.
fn within(contract: &Contract, admission: &TargetAdmission) -> Outcome {
    let mut beyond = contract.allowed_paths.iter().filter(|rule| {
        let mut allowed = admission.allowed_paths.iter();
        !allowed.any(|outer| rule.lies_within(outer))
    });
    match beyond.next() {
        None => Outcome::Pass,
        Some(rule) => blocked(
            Code::TargetNotAdmitted,
            format!(
                "the contract may change {}, which the admission does not allow",
                rule.as_str()
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::records::tests::target;
    use crate::task::contract::tests::sample;

    fn now() -> Utc {
        Utc::day("2026-06-15").unwrap()
    }

    fn found(value: &Value) -> TargetFound {
        TargetFound::read("t.json", &serde_json::to_vec(value).unwrap(), now())
    }

    fn code(found: &TargetFound) -> Option<Code> {
        use crate::containment::mounts::stand::Stand;
        use crate::gate::checks::tests::fake;
        use crate::gate::opening::{Opening, Why};
        use crate::task::contract::ContractDocument;
        use crate::values::maybe_known::MaybeKnown::NotLookedAt;
        let mut contract = sample();
        contract.allowed_paths = vec!["src/a.py".parse().unwrap()];
        let contract = ContractDocument::Valid(Box::new(contract));
        let outcome = target_admission(&GateInput {
            contract: &contract,
            manifest: &fake(),
            stage: Stage::Five,
            own_script: false,
            opening: Opening::Closed(Why::NotOpened),
            approval_answered: false,
            lane: NotLookedAt,
            source_refused: None,
            target: found,
            host: NotLookedAt,
            source: NotLookedAt,
            disposable: NotLookedAt,
            model: NotLookedAt,
            source_files: None,
            environments: &[],
            confinement: None,
            stand: Stand::Neutral,
        });
        match outcome {
            Outcome::Blocked(code, _) => Some(code),
            Outcome::Pass => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_defect_has_its_own_code() {
        assert_eq!(code(&found(&target())), None);
        assert_eq!(
            code(&TargetFound::Missing),
            Some(Code::TargetAdmissionMissing)
        );
        let not_believed = TargetFound::NotBelieved("is a link".into());
        assert_eq!(code(&not_believed), Some(Code::TargetNotAdmitted));
        for (field, value, want) in [
            ("repository_owner", json!(""), Code::TargetUnowned),
            ("ownership_evidence", json!(" "), Code::TargetUnowned),
            (
                "risk_classification",
                json!("critical"),
                Code::TargetCritical,
            ),
            ("noncritical_rationale", json!(""), Code::TargetCritical),
            ("allowed_paths", json!([]), Code::TargetPathsEmpty),
            (
                "forbidden_actions",
                json!(["push"]),
                Code::TargetForbiddenActionMissing,
            ),
            ("approval_source", json!(""), Code::TargetApprovalMissing),
            ("approval_timestamp", json!(""), Code::TargetApprovalMissing),
            (
                "operator_outcome_required",
                json!(false),
                Code::TargetOutcomeNotRequired,
            ),
            (
                "admission_status",
                json!("not_admitted"),
                Code::TargetNotAdmitted,
            ),
            ("admission_status", json!("yes"), Code::TargetNotAdmitted),
            (
                "target_repository_path",
                json!("here"),
                Code::TargetNotAdmitted,
            ),
            ("allowed_paths", json!(["docs/"]), Code::TargetNotAdmitted),
        ] {
            let mut changed = target();
            changed[field] = value;
            assert_eq!(code(&found(&changed)), Some(want), "{field}");
        }
    }

    #[test]
    fn a_skeleton_is_not_admitted_and_no_format_error() {
        let skeleton = TargetAdmission::skeleton("/srv/sandbox");
        assert_eq!(found(&skeleton), TargetFound::NotAdmitted);
        let mut admitted = skeleton.clone();
        admitted["admission_status"] = json!("admitted");
        assert!(matches!(found(&admitted), TargetFound::Invalid(issues) if issues.len() > 3));
        let mut strange = skeleton;
        strange["also"] = json!("x");
        assert!(matches!(found(&strange), TargetFound::Invalid(_)));
        let doubled = br#"{"admission_status":"not_admitted","admission_status":"admitted"}"#;
        assert!(matches!(
            TargetFound::read("t.json", doubled, now()),
            TargetFound::Invalid(_)
        ));
    }
}
