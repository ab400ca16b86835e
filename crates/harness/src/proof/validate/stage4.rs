//! Stage 4: a disposable repository. What was denied makes none; what was approved works in one whose branch policy
//! was recorded before, publishes nothing, and leaves the evidence of what became of it.

use cto_core::bundle;
use cto_core::gate::ladder::stage4::Stage4Proof;
use cto_core::task::contract::{Contract, Stage};
use cto_core::values::blocker::Code;
use cto_core::values::event_type::EventType;
use cto_core::values::verdict::Status;

use super::{Bench, Validation, only_doubles, report_path, stage3};
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::proof::desk::Says;

pub const FAILURES: [&str; 6] = [
    "approval-denied",
    "reviewer-reject",
    "timeout-engine",
    "provider-unavailable",
    "dirty-ending-lock",
    "disallowed-file",
];

/// What is checked, in the order it is reported.
const CHECKS: [&str; 8] = [
    "approval_denied_before_mutation",
    "engine_works_in_the_sandbox",
    "stage4_bundle_verifies",
    "approval_granted_before_mutation",
    "branch_policy_recorded",
    "disposal_recorded",
    "nothing_published",
    "stage4_validator_run_proves_nothing",
];

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    only_doubles(bench, 4)?;
    let mut former = stage3::validate(bench)?;
    let mut validation = Validation::default();
    match former.ok {
        true => climb(bench, &mut validation)?,
        false => validation.not_reached(&CHECKS, "a stage before it was not shown"),
    }
    bench.close_failures(&FAILURES, &mut validation)?;
    former.include(validation);
    Ok(former.done())
}

fn climb(bench: &mut Bench<'_>, validation: &mut Validation) -> Result<(), Failure> {
    denied(bench, validation)?;
    granted(bench, validation)
}

/// Asked for and answered, then run as it was asked for.
fn answered(bench: &mut Bench<'_>, says: Says) -> Result<SealedBundle, Failure> {
    let manifest = bench.worker()?;
    let request = |bench: &Bench<'_>| Ok(bench.request_for(&manifest)?.at_stage(Stage::Four));
    let desk = bench.desk()?;
    let asked = desk.ask(&request(bench)?)?;
    desk.answer(&asked, says)?;
    bench.run_requested(request(bench)?, &asked.request_id)
}

fn denied(bench: &mut Bench<'_>, validation: &mut Validation) -> Result<(), Failure> {
    let sealed = answered(bench, Says::No)?;
    let seen = bench.see(&sealed)?;
    let place = bench.home.work().join(seen.report.run_id.as_str());
    let before = seen.ended_with(&[Code::ApprovalDenied])
        && seen.is_untouched()
        && seen.place(EventType::ApprovalDenied).is_some()
        && seen.place(EventType::BranchPolicyRecorded).is_none()
        && !place.exists();
    validation.check("approval_denied_before_mutation", before, || seen.told());
    validation.failure_reports.push(report_path(&sealed));
    Ok(())
}

fn granted(bench: &mut Bench<'_>, validation: &mut Validation) -> Result<(), Failure> {
    let sealed = answered(bench, Says::Yes)?;
    let seen = bench.see(&sealed)?;
    let passed = seen.report.status == Status::Pass;
    validation.check("engine_works_in_the_sandbox", passed, || seen.told());
    match passed {
        true => validation.pass_reports.push(report_path(&sealed)),
        false => validation.failure_reports.push(report_path(&sealed)),
    }
    validation.check("stage4_bundle_verifies", seen.good, || seen.told());
    let granted = seen.in_order(EventType::ApprovalGranted, EventType::BranchPolicyRecorded)
        && seen.in_order(EventType::ApprovalGranted, EventType::EngineStarted);
    validation.check("approval_granted_before_mutation", granted, || {
        "the chain does not tell of it in this order".into()
    });
    let proof: Option<Stage4Proof> = seen.read(bundle::STAGE4_PROOF);
    let contract: Option<Contract> = seen.read(bundle::CONTRACT);
    let policy = contract.and_then(|contract| contract.branch_policy);
    let recorded = proof.as_ref().map(|proof| &proof.branch_policy.policy);
    let as_agreed = recorded.is_some() && recorded == policy.as_ref();
    let before = seen.in_order(EventType::BranchPolicyRecorded, EventType::EngineStarted);
    validation.check("branch_policy_recorded", as_agreed && before, || {
        "it is not the policy of the contract, or was recorded too late".into()
    });
    let checked = seen.in_order(
        EventType::BranchPolicyRecorded,
        EventType::BranchPolicyChecked,
    );
    let place = bench.home.work().join(seen.report.run_id.as_str());
    validation.check(
        "disposal_recorded",
        checked && proof.is_some() && !place.exists(),
        || "nothing says what became of the repository, or it is still there".into(),
    );
    // The proof is there only where every start of a program was looked at, and none of them published.
    let published = proof.as_ref().is_none_or(|proof| {
        let attempted = [
            proof.push_attempted,
            proof.merge_attempted,
            proof.deploy_attempted,
            proof.close_attempted,
            proof.pr_open_attempted,
            proof.public_publication_attempted,
        ];
        attempted.contains(&true)
    });
    validation.check("nothing_published", !published, || {
        "stage4-disposable-sandbox-proof.json does not say so".into()
    });
    if proof.is_some() {
        let path = sealed.dir.join(bundle::STAGE4_PROOF);
        validation.proof_paths.push(path.display().to_string());
    }
    let counts = bench.counts(&seen.report);
    validation.check("stage4_validator_run_proves_nothing", !counts, || {
        "it was taken for a proof".into()
    });
    Ok(())
}
