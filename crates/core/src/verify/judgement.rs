//! The verdict, judged again from the facts, against the verdict that was recorded.

use std::collections::BTreeSet;

use super::{Documents, Verifier};
use crate::bundle;
use crate::run::checked::MissingModules;
use crate::run::facts::{Facts, Folded};
use crate::run::judge::{self, Judgement};
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code, Finding, worst_status};
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
        self.missing_modules(rules, facts);
    }

    /// Lists that are named have changed, and since rules 5 they ask for what was not found.
    fn missing_modules(&mut self, rules: Rules, facts: &Facts) {
        let (Some(done), Some(diff)) = (&facts.verification, &facts.diff) else {
            return;
        };
        let changes = diff.changes.iter().map(|change| &change.path);
        let lists: BTreeSet<&TreePath> = changes.filter(|path| is_dependency_list(path)).collect();
        let changed = |list: &TreePath| lists.contains(list);
        let mut named = done
            .missing_modules
            .iter()
            .flat_map(|missing| &missing.lists);
        if !named.all(changed) {
            self.problem(
                "judgement",
                bundle::EVENTS,
                "verification.completed names lists of dependencies that did not change",
            );
        }
        // A patch that held a secret is not in the bundle; such a run has failed for that.
        let is_withheld = |finding: &Finding| finding.code == Code::SecretLeak;
        let asked = &self.found.asked_for;
        let asked_for =
            |missing: &MissingModules| asked.accounts_for(&missing.modules, &missing.lists);
        if rules >= Rules::Five
            && !facts.findings.iter().any(is_withheld)
            && !done.missing_modules.iter().all(asked_for)
        {
            self.problem(
                "judgement",
                bundle::EVENTS,
                "verification.completed names modules that the patch does not ask for",
            );
        }
    }
}
