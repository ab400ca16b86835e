//! The numbers of the renderers of `report.md`: whoever changes a word of the page adds one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::verdict::Status;

/// The number of the renderer, as a report names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RendererNumber(pub u32);

impl Default for RendererNumber {
    fn default() -> Self {
        Renderer::One.number()
    }
}

/// Renderers whose words a verifier can check, oldest first. Only the newest one still writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renderer {
    One,
    /// Shows nothing that moves, hides or reorders text.
    Two,
    /// Says of what was shown no more than that it was.
    Three,
    /// Names the operator's environments.
    Four,
    /// Names a baseline that was relied on, and how long each step took.
    Five,
    /// Says how far green checks are believed, and names changed files of tests.
    Six,
    /// Says what became of the repository meanwhile, and whose patch is judged again.
    Seven,
    /// Says the one next command by a blocker's cause, and what the model was used for.
    Eight,
    /// Holds the commit that an engine names against the HEAD that was seen.
    Nine,
}

impl Renderer {
    pub const ALL: &[Self] = &[
        Self::One,
        Self::Two,
        Self::Three,
        Self::Four,
        Self::Five,
        Self::Six,
        Self::Seven,
        Self::Eight,
        Self::Nine,
    ];
    pub const NEWEST: Self = Self::Nine;

    pub fn number(self) -> RendererNumber {
        RendererNumber(match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
            Self::Five => 5,
            Self::Six => 6,
            Self::Seven => 7,
            Self::Eight => 8,
            Self::Nine => 9,
        })
    }

    pub fn of(number: RendererNumber) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|renderer| renderer.number() == number)
    }

    /// The first line; a verifier checks that it names the report's status.
    pub fn title(self, status: Status, case: &str) -> String {
        format!("# {}: {case}", status.as_str().to_uppercase())
    }
}
