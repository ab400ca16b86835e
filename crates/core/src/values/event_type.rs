//! The names of all events. What each event carries is in `run/event/`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! event_types {
    ($($variant:ident $name:literal;)*) => {
        /// The name of an event without its data.
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
        )]
        pub enum EventType {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl EventType {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

event_types! {
    RunStarted "run.started";
    TaskContractCreated "task.contract.created";
    PlanUpdated "plan.updated";
    BackendGateBlocked "backend.gate.blocked";
    ApprovalRequested "approval.requested";
    ApprovalGranted "approval.granted";
    ApprovalDenied "approval.denied";
    BranchPolicyRecorded "branch.policy.recorded";
    EngineStarted "engine.started";
    EngineMessage "engine.message";
    EnginePlan "engine.plan";
    EnginePhase "engine.phase";
    EngineToolCall "engine.tool_call";
    EngineFileChange "engine.file_change";
    EngineReview "engine.review";
    EngineWarning "engine.warning";
    EnginePermission "engine.permission";
    EngineTokens "engine.tokens";
    EngineModelCall "engine.model_call";
    EngineResult "engine.result";
    EngineEnded "engine.ended";
    PatchApplied "patch.applied";
    GitDiffChecked "git.diff.checked";
    VerificationCompleted "verification.completed";
    BranchPolicyChecked "branch.policy.checked";
    OperatorOutcomeRecorded "operator.outcome.recorded";
    LandingUpdated "landing.updated";
    RunCompleted "run.completed";
}

impl EventType {
    pub fn is_engine(self) -> bool {
        self.as_str().starts_with("engine.")
    }
}
