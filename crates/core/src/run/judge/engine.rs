//! How the engine ended, what it attempted, and whether it had a model to the end.

use super::verification::all_green;
use crate::run::event::{EngineEnded, ProcessEnd, TimeLimit};
use crate::run::facts::Facts;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code};

/// Ended with 0, had a model to the end, and did not itself say that it failed. Where a patch is judged again
/// the engine of the first run did, or it would not be.
pub fn engine_ended_well(facts: &Facts) -> bool {
    let Some(ended) = &facts.engine_ended else {
        return facts.reverifies.is_some();
    };
    ended.end.succeeded()
        && wire_blockers(ended).is_empty()
        && refusal(ended).is_none()
        && facts.gave_up.is_none()
}

/// What the wire means: an engine that had no model to the end did not do its work, whatever its
/// exit code.
fn wire_blockers(ended: &EngineEnded) -> Vec<Blocker> {
    let Some(model) = &ended.model else {
        return Vec::new();
    };
    let unavailable = model
        .unavailable
        .clone()
        .map(|why| Blocker::new(Code::ProviderUnavailable, Some(why)));
    let over = model
        .over_budget
        .clone()
        .map(|what| Blocker::new(Code::BudgetExceeded, Some(what)));
    unavailable.into_iter().chain(over).collect()
}

/// The refusal an engine ended with. One that went on and was answered has got over it.
fn refusal(ended: &EngineEnded) -> Option<&str> {
    ended.model.as_ref()?.ended_refused.as_deref()
}

pub(super) fn engine_blockers(contract: Option<&Contract>, facts: &Facts) -> Vec<Blocker> {
    let Some(ended) = &facts.engine_ended else {
        return Vec::new();
    };
    let mut out = wire_blockers(ended);
    // What the wire explains needs no second explanation by the engine.
    let gave_up = facts.gave_up.clone().filter(|_| out.is_empty());
    out.extend(how_it_ended(contract, facts, ended));
    if ended.end.succeeded() {
        let said = match (refusal(ended), gave_up) {
            (Some(refused), Some(why)) => Some(format!("{refused}; in its own words: {why}")),
            (Some(refused), None) => Some(refused.to_owned()),
            (None, Some(why)) => Some(format!("in its own words: {why}")),
            (None, None) => None,
        };
        out.extend(said.map(|said| Blocker::new(Code::EngineFailed, Some(said))));
    }
    out
}

fn how_it_ended(contract: Option<&Contract>, facts: &Facts, ended: &EngineEnded) -> Vec<Blocker> {
    let green = facts.verification.as_ref().is_some_and(all_green);
    match ended.end {
        ProcessEnd::Exited { code: 0 } => missing_engine_events(contract, facts),
        ProcessEnd::Exited { code } => {
            vec![Blocker::new(
                Code::EngineFailed,
                Some(match refusal(ended) {
                    Some(refused) => format!("exit code {code}; {refused}"),
                    None => format!("exit code {code}"),
                }),
            )]
        }
        ProcessEnd::Signalled { signal } => {
            vec![Blocker::new(
                Code::EngineFailed,
                Some(format!("killed by signal {signal}")),
            )]
        }
        ProcessEnd::TimedOut { limit } => {
            let detail = Some(format!(
                "the engine reached its {} limit",
                limit_word(limit)
            ));
            let mut out = vec![Blocker::new(Code::Timeout, detail)];
            if green {
                out.push(Blocker::new(Code::LifecycleTimeoutAfterValidPatch, None));
            }
            out
        }
        ProcessEnd::MemoryLimit { .. } => {
            vec![Blocker::new(Code::ResourceLimit, Some("memory".into()))]
        }
        // A cancelled run carries `interrupted` as a finding; this only keeps it from ever passing.
        ProcessEnd::Cancelled => match facts.findings.iter().any(|f| f.code == Code::Interrupted) {
            true => Vec::new(),
            false => vec![Blocker::new(Code::EngineFailed, Some("cancelled".into()))],
        },
        ProcessEnd::Lost => vec![Blocker::new(
            Code::EngineFailed,
            Some("its end was not observed".into()),
        )],
    }
}

/// What the engine was seen to attempt, whether or not it came to anything: nothing of it could.
pub(super) fn attempt_blocker(contract: Option<&Contract>, facts: &Facts) -> Option<Blocker> {
    let seen = facts.engine_ended.as_ref()?.actions.as_ref()?;
    let forbidden = contract
        .map(|contract| contract.forbidden_actions.clone())
        .unwrap_or_default();
    seen.failing(&forbidden)
        .map(|detail| Blocker::new(Code::ForbiddenActionAttempted, Some(detail)))
}

pub(super) fn limit_word(limit: TimeLimit) -> &'static str {
    match limit {
        TimeLimit::Idle => "idle",
        TimeLimit::Wall => "wall",
    }
}

fn missing_engine_events(contract: Option<&Contract>, facts: &Facts) -> Vec<Blocker> {
    // Where the case expects nothing in particular, the engine's own terminal event is expected.
    let expected = match contract {
        None => Vec::new(),
        Some(contract) if contract.evidence_expectations.is_empty() => {
            vec![contract.lane.terminal_event]
        }
        Some(contract) => contract.evidence_expectations.clone(),
    };
    expected
        .iter()
        .filter(|event| !facts.engine_events.contains(event))
        .map(|event| {
            Blocker::new(
                Code::MissingRequiredEvent,
                Some(format!("{} never came", event.as_str())),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{codes, codes_with, good};
    use super::*;
    use crate::run::event::Event;
    use crate::run::facts::fold_events;
    use crate::run::tests::started_again;
    use crate::values::event_type::EventType;

    /// The good run, with no engine in it.
    fn again(facts: &mut Facts) {
        let start = fold_events(&[Event::RunStarted(started_again())]).unwrap();
        facts.reverifies = start.facts.reverifies;
        facts.engine_ended = None;
        facts.engine_events.clear();
    }

    #[test]
    fn a_green_start_is_asked_of_no_patch_that_is_judged_again() {
        let asked = |contract: &mut Contract| contract.reasons.green_start = true;
        assert_eq!(codes_with(asked, again), Vec::<&str>::new());
        assert_ne!(codes_with(asked, |_| {}), Vec::<&str>::new());
    }

    #[test]
    fn a_patch_that_is_judged_again_needs_all_but_an_engine() {
        assert_eq!(codes(again), Vec::<&str>::new());
        type Change = fn(&mut Facts);
        let less: [(&str, Change); 4] = [
            ("contract", |f| f.contract = None),
            ("patch", |f| f.patch = None),
            ("diff", |f| f.diff = None),
            ("verification", |f| f.verification = None),
        ];
        for (what, take) in less {
            let got = codes(|facts| {
                again(facts);
                take(facts);
            });
            assert_eq!(got, ["missing_required_event"], "without {what}");
        }
        let empty = codes(|facts| {
            again(facts);
            facts.diff.as_mut().unwrap().changes.clear();
        });
        assert!(empty.contains(&"no_diff"), "{empty:?}");
        assert!(good().engine_events.contains(&EventType::EngineStarted));
    }
}
