//! What a run comes to with everything that was said of it afterwards. A sealed bundle never changes; this fold
//! over it and its settlements is what is shown wherever the run is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decide::may_be_settled;
use crate::bundle::report::{Continues, Report};
use crate::run::event::{Kind, LandMode, Outcome};
use crate::values::blocker::Code;
use crate::values::ids::RunId;
use crate::values::verdict::Status;

/// A settlement that was verified, as far as the fold asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settlement {
    pub run_id: RunId,
    pub continues: Continues,
    pub status: Status,
    pub outcome: Outcome,
    pub reverts: Option<RunId>,
    /// How it reached the target, and with which commit.
    pub landed: Option<(LandMode, String)>,
    /// It was cut short, so that the word has still to be carried out.
    pub cut_short: bool,
}

impl Settlement {
    /// As its report says; the caller must have verified the bundle.
    pub fn of(report: &Report) -> Option<Self> {
        let told = report.settlement.as_ref();
        let told = told.filter(|_| report.kind == Kind::Settlement)?;
        let landed = told.landed();
        let landed = landed.and_then(|landed| Some((landed.mode, landed.new_commit.clone()?)));
        let mut codes = report.blockers.iter().map(|blocker| blocker.code);
        Some(Self {
            run_id: report.run_id.clone(),
            continues: report.continues.clone()?,
            status: report.status,
            outcome: told.outcome,
            reverts: told.reverts.clone(),
            landed,
            cut_short: codes
                .any(|code| matches!(code, Code::Interrupted | Code::ArtifactWriteFailure)),
        })
    }
}

/// Where a run stands with its operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nobody has to say anything of it, or its own blockers are others.
    OwnVerdict,
    /// Green, and nobody has said anything that could be carried out.
    Waits,
    Accepted,
    /// Accepted, and the target did not allow it. It may be said again.
    NotLanded,
    Rejected,
    /// Accepted and landed, and taken back by a commit.
    Reverted,
    /// Two words that cannot both be meant.
    Contradicted,
}

/// The verdict that counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Effective {
    pub status: Status,
    pub standing: Standing,
    /// The blocker that decides, where it is not the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The settlement that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<RunId>,
}

impl Effective {
    fn of(standing: Standing, status: Status, code: Option<Code>, by: Option<&RunId>) -> Self {
        Self {
            status,
            standing,
            code,
            by: by.cloned(),
        }
    }

    /// In a few words, for whoever reads a list.
    pub fn words(&self) -> &'static str {
        match self.standing {
            Standing::OwnVerdict => "nothing was to be said of it",
            Standing::Waits => "waits for the operator's outcome",
            Standing::Accepted => "accepted, and landed",
            Standing::NotLanded => "accepted, and the target did not allow the landing",
            Standing::Rejected => "rejected",
            Standing::Reverted => "landed, and taken back",
            Standing::Contradicted => "its settlements contradict each other",
        }
    }
}

/// Folds a run and its settlements, in the order they were made. Those of another bundle of the same name are none.
pub fn effective_verdict(run: &Report, own: &Continues, settlements: &[Settlement]) -> Effective {
    let unsettled = |standing| Effective::of(standing, run.status, None, None);
    if may_be_settled(run).is_err() {
        return unsettled(Standing::OwnVerdict);
    }
    let mut said: Vec<&Settlement> = settlements
        .iter()
        .filter(|settlement| settlement.continues == *own)
        .collect();
    said.sort_by_key(|settlement| settlement.run_id.sort_key());
    let mut now = unsettled(Standing::Waits);
    for settlement in said {
        now = next(&now, settlement);
    }
    now
}

fn next(now: &Effective, said: &Settlement) -> Effective {
    use Standing as S;
    let by = Some(&said.run_id);
    let contradicted = || {
        Effective::of(
            S::Contradicted,
            Status::Fail,
            Some(Code::OperatorRejected),
            by,
        )
    };
    let rejected =
        |standing| Effective::of(standing, Status::Fail, Some(Code::OperatorRejected), by);
    let first = said.reverts.is_none();
    match (now.standing, said.outcome) {
        // Whatever follows, nobody knows what was meant.
        (S::Contradicted, _) => now.clone(),
        // Half of a word: it has still to be carried out.
        _ if said.cut_short => now.clone(),
        (S::Waits | S::NotLanded, Outcome::Accepted) if first => match said.status {
            Status::Pass => Effective::of(S::Accepted, Status::Pass, None, by),
            _ => Effective::of(
                S::NotLanded,
                Status::Fail,
                Some(Code::LandingUnsupported),
                by,
            ),
        },
        (S::Waits | S::NotLanded, Outcome::Rejected) if first => rejected(S::Rejected),
        (S::Accepted, Outcome::Rejected) if said.reverts == now.by => match said.landed {
            Some(_) => rejected(S::Reverted),
            // Rejected it is; what landed is still there, and taking it back may be tried again.
            None => Effective {
                by: now.by.clone(),
                ..rejected(S::Accepted)
            },
        },
        _ => contradicted(),
    }
}

#[cfg(test)]
#[path = "effective_tests.rs"]
mod tests;
