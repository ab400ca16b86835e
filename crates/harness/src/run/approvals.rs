//! Who answers when a contract needs an approval, and how question and answer are recorded.
//!
//! The operator's store is the one source of an ordinary run. A validator may bring an answer of
//! its own, which counts in runs of that origin alone. An engine, a case file, a flag or a variable
//! is never asked.

use cto_core::run::event::{Approval, Event, Origin};
use cto_core::task::contract::Contract;
use cto_core::values::blocker::Code;

use crate::evidence::OpenBundle;
use crate::host;
use crate::run::{Stop, close_gate};

/// What an approval, or its refusal, covers.
const SCOPE: &str = "one approved Harness run only";
/// Who asks.
const HARNESS: &str = "cto-harness";

/// Where answers come from.
pub struct Approvals(Source);

enum Source {
    Store,
    Scripted(Answer),
}

/// What was said about one contract, and by whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Granted { actor: String },
    Denied { actor: String },
}

impl Approvals {
    /// The operator's store. This version keeps none, so it holds no answer to anything.
    pub fn store() -> Self {
        Self(Source::Store)
    }

    /// A validator's own answer to whatever contract it runs.
    pub fn scripted(answer: Answer) -> Self {
        Self(Source::Scripted(answer))
    }

    /// The answer to what a run of this origin asks, if there is one.
    pub fn answer(&self, origin: Origin) -> Option<Answer> {
        match (&self.0, origin) {
            (Source::Scripted(answer), Origin::Validator) => Some(answer.clone()),
            (Source::Scripted(_), Origin::Operator | Origin::Ci) | (Source::Store, _) => None,
        }
    }
}

/// What an answer means for the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    MayRun,
    Denied,
}

/// Records the question and the answer, where the contract needs one. Nothing has been executed
/// yet.
pub fn settle(
    bundle: &mut OpenBundle,
    contract: &Contract,
    answer: Option<Answer>,
) -> Result<Settled, Stop> {
    if !contract.approval_required {
        return Ok(Settled::MayRun);
    }
    let record = |actor: &str, reason: Option<Code>| Approval {
        actor: actor.to_owned(),
        scope: SCOPE.to_owned(),
        mutation_mode: contract.mutation_mode,
        timestamp: host::now(),
        expiry: None,
        reason,
    };
    bundle.emit(Event::ApprovalRequested(record(HARNESS, None)))?;
    match answer {
        Some(Answer::Granted { actor }) => {
            bundle.emit(Event::ApprovalGranted(record(&actor, None)))?;
            Ok(Settled::MayRun)
        }
        Some(Answer::Denied { actor }) => {
            close_gate(
                bundle,
                "approval",
                Code::ApprovalDenied,
                format!("denied by {actor}"),
            )?;
            bundle.emit(Event::ApprovalDenied(record(
                &actor,
                Some(Code::ApprovalDenied),
            )))?;
            Ok(Settled::Denied)
        }
        // The gate let only an answered contract through; asked again, nobody answers.
        None => Err(Stop::LateGate {
            gate: "approval",
            code: Code::ApprovalMissing,
            detail: "no approval names this contract".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripted_answer_counts_for_validators_alone() {
        for answer in [
            Answer::Granted { actor: "a".into() },
            Answer::Denied { actor: "a".into() },
        ] {
            let scripted = Approvals::scripted(answer.clone());
            assert_eq!(scripted.answer(Origin::Validator), Some(answer));
            for origin in [Origin::Operator, Origin::Ci] {
                assert_eq!(scripted.answer(origin), None, "{origin:?}");
            }
        }
        for origin in [Origin::Operator, Origin::Validator, Origin::Ci] {
            assert_eq!(Approvals::store().answer(origin), None, "{origin:?}");
        }
    }
}
