//! Commands that ran and decide nothing: an environment was changed by its owner meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::event::Check;

/// One of them, by its section of `test.log`. It was run again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotCounted {
    pub section: u64,
    pub check: Check,
}
