//! What is done with a landing that did not end: forward where its commit point was passed, back where
//! it was not. A path is touched only where it is what we found, what we made of it, or gone; what
//! somebody did since is left to them.

use super::Way;
use super::journal::{End, Journal};

/// What the ref names now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reference {
    Old,
    New,
    /// A commit that came after ours.
    Beyond,
    Other,
}

/// One side of a path, beside what the journal says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Old,
    New,
    /// Nothing is there, where there was something and will be something.
    Absent,
    Other,
}

/// Who holds `index.lock`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    Ours,
    Free,
    Theirs,
}

/// A path of the work tree, and the file of ours that goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathNow {
    pub place: Side,
    pub aside: Side,
}

/// What was looked at. Without a work tree in it, `paths` and `index` say nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Now {
    pub reference: Reference,
    /// HEAD still stands on our branch.
    pub on_branch: bool,
    pub lock: Lock,
    pub index: PathNow,
    pub paths: Vec<PathNow>,
}

/// What is done with one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Nothing,
    /// What lies aside takes its place, and the other way round.
    Swap,
    /// What lies aside goes where nothing is.
    PutIn,
    /// What is there goes aside: there was nothing, or will be nothing.
    TakeOut,
    /// It is somebody else's now, or what it should be is gone.
    Leave,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Another git is at work: later.
    Wait,
    Do {
        paths: Vec<Act>,
        index: Act,
        end: End,
    },
}

/// Everything follows from what is there; how far the journal says it came plays no part.
pub fn plan(journal: &Journal, now: &Now) -> Plan {
    let landed = match now.reference {
        Reference::New | Reference::Beyond => true,
        Reference::Old | Reference::Other => false,
    };
    let nothing = |end| Plan::Do {
        paths: vec![Act::Nothing; now.paths.len()],
        index: Act::Nothing,
        end,
    };
    if journal.way == Way::Branch {
        // One ref is all there is of it. Where it names neither, somebody moved it since: it was there.
        return nothing(match now.reference {
            Reference::Old => End::Undone,
            Reference::New | Reference::Beyond => End::Landed,
            Reference::Other => End::Left,
        });
    }
    if now.lock == Lock::Theirs {
        return Plan::Wait;
    }
    if now.reference == Reference::Beyond {
        return nothing(End::Landed);
    }
    let want = if landed { Side::New } else { Side::Old };
    let as_wanted = |path: &PathNow| path.place == want;
    if now.paths.iter().all(as_wanted) && now.index.place != swapped(want) {
        return nothing(if landed { End::Landed } else { End::Undone });
    }
    // A lock that went, and an index, a branch or a HEAD that is another: somebody went on from here. While it
    // is ours nobody did, whatever a ref was made to name, and going back is what gives them theirs again.
    let others =
        now.reference == Reference::Other || !now.on_branch || now.index.place == Side::Other;
    let taken_over = now.lock == Lock::Free && others;
    if taken_over {
        return nothing(if landed { End::Landed } else { End::Left });
    }
    let paths: Vec<Act> = now.paths.iter().map(|path| act(*path, want)).collect();
    let index = match act(now.index, want) {
        Act::Swap => Act::Swap,
        Act::Nothing => Act::Nothing,
        // There always is one, and it is never taken out.
        Act::PutIn | Act::TakeOut | Act::Leave => Act::Leave,
    };
    let left = paths.contains(&Act::Leave) || index == Act::Leave;
    let end = match (landed, left) {
        (true, _) => End::Landed,
        (false, false) => End::Undone,
        (false, true) => End::Left,
    };
    Plan::Do { paths, index, end }
}

fn swapped(side: Side) -> Side {
    match side {
        Side::Old => Side::New,
        Side::New => Side::Old,
        other => other,
    }
}

fn act(now: PathNow, want: Side) -> Act {
    match (now.place, now.aside) {
        (place, _) if place == want => Act::Nothing,
        (Side::Other, _) => Act::Leave,
        (Side::Absent, aside) if aside == want => Act::PutIn,
        (Side::Absent, _) => Act::Leave,
        (_, aside) if aside == want => Act::Swap,
        _ => Act::Leave,
    }
}

