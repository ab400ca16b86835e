//! Facts in, verdict out. Pure and total: the live run and every later verifier ask the same
//! function.
//!
//! Nothing an engine said is read here, except that a required event was seen at all, that its own
//! reviewer objected, and that it gave up: each can only make a verdict worse.
//!
//! - this file: the rules, what happened before execution, what changed, which facts a pass needs
//! - `branches.rs` which refs moved; `engine.rs` how the engine ended; `verification.rs` what its checks mean; `source.rs` when a changed
//!   source fails a run; `how_far.rs` what a run came to that somebody stopped
//!
//! Imports: values, task and the rest of run. Imported by verify and by the harness.

mod branches;
mod engine;
mod how_far;
mod source;
mod verification;

use crate::run::event::{Check, DiffChecked};
use crate::run::facts::{ApprovalFact, Facts};
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code, worst_status};
use crate::values::event_type::EventType;
use crate::values::paths::{PathStanding, TreePath, path_standing};
use crate::values::verdict::Status;

pub use engine::engine_ended_well;
pub use how_far::how_far;
pub use source::judges_source;
pub use verification::{
    lacks_a_program, may_lack_a_program, untrusted, verification_blockers, verification_codes,
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    pub status: Status,
    pub blockers: Vec<Blocker>,
}

impl Judgement {
    pub fn codes(&self) -> Vec<Code> {
        self.blockers.iter().map(|blocker| blocker.code).collect()
    }
}

/// Judges a run by the rules its chain names. Rules nobody here knows never end in a pass.
pub fn judge(contract: Option<&Contract>, facts: &Facts) -> Judgement {
    match Rules::of(facts.rules) {
        // Rules 2 ask more of the bundle around the facts, and the same of the facts.
        Some(rules) => judge_by(rules, contract, facts),
        None => {
            let unknown = format!("its rules, {}, are not known here", facts.rules.0);
            let blockers = vec![Blocker::new(Code::MissingRequiredEvent, Some(unknown))];
            Judgement {
                status: worst_status(&blockers),
                blockers,
            }
        }
    }
}

/// A pass needs every positive fact; whatever is absent is a blocker, never a silence.
fn judge_by(rules: Rules, contract: Option<&Contract>, facts: &Facts) -> Judgement {
    let mut blockers = Vec::new();
    blockers.extend(before_execution(facts));
    blockers.extend(engine::engine_blockers(rules, contract, facts));
    blockers.extend(engine::attempt_blocker(contract, facts));
    if let (Some(contract), Some(diff)) = (contract, &facts.diff) {
        blockers.extend(diff_blockers(contract, diff, engine_ended_well(facts)));
    }
    blockers.extend(branches::branch_blockers(contract, facts));
    blockers.extend(verification::review_and_check_blockers(
        rules, contract, facts,
    ));
    blockers.extend(
        facts
            .findings
            .iter()
            .map(|finding| Blocker::new(finding.code, finding.detail.clone())),
    );
    if facts.rejected_by_operator {
        blockers.push(Blocker::new(Code::OperatorRejected, None));
    }
    if blockers.is_empty()
        && let Some(missing) = missing_fact(contract, facts)
    {
        blockers.push(Blocker::new(
            Code::MissingRequiredEvent,
            Some(missing.to_owned()),
        ));
    }
    Judgement {
        status: worst_status(&blockers),
        blockers,
    }
}

fn before_execution(facts: &Facts) -> Vec<Blocker> {
    let mut out = Vec::new();
    if let Some(created) = &facts.contract {
        out.extend(
            created
                .blockers
                .iter()
                .map(|code| Blocker::new(*code, created.detail.clone())),
        );
    }
    out.extend(
        facts
            .gate_blocks
            .iter()
            .map(|block| Blocker::new(block.reason, block.detail.clone())),
    );
    if let ApprovalFact::Denied(approval) = &facts.approval {
        out.push(Blocker::new(
            Code::ApprovalDenied,
            Some(format!("denied by {}", approval.actor)),
        ));
    }
    out
}

/// What the measured changes mean under the contract. `ended_well`: see [`engine_ended_well`];
/// a killed or failed engine that changed nothing is already explained by how it ended.
pub fn diff_blockers(contract: &Contract, diff: &DiffChecked, ended_well: bool) -> Vec<Blocker> {
    let named = |want: PathStanding| {
        let paths: Vec<&TreePath> = diff
            .changes
            .iter()
            .map(|change| &change.path)
            .filter(|path| {
                path_standing(path, &contract.allowed_paths, &contract.forbidden_paths) == want
            })
            .collect();
        (!paths.is_empty()).then(|| list(&paths))
    };
    let mut out = Vec::new();
    if diff.changes.is_empty() && ended_well {
        out.push(Blocker::new(Code::NoDiff, None));
    }
    if let Some(paths) = named(PathStanding::Forbidden) {
        out.push(Blocker::new(Code::ForbiddenPathChange, Some(paths)));
    }
    if let Some(paths) = named(PathStanding::Disallowed) {
        out.push(Blocker::new(Code::DisallowedFileChange, Some(paths)));
    }
    out
}

fn list(paths: &[&TreePath]) -> String {
    const SHOWN: usize = 10;
    let mut text = paths
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}

/// The first positive fact a pass would need and this run does not have.
fn missing_fact(contract: Option<&Contract>, facts: &Facts) -> Option<&'static str> {
    let Some(contract) = contract else {
        return Some("no valid contract");
    };
    if facts.settles {
        // The run it continues was judged by its own facts; here the outcome is the fact.
        return None;
    }
    if !facts.contract.as_ref().is_some_and(|created| created.valid) {
        return Some(EventType::TaskContractCreated.as_str());
    }
    if contract.approval_required && !matches!(facts.approval, ApprovalFact::Granted(_)) {
        return Some(EventType::ApprovalGranted.as_str());
    }
    // A patch that is judged again was made by an engine of an earlier run; that run is linked.
    let by_engine = facts.reverifies.is_none();
    if by_engine && !facts.engine_events.contains(&EventType::EngineStarted) {
        return Some(EventType::EngineStarted.as_str());
    }
    if by_engine && facts.engine_ended.is_none() {
        return Some(EventType::EngineEnded.as_str());
    }
    let branches = branches::missing_branch_fact(contract, facts).filter(|_| by_engine);
    if branches.is_some() {
        return branches;
    }
    if facts.patch.is_none() {
        return Some(EventType::PatchApplied.as_str());
    }
    if facts.diff.is_none() {
        return Some(EventType::GitDiffChecked.as_str());
    }
    let verified = facts.verification.as_ref().is_some_and(|done| {
        verification::all_green(done)
            || (contract.verification_commands.is_empty() && contract.no_test_rationale.is_some())
    });
    if !verified {
        return Some(EventType::VerificationCompleted.as_str());
    }
    let started_green = facts.verification.as_ref().is_some_and(|done| {
        let green = |check: &Check| check.end.succeeded();
        let ran = !done.baseline_checks.is_empty() && done.baseline_checks.iter().all(green);
        ran || done.relied.is_some()
    });
    // Where a patch is judged again its start was green, or its engine had not begun.
    (contract.reasons.green_start && facts.reverifies.is_none() && !started_green)
        .then_some("the green baseline that the contract asks for")
}

#[cfg(test)]
#[path = "judge_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "causes_tests.rs"]
mod causes;
