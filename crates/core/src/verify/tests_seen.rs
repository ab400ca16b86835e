//! What the chain says about verification, compared with `test.log`, `test-ids.json` and the
//! measured changes.

use std::collections::BTreeSet;

use super::{Documents, Verifier};
use crate::bundle;
use crate::checks::known_baseline::KeptBaseline;
use crate::checks::names::test_files::{self, Names};
use crate::checks::runner_output::Heard;
use crate::checks::test_ids::TestIdDocument;
use crate::checks::test_log;
use crate::run::event::VerificationCompleted;
use crate::run::facts::Folded;
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::paths::TreePath;

impl Verifier<'_> {
    pub(super) fn verified(&mut self, rules: Rules, documents: &Documents, folded: &Folded) {
        // A run cut short before its event may have left the file; nothing rests on it then.
        let Some(done) = &folded.facts.verification else {
            return;
        };
        if self.found.files.contains_key(bundle::TEST_IDS) != done.tests.is_some() {
            self.problem(
                "judgement",
                bundle::TEST_IDS,
                "is there without a comparison, or missing with one",
            );
        }
        self.test_log(documents, done);
        let relied = self.relied(rules, documents, done);
        self.test_ids(rules, documents, folded, relied.as_ref());
        self.loading(rules, documents, folded, done);
        let contract = documents.contract.valid();
        if let (Some(contract), Some(diff), true) =
            (contract, &folded.facts.diff, done.log_nonce.is_some())
        {
            let changed = diff.changes.iter().map(|change| &change.path);
            let names = Names::of(rules);
            if test_files::runner_takeovers(names, changed, &contract.allowed_paths)
                != done.runner_takeovers
            {
                self.problem(
                    "judgement",
                    bundle::EVENTS,
                    "verification.completed does not name what takes over the runner",
                );
            }
        }
    }

    fn test_log(&mut self, documents: &Documents, done: &VerificationCompleted) {
        if done.log_nonce.is_none() {
            return;
        }
        let run_id = &documents.report.run_id;
        let wrong = match &self.found.test_log {
            None => Some("cannot be read"),
            Some(found) => {
                test_log::log_contradiction(found, run_id, &documents.contract_digest, done)
            }
        };
        if let Some(what) = wrong {
            self.problem("judgement", bundle::TEST_LOG, what);
        }
    }

    /// Counts and missing tests follow from the ids.
    fn test_ids(
        &mut self,
        rules: Rules,
        documents: &Documents,
        folded: &Folded,
        relied: Option<&KeptBaseline>,
    ) {
        let Some(done) = &folded.facts.verification else {
            return;
        };
        let Some(told) = &done.tests else { return };
        let Some(found) = self
            .found
            .files
            .get(bundle::TEST_IDS)
            .map(|file| file.sha256)
        else {
            return;
        };
        let Some(ids) = self.parsed::<TestIdDocument>(bundle::TEST_IDS) else {
            return;
        };
        let contract = documents.contract.valid();
        let commands = contract.map(|contract| contract.verification_commands.as_slice());
        let recognised = contract.map(|contract| contract.recognised.as_slice());
        let may_change = contract.map(|contract| contract.reasons.tests_may_change.as_slice());
        let fits = ids.compared(found, may_change.unwrap_or_default()) == *told
            && ids.is_about(commands.unwrap_or_default(), recognised.unwrap_or_default())
            && files_fit(rules, &ids, folded)
            && contract.is_none_or(|contract| runners_fit(rules, &ids, contract))
            && compared_with(&ids, done, relied);
        if !fits {
            self.problem(
                "judgement",
                bundle::TEST_IDS,
                "is not what the chain compared",
            );
        }
    }
}

/// Since rules 6 files are asked about, and which of them changed is what was measured.
fn files_fit(rules: Rules, ids: &TestIdDocument, folded: &Folded) -> bool {
    let Some(files) = &ids.files else {
        return rules < Rules::Six;
    };
    let changes = folded.facts.diff.iter().flat_map(|diff| &diff.changes);
    let changed: BTreeSet<&TreePath> = changes.map(|change| &change.path).collect();
    files
        .iter()
        .all(|file| file.changed == changed.contains(&file.path))
}

/// Since rules 7 each command has the runners that the contract says it uses.
fn runners_fit(rules: Rules, ids: &TestIdDocument, contract: &Contract) -> bool {
    match rules < Rules::Seven {
        true => ids.runners.is_empty(),
        false => ids.runners == contract.runners_of_commands(),
    }
}

/// Are these ids beside those of the baseline that ran, or of the one that was relied on?
fn compared_with(
    ids: &TestIdDocument,
    done: &VerificationCompleted,
    relied: Option<&KeptBaseline>,
) -> bool {
    match relied {
        None => done.relied.is_none() && ids.baseline == done.baseline_checks,
        Some(kept) => {
            let verified = ids.commands.iter().map(|command| Heard {
                ids: command.verified.clone(),
                whole: command.verified_whole.clone(),
                runs: command.verified_runs.clone(),
                ..Heard::default()
            });
            let (files, runners) = (ids.files.clone(), ids.runners.clone());
            let made = kept.compared_with(verified.collect());
            TestIdDocument {
                files,
                runners,
                ..made
            } == *ids
        }
    }
}
