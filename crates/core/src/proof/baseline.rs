//! When a run of `fake` that was sealed before may stand for the one a stage-2 run is compared with.
//! Only one that a new run could not differ from: the same contract to the byte, which binds task,
//! containment, limits, script, programs and this very binary.

use crate::bundle::report::Report;
use crate::checks::known_baseline::KEPT_MILLIS;
use crate::run::event::{Kind, Origin};
use crate::run::rules::{Rules, RulesNumber};
use crate::task::contract::{Label, Stage};
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId};
use crate::values::time::Utc;
use crate::values::verdict::Status;
use crate::verify::{Standing, Verification};

/// The run of `fake` that would be made now.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub case: CaseId,
    pub engine: EngineId,
    /// Of the contract that it would have.
    pub contract_digest: Digest,
    /// A validator's run never counts for an operator, nor the other way round.
    pub origin: Origin,
    pub harness_version: String,
    pub now: Utc,
}

/// A run that lies there, as far as this is decided by it: verified just now, and told by the bytes that
/// were verified.
#[derive(Clone, Debug)]
pub struct Offered {
    pub standing: Standing,
    pub status: Option<Status>,
    pub rules: Option<RulesNumber>,
    pub engine: EngineId,
    pub contract_digest: Digest,
    pub origin: Origin,
    pub kind: Kind,
    pub label: Label,
    pub stage: Stage,
    pub harness_version: String,
    pub finished_at: Utc,
}

impl Offered {
    pub fn of(report: &Report, verified: &Verification) -> Self {
        Self {
            standing: verified.standing,
            status: verified.status,
            rules: verified.rules,
            engine: report.backend.clone(),
            contract_digest: report.contract_digest,
            origin: report.origin,
            kind: report.kind,
            label: report.label,
            stage: report.stage,
            harness_version: report.harness_version.clone(),
            finished_at: report.run_finished_at,
        }
    }
}

/// Why what is offered cannot stand for what is wanted; none where it can.
pub fn unusable(wanted: &Wanted, offered: &Offered) -> Option<&'static str> {
    let age = wanted.now.as_millis() - offered.finished_at.as_millis();
    let reasons = [
        (
            offered.standing != Standing::Good || offered.status != Some(Status::Pass),
            "does not verify as a pass",
        ),
        (
            offered.contract_digest != wanted.contract_digest,
            "had another contract",
        ),
        (offered.engine != wanted.engine, "is of another engine"),
        (offered.origin != wanted.origin, "was made for another"),
        (
            (offered.kind, offered.label, offered.stage) != (Kind::Run, Label::Case, Stage::Two),
            "is no run of a case at stage 2",
        ),
        (
            offered.harness_version != wanted.harness_version
                || offered.rules != Some(Rules::NEWEST.number()),
            "is of another harness",
        ),
        (!(0..=KEPT_MILLIS).contains(&age), "is not of the last week"),
    ];
    reasons.into_iter().find_map(|(is, why)| is.then_some(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn at(millis: i64) -> Utc {
        Utc::from_millis(millis).unwrap()
    }

    fn wanted() -> Wanted {
        Wanted {
            case: "demo".parse().unwrap(),
            engine: "fake".parse().unwrap(),
            contract_digest: Digest::of(b"contract"),
            origin: Origin::Operator,
            harness_version: "0.1.0".into(),
            now: at(NOW),
        }
    }

    fn offered() -> Offered {
        Offered {
            standing: Standing::Good,
            status: Some(Status::Pass),
            rules: Some(Rules::NEWEST.number()),
            engine: "fake".parse().unwrap(),
            contract_digest: Digest::of(b"contract"),
            origin: Origin::Operator,
            kind: Kind::Run,
            label: Label::Case,
            stage: Stage::Two,
            harness_version: "0.1.0".into(),
            finished_at: at(NOW - 1),
        }
    }

    #[test]
    fn only_what_a_new_run_could_not_differ_from_stands_for_it() {
        assert_eq!(unusable(&wanted(), &offered()), None);
        type Change = fn(&mut Offered);
        let changes: &[(Change, &str)] = &[
            (|o| o.standing = Standing::Unknown, "does not verify"),
            (|o| o.standing = Standing::Bad, "does not verify"),
            (|o| o.status = Some(Status::Fail), "does not verify"),
            (|o| o.status = None, "does not verify"),
            (
                |o| o.contract_digest = Digest::of(b"other"),
                "another contract",
            ),
            (|o| o.engine = "pi".parse().unwrap(), "another engine"),
            (|o| o.origin = Origin::Validator, "for another"),
            (|o| o.kind = Kind::Reverification, "no run of a case"),
            (|o| o.label = Label::Try, "no run of a case"),
            (|o| o.stage = Stage::Three, "no run of a case"),
            (|o| o.harness_version = "0.2.0".into(), "another harness"),
            (|o| o.rules = Some(RulesNumber(7)), "another harness"),
            (|o| o.rules = None, "another harness"),
            (
                |o| o.finished_at = at(NOW - KEPT_MILLIS - 1),
                "not of the last week",
            ),
            (|o| o.finished_at = at(NOW + 1), "not of the last week"),
        ];
        for (change, want) in changes {
            let mut changed = offered();
            change(&mut changed);
            let why = unusable(&wanted(), &changed);
            assert!(
                why.is_some_and(|why| why.contains(want)),
                "{want}: {changed:?}"
            );
        }
    }
}
