//! The last gate: does the model of this run answer with content? Asked only where every other
//! gate has passed, because to ask is to use the network.

use super::{GateInput, Outcome};
use crate::values::blocker::Code;
use crate::values::hint::OF_PROBE;
use crate::values::ids::EngineId;
use crate::values::maybe_known::MaybeKnown;
use crate::values::text::{excerpt, tame};
use crate::wire::calls::{CallRecord, Outcome as Wire, ProbeOutcome, RefusalReason, probe_outcome};

/// So much of a refusal stands beside a blocker; all of it is in its own file.
const MAX_WORDS: usize = 240;

/// The result of one real request to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// With the words of a refusal, where there were any: made harmless, and short.
    Asked(Box<CallRecord>, Option<String>),
    /// No request could be made; the reason holds nothing secret.
    CouldNotAsk(Code, String),
}

pub fn model_answer(input: &GateInput<'_>) -> Outcome {
    let (call, words) = match &input.model {
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
        MaybeKnown::Known(Answer::Asked(call, words)) => (call, words),
    };
    let code = match probe_outcome(call) {
        ProbeOutcome::Content => return Outcome::Pass,
        ProbeOutcome::ReasoningOnly => Code::ProviderResponseShapeUnavailable,
        ProbeOutcome::Auth => Code::ProviderAuthUnavailable,
        ProbeOutcome::WrongModel => Code::ModelNotAdmitted,
        ProbeOutcome::Unavailable { .. } => Code::ProviderUnavailable,
    };
    let said = words
        .as_deref()
        .map(|words| {
            let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("; it said: {}", excerpt(&tame(&line), MAX_WORDS))
        })
        .unwrap_or_default();
    let advice = advice(call, &input.manifest.id)
        .map(|advice| format!("; {advice}"))
        .unwrap_or_default();
    Outcome::Blocked(
        code,
        Some(format!("{OF_PROBE}{}{said}{advice}", how_it_ended(call))),
    )
}

/// What to do about a call that ended so, as the next thing to type; none where its end says it.
pub fn advice(call: &CallRecord, engine: &EngineId) -> Option<String> {
    let setup = format!("`cto setup {engine}`");
    let status = call.status.known().copied();
    Some(match (call.outcome, call.why) {
        (Wire::Auth, _) => format!(
            "the credential was refused: renew it where the model record says it comes from, then {setup}"
        ),
        (Wire::WrongModel, Some(RefusalReason::NoName)) => format!(
            "this server does not say which model answers: name it in the server's own settings, then {setup}"
        ),
        (Wire::WrongModel, _) => {
            let name = call
                .model_answered
                .known()
                .map(|name| format!("it answered as {}: ", tame(name)))
                .unwrap_or_default();
            format!("{name}if that is the same model, {setup} takes the name as an alias")
        }
        (Wire::Redirected, _) => {
            format!("redirects are never followed: give {setup} the base URL that it leads to")
        }
        (Wire::ModelError, _) if status == Some(404) => format!(
            "the base URL or the model's name is wrong, often a missing /v1: {setup} asks for both"
        ),
        (Wire::ModelError, _) if matches!(status, Some(400 | 422)) => {
            format!("{setup} finds out what this endpoint wants")
        }
        (Wire::Stalled, _) => {
            "--first-byte SECONDS waits longer, for a model that must be loaded first".to_owned()
        }
        (_, Some(RefusalReason::TlsUntrusted)) => {
            format!("for an authority of your own, give its file to {setup}")
        }
        (_, Some(RefusalReason::Proxy)) => format!("{setup} records another proxy, or none"),
        _ => return None,
    })
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
