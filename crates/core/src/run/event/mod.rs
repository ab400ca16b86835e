//! Every event of a run and the data it carries. The chain that orders them is in `chain.rs`.
//!
//! - `branches.rs` the branches of a disposable repository; `said.rs` what an engine says of itself; `permission.rs` its
//!   questions; `process_end.rs` how a process ended; `flat.rs` fields of an engine's name

pub mod branches;
pub mod flat;
mod permission;
mod process_end;
mod said;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::containment::outside::PlaceClass;
use crate::containment::{Containment, GuardPlan};
use crate::run::attempt::ActionsSeen;
pub use crate::run::checked::{
    BaselineRelied, Check, CheckKind, ControlRun, TestsCompared, VerificationCompleted,
};
use crate::run::rules::RulesNumber;
use crate::task::again::{ChecksDiffer, Reverifies};
use crate::task::contract::{MutationMode, Stage};
use crate::values::blocker::{Code, Finding};
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::json::is_zero;
use crate::values::paths::TreePath;
use crate::values::time::Utc;
use crate::values::verdict::Status;
use crate::wire::calls::CallRecord;
use crate::workspace::change::Change;
use crate::workspace::environment::EnvironmentUse;
use crate::workspace::head::HeadSeen;

pub use branches::{BranchPolicyChecked, BranchPolicyRecorded, Disposal};
pub use flat::FlatFacts;
pub use permission::{EnginePermission, PermissionAnswer, PermissionKind, PermissionRule};
pub use process_end::{Dismissal, MemoryMeter, ProcessEnd, TimeLimit};
pub use said::{
    EngineFileChange, EnginePhase, EngineResult, EngineReview, EngineText, EngineTokens,
    EngineToolCall, FailedBy, ToolKind, ToolOutcome,
};

macro_rules! events {
    ($($variant:ident $name:literal $body:ty;)*) => {
        /// One thing that happened, as the evidence tells it.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", content = "data")]
        pub enum Event {
            $(#[serde(rename = $name)] $variant($body),)*
        }

        impl Event {
            pub fn kind(&self) -> EventType {
                match self {
                    $(Self::$variant(_) => EventType::$variant,)*
                }
            }
        }
    };
}

events! {
    RunStarted "run.started" RunStarted;
    TaskContractCreated "task.contract.created" ContractCreated;
    PlanUpdated "plan.updated" PlanUpdated;
    BackendGateBlocked "backend.gate.blocked" GateBlocked;
    ApprovalRequested "approval.requested" Approval;
    ApprovalGranted "approval.granted" Approval;
    ApprovalDenied "approval.denied" Approval;
    BranchPolicyRecorded "branch.policy.recorded" BranchPolicyRecorded;
    EngineStarted "engine.started" EngineStarted;
    EngineMessage "engine.message" EngineText;
    EnginePlan "engine.plan" EngineText;
    EnginePhase "engine.phase" EnginePhase;
    EngineToolCall "engine.tool_call" EngineToolCall;
    EngineFileChange "engine.file_change" EngineFileChange;
    EngineReview "engine.review" EngineReview;
    EngineWarning "engine.warning" EngineText;
    EnginePermission "engine.permission" EnginePermission;
    EngineTokens "engine.tokens" EngineTokens;
    EngineModelCall "engine.model_call" Box<CallRecord>;
    EngineResult "engine.result" EngineResult;
    EngineEnded "engine.ended" EngineEnded;
    PatchApplied "patch.applied" PatchApplied;
    GitDiffChecked "git.diff.checked" DiffChecked;
    VerificationCompleted "verification.completed" Box<VerificationCompleted>;
    BranchPolicyChecked "branch.policy.checked" BranchPolicyChecked;
    OperatorOutcomeRecorded "operator.outcome.recorded" OperatorOutcome;
    LandingUpdated "landing.updated" LandingUpdated;
    RunCompleted "run.completed" RunCompleted;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Run,
    Settlement,
    Comparison,
    Refresh,
    Health,
    /// The patch of an earlier run, judged again without an engine.
    Reverification,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Operator,
    Validator,
    Ci,
}

impl Origin {
    /// A run of a validator is about the harness; it proves nothing of an engine.
    pub fn is_validator(self) -> bool {
        self == Self::Validator
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    pub kind: Kind,
    pub origin: Origin,
    pub case_id: CaseId,
    pub engine: EngineId,
    pub stage: Stage,
    pub harness_version: String,
    /// The rules this run is judged by, now and by every later verifier. Absent in older bundles:
    /// rules 1.
    #[serde(default)]
    pub rules: RulesNumber,
    /// Only in a reverification: the run whose patch is judged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverifies: Option<Reverifies>,
    /// Only there: what differs from the checks of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_differ: Option<ChecksDiffer>,
    /// What the report says in fields of the engine's name; absent for an engine that has none, and in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flat: Option<Box<FlatFacts>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContractCreated {
    pub valid: bool,
    pub task_digest: Digest,
    pub contract_digest: Digest,
    /// Codes of gates whose matrix row names this event.
    pub blockers: Vec<Code>,
    /// What those gates saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanUpdated {
    pub summary: String,
    pub containment: Containment,
    pub approval_required: bool,
    pub toolchains: Vec<Toolchain>,
    /// What protects the workspace; absent in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardPlan>,
    /// The git that ran outside every jail; absent in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitUse>,
    /// The operator's environments that were found, and how processes of the run got each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<EnvironmentUse>,
}

/// A git that the harness itself ran, as the operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitUse {
    /// The kind of place it lies in.
    pub place: PlaceClass,
    /// What it says of itself.
    pub version: String,
    pub sha256: Digest,
}

/// A program outside the system directories that the run was allowed to see, read-only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Toolchain {
    pub name: String,
    /// The real program, with the operator's home written as `~`.
    pub program: String,
    pub sha256: Digest,
    /// What else of the host it was shown, read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GateBlocked {
    pub backend: EngineId,
    pub gate: String,
    pub reason: Code,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Null when there is no valid contract to name one.
    pub mutation_mode: Option<MutationMode>,
    pub executed: bool,
    /// The same under the engine's name, for an engine that has such fields.
    #[serde(flatten)]
    pub flat: BTreeMap<String, bool>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub actor: String,
    pub scope: String,
    pub mutation_mode: MutationMode,
    pub timestamp: Utc,
    pub expiry: Option<Utc>,
    /// The blocker a denial means; absent on a request and on a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Code>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineStarted {
    pub engine: EngineId,
    pub containment: Containment,
}

