//! What the operator said of a run, and what became of it. A green run at stage 5 waits for that word; a
//! settlement is judged by the word and by its landing alone.

use crate::run::event::{LandingStep, Outcome};
use crate::run::facts::Facts;
use crate::task::contract::{Contract, Stage};
use crate::values::blocker::{Blocker, Code};
use crate::values::event_type::EventType;

/// Is everything about this run as it must be but the operator's word? Asked where nothing else blocks.
pub(super) fn wants_outcome(contract: Option<&Contract>, facts: &Facts) -> bool {
    let is_asked = |contract: &Contract| contract.lane.stage == Stage::Five;
    !facts.settles && contract.is_some_and(is_asked)
}

/// What speaks against a settlement: the word itself, and a landing that the target did not allow.
pub(super) fn blockers(facts: &Facts) -> Vec<Blocker> {
    let mut out = Vec::new();
    if facts.rejected_by_operator {
        out.push(Blocker::new(Code::OperatorRejected, None));
    }
    if let Some(refused) = facts.landing_at(LandingStep::Refused) {
        out.push(Blocker::new(
            Code::LandingUnsupported,
            refused.detail.clone(),
        ));
    }
    out
}

/// The positive fact that a settlement would need and does not have.
pub(super) fn missing(facts: &Facts) -> Option<&'static str> {
    let Some(said) = &facts.outcome else {
        return Some(EventType::OperatorOutcomeRecorded.as_str());
    };
    let landed = facts.landing_at(LandingStep::Landed);
    let as_asked = landed.is_some_and(|landed| said.land == Some(landed.mode));
    // A rejection is a blocker of its own and never asked for more.
    (said.outcome == Outcome::Accepted && !as_asked).then_some(EventType::LandingUpdated.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::{LandMode, LandingUpdated, OperatorOutcome};
    use crate::run::judge::judge;
    use crate::run::rules::Rules;
    use crate::task::contract::tests::sample;
    use crate::values::digest::Digest;
    use crate::values::verdict::Status;

    fn said(outcome: Outcome) -> Facts {
        Facts {
            rules: Rules::NEWEST.number(),
            settles: true,
            rejected_by_operator: outcome == Outcome::Rejected,
            outcome: Some(OperatorOutcome {
                outcome,
                actor: "me".into(),
                given_ahead: false,
                rules: Rules::NEWEST.number(),
                record_sha256: Digest::of(b"record"),
                land: (outcome == Outcome::Accepted).then_some(LandMode::Merge),
                reverts: None,
            }),
            ..Facts::default()
        }
    }

    fn step(step: LandingStep, mode: LandMode) -> LandingUpdated {
        LandingUpdated {
            step,
            mode,
            old_commit: None,
            new_commit: None,
            detail: None,
        }
    }

    #[test]
    fn only_what_was_accepted_and_landed_as_asked_passes() {
        use Code::{LandingUnsupported, MissingRequiredEvent, OperatorRejected};
        use LandingStep::{Landed, Prepared, Refused};
        use Outcome::{Accepted, Rejected};
        let (merge, branch) = (LandMode::Merge, LandMode::Branch);
        let mut contract = sample();
        contract.lane.stage = Stage::Five;
        for (outcome, steps, status, codes) in [
            (
                Accepted,
                vec![step(Prepared, merge), step(Landed, merge)],
                Status::Pass,
                vec![],
            ),
            (Accepted, vec![], Status::Fail, vec![MissingRequiredEvent]),
            (
                Accepted,
                vec![step(Prepared, merge)],
                Status::Fail,
                vec![MissingRequiredEvent],
            ),
            (
                Accepted,
                vec![step(Landed, branch)],
                Status::Fail,
                vec![MissingRequiredEvent],
            ),
            (
                Accepted,
                vec![step(Refused, merge)],
                Status::Fail,
                vec![LandingUnsupported],
            ),
            (
                Accepted,
                vec![step(Landed, merge), step(Refused, merge)],
                Status::Fail,
                vec![LandingUnsupported],
            ),
            (Rejected, vec![], Status::Fail, vec![OperatorRejected]),
            (
                Rejected,
                vec![step(Landed, merge)],
                Status::Fail,
                vec![OperatorRejected],
            ),
            (
                Rejected,
                vec![step(Refused, merge)],
                Status::Fail,
                vec![OperatorRejected, LandingUnsupported],
            ),
        ] {
            let facts = Facts {
                landing: steps,
                ..said(outcome)
            };
            let judged = judge(Some(&contract), &facts);
            assert_eq!(
                (judged.status, judged.codes()),
                (status, codes),
                "{facts:?}"
            );
        }
        let nobody = Facts {
            outcome: None,
            ..said(Accepted)
        };
        assert_eq!(
            judge(Some(&contract), &nobody).codes(),
            [MissingRequiredEvent]
        );
    }

    #[test]
    fn a_green_run_waits_for_its_outcome_at_stage_5_alone() {
        let (mut contract, facts) = (sample(), crate::run::judge::tests::good());
        for number in 1..=6 {
            contract.lane.stage = Stage::try_from(number).unwrap();
            let want: &[Code] = match number {
                5 => &[Code::MissingOperatorOutcome],
                _ => &[],
            };
            assert_eq!(
                judge(Some(&contract), &facts).codes(),
                want,
                "stage {number}"
            );
        }
        contract.lane.stage = Stage::Five;
        let mut red = facts;
        red.verification = None;
        let codes = judge(Some(&contract), &red).codes();
        assert!(!codes.contains(&Code::MissingOperatorOutcome), "{codes:?}");
    }
}
