//! The branch policy of a disposable repository, as the chain tells of it: before the engine starts, and after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::source::branch_policy::{BranchPolicy, Moves};

/// What holds for the repository that the engine is about to be given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchPolicyRecorded {
    pub policy: BranchPolicy,
    /// The commit of the workspace as it was made: the one of the policy, or the run ends.
    pub base_commit: String,
    /// Commits below it.
    pub history: u64,
}

/// What became of the repository.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposal {
    Disposed,
    Retained,
}

/// The refs as our own reading found them after the engine had ended, and what became of the repository.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchPolicyChecked {
    pub moves: Moves,
    /// The one commit of the harness, with the measured tree, and its parent.
    pub result_commit: String,
    pub result_parent: String,
    pub repository_dir: String,
    pub disposal_or_retention: Disposal,
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::event::{Event, ProcessEnd, RunStarted};
    use crate::run::facts::fold_events;
    use crate::run::order::State;
    use crate::run::tests::{
        approval, completed, contracted, diffed, engine_ended, engine_started, patched, planned,
        started, verified,
    };
    use crate::task::contract::Stage;

    /// The start of a run in a disposable repository.
    pub fn in_disposable() -> Event {
        let Event::RunStarted(started) = started() else {
            unreachable!("it is one");
        };
        Event::RunStarted(RunStarted {
            stage: Stage::Four,
            ..started
        })
    }

    pub fn policy_recorded() -> Event {
        Event::BranchPolicyRecorded(BranchPolicyRecorded {
            policy: BranchPolicy::disposable(),
            base_commit: "b".into(),
            history: 1,
        })
    }

    pub fn branches_checked() -> Event {
        Event::BranchPolicyChecked(BranchPolicyChecked {
            moves: Moves::default(),
            result_commit: "c".into(),
            result_parent: "b".into(),
            repository_dir: "home:work/r".into(),
            disposal_or_retention: Disposal::Disposed,
        })
    }

    #[test]
    fn the_policy_is_told_before_the_engine_and_checked_in_the_end() {
        let all = [
            in_disposable(),
            contracted(vec![]),
            planned(true),
            Event::ApprovalRequested(approval()),
            Event::ApprovalGranted(approval()),
            policy_recorded(),
            engine_started(),
            engine_ended(ProcessEnd::Exited { code: 0 }),
            patched(),
            diffed(&[]),
            verified(None, vec![]),
            branches_checked(),
            completed(&[]),
        ];
        let folded = fold_events(&all).unwrap();
        assert_eq!(folded.machine.state, State::Completed);
        for missing in [5, 11] {
            let without = all.iter().enumerate().filter(|(at, _)| *at != missing);
            assert!(
                fold_events(without.map(|(_, event)| event)).is_err(),
                "{missing}"
            );
        }
    }
}
