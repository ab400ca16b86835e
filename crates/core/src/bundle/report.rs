//! `report.json`: the machine summary and index of a bundle, built from facts by one pure function.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle;
use crate::bundle::report_md::{Renderer, RendererNumber};
use crate::containment::{Containment, GuardPlan};
use crate::run::attempt::ActionsSeen;
use crate::run::event::{CheckKind, ControlRun, Kind, Origin, ProcessEnd, ScratchCount, Toolchain};
use crate::run::facts::{ApprovalFact, Facts};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::run::judge::{self, Judgement};
use crate::task::contract::{Contract, Label, SealedContract, Stage};
use crate::values::blocker::{Blocker, Code, headline};
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::json::{self, JsonError};
use crate::values::paths::{PathStanding, TreePath, standing};
use crate::values::seen::Seen;
use crate::values::time::Utc;
use crate::values::verdict::Status;
use crate::workspace::change::Change;

pub const SCHEMA_VERSION: u32 = 1;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub schema_version: u32,
    /// Which renderer wrote `report.md`. Absent in older bundles: renderer 1.
    #[serde(default)]
    pub report_renderer: RendererNumber,
    pub kind: Kind,
    pub origin: Origin,
    #[serde(default)]
    pub label: Label,
    pub case_id: CaseId,
    pub run_id: RunId,
    pub status: Status,
    pub failure_reason: Option<String>,
    pub backend: EngineId,
    pub engine: EngineFacts,
    pub stage: Stage,
    pub containment: Containment,
    /// What protected the workspace from the engine; absent without a jail and in bundles of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_guard: Option<GuardPlan>,
    pub toolchains: Vec<Toolchain>,
    pub harness_version: String,
    pub run_started_at: Utc,
    pub run_finished_at: Utc,
    pub backend_exit_code: Option<u8>,
    pub artifacts_dir: String,
    pub run_artifact_dir: String,
    pub runtime_workspace_root: String,
    pub changed_files: Vec<TreePath>,
    pub workspace_scratch: ScratchCount,
    pub backend_scratch: BackendScratch,
    /// Null when no tree was measured; `not_applicable` says why.
    pub allowed_writes_passed: Option<bool>,
    pub forbidden_paths_passed: Option<bool>,
    /// What was seen of attempts at forbidden actions; absent when no engine ended, or nobody
    /// looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden_actions: Option<ActionsSeen>,
    pub approval_status: ApprovalStatus,
    pub verification: Vec<VerificationLine>,
    pub verification_control: Option<ControlLine>,
    pub tests_command: Option<String>,
    pub tests_passed: Option<bool>,
    pub required_events_passed: bool,
    pub blockers: Vec<Blocker>,
    pub claimed: Claimed,
    pub observed: Observed,
    pub artifact_paths: BTreeMap<String, String>,
    pub artifact_digests: BTreeMap<String, Digest>,
    pub freshness: Freshness,
    pub not_applicable: BTreeMap<String, String>,
    pub task_digest: Digest,
    pub contract_digest: Digest,
    pub allowed_mutation_scope: String,
    pub process_started: bool,
    pub source_admission_status: SourceAdmission,
    pub result: Option<ResultTree>,
    pub relies_on: Vec<Reliance>,
    /// Only in a settlement: the bundle whose chain goes on here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    pub events: ChainHead,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    pub name: EngineId,
    pub version: Option<String>,
    pub executable_sha256: Seen<Digest>,
    /// What an operator should know about this program before trusting its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BackendScratch {
    pub count: u64,
    pub bytes: u64,
    /// Entries that are neither regular files nor links, or could not be read.
    pub skipped: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalStatus {
    NotRequired,
    Requested,
    Granted,
    Denied,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerificationLine {
    pub kind: CheckKind,
    pub command: String,
    pub exit_code: Option<u8>,
    pub end: ProcessEnd,
    pub duration_ms: u64,
    pub passed: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ControlLine {
    pub ran: bool,
    /// The commands were red where they had to be; null when nothing ran.
    pub red: Option<bool>,
    pub reason: Option<String>,
}

/// What the engine said about itself. Never evidence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    pub status: Option<String>,
    pub summary: Option<String>,
}

/// What the harness saw.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    pub engine_end: Option<ProcessEnd>,
    pub changes: Vec<Change>,
    pub verification_passed: Option<bool>,
    pub changed_test_files: Vec<TreePath>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Freshness {
    pub checked_at: Utc,
    pub artifacts: BTreeMap<String, Utc>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceAdmission {
    Admitted,
    NotAdmitted,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResultTree {
    pub tree: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reliance {
    pub kind: RelianceKind,
    /// Proof: a run id, or `<run id>/<artifact>`. Approval and request: the record's own id.
    pub id: String,
    /// Proof: of that bundle's `SHA256SUMS`, or of the artifact. Otherwise of the record in
    /// `relied/`.
    pub sha256: Digest,
}

/// The bundle a settlement goes on from: named by run, bound by the digest of its `SHA256SUMS`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Continues {
    pub run_id: RunId,
    pub sums_sha256: Digest,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RelianceKind {
    Proof,
    Approval,
    Request,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChainHead {
    pub count: u64,
    pub head: Digest,
}

/// What the shell knows that the events do not.
#[derive(Clone, Debug)]
pub struct RunIdentity {
    pub run_id: RunId,
    pub case_id: CaseId,
    pub engine: EngineFacts,
    pub stage: Stage,
    pub origin: Origin,
    /// `fake` counts as admitted; any other engine by its source admission.
    pub source_admitted: bool,
    pub harness_version: String,
    pub started_at: Utc,
}

/// Everything measured while sealing.
#[derive(Clone, Debug)]
pub struct Sealing {
    pub finished_at: Utc,
    pub backend_scratch: BackendScratch,
    pub freshness: Freshness,
    pub head: ChainHead,
    pub claimed: Claimed,
    /// Found after the chain had ended; known to the report alone.
    pub late: Vec<Blocker>,
    /// What the run stood on.
    pub relies_on: Vec<Reliance>,
}

/// Builds the report; digests are filled in by [`Report::with_digests`] once every other file is
/// fixed.
pub fn build(
    identity: &RunIdentity,
    contract: Option<&Contract>,
    sealed: &SealedContract,
    facts: &Facts,
    judgement: &Judgement,
    sealing: Sealing,
) -> Report {
    let mut blockers = judgement.blockers.clone();
    blockers.extend(sealing.late);
    let tests_passed = tests_passed(contract, facts);
    let changes = facts
        .diff
        .as_ref()
        .map(|diff| diff.changes.clone())
        .unwrap_or_default();
    let paths = path_results(contract, facts);
    Report {
        schema_version: SCHEMA_VERSION,
        report_renderer: Renderer::NEWEST.number(),
        kind: Kind::Run,
        origin: identity.origin,
        label: contract.map(|contract| contract.label).unwrap_or_default(),
        case_id: identity.case_id.clone(),
        run_id: identity.run_id.clone(),
        status: crate::values::blocker::worst(&blockers),
        failure_reason: headline(&blockers).map(|blocker| blocker.message.clone()),
        backend: identity.engine.name.clone(),
        engine: identity.engine.clone(),
        stage: identity.stage,
        containment: facts.containment.unwrap_or(Containment::None),
        workspace_guard: facts.guard.clone(),
        toolchains: facts.toolchains.clone(),
        harness_version: identity.harness_version.clone(),
        run_started_at: identity.started_at,
        run_finished_at: sealing.finished_at,
        backend_exit_code: facts
            .engine_ended
            .as_ref()
            .and_then(|ended| ended.end.exit_code()),
        artifacts_dir: identity.run_id.to_string(),
        run_artifact_dir: identity.run_id.to_string(),
        runtime_workspace_root: format!("home:work/{}", identity.run_id),
        changed_files: changes.iter().map(|change| change.path.clone()).collect(),
        workspace_scratch: facts
            .diff
            .as_ref()
            .map(|diff| diff.scratch)
            .unwrap_or_default(),
        backend_scratch: sealing.backend_scratch,
        allowed_writes_passed: paths.map(|(allowed, _)| allowed),
        forbidden_paths_passed: paths.map(|(_, forbidden)| forbidden),
        forbidden_actions: actions_seen(facts),
        approval_status: approval_status(facts),
        verification: verification_lines(facts),
        verification_control: control_line(facts),
        tests_command: contract
            .and_then(|contract| contract.verification_commands.first().cloned()),
        tests_passed,
        required_events_passed: !blockers
            .iter()
            .any(|blocker| blocker.code == Code::MissingRequiredEvent),
        claimed: sealing.claimed,
        observed: observed(contract, facts),
        blockers,
        artifact_paths: BTreeMap::new(),
        artifact_digests: BTreeMap::new(),
        freshness: sealing.freshness,
        not_applicable: not_applicable(contract, facts),
        task_digest: sealed.task_digest,
        contract_digest: sealed.contract_digest,
        allowed_mutation_scope: identity.stage.allowed_mutation_scope().to_owned(),
        process_started: facts
            .engine_events
            .contains(&crate::values::event_type::EventType::EngineStarted),
        source_admission_status: if identity.source_admitted {
            SourceAdmission::Admitted
        } else {
            SourceAdmission::NotAdmitted
        },
        result: result_tree(facts),
        relies_on: sealing.relies_on,
        continues: None,
        events: sealing.head,
        runtime_default_activation: NeverActivated,
        core_promotion_status: CorePromotion::NotPromoted,
    }
}

fn approval_status(facts: &Facts) -> ApprovalStatus {
    match &facts.approval {
        ApprovalFact::NotRequired => ApprovalStatus::NotRequired,
        ApprovalFact::Requested(_) => ApprovalStatus::Requested,
        ApprovalFact::Granted(_) => ApprovalStatus::Granted,
        ApprovalFact::Denied(_) => ApprovalStatus::Denied,
    }
}

fn actions_seen(facts: &Facts) -> Option<ActionsSeen> {
    facts.engine_ended.as_ref()?.actions.clone()
}

fn result_tree(facts: &Facts) -> Option<ResultTree> {
    let diff = facts.diff.as_ref()?;
    Some(ResultTree {
        tree: diff.result_tree.clone(),
        commit: Some(diff.result_commit.clone()),
    })
}

fn observed(contract: Option<&Contract>, facts: &Facts) -> Observed {
    Observed {
        engine_end: facts.engine_ended.as_ref().map(|ended| ended.end),
        changes: facts
            .diff
            .as_ref()
            .map(|diff| diff.changes.clone())
            .unwrap_or_default(),
        verification_passed: tests_passed(contract, facts),
        changed_test_files: facts
            .verification
            .as_ref()
            .map(|v| v.changed_test_files.clone())
            .unwrap_or_default(),
    }
}

/// Fields that only repeat what the chain and the contract say, and do not.
pub fn misquoted(report: &Report, contract: Option<&Contract>, facts: &Facts) -> Vec<&'static str> {
    let lane = contract.map(|contract| contract.lane.executable_sha256);
    let command = contract.and_then(|contract| contract.verification_commands.first());
    [
        (
            "engine",
            report.engine.name != report.backend
                || lane.is_some_and(|known| known != report.engine.executable_sha256),
        ),
        (
            "label",
            report.label != contract.map(|contract| contract.label).unwrap_or_default(),
        ),
        (
            "runtime_workspace_root",
            report.runtime_workspace_root != format!("home:work/{}", report.run_id),
        ),
        (
            "workspace_scratch",
            report.workspace_scratch
                != facts
                    .diff
                    .as_ref()
                    .map(|diff| diff.scratch)
                    .unwrap_or_default(),
        ),
        (
            "forbidden_actions",
            report.forbidden_actions != actions_seen(facts),
        ),
        (
            "approval_status",
            report.approval_status != approval_status(facts),
        ),
        (
            "verification_control",
            report.verification_control != control_line(facts),
        ),
        ("tests_command", report.tests_command.as_ref() != command),
        ("observed", report.observed != observed(contract, facts)),
        ("result", report.result != result_tree(facts)),
    ]
    .into_iter()
    .filter_map(|(field, is_wrong)| is_wrong.then_some(field))
    .collect()
}

/// (allowed writes passed, forbidden paths passed), once a tree was measured.
pub fn path_results(contract: Option<&Contract>, facts: &Facts) -> Option<(bool, bool)> {
    let (contract, diff) = (contract?, facts.diff.as_ref()?);
    let found = |want: PathStanding| {
        diff.changes
            .iter()
            .any(|c| standing(&c.path, &contract.allowed_paths, &contract.forbidden_paths) == want)
    };
    let forbidden = found(PathStanding::Forbidden);
    Some((!forbidden && !found(PathStanding::Disallowed), !forbidden))
}

/// Null when nothing ran. Green checks whose control was not red have not passed anything.
pub fn tests_passed(contract: Option<&Contract>, facts: &Facts) -> Option<bool> {
    let done = facts
        .verification
        .as_ref()
        .filter(|done| done.not_run.is_none())?;
    Some(!done.checks.is_empty() && judge::verification_blockers(contract, done).is_empty())
}

pub fn verification_lines(facts: &Facts) -> Vec<VerificationLine> {
    let checks = facts
        .verification
        .as_ref()
        .map(|done| done.checks.as_slice())
        .unwrap_or_default();
    checks
        .iter()
        .map(|check| VerificationLine {
            kind: check.kind,
            command: check.command.clone(),
            exit_code: check.end.exit_code(),
            end: check.end,
            duration_ms: check.duration_ms,
            passed: check.end.succeeded(),
        })
        .collect()
}

fn control_line(facts: &Facts) -> Option<ControlLine> {
    Some(match facts.verification.as_ref()?.control.as_ref()? {
        ControlRun::Ran { checks, .. } => ControlLine {
            ran: true,
            red: Some(
                checks
                    .iter()
                    .any(|check| check.end.exit_code().is_some_and(|code| code != 0)),
            ),
            reason: None,
        },
        ControlRun::CouldNotRun { reason } | ControlRun::None { reason } => ControlLine {
            ran: false,
            red: None,
            reason: Some(reason.clone()),
        },
    })
}

fn not_applicable(contract: Option<&Contract>, facts: &Facts) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut say = |field: &str, why: &str| {
        out.insert(field.to_owned(), why.to_owned());
    };
    if contract.is_some_and(|contract| contract.label == Label::Try) {
        say("stage_proof", "a try proves no stage");
    }
    if facts.engine_ended.is_none() {
        say(
            "backend_exit_code",
            "no engine was started, or its end was not observed",
        );
    }
    if facts.diff.is_none() {
        for field in ["allowed_writes_passed", "forbidden_paths_passed", "result"] {
            say(field, "no tree was measured");
        }
    }
    match &facts.verification {
        None => say("tests_passed", "verification was not reached"),
        Some(done) => {
            if let Some(reason) = &done.not_run {
                say("tests_passed", reason);
            }
        }
    }
    out
}

impl Report {
    /// Adds the digests of every other artifact and the report's own (see
    /// [`bundle::report_self_digest`]).
    pub fn with_digests(mut self, digests: BTreeMap<String, Digest>) -> Result<Self, JsonError> {
        let names = digests
            .keys()
            .map(String::as_str)
            .chain([bundle::REPORT, bundle::SUMS]);
        self.artifact_paths = names
            .map(|name| (name.to_owned(), format!("{}/{name}", self.artifacts_dir)))
            .collect();
        self.artifact_digests = digests;
        let value = serde_json::to_value(&self).map_err(JsonError::Write)?;
        self.artifact_digests.insert(
            bundle::REPORT.to_owned(),
            bundle::report_self_digest(&value)?,
        );
        Ok(self)
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, JsonError> {
        json::pretty(self)
    }
}
