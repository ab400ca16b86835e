//! What reaches a person's repository, as data: the journal of one landing, what refuses it, what a
//! recovery does, and the words of the commit. Nothing here looks or writes.
//!
//! - `journal.rs` what is kept of a landing until it is settled; `refusal.rs` what a target may not be
//! - `recovery.rs` forward, back or not at all; `message.rs` the commit's words and names of branches

pub mod journal;
pub mod message;
pub mod recovery;
pub mod refusal;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a commit lands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The branch that is checked out moves, and the work tree with it.
    Merge,
    /// One new ref, and nothing else.
    Branch,
}

impl Way {
    pub const ALL: [Self; 2] = [Self::Merge, Self::Branch];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Branch => "branch",
        }
    }

    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_words() {
        for way in Way::ALL {
            assert_eq!(Way::named(way.as_str()), Some(way));
            let written = serde_json::to_value(way).unwrap();
            assert_eq!(written, way.as_str());
        }
        assert_eq!(Way::named("Merge"), None);
    }
}
