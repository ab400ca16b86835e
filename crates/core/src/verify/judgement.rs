//! The verdict, judged again from the facts, against the verdict that was recorded.

use super::{Documents, Verifier};
use crate::bundle;
use crate::run::facts::Folded;
use crate::run::judge::{self, Judgement};
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code, worst_status};
use crate::values::paths::TreePath;
use crate::workspace::environment::is_dependency_list;

impl Verifier<'_> {
    /// Judges again from the facts; the worse of chain and report counts.
    pub(super) fn judgement(&mut self, documents: &Documents, folded: &Folded) -> Judgement {
        let contract = documents.contract.valid();
        let mut judgement = judge::judge(contract, &folded.facts);
        if let Some(done) = &folded.completed
            && (done.status != judgement.status || done.blockers != judgement.codes())
        {
            self.problem(
                "judgement",
                bundle::EVENTS,
                format!(
                    "run.completed says {}, the facts say {}",
                    done.status.as_str(),
                    judgement.status.as_str()
                ),
            );
        }
        self.event_codes(contract, folded);
        let late: Vec<Blocker> = documents
            .report
            .blockers
            .iter()
            .filter(|b| b.event.is_none())
            .cloned()
            .collect();
        for blocker in &late {
            if !matches!(blocker.code, Code::ArtifactWriteFailure | Code::Interrupted) {
                self.problem(
                    "judgement",
                    bundle::REPORT,
                    format!(
                        "{} cannot be found after the chain ended",
                        blocker.code.as_str()
                    ),
                );
            }
        }
        judgement.blockers.extend(late);
        judgement.status = worst_status(&judgement.blockers);
        judgement
    }

    /// Codes an event carries are the codes its own facts mean.
    fn event_codes(&mut self, contract: Option<&Contract>, folded: &Folded) {
        let facts = &folded.facts;
        let ended_well = judge::engine_ended_well(facts);
        // Rules nobody here knows are said elsewhere.
        let rules = Rules::of(facts.rules).unwrap_or(Rules::NEWEST);
        if let (Some(contract), Some(diff)) = (contract, &facts.diff) {
            let codes: Vec<Code> = judge::diff_blockers(contract, diff, ended_well)
                .iter()
                .map(|b| b.code)
                .collect();
            if codes != diff.blockers {
                self.problem(
                    "judgement",
                    bundle::EVENTS,
                    "git.diff.checked carries codes its facts do not mean",
                );
            }
        }
        if let Some(done) = facts.verification.as_ref().filter(|_| facts.diff.is_some())
            && judge::verification_codes(rules, contract, &facts.reviews, done) != done.blockers
        {
            self.problem(
                "judgement",
                bundle::EVENTS,
                "verification.completed carries codes its facts do not mean",
            );
        }
        if let (Some(done), Some(diff)) = (&facts.verification, &facts.diff) {
            let changed = |list: &TreePath| {
                is_dependency_list(list) && diff.changes.iter().any(|change| change.path == *list)
            };
            let mut lists = done
                .missing_modules
                .iter()
                .flat_map(|missing| &missing.lists);
            if !lists.all(changed) {
                self.problem(
                    "judgement",
                    bundle::EVENTS,
                    "verification.completed names lists of dependencies that did not change",
                );
            }
        }
    }
}
