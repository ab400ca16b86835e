//! What the operator says of a result, and the bundle that goes on from a run because of it.
//!
//! - this file: the signed record, and what a settlement's report tells of it
//! - `decide.rs` whether a word counts for a run; `effective.rs` what a run comes to with its settlements
//!
//! The bytes that are signed are the bytes of the record, in canonical JSON: what `ssh-keygen -Y verify` is given.

mod decide;
mod effective;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use decide::{OutcomeRefused, Settles, Shown, may_be_settled, may_settle, read_outcome};
pub use effective::{Effective, Settlement, Standing, effective_verdict};

use crate::bundle::report::Continues;
use crate::run::event::{LandMode, LandingStep, LandingUpdated, OperatorOutcome, Outcome};
use crate::run::facts::Facts;
use crate::run::rules::Rules;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json::{self, JsonError};
use crate::values::time::Utc;

/// The signed record and its signature, as a settlement carries them.
pub const OUTCOME: &str = "relied/outcome.json";
pub const OUTCOME_SIGNATURE: &str = "relied/outcome.json.sig";

/// When the word was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Given {
    /// Before the run, for whatever green result it would have.
    Ahead,
    /// By somebody who could look at the result.
    Afterwards,
}

/// What the operator said of one run. Its canonical bytes are what is signed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeRecord {
    pub schema_version: u32,
    pub run_id: RunId,
    /// Of the run's `SHA256SUMS`: of every byte of its bundle.
    pub sums_sha256: Digest,
    pub contract_digest: Digest,
    /// The store that keeps it. It counts in no other.
    pub store_id: Digest,
    pub outcome: Outcome,
    pub actor: String,
    pub outcome_source: String,
    pub given: Given,
    /// How an accepted result is to reach the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub land: Option<LandMode>,
    /// The accepting settlement whose landing is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<Continues>,
    pub timestamp: Utc,
}

impl OutcomeRecord {
    pub fn to_bytes(&self) -> Result<Vec<u8>, JsonError> {
        json::canonical(self)
    }

    /// The bundle that its settlement goes on from.
    pub fn continues(&self) -> Continues {
        Continues {
            run_id: self.run_id.clone(),
            sums_sha256: self.sums_sha256,
        }
    }

    /// The first event of its settlement.
    pub fn event(&self, record_sha256: Digest) -> OperatorOutcome {
        OperatorOutcome {
            outcome: self.outcome,
            actor: self.actor.clone(),
            given_ahead: self.given == Given::Ahead,
            rules: Rules::NEWEST.number(),
            record_sha256,
            land: self.land,
            reverts: self.reverts.as_ref().map(|of| of.run_id.clone()),
        }
    }

    /// Is this the event of that record, whatever rules it names?
    pub fn is_told_by(&self, event: &OperatorOutcome, record_sha256: Digest) -> bool {
        let mut own = self.event(record_sha256);
        own.rules = event.rules;
        own == *event
    }
}

/// What a settlement's report says of the word and its landing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    pub outcome: Outcome,
    pub actor: String,
    pub given_ahead: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub land: Option<LandMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<RunId>,
    /// What the target came to; absent where nothing was to land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingUpdated>,
}

impl Told {
    /// As the chain of a settlement tells it; none of a run.
    pub fn of(facts: &Facts) -> Option<Self> {
        let said = facts.outcome.as_ref()?;
        let refused = facts.landing_at(LandingStep::Refused);
        let landing = refused.or_else(|| facts.landing_at(LandingStep::Landed));
        Some(Self {
            outcome: said.outcome,
            actor: said.actor.clone(),
            given_ahead: said.given_ahead,
            land: said.land,
            reverts: said.reverts.clone(),
            landing: landing.cloned(),
        })
    }

    /// The word and what came of it, in one sentence.
    pub fn sentence(&self) -> String {
        let ahead = if self.given_ahead {
            ", ahead of the run"
        } else {
            ""
        };
        let said = format!("{} by {}{ahead}", self.outcome.as_str(), self.actor);
        let taken_back = self.reverts.is_some();
        match (&self.landing, self.outcome) {
            (None, Outcome::Rejected) if !taken_back => format!("{said}; nothing landed"),
            (None, _) => format!("{said}; nothing came of it"),
            (Some(landing), _) => {
                let commit = landing.new_commit.as_deref().unwrap_or("a commit");
                let way = landing.mode.as_str();
                match (landing.step, taken_back) {
                    (LandingStep::Landed, false) => format!("{said}; landed as {commit} ({way})"),
                    (LandingStep::Landed, true) => format!("{said}; taken back by {commit}"),
                    _ => format!("{said}; the repository did not allow it"),
                }
            }
        }
    }

    /// The commit that the target has since.
    pub fn landed(&self) -> Option<&LandingUpdated> {
        let landing = self.landing.as_ref();
        landing.filter(|landing| landing.step == LandingStep::Landed)
    }
}
