//! What the refs of a disposable repository mean: moved against the policy, they are state that is neither patch
//! nor scratch.

use crate::run::facts::Facts;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code};
use crate::values::event_type::EventType;

pub(super) fn branch_blockers(contract: Option<&Contract>, facts: &Facts) -> Option<Blocker> {
    let policy = contract?.branch_policy.as_ref()?;
    let checked = facts.branches.as_ref()?;
    let base = policy.base_commit.known();
    let on_base = base == Some(&checked.result_parent)
        && facts
            .diff
            .as_ref()
            .is_some_and(|diff| diff.result_commit == checked.result_commit);
    let broken = policy.broken_by(&checked.moves).or_else(|| {
        (!on_base).then(|| "the result commit does not stand on the base commit".to_owned())
    });
    broken.map(|why| Blocker::new(Code::DirtyEndingTree, Some(why)))
}

/// The fact about branches that a pass needs and this run does not have.
pub(super) fn missing_branch_fact(contract: &Contract, facts: &Facts) -> Option<&'static str> {
    let policy = contract.branch_policy.as_ref()?;
    let recorded = facts.branch_policy.as_ref().is_some_and(|told| {
        told.policy == *policy && policy.base_commit.known() == Some(&told.base_commit)
    });
    match (recorded, &facts.branches) {
        (false, _) => Some(EventType::BranchPolicyRecorded.as_str()),
        (true, None) => Some(EventType::BranchPolicyChecked.as_str()),
        (true, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{codes_with, good};
    use crate::run::event::{BranchPolicyChecked, BranchPolicyRecorded, Disposal};
    use crate::run::facts::Facts;
    use crate::task::contract::Contract;
    use crate::task::source::branch_policy::{BranchPolicy, Moves, RefMoved};
    use crate::values::maybe_known::MaybeKnown;

    fn policy() -> BranchPolicy {
        BranchPolicy {
            base_commit: MaybeKnown::Known("b0".into()),
            ..BranchPolicy::disposable()
        }
    }

    fn codes(change: fn(&mut Facts)) -> Vec<&'static str> {
        let with_policy = |contract: &mut Contract| contract.branch_policy = Some(policy());
        codes_with(with_policy, |facts| {
            facts.branch_policy = Some(BranchPolicyRecorded {
                policy: policy(),
                base_commit: "b0".into(),
                history: 1,
            });
            facts.branches = Some(BranchPolicyChecked {
                moves: Moves::default(),
                result_commit: good().diff.unwrap().result_commit,
                result_parent: "b0".into(),
                repository_dir: "home:work/r/workspace".into(),
                disposal_or_retention: Disposal::Disposed,
            });
            change(facts);
        })
    }

    #[test]
    fn a_pass_needs_both_events_and_refs_that_stayed() {
        assert_eq!(codes(|_| ()), Vec::<&str>::new());
        for (change, want) in [
            (
                (|facts| facts.branch_policy = None) as fn(&mut Facts),
                "missing_required_event",
            ),
            (|facts| facts.branches = None, "missing_required_event"),
            (
                |facts| {
                    let told = facts.branch_policy.as_mut().unwrap();
                    told.policy.remotes = 1;
                },
                "missing_required_event",
            ),
            (
                |facts| facts.branch_policy.as_mut().unwrap().base_commit = "b1".into(),
                "missing_required_event",
            ),
            (
                |facts| facts.branches.as_mut().unwrap().result_parent = "b1".into(),
                "dirty_ending_tree",
            ),
            (
                |facts| facts.branches.as_mut().unwrap().result_commit = "b1".into(),
                "dirty_ending_tree",
            ),
            (
                |facts| {
                    facts.branches.as_mut().unwrap().moves.moved = vec![RefMoved {
                        name: "refs/heads/main".into(),
                        from: Some("b0".into()),
                        to: Some("b1".into()),
                    }];
                },
                "dirty_ending_tree",
            ),
        ] {
            assert_eq!(codes(change), [want]);
        }
    }
}
