//! How a process ended, as it was observed. What that means for a run is the judge's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a supervised process ended. A killed process is never a success.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProcessEnd {
    Exited {
        code: u8,
    },
    Signalled {
        signal: i32,
    },
    TimedOut {
        limit: TimeLimit,
    },
    MemoryLimit {
        measured_by: MemoryMeter,
    },
    /// It was told that it may go, and ended by us where it did not: neither an exit nor a kill. What
    /// code it left says nothing.
    Dismissed {
        because: Dismissal,
    },
    Cancelled,
    Lost,
}

/// Why a process was told that it may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dismissal {
    /// What it was asked it has answered, well or not.
    Answered,
    /// It read too little of what it was told to go on with.
    Unread,
    /// Its work was committed and in scope, and it had said how that ended or said nothing any more; it stayed.
    Lingered,
}

impl Dismissal {
    /// Had it done what it was started for, as far as its end goes?
    pub fn is_in_order(self) -> bool {
        match self {
            Self::Answered | Self::Lingered => true,
            Self::Unread => false,
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            Self::Answered => "dismissed after its answer",
            Self::Unread => "dismissed: it left too much of what it was told unread",
            Self::Lingered => "dismissed: its work was committed, and it stayed",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeLimit {
    Idle,
    Wall,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMeter {
    Sampled,
    Cgroup,
}

impl ProcessEnd {
    pub fn exit_code(self) -> Option<u8> {
        match self {
            Self::Exited { code } => Some(code),
            Self::Signalled { .. }
            | Self::TimedOut { .. }
            | Self::MemoryLimit { .. }
            | Self::Dismissed { .. }
            | Self::Cancelled
            | Self::Lost => None,
        }
    }

    pub fn succeeded(self) -> bool {
        self.exit_code() == Some(0)
    }

    /// Is nothing wrong with how an engine ended? No check is ever dismissed, so none is asked this.
    pub fn is_in_order(self) -> bool {
        match self {
            Self::Dismissed { because } => because.is_in_order(),
            other => other.succeeded(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_never_succeeded() {
        assert!(ProcessEnd::Exited { code: 0 }.succeeded());
        for end in [
            ProcessEnd::Exited { code: 1 },
            ProcessEnd::Signalled { signal: 9 },
            ProcessEnd::TimedOut {
                limit: TimeLimit::Wall,
            },
            ProcessEnd::MemoryLimit {
                measured_by: MemoryMeter::Sampled,
            },
            ProcessEnd::Cancelled,
            ProcessEnd::Lost,
        ] {
            assert!(!end.succeeded() && !end.is_in_order(), "{end:?}");
        }
    }

    #[test]
    fn a_dismissed_process_did_not_exit_and_its_end_is_in_order_only_after_its_work() {
        let end = |because| ProcessEnd::Dismissed { because };
        let (answered, unread) = (end(Dismissal::Answered), end(Dismissal::Unread));
        let lingered = end(Dismissal::Lingered);
        assert!(answered.is_in_order() && lingered.is_in_order() && !unread.is_in_order());
        for end in [answered, unread, lingered] {
            assert!(!end.succeeded() && end.exit_code().is_none(), "{end:?}");
        }
        assert_eq!(
            serde_json::to_value(answered).unwrap(),
            serde_json::json!({"kind": "dismissed", "because": "answered"})
        );
    }
}
