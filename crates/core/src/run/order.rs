//! The legal order of a run's events, as one table over (state, event).
//!
//! The writer asks it before it writes, recovery asks it about what is left, and the verifier asks
//! it about a stranger's bundle.

use crate::run::event::{ContractCreated, Event, Kind, RunCompleted, RunStarted};
use crate::run::rules::Rules;
use crate::task::contract::Stage;
use crate::values::blocker::Code;
use crate::values::event_type::EventType;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    Fresh,
    Started,
    Contracted,
    /// The contract event itself carried a blocker.
    ContractBlocked,
    GateBlocked,
    Planned,
    ApprovalAsked,
    Approved,
    /// What holds for the branches of a disposable repository was written down.
    PolicyRecorded,
    Denied,
    EngineRunning,
    EngineEnded,
    Captured,
    DiffChecked,
    Verified,
    PolicyChecked,
    Settling,
    Completed,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} cannot follow {state:?}", event.as_str())]
pub struct OutOfOrder {
    pub state: State,
    pub event: EventType,
}

/// Where a run stands, and the two facts about it that the order depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    pub state: State,
    pub(super) approval_required: bool,
    /// A patch is judged again: no engine is started, and nobody is asked.
    pub(super) judges_again: bool,
    /// The repository is disposable: its branch policy is told before the engine starts, and checked after.
    pub(super) disposable: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: State::Fresh,
            approval_required: false,
            judges_again: false,
            disposable: false,
        }
    }
}

impl Machine {
    /// The table of legal paths. Everything not listed is refused.
    pub fn step(self, event: &Event) -> Result<Self, OutOfOrder> {
        use State as S;
        let refuse = || OutOfOrder {
            state: self.state,
            event: event.kind(),
        };
        let next = match (self.state, event) {
            (S::Fresh, Event::RunStarted(started)) if says_its_kind(started) => {
                return Ok(Self {
                    state: S::Started,
                    judges_again: started.reverifies.is_some(),
                    disposable: started.kind == Kind::Run && started.stage == Stage::Four,
                    ..self
                });
            }
            (S::Started, Event::TaskContractCreated(created)) => contracted(created),

            // Blocked by a gate, before or (late) after planning; nothing has run.
            (
                S::Contracted
                | S::ContractBlocked
                | S::GateBlocked
                | S::Planned
                | S::ApprovalAsked
                | S::Approved
                | S::PolicyRecorded,
                Event::BackendGateBlocked(_),
            ) => S::GateBlocked,
            (
                S::Contracted | S::ContractBlocked | S::GateBlocked,
                Event::VerificationCompleted(done),
            ) if done.not_run.is_some() && !done.blockers.is_empty() => S::GateBlocked,

            (S::Contracted | S::Planned, Event::PlanUpdated(plan)) => {
                return Ok(Self {
                    state: S::Planned,
                    approval_required: plan.approval_required,
                    ..self
                });
            }
            (S::Planned, Event::ApprovalRequested(_)) if !self.judges_again => S::ApprovalAsked,
            (S::ApprovalAsked, Event::ApprovalGranted(_)) => S::Approved,
            (S::ApprovalAsked, Event::ApprovalDenied(_)) => S::Denied,

            (S::Planned, Event::EngineStarted(_))
                if !self.approval_required && !self.judges_again && !self.disposable =>
            {
                S::EngineRunning
            }
            (S::Planned, Event::PatchApplied(_))
                if self.judges_again && !self.approval_required =>
            {
                S::Captured
            }
            (S::Approved, Event::BranchPolicyRecorded(_)) if self.disposable => S::PolicyRecorded,
            (S::Approved, Event::EngineStarted(_)) if !self.disposable => S::EngineRunning,
            (S::PolicyRecorded, Event::EngineStarted(_)) => S::EngineRunning,
            (
                S::EngineRunning,
                Event::EngineMessage(_)
                | Event::EnginePlan(_)
                | Event::EnginePhase(_)
                | Event::EngineToolCall(_)
                | Event::EngineFileChange(_)
                | Event::EngineReview(_)
                | Event::EngineWarning(_)
                | Event::EnginePermission(_)
                | Event::EngineTokens(_)
                | Event::EngineModelCall(_)
                | Event::EngineResult(_),
            ) => S::EngineRunning,
            (S::EngineRunning, Event::EngineEnded(_)) => S::EngineEnded,
            (S::EngineEnded, Event::PatchApplied(_)) => S::Captured,
            (S::Captured, Event::GitDiffChecked(_)) => S::DiffChecked,
            (S::DiffChecked, Event::VerificationCompleted(_)) => S::Verified,
            (S::Verified, Event::BranchPolicyChecked(_)) if self.disposable => S::PolicyChecked,

            (S::Fresh, Event::OperatorOutcomeRecorded(_)) => S::Settling,
            (S::Settling, Event::LandingUpdated(_)) => S::Settling,

            (S::Completed, _) => return Err(refuse()),
            (state, Event::RunCompleted(done)) if self.may_complete(state, done) => S::Completed,
            _ => return Err(refuse()),
        };
        Ok(Self {
            state: next,
            ..self
        })
    }

    /// A run closes at the end of a legal path, where a preflight found the provider gone, or by abort.
    fn may_complete(self, state: State, done: &RunCompleted) -> bool {
        match state {
            State::Verified if self.disposable => done.is_abort(),
            State::Verified
            | State::PolicyChecked
            | State::GateBlocked
            | State::ContractBlocked
            | State::Denied
            | State::Settling => true,
            State::Contracted | State::Planned | State::Approved | State::PolicyRecorded => {
                done.is_abort()
                    || done
                        .findings
                        .iter()
                        .any(|finding| finding.code == Code::ProviderUnavailable)
            }
            State::Fresh
            | State::Started
            | State::ApprovalAsked
            | State::EngineRunning
            | State::EngineEnded
            | State::Captured
            | State::DiffChecked => done.is_abort(),
            State::Completed => false,
        }
    }
}

/// A reverification names what it judges again, and nothing else does. There was none before rules 7.
fn says_its_kind(started: &RunStarted) -> bool {
    match started.kind {
        Kind::Reverification => {
            started.reverifies.is_some() && started.rules >= Rules::Seven.number()
        }
        _ => started.reverifies.is_none() && started.checks_differ.is_none(),
    }
}

fn contracted(created: &ContractCreated) -> State {
    if created.blockers.is_empty() {
        State::Contracted
    } else {
        State::ContractBlocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::started_again;

    #[test]
    fn a_start_says_what_it_judges_again_and_nothing_else_does() {
        let legal = |started: RunStarted| {
            let event = Event::RunStarted(started);
            Machine::default().step(&event).is_ok()
        };
        assert!(legal(started_again()));
        for rules in Rules::ALL {
            let of = RunStarted {
                rules: rules.number(),
                ..started_again()
            };
            assert_eq!(legal(of), *rules >= Rules::Seven, "{rules:?}");
        }
        assert!(!legal(RunStarted {
            kind: Kind::Run,
            ..started_again()
        }));
        assert!(!legal(RunStarted {
            reverifies: None,
            ..started_again()
        }));
    }
}
