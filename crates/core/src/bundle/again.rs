//! May the patch of a run be judged once more without an engine? Only where nothing but its checks was in the
//! way, or nothing at all: what an engine did wrong, no other test command makes right.

use crate::bundle::report::Report;
use crate::run::event::{Kind, ProcessEnd};
use crate::task::again::ChecksDiffer;
use crate::task::contract::{Contract, Label, Stage};
use crate::values::blocker::Code;

/// What is asked of a run whose bundle is good.
#[derive(Clone, Debug)]
pub struct FirstRun<'a> {
    pub kind: Kind,
    pub label: Label,
    pub stage: Stage,
    pub engine_end: Option<ProcessEnd>,
    /// Paths its patch changes, where there is one.
    pub changed: usize,
    pub blockers: Vec<Code>,
    /// Something was found once its chain had ended.
    pub is_late: bool,
    pub contract: Option<&'a Contract>,
}

impl<'a> FirstRun<'a> {
    pub fn of(report: &Report, contract: Option<&'a Contract>) -> Self {
        Self {
            kind: report.kind,
            label: report.label,
            stage: report.stage,
            engine_end: report.observed.engine_end,
            changed: match report.result {
                Some(_) => report.changed_files.len(),
                None => 0,
            },
            blockers: report.blockers.iter().map(|found| found.code).collect(),
            is_late: report.blockers.iter().any(|found| found.event.is_none()),
            contract,
        }
    }
}

/// Why a patch is not judged again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAgain {
    #[error("it is no run of an engine")]
    NoRun,
    #[error("only a try, or a run up to stage 3, is judged again")]
    HigherStage,
    #[error("it has no valid contract")]
    NoContract,
    #[error("its contract needs an approval, and an approval is for one run")]
    NeedsApproval,
    #[error("it did not fail by its checks alone: {}", .0.as_str())]
    NotOfChecks(Code),
    #[error("its engine did not end by itself, or not well")]
    EngineFailed,
    #[error("it has no patch")]
    NoPatch,
}

/// Is a blocker of a run whose engine ended well about its checks?
fn is_of_checks(code: Code) -> bool {
    matches!(
        code,
        Code::VerificationFailed
            | Code::VerificationUntrusted
            | Code::VerificationUnproven
            | Code::ChangeNotChecked
            | Code::ToolchainUnavailable
            // An engine that ended well reached no limit: it was a check.
            | Code::Timeout
    )
}

/// Total: whatever a good bundle says, this answers. A run that passed may be judged again as well, by more
/// or other checks; it stays what it is.
pub fn may_be_judged_again<'a>(first: &FirstRun<'a>) -> Result<&'a Contract, NotAgain> {
    if first.kind != Kind::Run {
        return Err(NotAgain::NoRun);
    }
    if first.label != Label::Try && first.stage > Stage::Three {
        return Err(NotAgain::HigherStage);
    }
    let contract = first.contract.ok_or(NotAgain::NoContract)?;
    if contract.approval_required {
        return Err(NotAgain::NeedsApproval);
    }
    let mut blockers = first.blockers.iter();
    if let Some(other) = blockers.find(|code| !is_of_checks(**code)) {
        return Err(NotAgain::NotOfChecks(*other));
    }
    match (first.engine_end, first.changed) {
        (Some(end), _) if !end.is_in_order() || first.is_late => Err(NotAgain::EngineFailed),
        // A gate was closed: nothing ran.
        (None, _) | (_, 0) => Err(NotAgain::NoPatch),
        (Some(_), _) => Ok(contract),
    }
}

/// For the page of a report: whose patch it is, and what differs. Nothing where it is not judged again.
pub(super) fn paragraph(report: &Report, code: fn(&str) -> String) -> String {
    let Some(first) = &report.reverifies else {
        return String::new();
    };
    let run = &first.run_id;
    let differ = report.checks_differ.clone().unwrap_or_default();
    let lines = differ.lines();
    let lines = lines.iter().map(|line| format!("- {}\n", code(line)));
    let told = match differ == ChecksDiffer::default() {
        true => "The checks are the same.\n".to_owned(),
        false => format!(
            "What differs from its checks:\n\n{}",
            lines.collect::<String>()
        ),
    };
    format!(
        "The patch of `{run}`, judged again without an engine. That run stays what it was.\n\n{told}\n"
    )
}

#[cfg(test)]
#[path = "again_tests.rs"]
mod tests;
