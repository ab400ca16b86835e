//! What reviewers said and what the checks and their must-fail control mean.

use super::engine::limit_word;
use super::list;
use crate::run::belief::{Belief, Doubt, seen};
use crate::run::checked::MissingModules;
use crate::run::event::{
    Check, CheckKind, ControlRun, EngineReview, ProcessEnd, VerificationCompleted,
};
use crate::run::facts::Facts;
use crate::run::rules::Rules;
use crate::task::contract::{Contract, Control, Runner, Stage};
use crate::values::blocker::{Blocker, Code};
use crate::values::event_type::EventType;
use crate::values::paths::TreePath;

pub(super) fn all_green(done: &VerificationCompleted) -> bool {
    done.not_run.is_none()
        && !done.checks.is_empty()
        && done.checks.iter().all(|check| check.end.succeeded())
}

pub(super) fn review_and_check_blockers(
    rules: Rules,
    contract: Option<&Contract>,
    facts: &Facts,
) -> Vec<Blocker> {
    let mut out: Vec<Blocker> = rejection(rules, &facts.reviews).into_iter().collect();
    if let Some(done) = &facts.verification {
        out.extend(verification_blockers(rules, contract, done));
    }
    out
}

/// The review that counts as a no: since rules 9 only the last can, which a revision may have satisfied.
fn rejection(rules: Rules, reviews: &[EngineReview]) -> Option<Blocker> {
    let said_no = |review: &&EngineReview| !review.accepted;
    let review = match rules >= Rules::Nine {
        true => reviews.last().filter(said_no),
        false => reviews.iter().find(said_no),
    }?;
    Some(Blocker::new(
        Code::ReviewerRejected,
        Some(review.summary.clone()),
    ))
}

/// The codes `verification.completed` itself carries; a time limit belongs to `run.completed`.
pub fn verification_codes(
    rules: Rules,
    contract: Option<&Contract>,
    reviews: &[EngineReview],
    done: &VerificationCompleted,
) -> Vec<Code> {
    let found = rejection(rules, reviews)
        .into_iter()
        .chain(verification_blockers(rules, contract, done));
    found
        .map(|blocker| blocker.code)
        .filter(|code| code.info().event == EventType::VerificationCompleted)
        .collect()
}

/// What a verification means. Exit codes decide; a count can only make it worse.
pub fn verification_blockers(
    rules: Rules,
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
            _ if lacks_one_anyway(rules, check, done) => {
                out.push(without_a_program(rules, check));
            }
            end => out.push(without_a_module(rules, check, done).unwrap_or_else(|| {
                Blocker::new(Code::VerificationFailed, Some(describe(check, end)))
            })),
        }
    }
    if all_green(done) {
        match untrusted(rules, contract, done) {
            Some(reasons) => {
                out.push(Blocker::new(Code::VerificationUntrusted, Some(reasons)));
            }
            None if rules >= Rules::Six => out.extend(doubts(contract, done)),
            None => {}
        }
    }
    out
}

