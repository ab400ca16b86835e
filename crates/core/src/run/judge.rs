//! Facts in, verdict out. Pure and total: the live run and every later verifier ask the same
//! function.
//!
//! Nothing an engine said is read here, except that a required event was seen at all, that its own
//! reviewer objected, and that it gave up: each can only make a verdict worse.

use crate::run::event::{
    Check, CheckKind, ControlRun, DiffChecked, EngineEnded, EngineReview, ProcessEnd,
    VerificationCompleted,
};
use crate::run::facts::{ApprovalFact, Facts};
use crate::run::rules::Rules;
use crate::task::contract::{Contract, Control, Stage};
use crate::values::blocker::{Blocker, Code, worst};
use crate::values::event_type::EventType;
use crate::values::paths::{PathStanding, TreePath, standing};
use crate::values::verdict::Status;

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
        Some(Rules::One) => judge_by_rules_1(contract, facts),
        None => {
            let unknown = format!("its rules, {}, are not known here", facts.rules.0);
            let blockers = vec![Blocker::new(Code::MissingRequiredEvent, Some(unknown))];
            Judgement {
                status: worst(&blockers),
                blockers,
            }
        }
    }
}

/// A pass needs every positive fact; whatever is absent is a blocker, never a silence.
fn judge_by_rules_1(contract: Option<&Contract>, facts: &Facts) -> Judgement {
    let mut blockers = Vec::new();
    blockers.extend(before_execution(facts));
    blockers.extend(engine(contract, facts));
    blockers.extend(attempts(contract, facts));
    if let (Some(contract), Some(diff)) = (contract, &facts.diff) {
        blockers.extend(diff_blockers(contract, diff, engine_ended_well(facts)));
    }
    blockers.extend(verification(contract, facts));
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
        status: worst(&blockers),
        blockers,
    }
}

/// Ended with 0, had a model to the end, and did not itself say that it failed.
pub fn engine_ended_well(facts: &Facts) -> bool {
    let Some(ended) = &facts.engine_ended else {
        return false;
    };
    ended.end.succeeded() && wire_blockers(ended).is_empty() && facts.gave_up.is_none()
}

/// What the wire means: an engine that had no model to the end did not do its work, whatever its
/// exit code.
fn wire_blockers(ended: &EngineEnded) -> Vec<Blocker> {
    let Some(model) = &ended.model else {
        return Vec::new();
    };
    let unavailable = model
        .unavailable
        .clone()
        .map(|why| Blocker::new(Code::ProviderUnavailable, Some(why)));
    let over = model
        .over_budget
        .clone()
        .map(|what| Blocker::new(Code::BudgetExceeded, Some(what)));
    unavailable.into_iter().chain(over).collect()
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

fn engine(contract: Option<&Contract>, facts: &Facts) -> Vec<Blocker> {
    let Some(ended) = &facts.engine_ended else {
        return Vec::new();
    };
    let mut out = wire_blockers(ended);
    // What the wire explains needs no second explanation by the engine.
    let gave_up = facts.gave_up.clone().filter(|_| out.is_empty());
    out.extend(how_it_ended(contract, facts, ended));
    if ended.end.succeeded() {
        out.extend(
            gave_up.map(|why| {
                Blocker::new(Code::EngineFailed, Some(format!("in its own words: {why}")))
            }),
        );
    }
    out
}

fn how_it_ended(contract: Option<&Contract>, facts: &Facts, ended: &EngineEnded) -> Vec<Blocker> {
    let green = facts.verification.as_ref().is_some_and(all_green);
    match ended.end {
        ProcessEnd::Exited { code: 0 } => missing_engine_events(contract, facts),
        ProcessEnd::Exited { code } => {
            vec![Blocker::new(
                Code::EngineFailed,
                Some(format!("exit code {code}")),
            )]
        }
        ProcessEnd::Signalled { signal } => {
            vec![Blocker::new(
                Code::EngineFailed,
                Some(format!("killed by signal {signal}")),
            )]
        }
        ProcessEnd::TimedOut { limit } => {
            let detail = Some(format!(
                "the engine reached its {} limit",
                limit_word(limit)
            ));
            let mut out = vec![Blocker::new(Code::Timeout, detail)];
            if green {
                out.push(Blocker::new(Code::LifecycleTimeoutAfterValidPatch, None));
            }
            out
        }
        ProcessEnd::MemoryLimit { .. } => {
            vec![Blocker::new(Code::ResourceLimit, Some("memory".into()))]
        }
        // A cancelled run carries `interrupted` as a finding; this only keeps it from ever passing.
        ProcessEnd::Cancelled => match facts.findings.iter().any(|f| f.code == Code::Interrupted) {
            true => Vec::new(),
            false => vec![Blocker::new(Code::EngineFailed, Some("cancelled".into()))],
        },
        ProcessEnd::Lost => vec![Blocker::new(
            Code::EngineFailed,
            Some("its end was not observed".into()),
        )],
    }
}

/// What the engine was seen to attempt, whether or not it came to anything: nothing of it could.
fn attempts(contract: Option<&Contract>, facts: &Facts) -> Option<Blocker> {
    let seen = facts.engine_ended.as_ref()?.actions.as_ref()?;
    let forbidden = contract
        .map(|contract| contract.forbidden_actions.clone())
        .unwrap_or_default();
    seen.failing(&forbidden)
        .map(|detail| Blocker::new(Code::ForbiddenActionAttempted, Some(detail)))
}

fn limit_word(limit: crate::run::event::TimeLimit) -> &'static str {
    match limit {
        crate::run::event::TimeLimit::Idle => "idle",
        crate::run::event::TimeLimit::Wall => "wall",
    }
}

