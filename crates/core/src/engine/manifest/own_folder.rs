//! Where an engine is started, and the log it writes in a folder of its own in the workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The directory an engine is started in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkingDirectory {
    #[default]
    Workspace,
    /// An empty one of its own: it takes orders from files where it is started.
    Empty,
}

impl WorkingDirectory {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the serializer hands in a reference"
    )]
    pub(super) fn is_workspace(&self) -> bool {
        *self == Self::Workspace
    }
}

/// The name of that directory, in the scratch directory.
pub const EMPTY_DIRECTORY: &str = "cwd";

/// A log that an engine writes in its workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventLog {
    /// The directory, below the workspace and in a folder of the engine's own there.
    pub dir: String,
    /// How its name begins and ends; what lies between is the engine's.
    pub begins: String,
    pub ends: String,
    /// The artifact that keeps it, below `backend/`.
    pub artifact: String,
}