/// Why green checks are no proof, whatever they are believed.
pub fn untrusted(
    rules: Rules,
    contract: &Contract,
    done: &VerificationCompleted,
) -> Option<String> {
    let reasons = [
        takeover(rules, done),
        control_problem(rules, contract, done),
        lost_tests(rules, contract, done),
        unfinished(done),
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// What green checks are not worth.
fn doubts(contract: &Contract, done: &VerificationCompleted) -> Vec<Blocker> {
    let believed = seen::of_run(contract, done);
    let on_approval = contract.lane.stage >= Stage::Four;
    let unproven = || {
        let of = contract.verification_commands.iter();
        let each = of.zip(&believed.commands);
        let named =
            each.filter(
                |(_, belief)| match contract.reasons.require_control || on_approval {
                    true => !belief.proves_a_stage(),
                    false => **belief == Belief::None,
                },
            );
        let commands: Vec<&str> = named.map(|(command, _)| command.as_str()).collect();
        match contract.reasons.require_control || on_approval {
            true => format!(
                "a control is required, and not proven: {}",
                commands.join("; ")
            ),
            false => format!("nothing turned it red: {}", commands.join("; ")),
        }
    };
    let unseen = || {
        let run = done.loading.as_ref();
        match run.map(|run| (&run.could_not_run, run)) {
            None => "whether they load the change was not tried".to_owned(),
            Some((Some(why), _)) => format!("the loading control could not run: {why}"),
            Some((None, run)) => {
                let files = run.files_seen(contract.verification_commands.len());
                let unseen = files.not_noticed.iter().chain(&files.not_tried);
                format!("no check noticed {}", list(&unseen.collect::<Vec<_>>()))
            }
        }
    };
    let told = |doubt: &Doubt| match doubt {
        Doubt::Unproven => Blocker::new(Code::VerificationUnproven, Some(unproven())),
        Doubt::NotChecked => Blocker::new(Code::ChangeNotChecked, Some(unseen())),
    };
    believed.doubts.iter().map(told).collect()
}

/// How shells say that a program is not there, or cannot be started.
pub fn lacks_a_program(end: ProcessEnd) -> bool {
    matches!(end, ProcessEnd::Exited { code: 126 | 127 })
}

/// Is it worth asking whether a red command is red without the change as well, for want of a program?
pub fn may_lack_a_program(check: &Check) -> bool {
    lacks_a_program(check.end) || !check.lacks.is_empty()
}

/// Did the command end in the same way where nothing was changed?
fn lacks_one_anyway(rules: Rules, check: &Check, done: &VerificationCompleted) -> bool {
    let by_its_end = rules >= Rules::Three && lacks_a_program(check.end);
    let same_program = |other: &Check| {
        let shared = check.lacks.iter().any(|name| other.lacks.contains(name));
        // A number that means nothing else speaks for itself where no program was named.
        let unnamed = check.lacks.is_empty() || other.lacks.is_empty();
        shared || (by_its_end && (rules < Rules::Four || unnamed))
    };
    let same = |other: &Check| {
        other.command == check.command && other.end == check.end && same_program(other)
    };
    let named = rules >= Rules::Four && !check.lacks.is_empty();
    let visible = check.kind == CheckKind::Visible;
    visible && (by_its_end || named) && done.baseline_checks.iter().any(same)
}

/// The chain carries it where it ends: no gate saw it.
fn without_a_program(rules: Rules, check: &Check) -> Blocker {
    let ended = describe(check, check.end);
    let detail = if rules < Rules::Four || check.lacks.is_empty() {
        format!(
            "{ended}, and on the untouched copy as well: a program it starts is not there or not shown, see test.log; --toolchain PATH shows one"
        )
    } else {
        format!(
            "{ended}, and on the untouched copy as well: it looked for {}, not there or not shown; {}",
            check.lacks.join(", "),
            shown_by(&check.lacks)
        )
    };
    Blocker {
        event: Some(EventType::RunCompleted),
        ..Blocker::new(Code::ToolchainUnavailable, Some(detail))
    }
}

/// The change asks for something that is not installed.
fn without_a_module(rules: Rules, check: &Check, done: &VerificationCompleted) -> Option<Blocker> {
    let of_check = |missing: &&MissingModules| {
        missing.command == check.command && !missing.modules.is_empty() && !missing.lists.is_empty()
    };
    let visible = rules >= Rules::Four && check.kind == CheckKind::Visible;
    let exited = check.end.exit_code().is_some();
    let missing = done
        .missing_modules
        .iter()
        .find(of_check)
        .filter(|_| visible && exited)?;
    let detail = format!(
        "{}: it did not find {}, and {} changed: the environment is the one from before; install what it asks for in your work tree and try again",
        describe(check, check.end),
        missing.modules.join(", "),
        list(&missing.lists.iter().collect::<Vec<_>>()),
    );
    Some(Blocker {
        event: Some(EventType::RunCompleted),
        ..Blocker::new(Code::ToolchainUnavailable, Some(detail))
    })
}

/// The flag that shows what was looked for. A relative path is of an environment.
fn shown_by(names: &[String]) -> &'static str {
    let of_repository =
        |name: &String| name.contains('/') && !name.starts_with('/') && !name.starts_with('~');
    if names.iter().all(of_repository) {
        "--input DIR brings an ignored directory along"
    } else {
        "--toolchain PATH shows a program or a directory of them"
    }
}

/// A change that decides how checks are run, or what they check, cannot be judged by them.
fn takeover(rules: Rules, done: &VerificationCompleted) -> Option<String> {
    let named = |paths: &[TreePath]| list(&paths.iter().collect::<Vec<_>>());
    if !done.runner_takeovers.is_empty() {
        return Some(format!(
            "changed what decides how checks are run; allow it by its own name or leave it: {}",
            named(&done.runner_takeovers)
        ));
    }
    let rewritten = &done.rewritten_test_files;
    (!rewritten.is_empty()).then(|| {
        let (what, by) = match rules >= Rules::Six {
            true => ("files that were measured", "by setup or a check"),
            false => ("test files", "while the checks ran"),
        };
        format!("{what} were rewritten {by}: {}", named(rewritten))
    })
}

/// With a runner, every test of the baseline must have run again. Bundles from before ids were read
/// have none.
fn lost_tests(rules: Rules, contract: &Contract, done: &VerificationCompleted) -> Option<String> {
    contract.compared_runner()?;
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
    // Renamed or merged tests are honest work: whoever asked for that has a way to say so.
    let way_out = match rules >= Rules::Six {
        true => " (where the task takes tests away: --changed-test ID[=REASON])",
        false => "",
    };
    let named = || {
        format!(
            "tests of the baseline did not run again: {}{more}{way_out}",
            tests.missing.join("; ")
        )
    };
    (tests.missing_count > 0).then(named)
}

/// A runner that began and left without its report, although it came to its end on the baseline.
fn unfinished(done: &VerificationCompleted) -> Option<String> {
    let tests = done.tests.as_ref()?;
    // Where the control's run came to its end, the kit knows the runner, whatever the baseline did.
    let reported = |index: usize| match &done.control {
        Some(ControlRun::Ran { heard, .. }) => heard.get(index).is_some_and(|heard| heard.reported),
        _ => false,
    };
    let too = tests.unfinished_before_too.iter();
    let too = too.filter(|(index, _)| reported(*index));
    let words: Vec<&str> = (tests.unfinished.iter())
        .chain(too.map(|(_, words)| words))
        .map(String::as_str)
        .collect();
    (!words.is_empty()).then(|| {
        let words = words.join("; ");
        format!("a runner did not come to its end, as it does elsewhere: {words}")
    })
}

fn describe(check: &Check, end: ProcessEnd) -> String {
    let how = match end {
        ProcessEnd::Exited { code } => format!("exit code {code}"),
        ProcessEnd::Signalled { signal } => format!("signal {signal}"),
        ProcessEnd::TimedOut { .. } => "time limit".into(),
        ProcessEnd::MemoryLimit { .. } => "memory limit".into(),
        ProcessEnd::Dismissed { .. } => "dismissed".into(),
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

/// Since rules 6: what else than the change may be the cause, and the way out of that.
const NOT_PLACED: &str = "where the command chooses its tests, or starts another runner than was thought, the failing ones may not have run: --runner NAME says which runner it is, --control FILE gives a patch that must turn it red";

fn control_problem(
    rules: Rules,
    contract: &Contract,
    done: &VerificationCompleted,
) -> Option<String> {
    let problem = problem_of_control(rules, contract, done)?;
    let added = matches!(contract.verification_control, Control::Runner(_));
    let ran = matches!(done.control, Some(ControlRun::Ran { .. }));
    Some(match (rules >= Rules::Six, added && ran) {
        (true, true) => format!("{problem} ({NOT_PLACED})"),
        _ => problem,
    })
}

fn problem_of_control(
    rules: Rules,
    contract: &Contract,
    done: &VerificationCompleted,
) -> Option<String> {
    // Since rules 7 a runner that nobody can hear, or whose tests nobody found, is believed less.
    let unheard = rules >= Rules::Seven && done.tests.as_ref().is_some_and(|tests| tests.not_heard);
    match (&contract.verification_control, done.control.as_ref()) {
        (Control::None(_), Some(ControlRun::None { .. }))
            if contract.lane.stage <= Stage::Three =>
        {
            None
        }
        (Control::None(_), _) => Some("a control is required at this stage".into()),
        (Control::Runner(_), Some(ControlRun::None { .. }))
            if rules >= Rules::Seven
                && contract.lane.stage <= Stage::Three
                && contract.runners().into_iter().all(Runner::reports) =>
        {
            None
        }
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
                ..
            }),
        ) => {
            let ran: Vec<&String> = checks.iter().map(|check| &check.command).collect();
            if ran.is_empty() || !ran.into_iter().eq(contract.control_commands().iter()) {
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
                (Some(_), None) if unheard => None,
                (Some(added), None) => Some(format!(
                    "{added} failing tests were added, the runner reported no count"
                )),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
#[path = "verification_tests.rs"]
mod tests;
