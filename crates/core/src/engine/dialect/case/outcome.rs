//! What a pipeline's words and the wire come to, in one result. Pure: words in, cause out.
//!
//! Case says the same of a model that was never reached and of one that answered without an envelope.
//! So its text alone decides nothing: where a request was never answered, that is the cause.

use super::WireSeen;
use super::account::{Account, COMPLETED, Defect, Place};
use crate::run::event::{EngineResult, FailedBy};
use crate::values::text::tame_excerpt;

/// None where it never said how it ended, or told of no phase: then nothing shows that it worked.
pub fn of(account: &Account, wire: &WireSeen) -> Option<EngineResult> {
    let (outcome, agent) = account.last_word()?;
    let (failed, failed_by, summary) = match account.failed_phase() {
        // What comes after a no may well fail because of it.
        Some((_, _, Place::After)) | None if account.rejected => {
            let by = Some(FailedBy::Review);
            (outcome != COMPLETED, by, "its reviewer said no".to_owned())
        }
        Some((phase, end, place)) => {
            let unsaid = account.protocol_on_stderr && end.said.is_empty();
            let defect = end.defect.or(unsaid.then_some(Defect::Missing));
            let by = match defect {
                Some(defect) => Some(by_wire_or_protocol(defect, wire)),
                None if place == Place::Review && account.rejected => Some(FailedBy::Review),
                // A review that failed and gave no result is no review.
                None if place == Place::Review => Some(FailedBy::Protocol),
                None => None,
            };
            let said = match (&end.said, by, &wire.unanswered) {
                (said, Some(FailedBy::Wire), Some(call)) => {
                    format!("{phase}: {call}; in its own words: {said}")
                }
                (said, ..) if said.is_empty() => format!("{phase} failed"),
                (said, ..) => format!("{phase}: {said}"),
            };
            (true, by, said)
        }
        None if outcome != COMPLETED => {
            let who = match agent {
                "" => String::new(),
                agent => format!(" by {agent}"),
            };
            let by = account
                .protocol_on_stderr
                .then(|| by_wire_or_protocol(Defect::Missing, wire));
            (true, by, format!("its pipeline ended as {outcome}{who}"))
        }
        None => (false, None, String::new()),
    };
    Some(EngineResult {
        claimed: outcome.to_owned(),
        summary: tame_excerpt(&summary),
        failed,
        failed_by: failed_by.filter(|_| failed),
        commit: account.commit(),
    })
}

fn by_wire_or_protocol(defect: Defect, wire: &WireSeen) -> FailedBy {
    match defect.may_be_wire() {
        true if wire.unanswered.is_some() => FailedBy::Wire,
        // Words that no model of this run said are nobody's protocol.
        true if wire.silent => FailedBy::Silence,
        _ => FailedBy::Protocol,
    }
}
