//! What an engine tells of its own failure, and of its reviewer, since rules 9.

use super::tests::{codes, codes_with, good};
use super::*;
use crate::run::event::{EngineReview, ProcessEnd};
use crate::task::contract::tests::sample;

#[test]
fn since_rules_9_the_last_review_decides() {
    let review = |accepted| EngineReview {
        accepted,
        summary: "s".into(),
    };
    for (said, before, since) in [
        (vec![false, true], true, false),
        (vec![true, false], true, true),
        (vec![false, false], true, true),
        (vec![true], false, false),
    ] {
        for (rules, no) in [(Rules::Eight, before), (Rules::NEWEST, since)] {
            let found = codes(|facts| {
                facts.rules = rules.number();
                facts.reviews = said.iter().copied().map(review).collect();
            });
            let wanted: &[&str] = if no { &["reviewer_rejected"] } else { &[] };
            assert_eq!(found, wanted, "{rules:?} {said:?}");
        }
    }
}

#[test]
fn since_rules_9_a_failure_has_a_cause_of_its_own() {
    use crate::run::event::{FailedBy, ModelUse};
    let found = |rules: Rules, by: Option<FailedBy>, rejected: bool| {
        codes(|facts| {
            facts.rules = rules.number();
            facts.gave_up = Some("its own words".into());
            facts.failed_by = by;
            facts.engine_ended.as_mut().unwrap().model = Some(ModelUse::default());
            facts.reviews = vec![EngineReview {
                accepted: !rejected,
                summary: "s".into(),
            }];
        })
    };
    let newest = Rules::NEWEST;
    assert_eq!(found(newest, None, false), ["engine_failed"]);
    assert_eq!(
        found(newest, Some(FailedBy::Protocol), false),
        ["agent_protocol_failed"]
    );
    assert_eq!(
        found(newest, Some(FailedBy::Wire), false),
        ["provider_unavailable"]
    );
    assert_eq!(
        found(newest, Some(FailedBy::Review), true),
        ["reviewer_rejected"]
    );
    // Nobody said no: then that is no explanation.
    assert_eq!(
        found(newest, Some(FailedBy::Review), false),
        ["engine_failed"]
    );
    assert_eq!(
        found(Rules::Eight, Some(FailedBy::Protocol), false),
        ["engine_failed"]
    );
}

/// That nothing was asked of a model is one cause: the event that never came says it, and where it came the failure
/// is one like any other.
#[test]
fn who_never_asked_a_model_has_one_blocker() {
    use crate::run::event::FailedBy;
    let needs =
        |contract: &mut Contract| contract.lane.required_events = vec![EventType::EngineModelCall];
    let silent = |facts: &mut Facts| {
        facts.gave_up = Some("its own words".into());
        facts.failed_by = Some(FailedBy::Silence);
    };
    assert_eq!(codes_with(needs, silent), ["missing_required_event"]);
    assert_eq!(codes(silent), ["engine_failed"]);
    let asked = |facts: &mut Facts| {
        silent(facts);
        facts.engine_events.insert(EventType::EngineModelCall);
    };
    assert_eq!(codes_with(needs, asked), ["engine_failed"]);
}

#[test]
fn since_rules_9_sentences_name_the_engine() {
    let mut facts = good();
    facts.rules = Rules::NEWEST.number();
    facts.engine_ended.as_mut().unwrap().end = ProcessEnd::Exited { code: 1 };
    let said = |facts: &Facts| judge(Some(&sample()), facts).blockers[0].message.clone();
    let engine = sample().lane.engine;
    assert_eq!(
        said(&facts),
        format!("{engine} engine failed with exit code 1")
    );
    facts.rules = Rules::Eight.number();
    assert_eq!(said(&facts), "the engine failed");
    let mut facts = good();
    facts.rules = Rules::NEWEST.number();
    facts.gave_up = Some("no envelope".into());
    facts.failed_by = Some(crate::run::event::FailedBy::Protocol);
    assert_eq!(
        said(&facts),
        format!("{engine} agent result protocol failed")
    );
}

#[test]
fn what_shows_that_an_engine_worked_is_always_asked_for() {
    let needs =
        |contract: &mut Contract| contract.lane.required_events = vec![EventType::EnginePhase];
    assert_eq!(codes_with(needs, |_| {}), ["missing_required_event"]);
    let told = |facts: &mut Facts| assert!(facts.engine_events.insert(EventType::EnginePhase));
    assert_eq!(codes_with(needs, told), Vec::<&str>::new());
}
