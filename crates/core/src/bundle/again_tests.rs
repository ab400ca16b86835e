//! Which runs may be judged again: every blocker, kind, stage and end.

use super::*;
use crate::run::event::{Dismissal, TimeLimit};
use crate::task::contract::tests::sample;
use crate::values::blocker::BLOCKERS;

fn passed(contract: &Contract) -> FirstRun<'_> {
    FirstRun {
        kind: Kind::Run,
        label: Label::Try,
        stage: Stage::Three,
        engine_end: Some(ProcessEnd::Exited { code: 0 }),
        changed: 1,
        blockers: Vec::new(),
        is_late: false,
        contract: Some(contract),
    }
}

fn answer(first: FirstRun<'_>) -> Result<(), NotAgain> {
    may_be_judged_again(&first).map(drop)
}

#[test]
fn every_blocker_but_those_of_the_checks_refuses() {
    let contract = sample();
    let of_checks = [
        "change_not_checked",
        "timeout",
        "toolchain_unavailable",
        "verification_failed",
        "verification_unproven",
        "verification_untrusted",
    ];
    for info in BLOCKERS {
        let ok = of_checks.contains(&info.name);
        for beside in [&[][..], &[Code::VerificationFailed]] {
            let blockers = [beside, &[info.code]].concat();
            let got = answer(FirstRun {
                blockers,
                ..passed(&contract)
            });
            let want = match ok {
                true => Ok(()),
                false => Err(NotAgain::NotOfChecks(info.code)),
            };
            assert_eq!(got, want, "{}", info.name);
        }
    }
    assert_eq!(answer(passed(&contract)), Ok(()), "a pass as well");
}

#[test]
fn kinds_stages_and_labels() {
    let contract = sample();
    for kind in [
        Kind::Settlement,
        Kind::Comparison,
        Kind::Refresh,
        Kind::Health,
        Kind::Reverification,
    ] {
        let first = FirstRun {
            kind,
            ..passed(&contract)
        };
        assert_eq!(answer(first), Err(NotAgain::NoRun), "{kind:?}");
    }
    for number in 1..=6u8 {
        for label in [Label::Try, Label::Case] {
            let first = FirstRun {
                stage: number.try_into().unwrap(),
                label,
                ..passed(&contract)
            };
            let want = match label == Label::Try || number <= 3 {
                true => Ok(()),
                false => Err(NotAgain::HigherStage),
            };
            assert_eq!(answer(first), want, "{label:?} {number}");
        }
    }
}

#[test]
fn an_engine_that_did_not_end_well_left_nothing_to_judge() {
    let contract = sample();
    let timed_out = ProcessEnd::TimedOut {
        limit: TimeLimit::Wall,
    };
    for (end, want) in [
        (None, NotAgain::NoPatch),
        (Some(ProcessEnd::Exited { code: 1 }), NotAgain::EngineFailed),
        (
            Some(ProcessEnd::Signalled { signal: 9 }),
            NotAgain::EngineFailed,
        ),
        (Some(timed_out), NotAgain::EngineFailed),
        (
            Some(ProcessEnd::Dismissed {
                because: Dismissal::Unread,
            }),
            NotAgain::EngineFailed,
        ),
        (Some(ProcessEnd::Cancelled), NotAgain::EngineFailed),
        (Some(ProcessEnd::Lost), NotAgain::EngineFailed),
    ] {
        let first = FirstRun {
            engine_end: end,
            blockers: vec![Code::Timeout],
            ..passed(&contract)
        };
        assert_eq!(answer(first), Err(want), "{end:?}");
    }
    let first = FirstRun {
        engine_end: Some(ProcessEnd::Dismissed {
            because: Dismissal::Answered,
        }),
        ..passed(&contract)
    };
    assert!(answer(first).is_ok());
}

#[test]
fn nothing_without_patch_contract_or_leave() {
    let (contract, mut asks) = (sample(), sample());
    asks.approval_required = true;
    for (first, want) in [
        (
            FirstRun {
                changed: 0,
                ..passed(&contract)
            },
            NotAgain::NoPatch,
        ),
        (
            FirstRun {
                contract: None,
                ..passed(&contract)
            },
            NotAgain::NoContract,
        ),
        (passed(&asks), NotAgain::NeedsApproval),
        (
            FirstRun {
                is_late: true,
                ..passed(&contract)
            },
            NotAgain::EngineFailed,
        ),
    ] {
        assert_eq!(answer(first), Err(want));
    }
}
