//! The last gate: does the model of this run answer with content? Asked only where every other
//! gate has passed, because to ask is to use the network.

use super::{GateInput, Outcome};
use crate::values::blocker::Code;
use crate::values::hint::OF_PROBE;
use crate::values::maybe_known::MaybeKnown;
use crate::wire::calls::{CallRecord, ProbeOutcome, probe_outcome};

/// The result of one real request to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Asked(Box<CallRecord>),
    /// No request could be made; the reason holds nothing secret.
    CouldNotAsk(Code, String),
}

pub fn model_answer(input: &GateInput<'_>) -> Outcome {
    let call = match &input.model {
        _ if !input.manifest.uses_a_model() => {
            return Outcome::NotApplicable("this engine has no model");
        }
        MaybeKnown::NotLookedAt => {
            return Outcome::Blocked(
                Code::ProviderUnavailable,
                Some("the model was not asked".into()),
            );
        }
        MaybeKnown::Known(Answer::CouldNotAsk(code, why)) => {
            return Outcome::Blocked(*code, Some(why.clone()));
        }
        MaybeKnown::Known(Answer::Asked(call)) => call,
    };
    let code = match probe_outcome(call) {
        ProbeOutcome::Content => return Outcome::Pass,
        ProbeOutcome::ReasoningOnly => Code::ProviderResponseShapeUnavailable,
        ProbeOutcome::Auth => Code::ProviderAuthUnavailable,
        ProbeOutcome::WrongModel => Code::ModelNotAdmitted,
        ProbeOutcome::Unavailable { .. } => Code::ProviderUnavailable,
    };
    Outcome::Blocked(code, Some(format!("{OF_PROBE}{}", how_it_ended(call))))
}

/// A call's end in words: the class, the status where there was one, and what exactly.
pub fn how_it_ended(call: &CallRecord) -> String {
    let status = call
        .status
        .known()
        .map(|status| format!(" (status {status})"))
        .unwrap_or_default();
    let why = call
        .why
        .map(|why| format!(": {}", why.sentence()))
        .unwrap_or_default();
    let field = call
        .field
        .as_ref()
        .map(|field| format!(": {field}"))
        .unwrap_or_default();
    format!("{}{status}{why}{field}", call.outcome.as_str())
}
