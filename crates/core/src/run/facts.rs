//! What a chain of events says, gathered for the judge.

use std::collections::BTreeSet;

use crate::containment::{Containment, GuardPlan};
use crate::run::event::{
    Approval, BranchPolicyChecked, BranchPolicyRecorded, ContractCreated, DiffChecked, EngineEnded,
    EngineReview, Event, FailedBy, FlatFacts, GateBlocked, GitUse, Outcome, PatchApplied,
    RunCompleted, Toolchain, VerificationCompleted,
};
use crate::run::order::{Machine, OutOfOrder};
use crate::run::rules::RulesNumber;
use crate::task::again::{ChecksDiffer, Reverifies};
use crate::values::blocker::Finding;
use crate::values::event_type::EventType;
use crate::workspace::environment::EnvironmentUse;

/// Everything a chain of events says, gathered for the judge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// The rules the chain names.
    pub rules: RulesNumber,
    /// The run whose patch is judged again, and what differs from its checks.
    pub reverifies: Option<Reverifies>,
    pub checks_differ: Option<ChecksDiffer>,
    /// What the report says in fields of the engine's name.
    pub flat: Option<FlatFacts>,
    pub contract: Option<ContractCreated>,
    pub gate_blocks: Vec<GateBlocked>,
    /// Containment of the last plan.
    pub containment: Option<Containment>,
    pub guard: Option<GuardPlan>,
    pub toolchains: Vec<Toolchain>,
    /// The git that ran outside every jail.
    pub git: Option<GitUse>,
    /// The operator's environments, as the last plan named them.
    pub environments: Vec<EnvironmentUse>,
    pub approval: ApprovalFact,
    /// What holds for the branches of a disposable repository, and what became of them.
    pub branch_policy: Option<BranchPolicyRecorded>,
    pub branches: Option<BranchPolicyChecked>,
    /// Engine events seen, by type.
    pub engine_events: BTreeSet<EventType>,
    pub engine_ended: Option<EngineEnded>,
    pub reviews: Vec<EngineReview>,
    /// The engine's last word about itself was that it failed, and why.
    pub gave_up: Option<String>,
    /// By what, where it could be told.
    pub failed_by: Option<FailedBy>,
    pub patch: Option<PatchApplied>,
    pub diff: Option<DiffChecked>,
    pub verification: Option<VerificationCompleted>,
    /// A settlement: the operator said what becomes of a run.
    pub settles: bool,
    pub rejected_by_operator: bool,
    pub findings: Vec<Finding>,
}

impl Facts {
    /// Was the private copy worked in: by an engine, or by putting in the patch of an earlier run?
    pub fn copy_was_used(&self) -> bool {
        self.engine_events.contains(&EventType::EngineStarted)
            || (self.reverifies.is_some() && self.patch.is_some())
    }
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
                facts.git.clone_from(&plan.git);
                facts.environments.clone_from(&plan.environments);
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
            Event::BranchPolicyRecorded(told) => facts.branch_policy = Some(told.clone()),
            Event::BranchPolicyChecked(checked) => facts.branches = Some(checked.clone()),
            Event::EngineReview(review) => facts.reviews.push(review.clone()),
            Event::EngineResult(result) => {
                facts.gave_up = result.failed.then(|| result.summary.clone());
                facts.failed_by = result.failed_by.filter(|_| result.failed);
            }
            Event::EngineEnded(ended) => facts.engine_ended = Some(ended.clone()),
            Event::PatchApplied(patch) => facts.patch = Some(patch.clone()),
            Event::GitDiffChecked(diff) => facts.diff = Some(diff.clone()),
            Event::VerificationCompleted(done) => facts.verification = Some((**done).clone()),
            Event::OperatorOutcomeRecorded(outcome) => {
                facts.settles = true;
                facts.rejected_by_operator = outcome.outcome == Outcome::Rejected;
            }
            Event::RunCompleted(done) => {
                facts.findings = done.findings.clone();
                self.completed = Some(done.clone());
            }
            Event::RunStarted(started) => {
                facts.rules = started.rules;
                facts.reverifies.clone_from(&started.reverifies);
                facts.checks_differ.clone_from(&started.checks_differ);
                facts.flat = started.flat.as_deref().cloned();
            }
            Event::EngineStarted(_)
            | Event::EngineMessage(_)
            | Event::EnginePlan(_)
            | Event::EnginePhase(_)
            | Event::EngineToolCall(_)
            | Event::EngineFileChange(_)
            | Event::EngineWarning(_)
            | Event::EnginePermission(_)
            | Event::EngineTokens(_)
            | Event::EngineModelCall(_)
            | Event::LandingUpdated(_) => {}
        }
        Ok(())
    }
}

/// Replays a chain.
pub fn fold_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Folded, OutOfOrder> {
    let mut folded = Folded::default();
    for event in events {
        folded.push(event)?;
    }
    Ok(folded)
}
