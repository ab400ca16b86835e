//! A baseline that an earlier run made: it is in the bundle whole, so that nobody needs the earlier
//! run to see what tests were compared with. Only where no test was lost: otherwise the run itself
//! had to run the baseline.

use super::{Documents, Verifier};
use crate::bundle;
use crate::checks::known_baseline::{KeptBaseline, Relying};
use crate::run::event::VerificationCompleted;
use crate::run::rules::Rules;
use crate::task::contract::{Contract, Control, Runner};

impl Verifier<'_> {
    /// The baseline the chain says was relied on, where it is in the bundle and could have been.
    pub(super) fn relied(
        &mut self,
        rules: Rules,
        documents: &Documents,
        done: &VerificationCompleted,
    ) -> Option<KeptBaseline> {
        for name in [bundle::RELIED_BASELINE, bundle::RELIED_LOG] {
            if self.found.files.contains_key(name) != done.relied.is_some() {
                self.problem(
                    "judgement",
                    name,
                    "is there without having been relied on, or missing although it was",
                );
            }
        }
        let told = done.relied.as_ref()?;
        if let Some(what) = wrong_use(rules, done) {
            self.problem("judgement", bundle::EVENTS, what);
        }
        let found = self.found.files.get(bundle::RELIED_BASELINE)?.sha256;
        let kept = self.parsed::<KeptBaseline>(bundle::RELIED_BASELINE)?;
        let contract = documents.contract.valid();
        let report = &documents.report;
        let relying = Relying {
            run_id: &report.run_id,
            begun: report.run_started_at,
            ended: report.run_finished_at,
            tree: contract.and_then(|contract| contract.start_tree.known()),
            runner: contract.and_then(runner),
        };
        let unusable = match kept.relied(found) == *told {
            true => kept.unusable(&relying),
            false => Some("is not the baseline the chain names"),
        };
        if let Some(what) = unusable {
            self.problem("judgement", bundle::RELIED_BASELINE, what);
        }
        if let Some(what) = kept.log_contradiction(self.bytes(bundle::RELIED_LOG)) {
            self.problem("judgement", bundle::RELIED_LOG, what);
        }
        Some(kept)
    }
}

fn runner(contract: &Contract) -> Option<Runner> {
    match contract.verification_control {
        Control::Runner(runner) => Some(runner),
        Control::Patch(_) | Control::None(_) => None,
    }
}

/// Why this verification could not rely on an earlier baseline.
fn wrong_use(rules: Rules, done: &VerificationCompleted) -> Option<&'static str> {
    if rules < Rules::Four {
        return Some("relies on an earlier baseline, which its rules do not know");
    }
    match &done.tests {
        None => Some("relies on an earlier baseline and compared nothing with it"),
        Some(tests) if tests.missing_count > 0 => {
            Some("tests are missing, and no baseline of this run confirmed it")
        }
        Some(_) if !done.baseline_checks.is_empty() => {
            Some("relies on an earlier baseline and ran one")
        }
        Some(_) => None,
    }
}
