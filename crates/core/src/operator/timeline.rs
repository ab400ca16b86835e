//! The timeline of a run: its events with relative times, one readable line each, the phases they
//! bound and the pauses between them. An engine's claims are kept apart from observations.

use serde::Serialize;

use crate::bundle::report_md::describe_end;
use crate::run::chain::{self, EventLine};
use crate::run::event::{
    Approval, Check, CheckKind, ControlRun, DiffChecked, EngineEnded, EnginePermission,
    EnginePhase, EngineResult, Event, RunStarted, VerificationCompleted,
};
use crate::run::order::Machine;
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::ids::RunId;
use crate::values::maybe_known::MaybeKnown;
use crate::values::time::Utc;
use crate::wire::calls::CallRecord;

/// Who says it: the harness or the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Voice {
    Observed,
    /// The engine's claim. Never evidence.
    Claimed,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Entry {
    pub seq: u64,
    pub ts: Utc,
    /// Since the first event, by the wall clock: it can go backwards.
    pub at_ms: i64,
    pub since_previous_ms: i64,
    pub event: EventType,
    pub voice: Voice,
    pub text: String,
}

/// A stretch of a run, from the event that opens it to the one that opens the next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Phase {
    pub name: &'static str,
    pub start_ms: i64,
    pub duration_ms: i64,
}

/// Nothing was recorded for a noticeable part of the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    pub before_seq: u64,
    pub duration_ms: i64,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Timeline {
    pub duration_ms: i64,
    pub phases: Vec<Phase>,
    pub gaps: Vec<Gap>,
    pub entries: Vec<Entry>,
}

/// Shorter pauses are ordinary work.
const SHORTEST_GAP_MS: i64 = 1000;

/// The events of a chain that are good and in a legal order, and what ends them too early.
pub fn good_beginning(
    bytes: &[u8],
    start: Digest,
    run_id: &RunId,
) -> (Vec<EventLine>, Option<String>) {
    let (mut lines, broken) = chain::read_while_good(bytes, start, run_id);
    let mut machine = Machine::default();
    for at in 0..lines.len() {
        match machine.step(&lines[at].event) {
            Ok(next) => machine = next,
            Err(error) => {
                lines.truncate(at);
                return (lines, Some(format!("line {}: {error}", at + 1)));
            }
        }
    }
    (lines, broken.map(|error| error.to_string()))
}

/// Builds the timeline of a chain.
pub fn build_timeline(lines: &[EventLine]) -> Timeline {
    let Some(first) = lines.first().map(|line| line.ts.as_millis()) else {
        return Timeline::default();
    };
    let mut entries: Vec<Entry> = Vec::with_capacity(lines.len());
    for line in lines {
        let at_ms = line.ts.as_millis() - first;
        entries.push(Entry {
            seq: line.seq,
            ts: line.ts,
            at_ms,
            since_previous_ms: at_ms - entries.last().map_or(0, |before| before.at_ms),
            event: line.event.kind(),
            voice: voice_of(line.event.kind()),
            text: event_sentence(&line.event),
        });
    }
    let duration_ms = entries.iter().map(|entry| entry.at_ms).max().unwrap_or(0);
    let is_gap = |entry: &&Entry| entry.since_previous_ms >= SHORTEST_GAP_MS.max(duration_ms / 10);
    let gaps = entries.iter().filter(is_gap).map(|entry| Gap {
        before_seq: entry.seq,
        duration_ms: entry.since_previous_ms,
    });
    Timeline {
        duration_ms,
        phases: phases(&entries),
        gaps: gaps.collect(),
        entries,
    }
}

fn phases(entries: &[Entry]) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for entry in entries {
        if let Some(open) = phases.last_mut() {
            open.duration_ms = (entry.at_ms - open.start_ms).max(0);
        }
        if let Some(name) = opens(entry.event)
            && phases.last().is_none_or(|open| open.name != name)
        {
            phases.push(Phase {
                name,
                start_ms: entry.at_ms,
                duration_ms: 0,
            });
        }
    }
    phases
}

/// The phase that begins with an event; the names are those of the live progress.
fn opens(event: EventType) -> Option<&'static str> {
    match event {
        EventType::RunStarted => Some("plan"),
        EventType::ApprovalRequested => Some("approval"),
        EventType::PlanUpdated | EventType::ApprovalGranted => Some("workspace"),
        EventType::EngineStarted => Some("engine"),
        EventType::EngineEnded => Some("measure"),
        EventType::GitDiffChecked => Some("verify"),
        EventType::VerificationCompleted | EventType::ApprovalDenied => Some("seal"),
        EventType::OperatorOutcomeRecorded => Some("settle"),
        EventType::TaskContractCreated
        | EventType::BackendGateBlocked
        | EventType::EngineMessage
        | EventType::EnginePlan
        | EventType::EnginePhase
        | EventType::EngineToolCall
        | EventType::EngineFileChange
        | EventType::EngineReview
        | EventType::EngineWarning
        | EventType::EnginePermission
        | EventType::EngineTokens
        | EventType::EngineModelCall
        | EventType::EngineResult
        | EventType::PatchApplied
        | EventType::BranchPolicyRecorded
        | EventType::BranchPolicyChecked
        | EventType::LandingUpdated
        | EventType::RunCompleted => None,
    }
}

