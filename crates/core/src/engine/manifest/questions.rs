//! What a program is asked about itself when it is admitted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flag that it answers and then ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    Help,
    Version,
}

impl Question {
    pub const ALL: &[Self] = &[Self::Help, Self::Version];

    pub fn flag(self) -> &'static str {
        match self {
            Self::Help => "--help",
            Self::Version => "--version",
        }
    }
}
