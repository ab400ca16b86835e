//! A run as a state machine: one match over (state, event), used by the writer to make a wrong
//! order impossible, by recovery, and by the verifier to check strangers' bundles.

pub mod attempt;
pub mod blocker;
pub mod chain;
pub mod event;
pub mod invariant;
pub mod judge;
pub mod rules;
pub mod trace;
pub mod verdict;

use std::collections::BTreeSet;

use crate::containment::{Containment, GuardPlan};
use crate::run::blocker::Code;
use crate::run::event::{
    Approval, ContractCreated, DiffChecked, EngineEnded, EngineReview, Event, EventType, Finding,
    GateBlocked, PatchApplied, RunCompleted, Toolchain, VerificationCompleted,
};
use crate::run::rules::RulesNumber;

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
    Denied,
    EngineRunning,
    EngineEnded,
    Captured,
    DiffChecked,
    Verified,
    Settling,
    Completed,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} cannot follow {state:?}", event.as_str())]
pub struct OutOfOrder {
    pub state: State,
    pub event: EventType,
}

/// Where a run stands, and the one fact about its plan that the order depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    pub state: State,
    approval_required: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: State::Fresh,
            approval_required: false,
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
            (S::Fresh, Event::RunStarted(_)) => S::Started,
            (S::Started, Event::TaskContractCreated(created)) => contracted(created),

            // Blocked by a gate, before or (late) after planning; nothing has run.
            (
                S::Contracted
                | S::ContractBlocked
                | S::GateBlocked
                | S::Planned
                | S::ApprovalAsked
                | S::Approved,
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
                });
            }
            (S::Planned, Event::ApprovalRequested(_)) => S::ApprovalAsked,
            (S::ApprovalAsked, Event::ApprovalGranted(_)) => S::Approved,
            (S::ApprovalAsked, Event::ApprovalDenied(_)) => S::Denied,

            (S::Planned, Event::EngineStarted(_)) if !self.approval_required => S::EngineRunning,
            (S::Approved, Event::EngineStarted(_)) => S::EngineRunning,
            (
                S::EngineRunning,
                Event::EngineMessage(_)
                | Event::EnginePlan(_)
                | Event::EngineToolCall(_)
                | Event::EngineFileChange(_)
                | Event::EngineReview(_)
                | Event::EngineTokens(_)
                | Event::EngineModelCall(_)
                | Event::EngineResult(_),
            ) => S::EngineRunning,
            (S::EngineRunning, Event::EngineEnded(_)) => S::EngineEnded,
            (S::EngineEnded, Event::PatchApplied(_)) => S::Captured,
            (S::Captured, Event::GitDiffChecked(_)) => S::DiffChecked,
            (S::DiffChecked, Event::VerificationCompleted(_)) => S::Verified,

            (S::Fresh, Event::OperatorOutcomeRecorded(_)) => S::Settling,
            (S::Settling, Event::LandingUpdated(_)) => S::Settling,

            (S::Completed, _) => return Err(refuse()),
            (state, Event::RunCompleted(done)) if may_complete(state, done) => S::Completed,
            _ => return Err(refuse()),
        };
        Ok(Self {
            state: next,
            ..self
        })
    }
}

fn contracted(created: &ContractCreated) -> State {
    if created.blockers.is_empty() {
        State::Contracted
    } else {
        State::ContractBlocked
    }
}

/// A run closes at the end of a legal path, where a preflight found the provider gone, or by abort.
fn may_complete(state: State, done: &RunCompleted) -> bool {
    match state {
        State::Verified
        | State::GateBlocked
        | State::ContractBlocked
        | State::Denied
        | State::Settling => true,
        State::Contracted | State::Planned | State::Approved => {
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

/// Everything a chain of events says, gathered for the judge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// The rules the chain names.
    pub rules: RulesNumber,
    pub contract: Option<ContractCreated>,
    pub gate_blocks: Vec<GateBlocked>,
    /// Containment of the last plan.
    pub containment: Option<Containment>,
    pub guard: Option<GuardPlan>,
    pub toolchains: Vec<Toolchain>,
    pub approval: ApprovalFact,
    /// Engine events seen, by type.
    pub engine_events: BTreeSet<EventType>,
    pub engine_ended: Option<EngineEnded>,
    pub reviews: Vec<EngineReview>,
    /// The engine's last word about itself was that it failed, and why.
    pub gave_up: Option<String>,
    pub patch: Option<PatchApplied>,
    pub diff: Option<DiffChecked>,
    pub verification: Option<VerificationCompleted>,
    /// A settlement: the operator said what becomes of a run.
    pub settles: bool,
    pub rejected_by_operator: bool,
    pub findings: Vec<Finding>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ApprovalFact {
    #[default]
    NotRequired,
    Requested(Approval),
    Granted(Approval),
    Denied(Approval),
}

/// The state after a chain, with the facts it tells and the closing event if there is one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    pub machine: Machine,
    pub facts: Facts,
    pub completed: Option<RunCompleted>,
}

impl Folded {
    pub fn push(&mut self, event: &Event) -> Result<(), OutOfOrder> {
        self.machine = self.machine.step(event)?;
        let facts = &mut self.facts;
        if event.kind().is_engine() {
            facts.engine_events.insert(event.kind());
        }
        match event {
            Event::TaskContractCreated(created) => facts.contract = Some(created.clone()),
            Event::PlanUpdated(plan) => {
                facts.containment = Some(plan.containment);
                facts.toolchains.clone_from(&plan.toolchains);
                facts.guard.clone_from(&plan.guard);
            }
            Event::BackendGateBlocked(block) => facts.gate_blocks.push(block.clone()),
            Event::ApprovalRequested(approval) => {
                facts.approval = ApprovalFact::Requested(approval.clone())
            }
            Event::ApprovalGranted(approval) => {
                facts.approval = ApprovalFact::Granted(approval.clone())
            }
            Event::ApprovalDenied(approval) => {
                facts.approval = ApprovalFact::Denied(approval.clone())
            }
            Event::EngineReview(review) => facts.reviews.push(review.clone()),
            Event::EngineResult(result) => {
                facts.gave_up = result.failed.then(|| result.summary.clone())
            }
            Event::EngineEnded(ended) => facts.engine_ended = Some(ended.clone()),
            Event::PatchApplied(patch) => facts.patch = Some(patch.clone()),
            Event::GitDiffChecked(diff) => facts.diff = Some(diff.clone()),
            Event::VerificationCompleted(done) => facts.verification = Some(done.clone()),
            Event::OperatorOutcomeRecorded(outcome) => {
                facts.settles = true;
                facts.rejected_by_operator =
                    outcome.outcome == crate::run::event::Outcome::Rejected;
            }
            Event::RunCompleted(done) => {
                facts.findings = done.findings.clone();
                self.completed = Some(done.clone());
            }
            Event::RunStarted(started) => facts.rules = started.rules,
            Event::EngineStarted(_)
            | Event::EngineMessage(_)
            | Event::EnginePlan(_)
            | Event::EngineToolCall(_)
            | Event::EngineFileChange(_)
            | Event::EngineTokens(_)
            | Event::EngineModelCall(_)
            | Event::LandingUpdated(_) => {}
        }
        Ok(())
    }
}

/// Replays a chain.
pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Folded, OutOfOrder> {
    let mut folded = Folded::default();
    for event in events {
        folded.push(event)?;
    }
    Ok(folded)
}

#[cfg(test)]
#[path = "run_tests.rs"]
pub mod tests;
