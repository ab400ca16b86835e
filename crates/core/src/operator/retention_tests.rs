use proptest::prelude::*;

use super::*;
use crate::operator::listing::Summary;
use crate::run::event::{Kind, Origin};
use crate::task::contract::Stage;

const DAY: i64 = 86_400_000;

fn now() -> Utc {
    "2026-02-01T00:00:00.000Z".parse().unwrap()
}

/// A sealed run that began so many days ago and takes 100 bytes.
fn run(days_ago: i64, status: Status) -> Candidate {
    let started_at = Utc::from_millis(now().as_millis() - days_ago * DAY).unwrap();
    Candidate {
        listed: Listed {
            run_id: RunId::new(started_at, &"quick".parse().unwrap(), "k3v9").unwrap(),
            state: ListedState::Sealed(Box::new(Summary {
                status,
                kind: Kind::Run,
                origin: Origin::Operator,
                case_id: "quick".parse().unwrap(),
                engine: "fake".parse().unwrap(),
                stage: Stage::Two,
                started_at,
                finished_at: started_at,
                failure_reason: None,
                blockers: Vec::new(),
                again: None,
                sealed_by: None,
            })),
        },
        is_own_directory: true,
        is_held: false,
        refers_to: Vec::new(),
        size: Size(100),
    }
}

fn passes(days: &[i64]) -> Vec<Candidate> {
    days.iter().map(|days| run(*days, Status::Pass)).collect()
}

/// What goes, by days ago.
fn gone(runs: &[Candidate], policy: &Policy) -> Vec<i64> {
    let fates = decide_fates(runs, policy, now());
    assert_eq!(fates.len(), runs.len());
    let removed = runs
        .iter()
        .zip(fates)
        .filter(|(_, fate)| matches!(fate, Fate::Remove(_)));
    removed
        .map(|(run, _)| (now().as_millis() - run.listed.started().unwrap().as_millis()) / DAY)
        .collect()
}

/// Takes everything that may go.
fn everything() -> Policy {
    Policy {
        max_size: Some(Size(0)),
        ..Policy::default()
    }
}

fn older_than(days: u32) -> Policy {
    Policy {
        older_than: Some(format!("{days}d").parse().unwrap()),
        ..Policy::default()
    }
}

#[test]
fn limits() {
    let runs = passes(&[1, 10, 20, 30]);
    let table: Vec<(&str, Policy, &[i64])> = vec![
        ("age", older_than(15), &[20, 30]),
        ("an age is not yet older than itself", older_than(20), &[30]),
        ("an age nothing reaches", older_than(100), &[]),
        (
            "size, oldest first",
            Policy {
                max_size: Some(Size(250)),
                ..Policy::default()
            },
            &[20, 30],
        ),
        (
            "size reached exactly",
            Policy {
                max_size: Some(Size(300)),
                ..Policy::default()
            },
            &[30],
        ),
        (
            "size not reached",
            Policy {
                max_size: Some(Size(400)),
                ..Policy::default()
            },
            &[],
        ),
        (
            "each limit applies: size asks for more",
            Policy {
                max_size: Some(Size(100)),
                ..older_than(25)
            },
            &[10, 20, 30],
        ),
        (
            "each limit applies: age asks for more",
            Policy {
                max_size: Some(Size(399)),
                ..older_than(5)
            },
            &[10, 20, 30],
        ),
        (
            "all but the newest",
            Policy {
                keep_last: Some(1),
                ..Policy::default()
            },
            &[10, 20, 30],
        ),
        (
            "keep none",
            Policy {
                keep_last: Some(0),
                ..Policy::default()
            },
            &[1, 10, 20, 30],
        ),
        (
            "keep more than there are",
            Policy {
                keep_last: Some(9),
                ..Policy::default()
            },
            &[],
        ),
        (
            "the newest stay whatever their age",
            Policy {
                keep_last: Some(3),
                ..older_than(5)
            },
            &[30],
        ),
        (
            "the newest stay whatever the size",
            Policy {
                keep_last: Some(3),
                ..everything()
            },
            &[30],
        ),
    ];
    for (name, policy, want) in table {
        assert_eq!(gone(&runs, &policy), want, "{name}");
        let mut reversed = runs.clone();
        reversed.reverse();
        let mut want = want.to_vec();
        want.reverse();
        assert_eq!(
            gone(&reversed, &policy),
            want,
            "{name}, given in another order"
        );
    }
}

#[test]
fn a_status_narrows_every_rule() {
    let runs = vec![
        run(1, Status::Pass),
        run(2, Status::Fail),
        run(3, Status::Pass),
        run(4, Status::Fail),
        run(5, Status::Blocked),
    ];
    let only = |status, policy: Policy| Policy {
        status: Some(status),
        ..policy
    };
    assert_eq!(gone(&runs, &only(Status::Fail, Policy::default())), [2, 4]);
    assert_eq!(gone(&runs, &only(Status::Fail, older_than(3))), [4]);
    assert_eq!(gone(&runs, &only(Status::Pass, everything())), [1, 3]);
    let keep_one = Policy {
        keep_last: Some(1),
        ..Policy::default()
    };
    assert_eq!(
        gone(&runs, &only(Status::Fail, keep_one)),
        [4],
        "the last one of that status is kept, not the last of all"
    );
    assert_eq!(
        gone(&runs, &only(Status::Blocked, keep_one)),
        [] as [i64; 0]
    );
    let mut with_live = runs.clone();
    with_live[0].listed.state = ListedState::Live;
    assert_eq!(
        gone(&with_live, &only(Status::Fail, keep_one)),
        [4],
        "a run without a verdict takes no place among the last"
    );
}

