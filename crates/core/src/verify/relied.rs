//! A baseline that an earlier run made: it is in the bundle whole, so that nobody needs the earlier
//! run to see what tests were compared with. Only where no test was lost: otherwise the run itself
//! had to run the baseline.

use super::{Documents, Verifier};
use crate::bundle;
use crate::checks::known_baseline::{KeptBaseline, Relying};
use crate::containment::Containment;
use crate::run::event::VerificationCompleted;
use crate::run::rules::Rules;
use crate::task::contract::{Contract, Label};

impl Verifier<'_> {
    /// The baseline the chain says was relied on, where it is in the bundle and could have been.
    pub(super) fn relied(
        &mut self,
        rules: Rules,
        documents: &Documents,
        done: &VerificationCompleted,
    ) -> Option<KeptBaseline> {
        for name in [bundle::RELIED_BASELINE, bundle::RELIED_LOG] {
            let what = match (self.found.files.contains_key(name), done.relied.is_some()) {
                (true, false) => "is there without having been relied on",
                (false, true) => "is missing although it was relied on",
                (true, true) | (false, false) => continue,
            };
            self.problem("judgement", name, what);
        }
        let told = done.relied.as_ref()?;
        let contract = documents.contract.valid();
        let by = ReliedBy {
            label: contract.map(|contract| contract.label),
            containment: documents.report.containment,
        };
        if let Some(what) = wrong_use(rules, &by, done) {
            self.problem("judgement", bundle::EVENTS, what);
        }
        let found = self.found.files.get(bundle::RELIED_BASELINE)?.sha256;
        let kept = self.parsed::<KeptBaseline>(bundle::RELIED_BASELINE)?;
        let report = &documents.report;
        let relying = Relying {
            run_id: &report.run_id,
            begun: report.run_started_at,
            ended: report.run_finished_at,
            tree: contract.and_then(|contract| contract.start_tree.known()),
            runner: contract.and_then(Contract::compared_runner),
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

/// Who relies on an earlier baseline.
struct ReliedBy {
    label: Option<Label>,
    containment: Containment,
}

/// Why this verification could not rely on an earlier baseline.
fn wrong_use(rules: Rules, by: &ReliedBy, done: &VerificationCompleted) -> Option<&'static str> {
    if rules < Rules::Four {
        return Some("relies on an earlier baseline, which its rules do not know");
    }
    if rules >= Rules::Five && by.label != Some(Label::Try) {
        return Some("relies on an earlier baseline and is no try");
    }
    if rules >= Rules::Five && by.containment == Containment::None {
        return Some("relies on an earlier baseline and ran without a jail");
    }
    match &done.tests {
        // Of a red command it says whether it was red before.
        None if rules >= Rules::Seven && is_red(done) && done.baseline_checks.is_empty() => None,
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

fn is_red(done: &VerificationCompleted) -> bool {
    done.checks.iter().any(|check| !check.end.succeeded())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::TestsCompared;
    use crate::values::digest::Digest;

    fn compared() -> VerificationCompleted {
        let digest = Digest::of(b"");
        VerificationCompleted {
            tests: Some(TestsCompared {
                ids_sha256: digest,
                baseline_ids: 1,
                verified_ids: 1,
                not_seen: None,
                missing_count: 0,
                missing: Vec::new(),
                not_heard: false,
                unfinished: Vec::new(),
                unfinished_before_too: Vec::new(),
                none_passed: Vec::new(),
                changed_count: 0,
                changed: Vec::new(),
                renamed: Vec::new(),
            }),
            ..VerificationCompleted::nothing(digest)
        }
    }

    #[test]
    fn since_rules_7_a_red_check_needs_no_comparison_and_a_green_one_does() {
        use crate::run::event::{Check, CheckKind, ProcessEnd};
        let (label, containment) = (Some(Label::Try), Containment::Strict);
        let check = |code: u8| Check {
            kind: CheckKind::Visible,
            command: "t".into(),
            end: ProcessEnd::Exited { code },
            duration_ms: 1,
            lacks: Vec::new(),
        };
        let asked = |rules: Rules, code: u8, again: bool| {
            let done = VerificationCompleted {
                checks: vec![check(code)],
                baseline_checks: again.then(|| check(0)).into_iter().collect(),
                tests: None,
                ..compared()
            };
            wrong_use(rules, &ReliedBy { label, containment }, &done).is_none()
        };
        assert!(asked(Rules::Seven, 1, false));
        assert!(!asked(Rules::Seven, 0, false));
        assert!(!asked(Rules::Seven, 1, true), "it ran one");
        assert!(!asked(Rules::Six, 1, false));
    }

    #[test]
    fn since_rules_5_only_a_try_in_a_jail_relies_on_an_earlier_baseline() {
        use Containment::{Contained, None as Without, Strict};
        for rules in Rules::ALL {
            for label in [Some(Label::Try), Some(Label::Case), None] {
                for containment in [Without, Contained, Strict] {
                    let what = wrong_use(*rules, &ReliedBy { label, containment }, &compared());
                    let want = match rules {
                        Rules::One | Rules::Two | Rules::Three => Some("do not know"),
                        Rules::Four => None,
                        _ if label != Some(Label::Try) => Some("is no try"),
                        _ if containment == Without => Some("without a jail"),
                        _ => None,
                    };
                    let fits = match (what, want) {
                        (Some(what), Some(want)) => what.contains(want),
                        (what, want) => what == want,
                    };
                    assert!(fits, "{rules:?} {label:?} {containment:?}: {what:?}");
                }
            }
        }
    }
}
