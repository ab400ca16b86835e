//! One changed path of a measured tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::paths::TreePath;

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
