//! Stage 2: the artificial fixture. An engine fixes a copied case and is compared with `fake` on
//! the same one.

use cto_core::bundle;
use cto_core::bundle::report::RelianceKind;
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::proof::stage2::{BaselineComparison, NoTargetInspection};
use cto_core::run::event::Origin;
use cto_core::task::contract::Stage;
use cto_core::values::blocker::Code;
use cto_core::values::json;
use cto_core::values::verdict::Status;
use cto_core::verify::{FoundBundle, Standing};

use super::{Bench, Validation, doubled, report_path};
use crate::bundles::verifier;
use crate::evidence::SealedBundle;
use crate::evidence::keys::KeyStore;
use crate::host::failure::Failure;
use crate::records;
use crate::task::engines;
use crate::task::request::Request;

const FAILURES: [&str; 6] = [
    "no-diff",
    "disallowed-file",
    "failed-tests",
    "missing-test-command",
    "missing-event",
    "provider-unavailable",
];
const ASPECTS: usize = 7;

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    let mut validation = Validation::default();
    let manifest = match &bench.engine {
        Some(manifest) => manifest.clone(),
        None => match bench.double.clone() {
            Some(double) => {
                bench.asked = doubled::lane(bench, &double)?;
                double
            }
            None => engines::find(DEFAULT_ENGINE)?,
        },
    };
    let sealed = bench.run(&request(bench, &manifest))?;
    let report = &sealed.report;
    validation.check(
        "engine_fixes_the_fixture",
        report.status == Status::Pass,
        || told(&sealed),
    );
    match report.status {
        Status::Pass => validation.pass_reports.push(report_path(&sealed)),
        Status::Blocked | Status::Fail => validation.failure_reports.push(report_path(&sealed)),
    }
    let trust = KeyStore::of(bench.home)
        .trust()
        .map_err(|error| error.failure())?;
    let (found, good) = verifier::examine(&sealed.dir, &trust)
        .map(|(found, verification)| (found, verification.standing == Standing::Good))
        .unwrap_or_default();
    validation.check("bundle_verifies", good, || {
        format!("{} does not verify", report.run_id)
    });
    if manifest.is_gated() && report.status == Status::Pass {
        artifacts(bench, &mut validation, &sealed, &found);
    }
    bench.close_failures(&FAILURES, &mut validation)?;
    Ok(validation.done())
}

fn request(bench: &Bench<'_>, manifest: &Manifest) -> Request {
    let plays = !manifest.is_gated();
    let oracle = || bench.case.scripts.get("oracle").cloned();
    Request::case(bench.case.clone(), manifest.clone())
        .at_stage(Stage::Two)
        // Asking for a proof of this engine opens it for this one command, as `--allow-engine`
        // does.
        .opened(true)
        .playing(plays.then(|| oracle().unwrap_or_default()), false)
        .contained(bench.contain)
        .in_lane(bench.asked.clone())
        .asked_by(bench.origin())
}

fn told(sealed: &SealedBundle) -> String {
    let line = |blocker: &cto_core::values::blocker::Blocker| match &blocker.detail {
        Some(detail) => format!("{}: {detail}", blocker.code.as_str()),
        None => Code::as_str(blocker.code).to_owned(),
    };
    sealed
        .report
        .blockers
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("; ")
}

/// What a gated engine's run leaves beside its verdict.
fn artifacts(
    bench: &Bench<'_>,
    validation: &mut Validation,
    sealed: &SealedBundle,
    found: &FoundBundle,
) {
    let report = &sealed.report;
    // The bytes that were verified, whatever lies under their names by now.
    let document = |name: &str| found.documents.get(name).map_or(&[][..], Vec::as_slice);
    let target: Option<NoTargetInspection> = json::read(document(bundle::STAGE2_NO_TARGET)).ok();
    validation.check(
        "no_target_was_inspected",
        target.is_some_and(|found| !found.target_exposed),
        || "stage2-no-target-inspection.json does not say so".into(),
    );
    let compared: Option<BaselineComparison> = json::read(document(bundle::STAGE2_COMPARISON)).ok();
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
    validation.fake_baseline = baseline.map(|baseline| {
        bench
            .home
            .runs
            .join(baseline.run_id.as_str())
            .join(bundle::REPORT)
            .display()
            .to_string()
    });
    for name in [bundle::STAGE2_NO_TARGET, bundle::STAGE2_COMPARISON] {
        validation
            .proof_paths
            .push(sealed.dir.join(name).display().to_string());
    }
    let found = records::proofs(&report.backend, bench.home, Origin::Operator)
        .iter()
        .any(|proof| proof.run_id == report.run_id);
    // A double's run looks the same and must never be taken for a proof.
    match bench.engine.is_some() {
        true => validation.check("proof_counts_for_the_lane", found, || {
            "the proof is not found again".into()
        }),
        false => validation.check("validator_run_proves_nothing", !found, || {
            "a double's run is taken for a proof".into()
        }),
    }
}
