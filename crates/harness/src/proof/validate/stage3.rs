//! Stage 3: a copied repository. An engine works on a copy of a repository with a record, and the repository
//! stays as it was; one that is a target is not even looked at.

use std::path::Path;

use cto_core::bundle;
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::gate::ladder::stage3::Stage3Proof;
use cto_core::records::{RecordKind, TargetAdmission};
use cto_core::run::event::Origin;
use cto_core::task::contract::Stage;
use cto_core::task::source::{SourceClass, SourceRecord};
use cto_core::values::blocker::Code;
use cto_core::values::json;
use cto_core::values::verdict::Status;

use super::seen::told;
use super::{Bench, Validation, report_path, stage2};
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::{Home, programs};
use crate::proof::matrix::{Past, make_repository};
use crate::records::RecordStore;
use crate::run;
use crate::task::engines;
use crate::task::request::{Request, SourceRequest};

pub const FAILURES: [&str; 8] = [
    "dirty-starting-tree",
    "dirty-starting-merge",
    "dirty-ending-lock",
    "timeout-engine",
    "artifact-write-failure",
    "disallowed-file",
    "failed-tests",
    "missing-event",
];

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    let mut former = Validation::default();
    if bench.engine.is_none() {
        former.include(stage2::validate(bench)?);
    }
    let mut validation = Validation::default();
    let source = make_source(bench)?;
    let manifest = bench.worker()?;
    let sealed = bench.run(&request(bench, &manifest, &source)?)?;
    look(bench, &mut validation, &sealed)?;
    no_target(bench, &mut validation, &source)?;
    bench.close_failures(&FAILURES, &mut validation)?;
    former.include(validation);
    Ok(former.done())
}

/// The files of the case, as a repository of their own.
fn make_source(bench: &Bench<'_>) -> Result<SourceRequest, Failure> {
    let cannot = |why: &dyn std::error::Error| {
        Failure::internal("no_fixture", "a repository to copy cannot be made")
            .because(why)
            .so("nothing was shown")
    };
    let git = programs::git(bench.env, bench.home).map_err(|error| cannot(&error))?;
    let path = bench.root.join("copied-repository");
    make_repository(&git, &path, &bench.case.workspace, Past::One)
        .map_err(|error| cannot(&error))?;
    Ok(SourceRequest {
        path,
        record: SourceRecord {
            path: None,
            owner: "operator".into(),
            ownership_evidence: "made by this validator".into(),
            class: SourceClass::OwnedLocal,
        },
        from_head: false,
    })
}

fn request(
    bench: &Bench<'_>,
    manifest: &Manifest,
    source: &SourceRequest,
) -> Result<Request, Failure> {
    let request = bench.request_for(manifest)?.at_stage(Stage::Three);
    Ok(request.on_source(Ok(source.clone())))
}

/// What the run left, read from the bytes that were verified.
fn look(
    bench: &Bench<'_>,
    validation: &mut Validation,
    sealed: &SealedBundle,
) -> Result<(), Failure> {
    let report = &sealed.report;
    let passed = report.status == Status::Pass;
    validation.check("engine_fixes_the_copy", passed, || told(report));
    match passed {
        true => validation.pass_reports.push(report_path(sealed)),
        false => validation.failure_reports.push(report_path(sealed)),
    }
    let seen = bench.see(sealed)?;
    validation.check("stage3_bundle_verifies", seen.good, || seen.told());
    let proof: Option<Stage3Proof> = seen.read(bundle::STAGE3_PROOF);
    let proof = proof.as_ref();
    type Holds = fn(&Stage3Proof) -> bool;
    let checks: [(&str, Holds); 3] = [
        ("source_unmutated", |proof| !proof.source_repository_mutated),
        ("copy_clean_start", |proof| proof.copied_fixture_start_clean),
        ("copy_clean_end", |proof| proof.copied_fixture_end_clean),
    ];
    for (name, holds) in checks {
        validation.check(name, proof.is_some_and(holds), || {
            "stage3-copied-repo-proof.json does not say so".into()
        });
    }
    if proof.is_some() {
        let path = sealed.dir.join(bundle::STAGE3_PROOF);
        validation.proof_paths.push(path.display().to_string());
    }
    let counts = bench.counts(report);
    let wanted = bench.engine.is_some();
    let name = match wanted {
        true => "stage3_proof_counts_for_the_lane",
        false => "stage3_validator_run_proves_nothing",
    };
    validation.check(name, counts == wanted, || told(report));
    Ok(())
}

/// The same repository, once it is somebody's target: in a state home of its own, so that the operator's
/// records stay theirs.
fn no_target(
    bench: &mut Bench<'_>,
    validation: &mut Validation,
    source: &SourceRequest,
) -> Result<(), Failure> {
    let root = bench.root.join("state-with-a-target");
    let home = Home {
        runs: root.join("harness-runs"),
        root,
    };
    let path = source.path.canonicalize();
    let path = path.as_deref().unwrap_or(Path::new("/"));
    let skeleton = TargetAdmission::skeleton(&path.display().to_string());
    let bytes = json::pretty(&skeleton).map_err(|error| {
        Failure::internal("unwritable_record", "the record cannot be written").because(&error)
    })?;
    RecordStore::of_repository(&home, path).write(RecordKind::Target, &bytes)?;
    let fake = engines::find(DEFAULT_ENGINE)?;
    let request = request(bench, &fake, source)?.asked_by(Origin::Validator);
    let sealed = run::run(&home, bench.env, &request, bench.cancel, bench.progress)?;
    let blockers = sealed.report.blockers.iter();
    let codes: Vec<Code> = blockers.map(|blocker| blocker.code).collect();
    let refused = codes == [Code::SourceNotAdmitted] && !sealed.report.process_started;
    validation.check("source_is_not_a_target", refused, || told(&sealed.report));
    validation.failure_reports.push(report_path(&sealed));
    Ok(())
}
