//! The run of `fake` that a stage-2 run was compared with: it is the one that is relied on, and it could
//! have been compared with.

use serde::Deserialize;

use super::Linked;
use crate::bundle;
use crate::bundle::report::{RelianceKind, Report};
use crate::engine::manifest::DEFAULT_ENGINE;
use crate::run::event::Kind;
use crate::run::rules::Rules;
use crate::task::contract::{Contract, ContractDocument, Label, Stage};
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json;
use crate::verify::{Documents, Verifier};

const CHECK: &str = "links";

/// As much of the comparison as is checked here.
#[derive(Deserialize)]
struct Comparison {
    baseline: Named,
}

#[derive(Deserialize)]
struct Named {
    run_id: RunId,
    sums_sha256: Digest,
}

impl Verifier<'_> {
    /// Since rules 8 the baseline may be older than the run, so what it is a baseline for is asked here.
    pub(in crate::verify) fn compared(&mut self, rules: Rules, documents: &Documents) {
        if rules < Rules::Eight || !self.found.files.contains_key(bundle::STAGE2_COMPARISON) {
            return;
        }
        let Ok(told) = json::read::<Comparison>(self.bytes(bundle::STAGE2_COMPARISON)) else {
            return self.problem(
                CHECK,
                bundle::STAGE2_COMPARISON,
                "does not say what was compared",
            );
        };
        let report = &documents.report;
        let is_relied = report.relies_on.iter().any(|on| {
            on.kind == RelianceKind::Proof
                && on.id == told.baseline.run_id.as_str()
                && on.sha256 == told.baseline.sums_sha256
        });
        if !is_relied {
            return self.problem(
                CHECK,
                bundle::STAGE2_COMPARISON,
                "compares with a run that the report does not rely on",
            );
        }
        // That it was not found, or is bad, is said where it is relied on.
        let Some(linked) = self.links.get(&told.baseline.run_id) else {
            return;
        };
        if let Some(why) = no_baseline(report, &documents.contract, linked) {
            let message = format!("compares with {}, which {why}", told.baseline.run_id);
            self.problem(CHECK, bundle::STAGE2_COMPARISON, message);
        }
    }
}

/// Why a run cannot have been the baseline of another.
fn no_baseline(
    report: &Report,
    contract: &ContractDocument,
    baseline: &Linked,
) -> Option<&'static str> {
    let theirs = &baseline.report;
    let containment =
        |contract: Option<&Contract>| contract.and_then(|contract| contract.lane.containment);
    let reasons = [
        (
            theirs.backend.as_str() != DEFAULT_ENGINE,
            "is not of the engine fake",
        ),
        (
            (theirs.kind, theirs.label, theirs.stage) != (Kind::Run, Label::Case, Stage::Two),
            "is no run of a case at stage 2",
        ),
        (
            theirs.case_id != report.case_id || theirs.task_digest != report.task_digest,
            "had another task",
        ),
        (
            containment(contract.valid()) != containment(baseline.contract.as_deref()),
            "had another containment",
        ),
        (theirs.origin != report.origin, "was made for another"),
        (
            theirs.harness_version != report.harness_version,
            "is of another harness",
        ),
    ];
    reasons.into_iter().find_map(|(is, why)| is.then_some(why))
}
