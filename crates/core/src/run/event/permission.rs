//! The event of a question: may an engine do something? Who decides it is `engine/dialect/acp`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::event::ToolKind;

/// An engine asked whether it may, and was answered from the contract. The question is its own words; the answer
/// is ours. It opens nothing: the jail refuses and the tree is measured whatever was said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnginePermission {
    pub question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The files it is about, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What could be answered, by kind, in the order it was offered.
    pub options: Vec<PermissionKind>,
    pub answer: PermissionAnswer,
    pub rule: PermissionRule,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Other,
}

/// There is no answer that holds for longer than one question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    AllowOnce,
    RejectOnce,
    Cancelled,
}

impl PermissionAnswer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowOnce => "allowed once",
            Self::RejectOnce => "rejected once",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What decided a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionRule {
    /// Every file may be changed by the contract.
    InScope,
    /// It only looks, and inside the workspace.
    InWorkspace,
    /// Commands may run: the jail guards them.
    Command,
    OutOfScope,
    Fetch,
    Mode,
    /// It does not say what it is about.
    Unknown,
    /// No option said once what was to be said.
    NoOption,
}

impl PermissionRule {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InScope => "in scope",
            Self::InWorkspace => "in the workspace",
            Self::Command => "a command, in the jail",
            Self::OutOfScope => "out of scope",
            Self::Fetch => "a fetch",
            Self::Mode => "a change of mode",
            Self::Unknown => "about nothing that is known",
            Self::NoOption => "no option fits",
        }
    }
}
