//! The three outcomes of a run, ordered so that the worst wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `Pass < Blocked < Fail`; combine with `max`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pass,
    Blocked,
    Fail,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Blocked => "blocked",
            Self::Fail => "fail",
        }
    }

    /// The process exit code a run of this status ends with.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Blocked => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_wins() {
        assert_eq!(
            [Status::Pass, Status::Fail, Status::Blocked]
                .into_iter()
                .max(),
            Some(Status::Fail)
        );
        assert_eq!(
            [Status::Pass, Status::Blocked].into_iter().max(),
            Some(Status::Blocked)
        );
    }

    #[test]
    fn only_pass_exits_zero() {
        assert_eq!(
            [Status::Pass, Status::Fail, Status::Blocked].map(Status::exit_code),
            [0, 1, 3]
        );
    }
}