/// The start and the end of an engine and its calls of a model are observed; the rest of its events
/// are its own words.
pub fn voice_of(event: EventType) -> Voice {
    let watched = matches!(
        event,
        EventType::EngineStarted | EventType::EngineModelCall | EventType::EngineEnded
    );
    if event.is_engine() && !watched {
        Voice::Claimed
    } else {
        Voice::Observed
    }
}

/// One line about an event. It holds text from outside unchanged: call `text::tame` before it is
/// shown.
pub fn event_sentence(event: &Event) -> String {
    match event {
        Event::RunStarted(RunStarted {
            reverifies: Some(first),
            ..
        }) => format!("the patch of {}, judged again", first.run_id),
        Event::RunStarted(run) => format!(
            "{} at stage {} on {}",
            run.engine,
            run.stage.number(),
            run.case_id
        ),
        Event::TaskContractCreated(created) if created.valid => {
            format!("contract {}", created.contract_digest.short())
        }
        Event::TaskContractCreated(_) => "the contract is not valid".into(),
        Event::PlanUpdated(plan) => plan.summary.clone(),
        Event::BackendGateBlocked(block) => match &block.detail {
            Some(detail) => format!("{}: {detail}", block.reason.as_str()),
            None => block.reason.as_str().to_owned(),
        },
        Event::ApprovalRequested(approval)
        | Event::ApprovalGranted(approval)
        | Event::ApprovalDenied(approval) => approved(approval),
        Event::BranchPolicyRecorded(told) => format!(
            "the engine may move {}; base commit {}",
            told.policy.work_branch, told.base_commit
        ),
        Event::BranchPolicyChecked(checked) => match checked.moves.moved.len() {
            0 => "no ref moved".into(),
            moved => format!("{moved} ref(s) moved"),
        },
        Event::EngineStarted(started) => format!(
            "{}, containment {}",
            started.engine,
            started.containment.as_str()
        ),
        Event::EngineMessage(said) | Event::EnginePlan(said) | Event::EngineWarning(said) => {
            said.text.clone()
        }
        Event::EnginePhase(phase) => phase_words(phase),
        Event::EngineToolCall(call) => match call.outcome {
            Some(outcome) => format!("{} {}: {}", call.tool, call.target, outcome.as_str()),
            None => format!("{} {}", call.tool, call.target),
        },
        Event::EnginePermission(asked) => permission(asked),
        Event::EngineFileChange(change) => change.path.clone(),
        Event::EngineReview(review) => {
            let word = if review.accepted {
                "accepts"
            } else {
                "rejects"
            };
            format!("{word}: {}", review.summary)
        }
        Event::EngineTokens(tokens) => {
            format!(
                "{} messages, {} tokens in, {} out",
                tokens.messages, tokens.input, tokens.output
            )
        }
        Event::EngineModelCall(call) => model_call(call),
        Event::EngineResult(result) => claimed(result),
        Event::EngineEnded(ended) => ended_words(ended),
        Event::PatchApplied(patch) => format!(
            "{} changed, a patch of {} bytes",
            files(patch.files),
            patch.bytes
        ),
        Event::GitDiffChecked(diff) => changed(diff),
        Event::VerificationCompleted(done) => verified(done),
        Event::OperatorOutcomeRecorded(outcome) => {
            format!("{:?} by {}", outcome.outcome, outcome.actor).to_lowercase()
        }
        Event::LandingUpdated(landing) => landing.step.clone(),
        Event::RunCompleted(done) => match done.blockers.is_empty() {
            true => done.status.as_str().to_owned(),
            false => {
                let codes = done
                    .blockers
                    .iter()
                    .map(|code| code.as_str())
                    .collect::<Vec<_>>()
                    .join(", ");
                format!("{}: {codes}", done.status.as_str())
            }
        },
    }
}

fn claimed(result: &EngineResult) -> String {
    let commit = result.commit.as_ref();
    let commit = commit.map_or_else(String::new, |id| format!(", names commit {id}"));
    match result.summary.as_str() {
        "" => format!("claims {}{commit}", result.claimed),
        said => format!("claims {}{commit}: {said}", result.claimed),
    }
}

