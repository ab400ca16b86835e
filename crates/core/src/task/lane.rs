//! Who does a task: everything an approval binds beyond the task itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::containment::Containment;
use crate::task::program::BoundProgram;
use crate::task::source::RepositoryName;
use crate::task::stage::Stage;
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::ids::EngineId;
use crate::values::maybe_known::MaybeKnown;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModelPair {
    pub provider: String,
    pub model: String,
}

/// Who does it: everything an approval binds beyond the task itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    pub engine: EngineId,
    pub executable_sha256: MaybeKnown<Digest>,
    /// The program that runs the engine's own file, where its admission names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter_sha256: Option<Digest>,
    /// The packages around it, where its admission pins them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages_sha256: Option<Digest>,
    /// How it is started: its manifest. Absent for this program itself, which holds its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<Digest>,
    pub model: Option<ModelPair>,
    pub stage: Stage,
    /// `none` where no target exists.
    pub target_head: MaybeKnown<String>,
    /// The branch that is checked out there, and the only one that a result may move; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<String>,
    /// The admission of the repository that may be changed; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_admission_sha256: Option<Digest>,
    /// The script a scripted engine plays, by digest.
    pub script_sha256: Option<Digest>,
    /// The event by which this engine says that it is done.
    pub terminal_event: EventType,
    /// Events without which nothing shows that this engine worked at all, in a dialect that has such.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_events: Vec<EventType>,
    /// What the engine was made from, as its source admission pins it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_pin: Option<String>,
    /// The containment policy: what a jail of this lane enforces; absent until the tree was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
    /// The repository that is copied, once it was looked at. Not of the task: two clones have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    /// Places of the host that the operator has shown beside the programs it finds by itself, with
    /// the home written as `~`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolchains: Vec<String>,
    /// The programs that the contract's commands name, as they were found: an approval binds them,
    /// and the task stays one on two machines. Absent until the host was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<BoundProgram>,
}
