//! The whole event vocabulary on one page, and the hash chain that orders it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::blocker::Code;
use crate::containment::Containment;
use crate::contract::{MutationMode, Stage};
use crate::digest::Digest;
use crate::ids::{CaseId, EngineId, RunId};
use crate::json::{self, JsonError};
use crate::scope::TreePath;
use crate::time::Utc;
use crate::verdict::Status;

macro_rules! events {
    ($($variant:ident $name:literal $body:ty;)*) => {
        /// One thing that happened, as the evidence tells it.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "type", content = "data")]
        pub enum Event {
            $(#[serde(rename = $name)] $variant($body),)*
        }

        /// The name of an event without its data.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
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
    EngineStarted "engine.started" EngineStarted;
    EngineMessage "engine.message" EngineText;
    EnginePlan "engine.plan" EngineText;
    EngineToolCall "engine.tool_call" EngineToolCall;
    EngineFileChange "engine.file_change" EngineFileChange;
    EngineReview "engine.review" EngineReview;
    EngineResult "engine.result" EngineResult;
    EngineEnded "engine.ended" EngineEnded;
    PatchApplied "patch.applied" PatchApplied;
    GitDiffChecked "git.diff.checked" DiffChecked;
    VerificationCompleted "verification.completed" VerificationCompleted;
    OperatorOutcomeRecorded "operator.outcome.recorded" OperatorOutcome;
    LandingUpdated "landing.updated" LandingUpdated;
    RunCompleted "run.completed" RunCompleted;
}

impl EventType {
    pub fn is_engine(self) -> bool {
        self.as_str().starts_with("engine.")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Run,
    Settlement,
    Comparison,
    Refresh,
    Health,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Operator,
    Validator,
    Ci,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    pub kind: Kind,
    pub origin: Origin,
    pub case_id: CaseId,
    pub engine: EngineId,
    pub stage: Stage,
    pub harness_version: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContractCreated {
    pub valid: bool,
    pub task_digest: Digest,
    pub contract_digest: Digest,
    /// Codes of gates whose matrix row names this event.
    pub blockers: Vec<Code>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanUpdated {
    pub summary: String,
    pub containment: Containment,
    pub approval_required: bool,
    pub toolchains: Vec<Toolchain>,
}

/// A program outside the system directories that the run was allowed to see, read-only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Toolchain {
    pub name: String,
    /// The real program, with the operator's home written as `~`.
    pub program: String,
    pub sha256: Digest,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_executed: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub actor: String,
    pub scope: String,
    pub mutation_mode: MutationMode,
    pub timestamp: Utc,
    pub expiry: Option<Utc>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineStarted {
    pub engine: EngineId,
    pub containment: Containment,
}

/// What an engine said. Display data: never read by a gate or a check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineText {
    pub text: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineToolCall {
    pub tool: String,
    pub target: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineFileChange {
    pub path: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineReview {
    pub accepted: bool,
    pub summary: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineResult {
    /// What the engine claims about itself.
    pub claimed: String,
    pub summary: String,
}

/// How a supervised process ended. A killed process is never a success.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProcessEnd {
    Exited { code: u8 },
    Signalled { signal: i32 },
    TimedOut { limit: TimeLimit },
    MemoryLimit { measured_by: MemoryMeter },
    Cancelled,
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeLimit {
    Idle,
    Wall,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMeter {
    Sampled,
    Cgroup,
}

impl ProcessEnd {
    pub fn exit_code(self) -> Option<u8> {
        match self {
            Self::Exited { code } => Some(code),
            Self::Signalled { .. } | Self::TimedOut { .. } | Self::MemoryLimit { .. } | Self::Cancelled | Self::Lost => None,
        }
    }

    pub fn succeeded(self) -> bool {
        self.exit_code() == Some(0)
    }
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
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PatchApplied {
    pub sha256: Digest,
    pub files: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    ModeChanged,
    TypeChanged,
    /// Something git cannot record: a pipe, socket or device.
    Unrecordable,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub path: TreePath,
    pub kind: ChangeKind,
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
    pub blockers: Vec<Code>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    Visible,
    Hidden,
}

/// One verification command in the pristine copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub kind: CheckKind,
    pub command: String,
    pub end: ProcessEnd,
    pub duration_ms: u64,
}

/// The same commands where they had to fail.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ControlRun {
    Ran {
        checks: Vec<Check>,
        /// Failing tests the harness added, for runners that report a count.
        failures_added: Option<u64>,
        /// The count the runner reported. It can turn a pass into a failure, never the reverse.
        failures_reported: Option<u64>,
    },
    CouldNotRun {
        reason: String,
    },
    None {
        reason: String,
    },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerificationCompleted {
    /// Why nothing ran; null when something did.
    pub not_run: Option<String>,
    pub checks: Vec<Check>,
    /// Null until the commands themselves were green: a red run needs no control.
    pub control: Option<ControlRun>,
    pub log_sha256: Digest,
    /// Tree the commands ran on; equal to the measured result tree.
    pub tree: Option<Digest>,
    /// Why the pristine copy could not be made to equal the measured tree.
    pub mismatch: Option<String>,
    /// Verification files of the baseline that the engine changed.
    pub changed_test_files: Vec<TreePath>,
    pub blockers: Vec<Code>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperatorOutcome {
    pub outcome: Outcome,
    pub actor: String,
    pub given_ahead: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Accepted,
    Rejected,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LandingUpdated {
    pub step: String,
}

/// Something first known when the run closes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub code: Code,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
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
        self.findings.iter().any(|f| matches!(f.code, Code::Interrupted | Code::ArtifactWriteFailure))
    }
}

/// One line of `events.normalized.jsonl`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventLine {
    pub seq: u64,
    pub ts: Utc,
    pub run_id: RunId,
    pub event: Event,
    pub prev: Digest,
    pub hash: Digest,
}

#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error("line {line}: {source}")]
    Json { line: usize, source: JsonError },
    #[error("line {0} is not in canonical form")]
    NotCanonical(usize),
    #[error("line {0} has no {1}")]
    Missing(usize, &'static str),
    #[error("line {line}: seq is {found}, expected {expected}")]
    Seq { line: usize, found: u64, expected: u64 },
    #[error("line {0}: prev is not the hash of the line before")]
    Prev(usize),
    #[error("line {0}: hash does not match the line")]
    Hash(usize),
    #[error("line {0} belongs to another run")]
    Run(usize),
    #[error("the last line is torn")]
    Torn,
}

const EVENT_DOMAIN: &str = "cto-event/1\n";
const CHAIN_DOMAIN: &str = "cto-chain/1\n";

/// The first `prev` of a run: binds the chain to its run id and contract.
pub fn chain_start(run_id: &RunId, contract_digest: &Digest) -> Digest {
    Digest::tagged(CHAIN_DOMAIN, format!("{run_id}\n{contract_digest}\n").as_bytes())
}

impl EventLine {
    /// Makes the next line of a chain: canonical bytes with a line end, and the new head.
    pub fn make(seq: u64, ts: Utc, run_id: &RunId, event: &Event, prev: Digest) -> Result<(Vec<u8>, Digest), JsonError> {
        let mut map = match serde_json::to_value(event).map_err(JsonError::Write)? {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        map.insert("seq".into(), seq.into());
        map.insert("ts".into(), ts.to_string().into());
        map.insert("run_id".into(), run_id.as_str().into());
        map.insert("prev".into(), prev.to_hex().into());
        let hash = Digest::tagged(EVENT_DOMAIN, &json::canonical(&map)?);
        map.insert("hash".into(), hash.to_hex().into());
        let mut bytes = json::canonical(&map)?;
        bytes.push(b'\n');
        Ok((bytes, hash))
    }

    fn read(number: usize, bytes: &[u8]) -> Result<Self, ChainError> {
        let at = |source| ChainError::Json { line: number, source };
        let value = json::parse_strict(bytes).map_err(at)?;
        if json::canonical(&value).map_err(at)? != bytes {
            return Err(ChainError::NotCanonical(number));
        }
        let Value::Object(mut map) = value else { return Err(ChainError::Missing(number, "object")) };
        let hash: Digest = take(&mut map, number, "hash")?;
        let computed = Digest::tagged(EVENT_DOMAIN, &json::canonical(&map).map_err(at)?);
        if computed != hash {
            return Err(ChainError::Hash(number));
        }
        let seq = take(&mut map, number, "seq")?;
        let ts = take(&mut map, number, "ts")?;
        let run_id = take(&mut map, number, "run_id")?;
        let prev = take(&mut map, number, "prev")?;
        let event = serde_json::from_value(Value::Object(map)).map_err(|e| at(JsonError::Shape(e)))?;
        Ok(Self { seq, ts, run_id, event, prev, hash })
    }
}

fn take<T: for<'de> Deserialize<'de>>(map: &mut Map<String, Value>, line: usize, key: &'static str) -> Result<T, ChainError> {
    let value = map.remove(key).ok_or(ChainError::Missing(line, key))?;
    serde_json::from_value(value).map_err(|e| ChainError::Json { line, source: JsonError::Shape(e) })
}

/// Reads and checks a whole chain from its expected first `prev`. Order of types is `run::fold`'s business.
pub fn read_chain(bytes: &[u8], start: Digest, run_id: &RunId) -> Result<Vec<EventLine>, ChainError> {
    let (lines, rest) = read_prefix(bytes, start, run_id)?;
    if rest < bytes.len() { Err(ChainError::Torn) } else { Ok(lines) }
}

/// Like [`read_chain`], but a torn last line is left over: the offset where it begins is returned.
pub fn read_prefix(bytes: &[u8], start: Digest, run_id: &RunId) -> Result<(Vec<EventLine>, usize), ChainError> {
    let mut lines = Vec::new();
    let mut prev = start;
    let mut offset = 0;
    while let Some(end) = memchr::memchr(b'\n', &bytes[offset..]) {
        let number = lines.len() + 1;
        let line = EventLine::read(number, &bytes[offset..offset + end])?;
        if line.seq != number as u64 {
            return Err(ChainError::Seq { line: number, found: line.seq, expected: number as u64 });
        }
        if line.prev != prev {
            return Err(ChainError::Prev(number));
        }
        if line.run_id != *run_id {
            return Err(ChainError::Run(number));
        }
        prev = line.hash;
        lines.push(line);
        offset += end + 1;
    }
    Ok((lines, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_id() -> RunId {
        "20260102T030405Z-demo-abcd".parse().unwrap()
    }

    fn chain(texts: &[&str]) -> (Vec<u8>, Digest) {
        let start = chain_start(&run_id(), &Digest::of(b"contract"));
        let mut bytes = Vec::new();
        let mut prev = start;
        for (index, text) in texts.iter().enumerate() {
            let event = Event::EngineMessage(EngineText { text: (*text).into() });
            let ts = Utc::from_millis(1_767_323_045_678).unwrap();
            let (line, hash) = EventLine::make(index as u64 + 1, ts, &run_id(), &event, prev).unwrap();
            bytes.extend(line);
            prev = hash;
        }
        (bytes, start)
    }

    #[test]
    fn a_chain_reads_back() {
        let (bytes, start) = chain(&["one", "two", "é\u{1f600}"]);
        let lines = read_chain(&bytes, start, &run_id()).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2].event, Event::EngineMessage(EngineText { text: "é\u{1f600}".into() }));
    }

    #[test]
    fn every_single_byte_matters() {
        let (bytes, start) = chain(&["one", "two"]);
        for at in 0..bytes.len() {
            for flip in [0x01u8, 0x20, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                assert!(read_chain(&bad, start, &run_id()).is_err(), "byte {at} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn dropped_reordered_duplicated_and_transplanted_lines_are_caught() {
        let (bytes, start) = chain(&["one", "two", "three"]);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        let join = |order: &[usize]| order.iter().flat_map(|i| lines[*i].to_vec()).collect::<Vec<u8>>();
        for order in [&[0, 2][..], &[1, 0, 2], &[0, 0, 1, 2], &[1, 2]] {
            assert!(read_chain(&join(order), start, &run_id()).is_err(), "{order:?}");
        }
        let other = chain_start(&run_id(), &Digest::of(b"another contract"));
        assert!(matches!(read_chain(&bytes, other, &run_id()), Err(ChainError::Prev(1))));
    }

    #[test]
    fn a_torn_tail_is_an_error_or_a_prefix() {
        let (bytes, start) = chain(&["one", "two"]);
        let torn = &bytes[..bytes.len() - 3];
        assert!(matches!(read_chain(torn, start, &run_id()), Err(ChainError::Torn)));
        let (lines, offset) = read_prefix(torn, start, &run_id()).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(torn[offset - 1], b'\n');
    }

    #[test]
    fn types_have_the_names_their_events_write() {
        assert_eq!(EventType::ALL.len(), 21);
        for kind in EventType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert!(EventType::EngineResult.is_engine() && !EventType::RunStarted.is_engine());
    }

    #[test]
    fn a_killed_process_never_succeeded() {
        assert!(ProcessEnd::Exited { code: 0 }.succeeded());
        for end in [
            ProcessEnd::Exited { code: 1 },
            ProcessEnd::Signalled { signal: 9 },
            ProcessEnd::TimedOut { limit: TimeLimit::Wall },
            ProcessEnd::MemoryLimit { measured_by: MemoryMeter::Sampled },
            ProcessEnd::Cancelled,
            ProcessEnd::Lost,
        ] {
            assert!(!end.succeeded(), "{end:?}");
        }
    }
}
