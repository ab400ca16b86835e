//! `trace.jsonl`: what the harness itself did, one line per action or check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TraceLine {
    /// Monotonic milliseconds since the run began.
    pub at_ms: u64,
    /// e.g. `workspace.copy`, `engine.spawn`, `verification.run`.
    pub action: String,
    pub outcome: TraceOutcome,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TraceOutcome {
    Ok,
    Refused,
    Failed,
}
