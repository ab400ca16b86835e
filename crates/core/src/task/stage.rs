//! Stages of the proof ladder, and what a run may change at each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MutationMode {
    None,
    CopiedFixture,
    CopiedRepo,
    SandboxRepo,
    OwnedNoncriticalRepo,
    CandidateDefault,
}

impl MutationMode {
    /// The stage whose proof covers this mode.
    pub fn stage(self) -> Stage {
        match self {
            Self::None => Stage::One,
            Self::CopiedFixture => Stage::Two,
            Self::CopiedRepo => Stage::Three,
            Self::SandboxRepo => Stage::Four,
            Self::OwnedNoncriticalRepo => Stage::Five,
            Self::CandidateDefault => Stage::Six,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::CopiedFixture => "copied-fixture",
            Self::CopiedRepo => "copied-repo",
            Self::SandboxRepo => "sandbox-repo",
            Self::OwnedNoncriticalRepo => "owned-noncritical-repo",
            Self::CandidateDefault => "candidate-default",
        }
    }
}

/// A rung of the proof ladder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Stage {
    One = 1,
    Two,
    Three,
    Four,
    Five,
    Six,
}

impl JsonSchema for Stage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Stage".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer", "minimum": 1, "maximum": 6})
    }
}

impl From<Stage> for u8 {
    fn from(stage: Stage) -> u8 {
        stage as u8
    }
}

impl TryFrom<u8> for Stage {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Ok(match number {
            1 => Self::One,
            2 => Self::Two,
            3 => Self::Three,
            4 => Self::Four,
            5 => Self::Five,
            6 => Self::Six,
            other => return Err(format!("stage {other} does not exist; stages are 1 to 6")),
        })
    }
}

impl Stage {
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What a run at this stage may change.
    pub fn mutation_mode(self) -> MutationMode {
        match self {
            Self::One => MutationMode::None,
            Self::Two => MutationMode::CopiedFixture,
            Self::Three => MutationMode::CopiedRepo,
            Self::Four => MutationMode::SandboxRepo,
            Self::Five => MutationMode::OwnedNoncriticalRepo,
            Self::Six => MutationMode::CandidateDefault,
        }
    }

    /// From here on nothing starts that nobody approved.
    pub fn needs_approval(self) -> bool {
        self >= Self::Four
    }

    /// The exact words the ladder uses for what a stage may change.
    pub fn allowed_mutation_scope(self) -> &'static str {
        match self {
            Self::One => "none",
            Self::Two => "copied artificial case only",
            Self::Three => "copied local repository fixture only",
            Self::Four => "disposable repository only",
            Self::Five => "explicitly owned low-risk repository only",
            Self::Six => "scoped real-repo use only",
        }
    }
}
