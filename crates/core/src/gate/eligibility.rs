//! The backend decision: made by CTO from the gates, never by an engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gate::{GateReport, GateResult, GateVerdict};
use crate::task::contract::{Contract, MutationMode, RiskClass, Stage};
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::ids::EngineId;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeniedBackend {
    pub backend: EngineId,
    pub reasons: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Escalation {
    Operator,
    CoreRoute,
    HermesOperator,
    Blocked,
}

/// `eligibility.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Eligibility {
    pub schema_version: u32,
    pub decision_id: String,
    pub task_id: Option<String>,
    /// An engine, or `none`.
    pub selected_backend: String,
    pub denied_backends: Vec<DeniedBackend>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_by_engine: Option<String>,
    pub risk_class: Option<RiskClass>,
    pub required_gates: Vec<String>,
    pub passed_gates: Vec<String>,
    pub missing_gates: Vec<String>,
    pub allowed_mutation_mode: MutationMode,
    pub approval_required: bool,
    pub reasons: Vec<String>,
    pub escalation_path: Escalation,
}

/// Decides from the gate results alone. The id is derived from the contract: same question, same
/// decision.
pub fn decide_backend(
    engine: &EngineId,
    stage: Stage,
    contract: Option<&Contract>,
    contract_digest: &Digest,
    gates: &GateReport,
) -> Eligibility {
    let ids = |want: fn(&GateResult) -> bool| {
        gates
            .gates
            .iter()
            .filter(|gate| want(gate))
            .map(|gate| gate.gate.clone())
            .collect::<Vec<_>>()
    };
    let reasons: Vec<String> = gates.blocked().map(reason).collect();
    let eligible = reasons.is_empty();
    Eligibility {
        schema_version: 1,
        decision_id: format!(
            "eligibility-{}",
            Digest::tagged("cto-eligibility/1\n", contract_digest.to_hex().as_bytes()).short()
        ),
        task_id: contract.map(|contract| contract.task_id.to_string()),
        selected_backend: if eligible {
            engine.to_string()
        } else {
            "none".into()
        },
        denied_backends: match eligible {
            true => Vec::new(),
            false => vec![DeniedBackend {
                backend: engine.clone(),
                reasons: reasons.clone(),
            }],
        },
        recommended_by_engine: None,
        risk_class: contract.map(|contract| contract.risk_class),
        required_gates: ids(|gate| gate.result != GateVerdict::NotApplicable),
        passed_gates: ids(|gate| gate.result == GateVerdict::Pass),
        missing_gates: ids(|gate| {
            matches!(gate.result, GateVerdict::Blocked | GateVerdict::NotSeen)
        }),
        allowed_mutation_mode: match (eligible, contract) {
            (true, Some(contract)) => contract.mutation_mode,
            _ => MutationMode::None,
        },
        approval_required: contract.is_some_and(|contract| contract.approval_required),
        reasons: match eligible {
            true => vec![format!(
                "every gate for {engine} at stage {} passed",
                stage.number()
            )],
            false => reasons,
        },
        escalation_path: escalation(gates),
    }
}

/// Who can clear the blockers. If several are needed: the one furthest from the operator.
fn escalation(gates: &GateReport) -> Escalation {
    let who = |code: Code| match code {
        Code::EngineGateClosed
        | Code::StageGateClosed
        | Code::StageNotProven
        | Code::ExecutableNotAdmitted
        | Code::ModelNotAdmitted
        | Code::ProviderDecisionClosed
        | Code::ReviewDue
        | Code::ProviderAuthUnavailable
        | Code::ProviderLocalConfigUnavailable => (0, Escalation::Operator),
        Code::ApprovalMissing
        | Code::ApprovalExpired
        | Code::ApprovalConsumed
        | Code::ApprovalMismatch => (1, Escalation::HermesOperator),
        Code::SourceNotAdmitted
        | Code::LicenseUnresolved
        | Code::TargetUnowned
        | Code::TargetCritical => (2, Escalation::CoreRoute),
        _ => (3, Escalation::Blocked),
    };
    let furthest = gates
        .blocked()
        .map(|gate| gate.code.map_or((3, Escalation::Blocked), who))
        .max_by_key(|(far, _)| *far);
    furthest.map_or(Escalation::Operator, |(_, who)| who)
}

fn reason(gate: &GateResult) -> String {
    let code = gate.code.map_or("blocked", |code| code.as_str());
    match &gate.detail {
        Some(detail) => format!("{code}: {detail}"),
        None => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Phase;

    fn gates(codes: &[Code]) -> GateReport {
        let row = |code: &Code| GateResult {
            gate: "g".into(),
            phase: Phase::Records,
            question: "q".into(),
            result: GateVerdict::Blocked,
            code: Some(*code),
            detail: None,
            reads: Vec::new(),
        };
        GateReport {
            schema_version: 1,
            gates: codes.iter().map(row).collect(),
        }
    }

    #[test]
    fn the_way_leads_to_whoever_can_clear_every_blocker() {
        for (codes, want) in [
            (&[][..], Escalation::Operator),
            (
                &[Code::ModelNotAdmitted, Code::StageNotProven],
                Escalation::Operator,
            ),
            (
                &[Code::ModelNotAdmitted, Code::ApprovalMissing],
                Escalation::HermesOperator,
            ),
            (
                &[Code::ApprovalMissing, Code::LicenseUnresolved],
                Escalation::CoreRoute,
            ),
            (
                &[Code::LicenseUnresolved, Code::ContractInvalid],
                Escalation::Blocked,
            ),
        ] {
            let decision = decide_backend(
                &"pi".parse().unwrap(),
                Stage::Two,
                None,
                &Digest::of(b""),
                &gates(codes),
            );
            assert_eq!(decision.escalation_path, want, "{codes:?}");
            assert_eq!(decision.selected_backend == "none", !codes.is_empty());
        }
    }
}