fn missing_engine_events(contract: Option<&Contract>, facts: &Facts) -> Vec<Blocker> {
    // Where the case expects nothing in particular, the engine's own terminal event is expected.
    let expected = match contract {
        None => Vec::new(),
        Some(contract) if contract.evidence_expectations.is_empty() => {
            vec![contract.lane.terminal_event]
        }
        Some(contract) => contract.evidence_expectations.clone(),
    };
    expected
        .iter()
        .filter(|event| !facts.engine_events.contains(event))
        .map(|event| {
            Blocker::new(
                Code::MissingRequiredEvent,
                Some(format!("{} never came", event.as_str())),
            )
        })
        .collect()
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
                standing(path, &contract.allowed_paths, &contract.forbidden_paths) == want
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

fn all_green(done: &VerificationCompleted) -> bool {
    done.not_run.is_none()
        && !done.checks.is_empty()
        && done.checks.iter().all(|check| check.end.succeeded())
}

fn verification(contract: Option<&Contract>, facts: &Facts) -> Vec<Blocker> {
    let mut out: Vec<Blocker> = rejection(&facts.reviews).into_iter().collect();
    if let Some(done) = &facts.verification {
        out.extend(verification_blockers(contract, done));
    }
    out
}

fn rejection(reviews: &[EngineReview]) -> Option<Blocker> {
    let review = reviews.iter().find(|review| !review.accepted)?;
    Some(Blocker::new(
        Code::ReviewerRejected,
        Some(review.summary.clone()),
    ))
}

/// The codes `verification.completed` itself carries; a time limit belongs to `run.completed`.
pub fn verification_codes(
    contract: Option<&Contract>,
    reviews: &[EngineReview],
    done: &VerificationCompleted,
) -> Vec<Code> {
    let found = rejection(reviews)
        .into_iter()
        .chain(verification_blockers(contract, done));
    found
        .map(|blocker| blocker.code)
        .filter(|code| code.info().event == EventType::VerificationCompleted)
        .collect()
}

/// What a verification means. Exit codes decide; a count can only make it worse.
pub fn verification_blockers(
    contract: Option<&Contract>,
    done: &VerificationCompleted,
) -> Vec<Blocker> {
    if done.not_run.is_some() {
        // Only a gate's row may stand here without anything having run.
        return done
            .blockers
            .iter()
            .map(|code| Blocker::new(*code, done.not_run.clone()))
            .collect();
    }
    let mut out = Vec::new();
    if let Some(mismatch) = &done.mismatch {
        out.push(Blocker::new(
            Code::VerificationUntrusted,
            Some(mismatch.clone()),
        ));
        return out;
    }
    let Some(contract) = contract else { return out };
    if let Some(reason) = unfaithful(contract, done) {
        out.push(Blocker::new(Code::VerificationUntrusted, Some(reason)));
    }
    for check in &done.checks {
        match check.end {
            ProcessEnd::Exited { code: 0 } => {}
            ProcessEnd::TimedOut { limit } => out.push(Blocker::new(
                Code::Timeout,
                Some(format!(
                    "verification reached its {} limit: {}",
                    limit_word(limit),
                    check.command
                )),
            )),
            end => out.push(Blocker::new(
                Code::VerificationFailed,
                Some(describe(check, end)),
            )),
        }
    }
    if all_green(done) {
        let reasons = [
            takeover(done),
            control_problem(contract, done.control.as_ref()),
            lost_tests(contract, done),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        if !reasons.is_empty() {
            out.push(Blocker::new(
                Code::VerificationUntrusted,
                Some(reasons.join("; ")),
            ));
        }
    }
    out
}

/// A change that decides how checks are run, or what they check, cannot be judged by them.
fn takeover(done: &VerificationCompleted) -> Option<String> {
    let named = |paths: &[TreePath]| list(&paths.iter().collect::<Vec<_>>());
    if !done.runner_takeovers.is_empty() {
        return Some(format!(
            "changed what decides how checks are run; allow it by its own name or leave it: {}",
            named(&done.runner_takeovers)
        ));
    }
    let rewritten = &done.rewritten_test_files;
    (!rewritten.is_empty()).then(|| {
        format!(
            "test files were rewritten while the checks ran: {}",
            named(rewritten)
        )
    })
}

/// With a runner, every test of the baseline must have run again. Bundles from before ids were read
/// have none.
fn lost_tests(contract: &Contract, done: &VerificationCompleted) -> Option<String> {
    let Control::Runner(_) = contract.verification_control else {
        return None;
    };
    let Some(tests) = &done.tests else {
        return done
            .log_nonce
            .as_ref()
            .map(|_| "the tests of the baseline were not compared".into());
    };
    let more = tests
        .missing_count
        .saturating_sub(tests.missing.len() as u64);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let named = || {
        format!(
            "tests of the baseline did not run again: {}{more}",
            tests.missing.join("; ")
        )
    };
    (tests.missing_count > 0).then(named)
}

fn describe(check: &Check, end: ProcessEnd) -> String {
    let how = match end {
        ProcessEnd::Exited { code } => format!("exit code {code}"),
        ProcessEnd::Signalled { signal } => format!("signal {signal}"),
        ProcessEnd::TimedOut { .. } => "time limit".into(),
        ProcessEnd::MemoryLimit { .. } => "memory limit".into(),
        ProcessEnd::Cancelled => "cancelled".into(),
        ProcessEnd::Lost => "end not observed".into(),
    };
    let what = match check.kind {
        CheckKind::Visible => "",
        CheckKind::Hidden => "hidden check: ",
    };
    format!("{what}{}: {how}", check.command)
}

/// The commands that ran must be the contract's, all of them and in order.
fn unfaithful(contract: &Contract, done: &VerificationCompleted) -> Option<String> {
    let ran = |kind: CheckKind| {
        done.checks
            .iter()
            .filter(move |check| check.kind == kind)
            .map(|check| &check.command)
    };
    let visible_ok = ran(CheckKind::Visible).eq(contract.verification_commands.iter());
    let hidden_ok = ran(CheckKind::Hidden).eq(contract.hidden_verification.commands.iter());
    // Hidden checks run only after the visible ones were green.
    let hidden_due = done
        .checks
        .iter()
        .filter(|c| c.kind == CheckKind::Visible)
        .all(|c| c.end.succeeded());
    if !visible_ok {
        return Some("the commands that ran are not the contract's".into());
    }
    (hidden_due && !hidden_ok).then(|| "the hidden checks that ran are not the contract's".into())
}

fn control_problem(contract: &Contract, control: Option<&ControlRun>) -> Option<String> {
    match (&contract.verification_control, control) {
        (Control::None(_), Some(ControlRun::None { .. }))
            if contract.lane.stage <= Stage::Three =>
        {
            None
        }
        (Control::None(_), _) => Some("a control is required at this stage".into()),
        (_, None | Some(ControlRun::None { .. })) => {
            Some("the must-fail control did not run".into())
        }
        (_, Some(ControlRun::CouldNotRun { reason })) => {
            Some(format!("the must-fail control could not run: {reason}"))
        }
        (
            _,
            Some(ControlRun::Ran {
                checks,
                failures_added,
                failures_reported,
            }),
        ) => {
            let ran: Vec<&String> = checks.iter().map(|check| &check.command).collect();
            if ran.is_empty()
                || !ran
                    .iter()
                    .copied()
                    .eq(contract.verification_commands.iter())
            {
                return Some("the control did not run the contract's commands".into());
            }
            // Red means the command itself said no: an exit code, not a kill or a time limit.
            let red = |check: &Check| check.end.exit_code().is_some_and(|code| code != 0);
            let green: Vec<&str> = checks
                .iter()
                .filter(|c| !red(c))
                .map(|c| c.command.as_str())
                .collect();
            if green.len() == checks.len() {
                return Some(format!(
                    "still green with a failing check added: {}",
                    green.join("; ")
                ));
            }
            match (failures_added, failures_reported) {
                (Some(added), Some(reported)) if reported < added => Some(format!(
                    "{added} failing tests were added, the runner reported {reported}"
                )),
                (Some(added), None) => Some(format!(
                    "{added} failing tests were added, the runner reported no count"
                )),
                _ => None,
            }
        }
    }
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
    if !facts.engine_events.contains(&EventType::EngineStarted) {
        return Some(EventType::EngineStarted.as_str());
    }
    if facts.engine_ended.is_none() {
        return Some(EventType::EngineEnded.as_str());
    }
    if facts.patch.is_none() {
        return Some(EventType::PatchApplied.as_str());
    }
    if facts.diff.is_none() {
        return Some(EventType::GitDiffChecked.as_str());
    }
    let verified = facts.verification.as_ref().is_some_and(|done| {
        all_green(done)
            || (contract.verification_commands.is_empty() && contract.no_test_rationale.is_some())
    });
    (!verified).then_some(EventType::VerificationCompleted.as_str())
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
