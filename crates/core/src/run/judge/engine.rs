//! How the engine ended, what it attempted, and whether it had a model to the end.

use super::verification::all_green;
use crate::run::event::{EngineEnded, FailedBy, ProcessEnd, TimeLimit};
use crate::run::facts::Facts;
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code};
use crate::values::event_type::EventType;

/// Ended with 0 or dismissed after its answer, had a model to the end, and did not itself say that it failed. Where a patch is judged again
/// the engine of the first run did, or it would not be.
pub fn engine_ended_well(facts: &Facts) -> bool {
    let Some(ended) = &facts.engine_ended else {
        return facts.reverifies.is_some();
    };
    ended.end.is_in_order()
        && wire_blockers(facts, ended).is_empty()
        && refusal(ended).is_none()
        && facts.gave_up.is_none()
}

/// What the wire means: an engine that had no model to the end did not do its work, whatever its
/// exit code.
fn wire_blockers(facts: &Facts, ended: &EngineEnded) -> Vec<Blocker> {
    let Some(model) = &ended.model else {
        return Vec::new();
    };
    let unavailable = model
        .unavailable
        .clone()
        // A request that was never answered, though others were after it.
        .or_else(|| {
            let by_wire = facts.failed_by == Some(FailedBy::Wire);
            facts.gave_up.clone().filter(|_| by_wire)
        })
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

pub(super) fn engine_blockers(
    rules: Rules,
    contract: Option<&Contract>,
    facts: &Facts,
) -> Vec<Blocker> {
    let Some(ended) = &facts.engine_ended else {
        return Vec::new();
    };
    let mut out = wire_blockers(facts, ended);
    // What the wire explains needs no second explanation by the engine.
    let gave_up = facts.gave_up.clone().filter(|_| out.is_empty());
    let explained =
        rules >= Rules::Eight && !out.is_empty() && is_consequence(rules, facts, ended.end);
    if !explained {
        out.extend(how_it_ended(rules, contract, facts, ended));
    }
    if ended.end.is_in_order() {
        let cause = facts
            .failed_by
            .filter(|_| rules >= Rules::Nine && gave_up.is_some() && refusal(ended).is_none());
        let rejected = facts.reviews.last().is_some_and(|last| !last.accepted);
        match cause {
            Some(FailedBy::Protocol) => {
                let name = engine_name(contract);
                let message = format!("{name} agent result protocol failed");
                out.push(Blocker::saying(Code::AgentProtocolFailed, message, gave_up));
                return out;
            }
            // Its reviewer's no has a blocker of its own.
            Some(FailedBy::Review) if rejected => return out,
            // That nothing was asked of a model is said already, by the event that never came.
            Some(FailedBy::Silence) if never_asked(facts) && !out.is_empty() => return out,
            Some(FailedBy::Review | FailedBy::Wire | FailedBy::Silence) | None => {}
        }
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

/// Is this end what follows where an engine has no model any more? It leaves, with any code and perhaps
/// without its last word, or it asks again until its time is up. A signal or too much memory is a cause of
/// its own; until rules 10 so was a time limit that a finished patch met.
fn is_consequence(rules: Rules, facts: &Facts, end: ProcessEnd) -> bool {
    match end {
        ProcessEnd::Exited { .. } => true,
        ProcessEnd::Dismissed { because } => because.is_in_order(),
        ProcessEnd::TimedOut { .. } => {
            rules >= Rules::Ten || !facts.verification.as_ref().is_some_and(all_green)
        }
        ProcessEnd::Signalled { .. }
        | ProcessEnd::MemoryLimit { .. }
        | ProcessEnd::Cancelled
        | ProcessEnd::Lost => false,
    }
}

fn never_asked(facts: &Facts) -> bool {
    !facts.engine_events.contains(&EventType::EngineModelCall)
}

fn engine_name(contract: Option<&Contract>) -> &str {
    contract.map_or("the", |contract| contract.lane.engine.as_str())
}

fn how_it_ended(
    rules: Rules,
    contract: Option<&Contract>,
    facts: &Facts,
    ended: &EngineEnded,
) -> Vec<Blocker> {
    let green = facts.verification.as_ref().is_some_and(all_green);
    match ended.end {
        ProcessEnd::Exited { code: 0 } => missing_engine_events(contract, facts),
        ProcessEnd::Dismissed { because } if because.is_in_order() => {
            missing_engine_events(contract, facts)
        }
        ProcessEnd::Dismissed { because } => vec![Blocker::new(
            Code::EngineFailed,
            Some(because.sentence().into()),
        )],
        ProcessEnd::Exited { code } => {
            let detail = Some(match refusal(ended) {
                Some(refused) => format!("exit code {code}; {refused}"),
                None => format!("exit code {code}"),
            });
            let name = engine_name(contract);
            let message = format!("{name} engine failed with exit code {code}");
            vec![match rules >= Rules::Nine {
                true => Blocker::saying(Code::EngineFailed, message, detail),
                false => Blocker::new(Code::EngineFailed, detail),
            }]
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
    let Some(contract) = contract else {
        return Vec::new();
    };
    // Where the case expects nothing in particular, the engine's own terminal event is expected. What shows
    // that this engine worked at all is expected always.
    let expected = match contract.evidence_expectations.as_slice() {
        [] => std::slice::from_ref(&contract.lane.terminal_event),
        named => named,
    };
    let of_lane = contract.lane.required_events.iter();
    let more = of_lane.filter(|event| !expected.contains(event));
    expected
        .iter()
        .chain(more)
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
    use crate::run::event::{Dismissal, Event, ModelUse};
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

    /// The code of the wire first, then these.
    struct Raised {
        end: ProcessEnd,
        green: bool,
        by_7: &'static [&'static str],
        by_8: &'static [&'static str],
        by_10: &'static [&'static str],
    }

    #[test]
    fn since_rules_8_what_the_wire_explains_is_raised_once() {
        const TIMED_OUT: ProcessEnd = ProcessEnd::TimedOut {
            limit: TimeLimit::Idle,
        };
        const LATE: &[&str] = &["timeout", "lifecycle_timeout_after_valid_patch"];
        let memory = ProcessEnd::MemoryLimit {
            measured_by: crate::run::event::MemoryMeter::Sampled,
        };
        let found = |rules: Rules, end: ProcessEnd, unavailable: bool, green: bool| {
            codes(|facts| {
                facts.rules = rules.number();
                let ended = facts.engine_ended.as_mut().unwrap();
                ended.end = end;
                ended.model = Some(ModelUse {
                    unavailable: unavailable.then(|| "call 2: 500".to_owned()),
                    over_budget: (!unavailable).then(|| "calls".to_owned()),
                    ..ModelUse::default()
                });
                if !green {
                    facts.diff.as_mut().unwrap().changes.clear();
                    facts.verification = None;
                }
            })
        };
        let raised = |end, green, by_7, by_8, by_10| Raised {
            end,
            green,
            by_7,
            by_8,
            by_10,
        };
        // These have a cause of their own.
        let own = |end, code: &'static [&'static str]| raised(end, true, code, code, code);
        let rows = [
            raised(exited(1), true, &["engine_failed"], &[], &[]),
            raised(exited(1), false, &["engine_failed"], &[], &[]),
            raised(TIMED_OUT, false, &["timeout"], &[], &[]),
            raised(TIMED_OUT, true, LATE, LATE, &[]),
            own(signalled(), &["engine_failed"]),
            own(ProcessEnd::Lost, &["engine_failed"]),
            own(memory, &["resource_limit"]),
        ];
        for (unavailable, wire) in [(true, "provider_unavailable"), (false, "budget_exceeded")] {
            for row in &rows {
                for (rules, more) in [
                    (Rules::Seven, row.by_7),
                    (Rules::Eight, row.by_8),
                    (Rules::Nine, row.by_8),
                    (Rules::Ten, row.by_10),
                ] {
                    let found = found(rules, row.end, unavailable, row.green);
                    let said = format!("{:?} by {rules:?}", row.end);
                    assert_eq!(found, [&[wire], more].concat(), "{said}");
                }
            }
        }
        // Nothing on the wire explains these.
        assert_eq!(codes(|facts| end(facts, exited(1))), ["engine_failed"]);
        assert!(codes(|facts| end(facts, TIMED_OUT)).contains(&"timeout"));
    }

    fn end(facts: &mut Facts, end: ProcessEnd) {
        facts.engine_ended.as_mut().unwrap().end = end;
    }

    fn exited(code: u8) -> ProcessEnd {
        ProcessEnd::Exited { code }
    }

    fn signalled() -> ProcessEnd {
        ProcessEnd::Signalled { signal: 9 }
    }

    #[test]
    fn since_rules_8_a_last_word_that_never_came_is_explained_too() {
        let without_last_word = |rules: Rules| {
            codes(|facts| {
                facts.rules = rules.number();
                facts.engine_events.remove(&EventType::EngineResult);
                facts.engine_ended.as_mut().unwrap().model = Some(ModelUse {
                    unavailable: Some("call 1: cut".into()),
                    ..ModelUse::default()
                });
            })
        };
        let both = ["provider_unavailable", "missing_required_event"];
        assert_eq!(without_last_word(Rules::Seven), both);
        assert_eq!(without_last_word(Rules::Eight), both[..1]);
    }

    #[test]
    fn a_dismissed_end_is_no_failure_and_makes_none_better() {
        let dismissed = |because| ProcessEnd::Dismissed { because };
        let answered = dismissed(Dismissal::Answered);
        assert_eq!(codes(|facts| end(facts, answered)), Vec::<&str>::new());
        assert_eq!(
            codes(|facts| end(facts, dismissed(Dismissal::Unread))),
            ["engine_failed"]
        );
        // Without its last word, with a last word that says no, without a change.
        let silent = codes(|facts| {
            end(facts, answered);
            facts.engine_events.remove(&EventType::EngineResult);
        });
        assert_eq!(silent, ["missing_required_event"]);
        let refused = codes(|facts| {
            end(facts, answered);
            facts.gave_up = Some("refusal".into());
        });
        assert_eq!(refused, ["engine_failed"]);
        let idle = codes(|facts| {
            end(facts, answered);
            facts.diff.as_mut().unwrap().changes.clear();
        });
        assert!(idle.contains(&"no_diff"), "{idle:?}");
        // What the wire explains is not raised again.
        let alone = codes(|facts| {
            end(facts, answered);
            facts.gave_up = Some("error".into());
            facts.engine_ended.as_mut().unwrap().model = Some(ModelUse {
                unavailable: Some("call 1: 500".into()),
                ..ModelUse::default()
            });
        });
        assert_eq!(alone, ["provider_unavailable"]);
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