/// Each row removes nothing but for the first, which shows that the policy would.
#[test]
fn what_no_policy_may_remove() {
    let by: RunId = "20260131T000000Z-other-k3v9".parse().unwrap();
    let state = |state: ListedState| move |run: &mut Candidate| run.listed.state = state.clone();
    type Change = Box<dyn Fn(&mut Candidate)>;
    let table: Vec<(Change, Fate)> = vec![
        (Box::new(|_| {}), Fate::Remove(Removed::Age)),
        (Box::new(state(ListedState::Live)), Fate::Keep(Kept::Live)),
        (
            Box::new(state(ListedState::Unsealed)),
            Fate::Keep(Kept::Unsealed),
        ),
        (
            Box::new(state(ListedState::Foreign)),
            Fate::Keep(Kept::Foreign),
        ),
        (
            Box::new(state(ListedState::Broken("forged".into()))),
            Fate::Keep(Kept::Unreadable),
        ),
        (
            Box::new(state(ListedState::Unreadable("torn".into()))),
            Fate::Keep(Kept::Unreadable),
        ),
        (Box::new(|run| run.is_held = true), Fate::Keep(Kept::Live)),
        (
            Box::new(|run| run.is_own_directory = false),
            Fate::Keep(Kept::Link),
        ),
    ];
    for (change, want) in table {
        let mut runs = passes(&[30, 1]);
        change(&mut runs[0]);
        for policy in [
            Policy {
                max_size: Some(Size(0)),
                ..older_than(1)
            },
            Policy {
                keep_last: Some(0),
                ..older_than(1)
            },
        ] {
            assert_eq!(decide_fates(&runs, &policy, now())[0], want);
        }
    }
    let mut runs = passes(&[30, 20, 10]);
    runs[2].listed.run_id = by.clone();
    runs[2].refers_to = vec![runs[0].listed.run_id.clone(), by.clone()];
    let fates = decide_fates(&runs, &older_than(1), now());
    assert_eq!(
        fates[0],
        Fate::Keep(Kept::ReferredToBy(by)),
        "named by another bundle"
    );
    assert_eq!(fates[1], Fate::Remove(Removed::Age), "named by none");
    assert_eq!(
        fates[2],
        Fate::Remove(Removed::Age),
        "naming itself protects nothing"
    );
}

#[test]
fn whoever_refers_protects_even_without_a_verdict() {
    for state in [
        ListedState::Live,
        ListedState::Unsealed,
        ListedState::Unreadable("torn".into()),
    ] {
        let mut runs = passes(&[30, 1]);
        runs[1].refers_to = vec![runs[0].listed.run_id.clone()];
        runs[1].listed.state = state;
        assert!(gone(&runs, &everything()).is_empty());
    }
}

#[test]
fn only_the_runs_a_person_may_lose_count_as_protected() {
    for kept in [Kept::Live, Kept::Unsealed, Kept::Unreadable, Kept::Link] {
        assert!(kept.is_protection(), "{kept:?}");
    }
    for kept in [Kept::OtherStatus, Kept::AmongTheLast, Kept::WithinLimits] {
        assert!(!kept.is_protection(), "{kept:?}");
    }
    assert!(Policy::default().says_nothing());
    assert!(
        !Policy {
            keep_last: Some(0),
            ..Policy::default()
        }
        .says_nothing()
    );
}

#[test]
fn sizes_beyond_counting_do_not_wrap() {
    let mut runs = passes(&[1, 2, 3]);
    for run in &mut runs {
        run.size = Size(u64::MAX);
    }
    assert_eq!(
        gone(
            &runs,
            &Policy {
                max_size: Some(Size(5)),
                ..Policy::default()
            }
        ),
        [1, 2, 3]
    );
}

proptest! {
    /// Whatever the rules: protected runs stay, the size is met whenever it can be, and more
    /// keeping removes less.
    #[test]
    fn holds_for_any_policy(
        days in proptest::collection::btree_set(0i64..60, 0..12),
        kinds in proptest::collection::vec(0u8..5, 12),
        age in proptest::option::of(0u32..60),
        max in proptest::option::of(0u64..1400),
        keep in proptest::option::of(0usize..12),
    ) {
        let mut runs: Vec<Candidate> = days.into_iter().map(|days| run(days, Status::Pass)).collect();
        for (run, kind) in runs.iter_mut().zip(kinds) {
            match kind {
                0 => run.listed.state = ListedState::Unsealed,
                1 => run.is_own_directory = false,
                2 => run.listed.state = ListedState::Live,
                _ => {}
            }
        }
        let older_than = age.map(|days| format!("{days}d").parse().unwrap());
        let policy = Policy { older_than, max_size: max.map(Size), status: None, keep_last: keep };
        let fates = decide_fates(&runs, &policy, now());
        for (run, fate) in runs.iter().zip(&fates) {
            let may_go = run.listed.summary().is_some() && run.is_own_directory;
            prop_assert!(may_go || matches!(fate, Fate::Keep(kept) if kept.is_protection()));
        }
        let left: u64 = runs.iter().zip(&fates).filter(|(_, fate)| matches!(fate, Fate::Keep(_))).map(|(run, _)| run.size.0).sum();
        let could_go_on = fates.contains(&Fate::Keep(Kept::WithinLimits));
        prop_assert!(max.is_none_or(|max| left <= max) || !could_go_on);
        let more = decide_fates(&runs, &Policy { keep_last: Some(keep.unwrap_or(0) + 1), ..policy }, now());
        for (less, more) in fates.iter().zip(&more) {
            // With a size limit another one may have to go in its place.
            prop_assert!(max.is_some() || matches!(more, Fate::Keep(_)) || matches!(less, Fate::Remove(_)));
        }
    }
}
