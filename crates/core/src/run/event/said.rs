//! What an engine says of itself, as its events carry it. Claims: display data, but for a failure it tells of, its
//! reviewer's no, and that it said anything at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::time::Utc;

/// What an engine said. Display data: never read by a gate or a check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineText {
    pub text: String,
}

/// A phase of an engine that works in phases, as it tells of it. Which phases there are is its own
/// matter: a name nobody knows here is a name like any other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnginePhase {
    pub phase: String,
    pub agent: String,
    /// How it ended; absent while it has only begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What it says of the end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The revision it is part of, counted by the engine; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// When, by the engine's own word: what it asked of its model lies between two of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Utc>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineToolCall {
    pub tool: String,
    pub target: String,
    /// What sort of deed it is, in a dialect that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The files it is about, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// How it ended; absent while it has only begun. A dialect that tells of both has an event for
    /// each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
}

impl EngineToolCall {
    /// A call of which no more is known.
    pub fn new(tool: String, target: String) -> Self {
        Self {
            tool,
            target,
            kind: None,
            paths: Vec::new(),
            outcome: None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Fetch,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolOutcome {
    Completed,
    Failed,
    Declined,
}

impl ToolOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Declined => "declined",
        }
    }
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
    /// It says itself that it did not succeed, in a dialect that has a word for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// By what it failed, where its own words and the wire tell that apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_by: Option<FailedBy>,
    /// The commit it names as its work. Nothing rests on it: the result commit is the harness's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl EngineResult {
    /// A result of which no more is known.
    pub fn new(claimed: impl Into<String>, summary: impl Into<String>, failed: bool) -> Self {
        Self {
            claimed: claimed.into(),
            summary: summary.into(),
            failed,
            failed_by: None,
            commit: None,
        }
    }
}

/// The cause of a failure that an engine itself tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailedBy {
    /// A request was never answered, whatever the engine makes of that.
    Wire,
    /// The model was served, and what it said was no result by the engine's own protocol.
    Protocol,
    /// Its own reviewer said no.
    Review,
    /// Nothing was asked of its model at all.
    Silence,
}

/// What an engine says its messages cost, added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EngineTokens {
    pub messages: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}