/// Output of a process: never inline, always file, length and digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputRecord {
    pub file: String,
    /// Everything the process wrote, after redaction.
    pub bytes: u64,
    pub sha256: Digest,
    /// What the file holds: all of it, or head and tail around a note.
    pub kept_bytes: u64,
    pub redactions: u64,
    /// Paths of the host that were given other names: the repository is `{repo}`, the home `~`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paths_replaced: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineEnded {
    pub end: ProcessEnd,
    pub duration_ms: u64,
    pub stdout: OutputRecord,
    pub stderr: OutputRecord,
    /// Lines the dialect did not understand: counted and kept in the log, not dropped.
    pub unknown_lines: u64,
    /// Engine events beyond the cap, counted only.
    pub events_not_recorded: u64,
    /// The log it wrote in its workspace; absent for an engine that writes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_log: Option<Box<OutputRecord>>,
    /// Where HEAD of its copy stood before it started and after it had ended; absent in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Box<HeadSeen>>,
    /// What went over the wire to its model; absent for an engine that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUse>,
    /// What was seen of attempts at forbidden actions; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<ActionsSeen>,
}

/// All model calls of one engine, as the gateway saw them. Observed, not claimed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelUse {
    /// Calls that were let through.
    pub calls: u64,
    /// Calls that never left the gateway: another model, another path, a wrong token.
    pub refused: u64,
    pub input_tokens: u64,
    /// Of the input: what the provider had in a cache, where it said so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// By the operator's prices, in millionths; absent where no price was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_micros: Option<u64>,
    /// The first call that the provider did not answer as a provider must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The budget that was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<String>,
    /// Why and by which field requests were refused, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_fields: Vec<String>,
    /// The call that the engine ended with, where a field of it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_refused: Option<String>,
    /// Answers that held the credential and were cut.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub credential_in_answer: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PatchApplied {
    pub sha256: Digest,
    pub files: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScratchCount {
    pub count: u64,
    pub bytes: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffChecked {
    pub baseline_tree: String,
    pub result_tree: String,
    pub result_commit: String,
    pub changes: Vec<Change>,
    pub scratch: ScratchCount,
    /// What tools left behind: scratch by its name, whatever is ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<TreePath>,
    pub blockers: Vec<Code>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperatorOutcome {
    pub outcome: Outcome,
    pub actor: String,
    pub given_ahead: bool,
    /// The rules this settlement is judged by: it has no `run.started` to name them.
    #[serde(default)]
    pub rules: RulesNumber,
    /// Of the signed record in `relied/`.
    pub record_sha256: Digest,
    /// How an accepted result is to reach the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub land: Option<LandMode>,
    /// The settlement whose landing is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<RunId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Accepted,
    Rejected,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LandingUpdated {
    pub step: LandingStep,
    pub mode: LandMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_commit: Option<String>,
    /// Why it was refused; no path of the target stands in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How a result reaches the repository it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LandMode {
    /// The branch that is checked out moves on, and its files with it.
    Merge,
    /// A new branch alone; nothing that is checked out changes.
    Branch,
}

impl LandMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Branch => "branch",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LandingStep {
    /// Everything was checked, and is written down in our own journal.
    Prepared,
    /// The ref has moved.
    Landed,
    /// Nothing was changed.
    Refused,
}

impl LandingStep {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Landed => "landed",
            Self::Refused => "refused",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunCompleted {
    pub status: Status,
    /// Every code, in the order of the report.
    pub blockers: Vec<Code>,
    pub findings: Vec<Finding>,
}

impl RunCompleted {
    /// Closed early: nothing further is required of the chain.
    pub fn is_abort(&self) -> bool {
        self.findings
            .iter()
            .any(|f| matches!(f.code, Code::Interrupted | Code::ArtifactWriteFailure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_their_events_write() {
        assert_eq!(EventType::ALL.len(), 28);
        for kind in EventType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert!(EventType::EngineResult.is_engine() && !EventType::RunStarted.is_engine());
    }
}
