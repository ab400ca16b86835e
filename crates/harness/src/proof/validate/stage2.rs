//! Stage 2: the artificial fixture. An engine fixes a copied case and is compared with `fake` on
//! the same one.

use cto_core::bundle;
use cto_core::bundle::report::RelianceKind;
use cto_core::proof::stage2::{BaselineComparison, NoTargetInspection};
use cto_core::task::contract::Stage;
use cto_core::values::verdict::Status;

use super::seen::{Seen, told};
use super::{Bench, Validation, report_path, stage1};
use crate::bundles::reader;
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;

pub const FAILURES: [&str; 6] = [
    "no-diff",
    "disallowed-file",
    "failed-tests",
    "missing-test-command",
    "missing-event",
    "provider-unavailable",
];
const ASPECTS: usize = 7;

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    let mut former = Validation::default();
    if bench.engine.is_none() {
        former.include(stage1::validate(bench)?);
    }
    let mut validation = Validation::default();
    let manifest = bench.worker()?;
    let sealed = bench.run(&bench.request_for(&manifest)?.at_stage(Stage::Two))?;
    let report = &sealed.report;
    validation.check(
        "engine_fixes_the_fixture",
        report.status == Status::Pass,
        || told(&sealed.report),
    );
    match report.status {
        Status::Pass => validation.pass_reports.push(report_path(&sealed)),
        Status::Blocked | Status::Fail => validation.failure_reports.push(report_path(&sealed)),
    }
    let seen = bench.see(&sealed)?;
    validation.check("bundle_verifies", seen.good, || seen.told());
    if manifest.is_gated() && report.status == Status::Pass {
        artifacts(bench, &mut validation, &sealed, &seen)?;
    }
    bench.close_failures(&FAILURES, &mut validation)?;
    former.include(validation);
    Ok(former.done())
}

/// What a gated engine's run leaves beside its verdict.
fn artifacts(
    bench: &Bench<'_>,
    validation: &mut Validation,
    sealed: &SealedBundle,
    seen: &Seen,
) -> Result<(), Failure> {
    let report = &sealed.report;
    let target: Option<NoTargetInspection> = seen.read(bundle::STAGE2_NO_TARGET);
    validation.check(
        "no_target_was_inspected",
        target.is_some_and(|found| !found.target_exposed),
        || "stage2-no-target-inspection.json does not say so".into(),
    );
    let compared: Option<BaselineComparison> = seen.read(bundle::STAGE2_COMPARISON);
    let whole = compared
        .as_ref()
        .is_some_and(|compared| compared.aspects.len() == ASPECTS);
    validation.check("compared_with_fake_in_every_aspect", whole, || {
        "stage2-fake-baseline-comparison.json is not whole".into()
    });
    let baseline = compared.as_ref().map(|compared| compared.baseline.clone());
    let named = baseline.as_ref().is_some_and(|baseline| {
        let is = |id: &str| id == baseline.run_id.as_str();
        report.relies_on.iter().any(|on| {
            on.kind == RelianceKind::Proof && is(&on.id) && on.sha256 == baseline.sums_sha256
        })
    });
    validation.check("baseline_is_named", named, || {
        "relies_on does not name the run of fake".into()
    });
    let baseline = baseline.map(|baseline| bench.home.runs.join(baseline.run_id.as_str()));
    let asked = match &baseline {
        Some(dir) => bench.see_at(dir, &reader::report(dir)?)?.gates(),
        None => Vec::new(),
    };
    let same = !asked.is_empty() && asked == seen.gates();
    validation.check("same_dispatch_path", same, || {
        "the run of fake was asked other gates".into()
    });
    validation.fake_baseline = baseline.map(|dir| dir.join(bundle::REPORT).display().to_string());
    for name in [bundle::STAGE2_NO_TARGET, bundle::STAGE2_COMPARISON] {
        validation
            .proof_paths
            .push(sealed.dir.join(name).display().to_string());
    }
    let counts = bench.counts(report);
    // A double's run looks the same and must never be taken for a proof.
    match bench.engine.is_some() {
        true => validation.check("proof_counts_for_the_lane", counts, || {
            "the proof is not found again".into()
        }),
        false => validation.check("validator_run_proves_nothing", !counts, || {
            "a double's run is taken for a proof".into()
        }),
    }
    Ok(())
}
