//! Stage 1: the gate itself. Two runs of a gated engine, one with its gate closed and one with it
//! open, and neither starts anything.

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::gate::ladder::RefusedRun;
use cto_core::run::event::Origin;
use cto_core::task::contract::Stage;
use cto_core::values::blocker::Code;
use cto_core::values::verdict::Status;
use cto_core::verify::Standing;

use super::{Bench, Validation, doubled, report_path};
use crate::bundles::reader;
use crate::bundles::verifier;
use crate::evidence::SealedBundle;
use crate::evidence::keys::KeyStore;
use crate::host::failure::Failure;
use crate::records;
use crate::task::engines;
use crate::task::request::{ProofOrder, Request};

pub const FAILURES: [&str; 3] = [
    "provider-unavailable",
    "missing-event",
    "artifact-write-failure",
];

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    doubled::ready(bench)?;
    let manifest = match &bench.engine {
        Some(manifest) if !manifest.is_gated() => {
            return Err(Failure::usage(
                "not_gated",
                format!("{} has no gate to prove", manifest.id),
            )
            .so("nothing ran"));
        }
        Some(manifest) => manifest.clone(),
        None => match &bench.double {
            Some(double) => double.clone(),
            None => some_gated_engine()?,
        },
    };
    let mut validation = Validation::default();
    let closed = bench.run(&request(bench, &manifest, false, None))?;
    let codes = codes(&closed.report);
    validation.check(
        "refused_by_default",
        codes == [Code::EngineGateClosed],
        || told(&closed),
    );
    let refused = RefusedRun {
        run_id: closed.report.run_id.clone(),
        sums_sha256: closed.sums_sha256,
        blocker: Code::EngineGateClosed,
    };
    let order = (codes == [Code::EngineGateClosed]).then_some(ProofOrder::Stage1 { refused });
    let opened = bench.run(&request(bench, &manifest, true, order))?;
    look(bench, &mut validation, &opened)?;
    for sealed in [&closed, &opened] {
        validation.failure_reports.push(report_path(sealed));
    }
    let default = engines::all()?
        .first()
        .is_some_and(|first| first.id.as_str() == DEFAULT_ENGINE && !first.is_gated());
    validation.check("fake_stays_default", default, || {
        "another engine is the default".into()
    });
    bench.close_failures(&FAILURES, &mut validation)?;
    Ok(validation.done())
}

/// Any engine that is closed until opened: which one matters only to a real proof.
fn some_gated_engine() -> Result<Manifest, Failure> {
    let found = engines::all()?.into_iter().find(Manifest::is_gated);
    found.ok_or_else(|| Failure::internal("no_gated_engine", "this program knows no gated engine"))
}

fn request(
    bench: &Bench<'_>,
    manifest: &Manifest,
    engine_opened: bool,
    proof: Option<ProofOrder>,
) -> Request {
    Request::case(bench.case.clone(), manifest.clone())
        .at_stage(Stage::One)
        .opened(engine_opened)
        .contained(bench.contain)
        .in_lane(bench.asked.clone())
        .proving(proof)
        .asked_by(bench.origin())
        .keeping_workspace(true)
}

fn codes(report: &Report) -> Vec<Code> {
    report.blockers.iter().map(|blocker| blocker.code).collect()
}

fn told(sealed: &SealedBundle) -> String {
    let codes: Vec<&str> = codes(&sealed.report)
        .into_iter()
        .map(Code::as_str)
        .collect();
    format!("{} ended with: {}", sealed.report.run_id, codes.join(", "))
}

/// With the gate open it is recognised and still not run, and nothing was touched before the gate.
fn look(
    bench: &Bench<'_>,
    validation: &mut Validation,
    opened: &SealedBundle,
) -> Result<(), Failure> {
    let report = &opened.report;
    validation.check(
        "recognised_and_not_run",
        codes(report) == [Code::StageGateClosed] && report.status == Status::Blocked,
        || told(opened),
    );
    let workspace = bench.home.work().join(report.run_id.as_str());
    let untouched = !report.process_started && report.result.is_none() && !workspace.exists();
    validation.check("gate_precedes_every_effect", untouched, || {
        "a workspace or a process was there".into()
    });
    // What was verified is what is looked at, whatever lies under these names by now.
    let trust = KeyStore::of(bench.home)
        .trust()
        .map_err(|error| error.failure())?;
    let (found, good) = verifier::examine(&opened.dir, &trust)
        .map(|(found, verification)| (found, verification.standing == Standing::Good))
        .unwrap_or_default();
    let empty = found
        .files
        .get(bundle::PATCH)
        .is_some_and(|patch| patch.bytes == 0);
    validation.check("patch_is_empty", empty, || "patch.diff is not empty".into());
    let log = reader::digested(&opened.dir, report, bundle::TEST_LOG).unwrap_or_default();
    validation.check(
        "test_log_says_why",
        String::from_utf8_lossy(&log).contains("verification was not"),
        || "test.log does not say why".into(),
    );
    let reasons = ["backend_exit_code", "allowed_writes_passed", "tests_passed"]
        .iter()
        .all(|field| report.not_applicable.contains_key(*field));
    validation.check("not_applicable_has_reasons", reasons, || {
        "a field without a value has no reason".into()
    });
    validation.check("bundle_verifies", good, || {
        format!("{} does not verify", report.run_id)
    });
    let path = opened.dir.join(bundle::STAGE1_PROOF);
    let written = found.documents.contains_key(bundle::STAGE1_PROOF);
    validation.check("proof_written", written, || {
        "no stage1-gate-proof.json was written".into()
    });
    if written {
        validation.proof_paths.push(path.display().to_string());
    }
    let found = records::proofs(&report.backend, bench.home, Origin::Operator)
        .iter()
        .any(|proof| proof.run_id == report.run_id);
    // A validator's run looks the same and must never be taken for a proof.
    let wanted = bench.engine.is_some();
    let name = if wanted {
        "proof_counts_for_the_lane"
    } else {
        "validator_run_proves_nothing"
    };
    validation.check(name, found == wanted, || {
        if wanted {
            "the proof is not found again".into()
        } else {
            "it was taken for a proof".into()
        }
    });
    Ok(())
}
