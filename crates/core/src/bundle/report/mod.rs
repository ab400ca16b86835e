//! `report.json`: the machine summary and index of a bundle.
//!
//! - this file: the document, and what its builder is given
//! - `derive.rs` the one pure function that builds it from facts; `timings.rs` how long it took

mod derive;
pub mod timings;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle;
use crate::bundle::report_md::RendererNumber;
use crate::containment::{Containment, GuardPlan};
use crate::run::attempt::ActionsSeen;
use crate::run::belief::words::{self, FilesSeen};
use crate::run::belief::{self, Belief, Substance};
use crate::run::checked::TestsCompared;
use crate::run::event::{
    BaselineRelied, CheckKind, GitUse, Kind, Origin, ProcessEnd, ScratchCount, Toolchain,
};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::again::{ChecksDiffer, Reverifies};
use crate::task::contract::{Label, Reasons, Stage};
use crate::task::source::Meanwhile;
use crate::values::blocker::Blocker;
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::json::{self, JsonError};
use crate::values::maybe_known::MaybeKnown;
use crate::values::paths::TreePath;
use crate::values::time::Utc;
use crate::values::verdict::Status;
use crate::workspace::change::Change;
use crate::workspace::environment::EnvironmentUse;
use crate::workspace::head::HeadSeen;

use timings::Timings;

pub use derive::{
    build_report, environment_notes, finish, misquoted_fields, path_results, tests_passed,
    verification_lines,
};

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
    /// The git that ran outside every jail; absent where none did, and in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitUse>,
    /// The operator's environments that were found, and how processes of the run got each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<EnvironmentUse>,
    /// What there is to be said about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment_notes: Vec<String>,
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
    /// How far its green checks are believed; absent where a check was red or none ran, and in bundles of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub belief: Option<BeliefLine>,
    /// The baseline of an earlier run that tests were compared with; absent where this run ran its
    /// own, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_relied: Option<BaselineRelied>,
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
    /// The repository that was copied, at the end of the run; absent where none was, and in bundles of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Meanwhile>,
    pub result: Option<ResultTree>,
    pub relies_on: Vec<Reliance>,
    /// Only in a settlement: the bundle whose chain goes on here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// Only in a reverification: the run whose patch is judged again, without an engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverifies: Option<Reverifies>,
    /// Only there: what differs from the checks of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks_differ: Option<ChecksDiffer>,
    pub events: ChainHead,
    /// What its model was used for; absent where no engine had one, and in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_use: Option<ModelSpent>,
    /// How long its steps took; absent in bundles of before, and of runs that were recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
    /// Fields of the engine's name, where its manifest has such: `<prefix>_process_started`, `_model_provider`, `_model`,
    /// `_model_admission_status`, `_runtime_model_provider`.
    #[serde(flatten)]
    pub flat: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    pub name: EngineId,
    pub version: Option<String>,
    pub executable_sha256: MaybeKnown<Digest>,
    /// What runs its file, as its admission names it; absent where that names none, and in bundles of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<InterpreterFacts>,
    /// The packages around it, as its admission pins them; absent where it has none, and in bundles of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages_sha256: Option<Digest>,
    /// What an operator should know about this program before trusting its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InterpreterFacts {
    /// Absent where a run was recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub sha256: Digest,
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
    /// How far its green is believed; absent for a hidden check, a red one, and in bundles of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub belief: Option<Belief>,
    /// Why no further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// What a green run is worth.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BeliefLine {
    pub word: Belief,
    pub substance: Substance,
    /// Changed files that a check has to see, and how many of them one did.
    pub files: u64,
    pub files_seen: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_noticed: Vec<TreePath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tried: Vec<TreePath>,
    /// The tests of the baseline, where a runner names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsCompared>,
    /// What was said ahead.
    #[serde(flatten)]
    pub reasons: Reasons,
}

impl BeliefLine {
    pub fn seen(&self) -> FilesSeen {
        FilesSeen {
            noticed: self.files_seen,
            not_noticed: self.not_noticed.clone(),
            not_tried: self.not_tried.clone(),
        }
    }

    /// The clause of the verdict line.
    pub fn clause(&self) -> String {
        let clause = words::verdict_clause(self.word, self.substance);
        match self.tests.as_ref().map(|tests| &tests.not_seen) {
            Some(Some(_)) => format!("{clause}, tests of the baseline NOT SEEN"),
            _ => clause,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ControlLine {
    pub ran: bool,
    /// The commands were red where they had to be; null when nothing ran.
    pub red: Option<bool>,
    pub reason: Option<String>,
}

impl Report {
    /// How far a try is believed at best, whose change its checks load. Asked of a run in which nothing changed: what
    /// could not be loaded there says nothing.
    pub fn at_best(&self) -> Belief {
        let control = self.verification_control.as_ref();
        let ran = control.is_some_and(|control| control.ran);
        let visible = |line: &&VerificationLine| line.kind == CheckKind::Visible;
        let best = |line: &VerificationLine| match (line.passed, line.belief, ran) {
            (false, ..) => Belief::None,
            (true, Some(Belief::Partly | Belief::Proven), _) => Belief::Proven,
            // Failing tests did not turn it red.
            (true, _, true) => Belief::None,
            (true, _, false) => Belief::Partly,
        };
        let each: Vec<Belief> = self.verification.iter().filter(visible).map(best).collect();
        belief::of_run(&each)
    }
}

/// What the engine said about itself. Never evidence.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    pub status: Option<String>,
    pub summary: Option<String>,
    /// The commit it names as its work; `engine_head` beside it is what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What the harness saw.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    pub engine_end: Option<ProcessEnd>,
    /// Where HEAD of the engine's copy stood; absent where none ran, and in bundles of before. The result commit is
    /// another: it is made by the harness, of the tree that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_head: Option<Box<HeadSeen>>,
    pub changes: Vec<Change>,
    pub verification_passed: Option<bool>,
    pub changed_test_files: Vec<TreePath>,
    /// Tracked files that setup or a check wrote to, and that are no code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten_files: Vec<TreePath>,
    /// What tools left behind; it is no part of the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<TreePath>,
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

/// What the harness knows and the events do not say.
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

/// What an engine used of its model, as the gateway counted it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpent {
    pub calls: u64,
    pub input_tokens: u64,
    /// Of the input.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// By the operator's prices, in millionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_micros: Option<u64>,
}

impl ModelSpent {
    /// In one line: calls, tokens, and what they cost where a price is known.
    pub fn line(&self) -> String {
        let spent = self.spent_micros.map(|micros| {
            let shown = crate::values::money::shown(micros);
            format!("; {shown} by the price file")
        });
        format!(
            "{} calls, {} tokens in ({} cached), {} out{}",
            self.calls,
            self.input_tokens,
            self.cached_tokens,
            self.output_tokens,
            spent.unwrap_or_default()
        )
    }
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
    /// The proofs, approvals and requests the run relied on.
    pub relies_on: Vec<Reliance>,
    pub timings: Option<Timings>,
    pub source: Option<Meanwhile>,
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