fn ended_words(ended: &EngineEnded) -> String {
    let output = ended.stdout.bytes.saturating_add(ended.stderr.bytes);
    let head = ended.head.as_ref();
    let moved = head.filter(|head| head.before != head.after);
    let moved = moved.map_or_else(String::new, |head| {
        format!(", HEAD now: {}", head.after.words())
    });
    format!(
        "{} after {}, {output} bytes of output{moved}",
        describe_end(ended.end),
        duration_text(millis(ended.duration_ms))
    )
}

fn changed(diff: &DiffChecked) -> String {
    let names = diff.changes.iter().map(|change| change.path.to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    format!("{} changed: {names}", diff.changes.len())
}

/// A phase by its name; by its agent too, where that is called otherwise.
pub fn phase_words(phase: &EnginePhase) -> String {
    let who = match phase.agent.is_empty() || phase.agent == phase.phase {
        true => phase.phase.clone(),
        false => format!("{} ({})", phase.phase, phase.agent),
    };
    match (&phase.outcome, phase.summary.as_str()) {
        (None, _) => format!("{who} begins"),
        (Some(outcome), "") => format!("{who}: {outcome}"),
        (Some(outcome), summary) => format!("{who}: {outcome}: {summary}"),
    }
}

fn model_call(call: &CallRecord) -> String {
    let tokens =
        |seen: MaybeKnown<u64>| seen.known().map_or_else(|| "?".to_owned(), u64::to_string);
    let why = call
        .why
        .map_or(String::new(), |why| format!(": {}", why.sentence()));
    let field = call
        .field
        .as_ref()
        .map_or(String::new(), |field| format!(" ({field})"));
    let (input, output) = (tokens(call.tokens.input), tokens(call.tokens.output));
    format!(
        "call {} {}{why}{field}, {input} tokens in, {output} out, {}",
        call.seq,
        call.outcome.as_str(),
        duration_text(millis(call.total_us / 1000))
    )
}

fn approved(approval: &Approval) -> String {
    format!("{}: {}", approval.actor, approval.scope)
}

fn verified(done: &VerificationCompleted) -> String {
    if let Some(reason) = &done.not_run {
        return format!("not run: {reason}");
    }
    let green = done
        .checks
        .iter()
        .filter(|check| check.end.succeeded())
        .count();
    let hidden = done
        .checks
        .iter()
        .filter(|check| check.kind == CheckKind::Hidden)
        .count();
    let control = match &done.control {
        None => "",
        Some(ControlRun::Ran { checks, .. }) if checks.iter().any(is_red) => {
            "; control red, as it must be"
        }
        Some(ControlRun::Ran { .. }) => "; control GREEN where it must be red",
        Some(ControlRun::CouldNotRun { .. }) => "; control could not run",
        Some(ControlRun::None { .. }) => "; control NONE",
    };
    let hidden = if hidden > 0 {
        format!(" ({hidden} hidden)")
    } else {
        String::new()
    };
    format!("{green} of {} green{hidden}{control}", done.checks.len())
}

/// The command itself said no: an exit code, not a kill or a time limit.
fn is_red(check: &Check) -> bool {
    check.end.exit_code().is_some_and(|code| code != 0)
}

fn files(count: u64) -> String {
    format!("{count} file{}", if count == 1 { "" } else { "s" })
}

fn millis(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A length of time a person can read: `7 ms`, `1.25 s`, `3 m 07 s`, `2 h 05 m`.
pub fn duration_text(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    let (seconds, minutes) = (ms / 1000, ms / 60_000);
    match ms {
        0..1000 => format!("{sign}{ms} ms"),
        1000..60_000 => format!("{sign}{seconds}.{:02} s", ms % 1000 / 10),
        60_000..3_600_000 => format!("{sign}{minutes} m {:02} s", seconds % 60),
        _ => format!("{sign}{} h {:02} m", minutes / 60, minutes % 60),
    }
}

/// Time since the first event: `0.315 s`, `3:07.400`, `2:05:00.000`.
pub fn clock_text(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    let (hours, minutes, seconds, millis) =
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}.{millis:03} s"),
        (0, _) => format!("{sign}{minutes}:{seconds:02}.{millis:03}"),
        _ => format!("{sign}{hours}:{minutes:02}:{seconds:02}.{millis:03}"),
    }
}

/// What was asked, and how it was answered.
pub fn permission(asked: &EnginePermission) -> String {
    let (answer, rule) = (asked.answer.as_str(), asked.rule.as_str());
    match asked.question.is_empty() {
        true => format!("{answer}: {rule}"),
        false => format!("{answer} ({rule}): {}", asked.question),
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
