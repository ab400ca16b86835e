//! May it run? The gates: one table, read top to bottom. A gate decides from what it is given; it
//! never looks anything up itself.
//!
//! - this file: the table, what gates are given, what they answer
//! - `checks.rs` `admissions.rs` `preflight.rs` one function per gate; `lane.rs` facts of a lane
//! - `opening.rs` who opens an engine; `around.rs` what stands around its program; `target.rs` the repository
//!   that may be changed
//! - `plan.rs` from gates to a plan; `ladder/` proofs of stages; `eligibility.rs` the decision
//!
//! Imports: values to checks. Imported by verify, proof and operator.

pub mod eligibility;
pub mod ladder;
pub mod opening;
pub mod plan;
pub mod target;

mod admissions;
mod around;
mod checks;
mod lane;
mod preflight;

pub use admissions::model_result;
pub use around::{interpreter_not_recorded, interpreter_too_old, packages_differ};
pub use checks::{chosen_by, programs_named, programs_needed, toolchains_chosen};
pub use lane::{Binary, Credential, Endpoint, Interpreter, LaneFacts, Packages};
pub use preflight::{Answer, advice, how_it_ended};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::containment::guard::Decision;
use crate::containment::mounts::search::SearchPath;
use crate::containment::mounts::stand::Stand;
use crate::containment::mounts::{Granted, Id};
use crate::engine::manifest::Manifest;
use crate::gate::opening::Opening;
use crate::run::event::Toolchain;
use crate::task::contract::{ContractDocument, Stage};
use crate::task::program::BoundProgram;
use crate::task::source::Looked;
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::maybe_known::MaybeKnown;

/// Phases in order. A phase is looked at only after every gate of the one before it passed.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Records and environment.
    Records,
    /// The host: programs, containment.
    Host,
    /// A read-only look at the repository that is copied.
    Look,
    /// One real request to the model.
    Network,
}

/// Everything the gates may read.
#[derive(Clone, Debug)]
pub struct GateInput<'a> {
    pub contract: &'a ContractDocument,
    pub manifest: &'a Manifest,
    pub stage: Stage,
    /// The engine plays a script that ships with its case, not one of the operator's.
    pub own_script: bool,
    /// Whether this engine is open, and by what.
    pub opening: Opening,
    /// An answer about this very contract is on record, whatever it says; it is read once there is
    /// a plan.
    pub approval_answered: bool,
    /// What records and environment say about a lane that needs admissions; not seen for a closed
    /// engine, and of `fake` only its proofs.
    pub lane: MaybeKnown<LaneFacts>,
    /// Why the repository that was named must not be copied, whatever is in it.
    pub source_refused: Option<&'a str>,
    /// The admission of the repository that may be changed; looked for from stage 5 on.
    pub target: &'a target::TargetFound,
    pub host: MaybeKnown<HostFacts>,
    pub source: MaybeKnown<Looked>,
    /// The commit a disposable repository starts from was made, or why not.
    pub disposable: MaybeKnown<Result<(), String>>,
    /// What the model said when it was asked before anything was started.
    pub model: MaybeKnown<Answer>,
    /// How many files the repository that is copied holds; known once it was looked at.
    pub source_files: Option<u64>,
    /// What was found of the operator's environments; known once the source was looked at.
    pub environments: &'a [plan::Environment],
    /// What will protect the workspace; known once its tree is.
    pub confinement: Option<&'a Decision>,
    /// Where the copy of a repository will stand; neutral until it was looked at.
    pub stand: Stand,
}

/// What a look at the host found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostFacts {
    /// What the harness itself needs to run this lane and did not find.
    pub lane_missing: Vec<String>,
    /// Program name to where it was found.
    pub programs: BTreeMap<String, Option<String>>,
    /// The programs that the contract's commands name.
    pub bound: Vec<BoundProgram>,
    /// Programs outside the system directories, and what of them a jail must be shown.
    pub toolchains: Vec<ToolchainUse>,
    /// Where programs are looked for.
    pub search: SearchPath,
    /// Directories the contract has mounted read-only into its workspace.
    pub inputs: Vec<InputUse>,
    /// Why a program that was found cannot be used in a jail.
    pub unusable: Vec<String>,
    /// Why what the operator or the case named cannot be shown.
    pub refused: Vec<String>,
    /// What a jail on this host cannot prove; empty when it can prove everything.
    pub jail_missing: Vec<String>,
    /// A jail of this host can be given an overlay of directories of the state home.
    pub overlay: bool,
    /// The engine's own program, where it is another than this binary.
    pub engine: Option<EngineUse>,
}

/// A program that is not ours, with the files its jail must show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineUse {
    /// The real file, after every link.
    pub program: String,
    /// As its own files name it; it was not asked.
    pub version: Option<String>,
    /// Directories and files to mount read-only, each at its own path.
    pub mounts: Vec<Granted>,
    /// The packages that were looked at: what is mounted, and their state then.
    pub packages: Option<PinnedPackages>,
    /// The program and its interpreter as files that were looked at.
    pub files: Vec<PinnedFile>,
    /// What it is written for; shown to the engine alone.
    pub interpreter: Option<ToolchainUse>,
    /// The programs that run it, which it finds by name before any other.
    pub needs: BTreeMap<String, std::path::PathBuf>,
}