/// Where one side of a path is nothing, a swap is one half of it.
pub fn half_of_a_swap(place_is_there: bool, aside_is_there: bool) -> Act {
    match (place_is_there, aside_is_there) {
        (true, true) => Act::Swap,
        (true, false) => Act::TakeOut,
        (false, true) => Act::PutIn,
        (false, false) => Act::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::tests::journal;
    use super::*;

    const REFERENCES: [Reference; 4] = [
        Reference::Old,
        Reference::New,
        Reference::Beyond,
        Reference::Other,
    ];
    const SIDES: [Side; 4] = [Side::Old, Side::New, Side::Absent, Side::Other];

    fn at(place: Side, aside: Side) -> PathNow {
        PathNow { place, aside }
    }

    fn now(reference: Reference, lock: Lock, index: PathNow, paths: &[PathNow]) -> Now {
        Now {
            reference,
            on_branch: true,
            lock,
            index,
            paths: paths.to_vec(),
        }
    }

    fn done(paths: &[Act], index: Act, end: End) -> Plan {
        Plan::Do {
            paths: paths.to_vec(),
            index,
            end,
        }
    }

    #[test]
    fn killed_at_each_step_it_goes_back_or_forward() {
        use Act::{Nothing, Swap};
        let (old, new) = (at(Side::Old, Side::New), at(Side::New, Side::Old));
        let bare = at(Side::Old, Side::Absent);
        let rows = [
            (
                "journal",
                Reference::Old,
                Lock::Free,
                bare,
                [bare, bare],
                ([Nothing, Nothing], Nothing, End::Undone),
            ),
            (
                "lock",
                Reference::Old,
                Lock::Ours,
                bare,
                [bare, bare],
                ([Nothing, Nothing], Nothing, End::Undone),
            ),
            (
                "made",
                Reference::Old,
                Lock::Ours,
                bare,
                [old, old],
                ([Nothing, Nothing], Nothing, End::Undone),
            ),
            (
                "one path",
                Reference::Old,
                Lock::Ours,
                bare,
                [new, old],
                ([Swap, Nothing], Nothing, End::Undone),
            ),
            (
                "paths",
                Reference::Old,
                Lock::Ours,
                old,
                [new, new],
                ([Swap, Swap], Nothing, End::Undone),
            ),
            (
                "index",
                Reference::Old,
                Lock::Ours,
                new,
                [new, new],
                ([Swap, Swap], Swap, End::Undone),
            ),
            (
                "ref",
                Reference::New,
                Lock::Ours,
                new,
                [new, new],
                ([Nothing, Nothing], Nothing, End::Landed),
            ),
            (
                "unlocked",
                Reference::New,
                Lock::Free,
                new,
                [new, new],
                ([Nothing, Nothing], Nothing, End::Landed),
            ),
            (
                "lost in a power cut",
                Reference::New,
                Lock::Ours,
                old,
                [old, new],
                ([Swap, Nothing], Swap, End::Landed),
            ),
        ];
        for (name, reference, lock, index, paths, (acts, on_index, end)) in rows {
            let plan = plan(&journal(), &now(reference, lock, index, &paths));
            assert_eq!(plan, done(&acts, on_index, end), "{name}");
        }
    }

    #[test]
    fn while_another_git_is_at_work_nothing_is_done() {
        for reference in REFERENCES {
            let new = at(Side::New, Side::Old);
            let plan = plan(&journal(), &now(reference, Lock::Theirs, new, &[new]));
            assert_eq!(plan, Plan::Wait);
        }
    }

    /// All of them, whatever else is there.
    #[test]
    fn what_is_somebody_elses_is_never_touched() {
        let all = || SIDES.into_iter().flat_map(|a| SIDES.map(|b| at(a, b)));
        for reference in REFERENCES {
            for on_branch in [true, false] {
                for lock in [Lock::Ours, Lock::Free] {
                    for index in all() {
                        for path in all() {
                            let mut seen = now(reference, lock, index, &[path]);
                            seen.on_branch = on_branch;
                            let Plan::Do {
                                paths,
                                index: on_index,
                                end,
                            } = plan(&journal(), &seen)
                            else {
                                panic!("nobody to wait for");
                            };
                            let quiet = |act| matches!(act, Act::Nothing | Act::Leave);
                            let (acts, what) = (paths[0], format!("{seen:?}"));
                            let taken =
                                lock == Lock::Free && (!on_branch || reference == Reference::Other);
                            if path.place == Side::Other || taken {
                                assert!(quiet(acts), "{what}");
                            }
                            if index.place == Side::Other || taken {
                                assert!(quiet(on_index), "{what}");
                            }
                            // What goes in is what the ref wants, and never anything else.
                            let want = match reference {
                                Reference::New | Reference::Beyond => Side::New,
                                _ => Side::Old,
                            };
                            if matches!(acts, Act::Swap | Act::PutIn) {
                                assert_eq!(path.aside, want, "{what}");
                            }
                            if end == End::Undone {
                                assert!(
                                    !matches!(reference, Reference::New | Reference::Beyond),
                                    "{what}"
                                );
                                assert!(acts != Act::Nothing || path.place == Side::Old, "{what}");
                            }
                            let landed = matches!(reference, Reference::New | Reference::Beyond);
                            assert_eq!(end == End::Landed, landed, "{what}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn who_took_the_lock_away_and_went_on_keeps_what_they_have() {
        let (new, other) = (at(Side::New, Side::Old), at(Side::Other, Side::New));
        let plan = |seen: &Now| plan(&journal(), seen);
        let gone_on = now(Reference::Old, Lock::Free, other, &[new]);
        assert_eq!(
            plan(&gone_on),
            done(&[Act::Nothing], Act::Nothing, End::Left)
        );
        let edited = now(Reference::Old, Lock::Ours, new, &[other, new]);
        assert_eq!(
            plan(&edited),
            done(&[Act::Leave, Act::Swap], Act::Swap, End::Left)
        );
        let committed = now(Reference::Beyond, Lock::Free, other, &[other]);
        assert_eq!(
            plan(&committed),
            done(&[Act::Nothing], Act::Nothing, End::Landed)
        );
    }

    #[test]
    fn while_the_lock_is_ours_a_branch_that_was_moved_gets_its_files_back() {
        let new = at(Side::New, Side::Old);
        let mut seen = now(Reference::Other, Lock::Ours, new, &[new]);
        assert_eq!(
            plan(&journal(), &seen),
            done(&[Act::Swap], Act::Swap, End::Undone)
        );
        seen.lock = Lock::Free;
        assert_eq!(
            plan(&journal(), &seen),
            done(&[Act::Nothing], Act::Nothing, End::Left)
        );
    }

    #[test]
    fn a_path_that_is_gone_comes_back() {
        let gone = at(Side::Absent, Side::Old);
        let lost = at(Side::Absent, Side::Absent);
        let bare = at(Side::Old, Side::Absent);
        let seen = now(Reference::Old, Lock::Ours, bare, &[gone, lost]);
        assert_eq!(
            plan(&journal(), &seen),
            done(&[Act::PutIn, Act::Leave], Act::Nothing, End::Left)
        );
    }

    #[test]
    fn a_ref_alone_is_there_or_not() {
        let mut journal = journal();
        journal.way = Way::Branch;
        let nothing = at(Side::Other, Side::Other);
        for (reference, end) in [
            (Reference::Old, End::Undone),
            (Reference::New, End::Landed),
            (Reference::Beyond, End::Landed),
            (Reference::Other, End::Left),
        ] {
            for lock in [Lock::Ours, Lock::Free, Lock::Theirs] {
                let seen = now(reference, lock, nothing, &[]);
                assert_eq!(plan(&journal, &seen), done(&[], Act::Nothing, end));
            }
        }
    }

    #[test]
    fn half_a_swap() {
        assert_eq!(half_of_a_swap(true, true), Act::Swap);
        assert_eq!(half_of_a_swap(true, false), Act::TakeOut);
        assert_eq!(half_of_a_swap(false, true), Act::PutIn);
        assert_eq!(half_of_a_swap(false, false), Act::Nothing);
    }
}
