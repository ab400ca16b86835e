//! What a person is told of an endpoint before anything is admitted: one real request, asked again
//! only where the refusal names a field of it that another server would have taken.

use std::time::Duration;

use cto_core::values::maybe_known::MaybeKnown;
use cto_core::wire::calls::CallRecord;
use cto_core::wire::profiles::refusal;
use cto_core::wire::profiles::switch::Switch;

use crate::Route;
use crate::questions::attended::{GivenUp, attended};
use crate::questions::probe::probe_heard;

/// A server that refuses more fields than this is not of the protocol.
const MAX_REQUESTS: usize = 4;

/// What one endpoint answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interview {
    /// The last call.
    pub call: CallRecord,
    /// The calls before it, each refused for a field of its request.
    pub earlier: Vec<CallRecord>,
    /// The name the answer gave, whether or not it was asked for.
    pub answered_model: Option<String>,
    /// The words of a refusal: made harmless, without anything private, and short.
    pub error_body: Option<String>,
    /// What the endpoint turned out to want, beyond what the route says.
    pub switches: Vec<Switch>,
}

impl Interview {
    /// The name that would have to be admitted as an alias.
    pub fn other_name(&self, route: &Route) -> Option<&str> {
        self.answered_model
            .as_deref()
            .filter(|name| *name != route.model && !route.aliases.iter().any(|alias| alias == name))
    }
}

/// Asks the endpoint of a route. `still` is told how long it has taken, many times a second, and ends
/// it at once by saying no.
pub fn interview(
    route: &Route,
    still: &mut dyn FnMut(Duration) -> bool,
) -> Result<Interview, GivenUp> {
    let mut route = route.clone();
    route.any_name = true;
    attended(move |leash| ask(route, leash), still)
}

fn ask(mut route: Route, leash: &std::os::unix::net::UnixStream) -> Interview {
    let mut earlier = Vec::new();
    let mut switches: Vec<Switch> = Vec::new();
    loop {
        let heard = probe_heard(&route, Some(leash));
        let call = heard.call;
        let status = call.status.known().copied().unwrap_or(0);
        let wanted = heard
            .error_body
            .as_deref()
            .and_then(|body| refusal::wanted(status, body, route.habits))
            .filter(|switch| !switches.contains(switch) && earlier.len() + 1 < MAX_REQUESTS);
        if let Some(switch) = wanted {
            // The other of two that exclude each other was refused as well.
            switches.push(switch);
            route.habits = route.habits.with(&[switch]);
            earlier.push(call);
            continue;
        }
        let answered_model = match &call.model_answered {
            MaybeKnown::Known(name) => Some(name.clone()),
            MaybeKnown::NotLookedAt => None,
        };
        return Interview {
            call,
            earlier,
            answered_model,
            error_body: heard.error_body,
            switches,
        };
    }
}

#[cfg(test)]
#[path = "interview_tests.rs"]
mod tests;