/// A file as a gate let it pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedFile {
    pub path: std::path::PathBuf,
    pub sha256: Digest,
    /// What the kernel said of it.
    pub state: String,
    pub id: Id,
}

/// Packages as a gate let them pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedPackages {
    pub root: std::path::PathBuf,
    pub sha256: Digest,
    /// What the kernel said of every file.
    pub state: Digest,
    /// The directory that was looked at, whatever has its name.
    pub id: Id,
}

/// A directory or file of the case, shown read-only at its place in the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputUse {
    /// Where it is on the host.
    pub source: Granted,
    /// Its place in the workspace, relative.
    pub path: String,
}

/// A program that lives outside the system directories, resolved to what a jail needs of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolchainUse {
    pub record: Toolchain,
    /// The directory to search for it; none for a program of the system.
    pub bin: Option<String>,
    /// Directories and files to mount read-only, each at its own path.
    pub mounts: Vec<Granted>,
    /// Variables it needs to find them.
    pub env: BTreeMap<String, String>,
}

impl ToolchainUse {
    /// A program that the search for programs shows, bound by what it is.
    pub fn bound(record: Toolchain) -> Self {
        Self {
            record,
            bin: None,
            mounts: Vec::new(),
            env: BTreeMap::new(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Pass,
    /// Passed, with something the operator should read.
    Noted(String),
    NotApplicable(&'static str),
    Blocked(Code, Option<String>),
}

/// One row of the table.
pub struct Gate {
    pub id: &'static str,
    pub phase: Phase,
    pub question: &'static str,
    /// The records, variables and flags it reads.
    pub reads: &'static [&'static str],
    pub check: fn(&GateInput<'_>) -> Outcome,
}

/// All gates, in the order they are reported.
pub const GATES: &[Gate] = &[
    Gate {
        id: "contract",
        phase: Phase::Records,
        question: "Is the contract whole and well-formed?",
        reads: &["case.toml"],
        check: checks::contract,
    },
    Gate {
        id: "engine",
        phase: Phase::Records,
        question: "Was this engine opened explicitly?",
        reads: &[
            "engines/*.toml",
            "--allow-engine",
            "CTO_HARNESS_ALLOW_<ENGINE>",
            "records/<engine>/gate.json",
        ],
        check: checks::engine,
    },
    Gate {
        id: "stage",
        phase: Phase::Records,
        question: "Does the stage asked for execute at all?",
        reads: &["--stage", "CTO_HARNESS_<ENGINE>_STAGE"],
        check: checks::stage,
    },
    Gate {
        id: "provider-decision",
        phase: Phase::Records,
        question: "Does a decision record let this provider be chosen?",
        reads: &[
            "--decision",
            "CTO_HARNESS_<ENGINE>_DECISION_FILE",
            "records/<engine>/decision.json",
        ],
        check: admissions::provider_decision,
    },
    Gate {
        id: "model-admission",
        phase: Phase::Records,
        question: "Is exactly this provider and model admitted, for this endpoint?",
        reads: &[
            "--model-admission",
            "CTO_HARNESS_<ENGINE>_MODEL_ADMISSION_FILE",
            "records/<engine>/model.json",
            "--model-provider",
            "--model",
        ],
        check: admissions::model_admission,
    },
    Gate {
        id: "executable-admission",
        phase: Phase::Records,
        question: "Is exactly this file admitted to be run?",
        reads: &[
            "--executable-admission",
            "CTO_HARNESS_<ENGINE>_EXECUTABLE_ADMISSION_FILE",
            "records/<engine>/executable.json",
            "--bin",
            "CTO_HARNESS_<ENGINE>_BIN",
        ],
        check: admissions::executable_admission,
    },
    Gate {
        id: "source-admission",
        phase: Phase::Records,
        question: "Is what the engine came from admitted for what this run may change?",
        reads: &[
            "--source-admission",
            "CTO_HARNESS_<ENGINE>_SOURCE_ADMISSION_FILE",
            "records/<engine>/source.json",
        ],
        check: admissions::source_admission,
    },
    Gate {
        id: "review",
        phase: Phase::Records,
        question: "Is no record of this lane due for review?",
        reads: &["review_trigger of every record"],
        check: admissions::review,
    },
    Gate {
        id: "credentials",
        phase: Phase::Records,
        question: "Can the provider's credential be had the way its admission names?",
        reads: &[
            "credential_source_class",
            "--credential",
            "CTO_HARNESS_<ENGINE>_CREDENTIAL",
        ],
        check: admissions::credentials,
    },
    Gate {
        id: "endpoint",
        phase: Phase::Records,
        question: "Did the operator supply the one base URL of this run?",
        reads: &["--base-url-file", "CTO_HARNESS_<ENGINE>_LOCAL_BASE_URL"],
        check: admissions::endpoint,
    },
    Gate {
        id: "stage-proof",
        phase: Phase::Records,
        question: "Is the stage before this one proven for this lane?",
        reads: &["harness-runs/"],
        check: admissions::stage_proof,
    },
    Gate {
        id: "source",
        phase: Phase::Records,
        question: "Does a record let this repository be copied?",
        reads: &["--repo", "--source", "records/targets/"],
        check: checks::source,
    },
    Gate {
        id: "target-admission",
        phase: Phase::Records,
        question: "Is exactly this repository admitted to be changed, and how far?",
        reads: &[
            "--target",
            "CTO_HARNESS_<ENGINE>_STAGE5_TARGET_ADMISSION_FILE",
        ],
        check: target::target_admission,
    },
    Gate {
        id: "mutation-mode",
        phase: Phase::Records,
        question: "Is the mutation mode no wider than the stage?",
        reads: &["case.toml"],
        check: checks::mutation_mode,
    },
    Gate {
        id: "verification-command",
        phase: Phase::Records,
        question: "Does the contract say how the change is verified?",
        reads: &["case.toml"],
        check: checks::verification_command,
    },
    Gate {
        id: "approval",
        phase: Phase::Records,
        question: "Is there an answer to every approval the contract needs, and is it yes?",
        reads: &["operator/"],
        check: checks::approval,
    },
    Gate {
        id: "setup",
        phase: Phase::Records,
        question: "Can everything the contract prepares be prepared in containment?",
        reads: &["case.toml"],
        check: checks::setup,
    },
    Gate {
        id: "baseline",
        phase: Phase::Records,
        question: "Are the checks green before the engine starts, where that is asked for?",
        reads: &["--baseline"],
        check: checks::baseline,
    },
    Gate {
        id: "provider",
        phase: Phase::Host,
        question: "Is everything this lane is run with on this host?",
        reads: &["PATH", "engines/*.toml"],
        check: checks::provider,
    },
    Gate {
        id: "toolchains",
        phase: Phase::Host,
        question: "Is every program the contract names on this host?",
        reads: &["PATH"],
        check: checks::toolchains,
    },
    Gate {
        id: "containment",
        phase: Phase::Host,
        question: "Can this lane be contained as it must be?",
        reads: &["host"],
        check: checks::containment,
    },
    Gate {
        id: "source-state",
        phase: Phase::Look,
        question: "Is the source a repository with a commit, and clean where it must be?",
        reads: &["--repo", "--from-head"],
        check: checks::source_state,
    },
    Gate {
        id: "model-answer",
        phase: Phase::Network,
        question: "Does the admitted model answer one real request with content?",
        reads: &["network"],
        check: preflight::model_answer,
    },
];

/// One gate's result as `gates.json` keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    pub gate: String,
    pub phase: Phase,
    pub question: String,
    pub result: GateVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub reads: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    Pass,
    Blocked,
    NotApplicable,
    /// An earlier phase blocked, so this was not looked at.
    NotSeen,
}

/// `gates.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GateReport {
    pub schema_version: u32,
    pub gates: Vec<GateResult>,
}

impl GateReport {
    pub fn blocked(&self) -> impl Iterator<Item = &GateResult> {
        self.gates
            .iter()
            .filter(|gate| gate.result == GateVerdict::Blocked)
    }
}

/// Runs the gates of one phase.
pub fn run_phase(phase: Phase, input: &GateInput<'_>) -> Vec<GateResult> {
    GATES
        .iter()
        .filter(|gate| gate.phase == phase)
        .map(|gate| result(gate, (gate.check)(input)))
        .collect()
}

/// The rows of a phase that was not looked at.
pub fn not_seen(phase: Phase) -> Vec<GateResult> {
    GATES
        .iter()
        .filter(|gate| gate.phase == phase)
        .map(|gate| row(gate, GateVerdict::NotSeen, None, None))
        .collect()
}

fn result(gate: &Gate, outcome: Outcome) -> GateResult {
    match outcome {
        Outcome::Pass => row(gate, GateVerdict::Pass, None, None),
        Outcome::Noted(what) => row(gate, GateVerdict::Pass, None, Some(what)),
        Outcome::NotApplicable(why) => {
            row(gate, GateVerdict::NotApplicable, None, Some(why.to_owned()))
        }
        Outcome::Blocked(code, detail) => row(gate, GateVerdict::Blocked, Some(code), detail),
    }
}

fn row(gate: &Gate, result: GateVerdict, code: Option<Code>, detail: Option<String>) -> GateResult {
    GateResult {
        gate: gate.id.to_owned(),
        phase: gate.phase,
        question: gate.question.to_owned(),
        result,
        code,
        detail,
        reads: gate.reads.iter().map(ToString::to_string).collect(),
    }
}
