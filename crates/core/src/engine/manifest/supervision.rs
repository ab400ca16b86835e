//! How an engine is watched while it works: what shows that it does something, and whether it may stay when it is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Invocation;

/// How an engine is watched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Supervision {
    /// What shows that it does something. An engine that prints whether it works or not names other signs than what it prints.
    #[serde(default = "output_alone")]
    pub signs_of_life: Vec<SignOfLife>,
    /// It commits its work, and may stay when that is done: then it is ended.
    #[serde(default)]
    pub ended_when_committed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignOfLife {
    /// What it prints.
    Output,
    /// What it adds to the log it writes in its workspace.
    EventLog,
    /// What moves between it and its model.
    Wire,
}

fn output_alone() -> Vec<SignOfLife> {
    vec![SignOfLife::Output]
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            signs_of_life: output_alone(),
            ended_when_committed: false,
        }
    }
}

impl Supervision {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub fn heeds(&self, sign: SignOfLife) -> bool {
        self.signs_of_life.contains(&sign)
    }

    /// The key of it that is wrong, and what is.
    pub(super) fn problem(&self, own: &Invocation) -> Option<(&'static str, &'static str)> {
        let key = "signs_of_life";
        if self.signs_of_life.is_empty() {
            return Some((
                key,
                "an engine that shows no sign of life cannot be watched",
            ));
        }
        if self.heeds(SignOfLife::EventLog) && own.event_log.is_none() {
            return Some((
                key,
                "event_log means nothing without [invocation.event_log]",
            ));
        }
        if self.heeds(SignOfLife::Wire) && own.model.is_none() {
            return Some((key, "wire means nothing without [invocation.model]"));
        }
        // Such an engine is let go when it has answered.
        let both = self.ended_when_committed && own.dialect.is_talked_to();
        both.then_some((
            "ended_when_committed",
            "an engine that is talked to is let go when it has answered",
        ))
    }
}
