//! What blocks at stage 5 before an engine starts, each with its own code.

use std::fs;
use std::path::PathBuf;

use cto_core::records::TargetAdmission;
use cto_core::task::contract::{LimitChanges, Stage};
use cto_core::values::blocker::Code;
use cto_core::values::ids::RunId;
use serde_json::{Value, json};

use super::target::Target;
use super::word::Waiting;
use crate::host::failure::Failure;
use crate::proof::desk::Says;
use crate::proof::validate::seen::Seen;
use crate::proof::validate::{Bench, Validation};
use crate::task::request::Request;

/// What is asked for at this stage, under an admission.
pub fn request(bench: &Bench<'_>, admission: Option<PathBuf>) -> Result<Request, Failure> {
    let manifest = bench.worker()?;
    let mut request = bench.request_for(&manifest)?.at_stage(Stage::Five);
    request.target = admission;
    Ok(request)
}

/// A request under a whole admission, and a yes to it.
pub fn approved(bench: &Bench<'_>, target: &Target) -> Result<RunId, Failure> {
    let desk = bench.desk()?;
    let asked = desk.ask(&request(bench, Some(target.whole()?))?)?;
    desk.answer(&asked, Says::Yes)?;
    Ok(asked.request_id)
}

/// Defects of an admission, one a run. Nobody approved any of them, which is said beside.
pub fn admissions(
    bench: &mut Bench<'_>,
    validation: &mut Validation,
    target: &Target,
) -> Result<Vec<Seen>, Failure> {
    type Change = fn(&mut Value);
    let defects: [(&str, Code, Change); 8] = [
        ("unowned_blocks", Code::TargetUnowned, |record| {
            record["repository_owner"] = json!("");
        }),
        ("critical_blocks", Code::TargetCritical, |record| {
            record["risk_classification"] = json!("critical");
        }),
        ("empty_paths_block", Code::TargetPathsEmpty, |record| {
            record["allowed_paths"] = json!([]);
        }),
        (
            "missing_action_blocks",
            Code::TargetForbiddenActionMissing,
            |record| {
                if let Some(actions) = record["forbidden_actions"].as_array_mut() {
                    actions.retain(|action| action != "push");
                }
            },
        ),
        (
            "missing_approval_blocks",
            Code::TargetApprovalMissing,
            |record| {
                record["approval_source"] = json!("");
            },
        ),
        (
            "no_outcome_required_blocks",
            Code::TargetOutcomeNotRequired,
            |record| record["operator_outcome_required"] = json!(false),
        ),
        (
            "paths_beyond_admission_block",
            Code::TargetNotAdmitted,
            |record| record["allowed_paths"] = json!(["elsewhere/"]),
        ),
        (
            "target_not_admitted_blocks",
            Code::TargetNotAdmitted,
            |record| {
                let path = record["target_repository_path"].as_str().unwrap_or("");
                *record = TargetAdmission::skeleton(path);
            },
        ),
    ];
    let request = request(bench, None)?;
    let mut blocked = Vec::new();
    let mut one = |bench: &mut Bench<'_>, name: &str, code, admission| {
        let mut request = request.clone();
        request.target = admission;
        let seen = closed_by(bench, &request, code)?;
        validation.check(name, seen.1, || seen.0.told());
        blocked.push(seen.0);
        Ok::<_, Failure>(())
    };
    let missing = Code::TargetAdmissionMissing;
    one(bench, "target_admission_missing_blocks", missing, None)?;
    for (name, code, change) in defects {
        let admission = target.admission(name, change)?;
        one(bench, name, code, Some(admission))?;
    }
    // A whole one, and nobody said anything to this run of it.
    let mut unasked = request.clone();
    unasked.target = Some(target.whole()?);
    let sealed = bench.run(&unasked)?;
    let seen = bench.see(&sealed)?;
    let held = seen.ended_with(&[Code::ApprovalMissing]) && seen.is_untouched();
    validation.check("missing_approval_blocks", held, || seen.told());
    blocked.push(seen);
    Ok(blocked)
}

/// One run that this code closes; whether it and nothing else but the missing approval did.
fn closed_by(
    bench: &mut Bench<'_>,
    request: &Request,
    code: Code,
) -> Result<(Seen, bool), Failure> {
    let sealed = bench.run(request)?;
    let seen = bench.see(&sealed)?;
    let mut codes = seen.codes();
    codes.retain(|found| *found != Code::ApprovalMissing);
    let held = codes == [code] && seen.good && seen.is_untouched();
    Ok((seen, held))
}

/// Another contract than the one that was approved.
pub fn changed_contract(
    bench: &mut Bench<'_>,
    validation: &mut Validation,
    target: &Target,
) -> Result<Seen, Failure> {
    let asked = approved(bench, target)?;
    let other = request(bench, Some(target.whole()?))?.limited(LimitChanges {
        engine_wall_seconds: Some(61),
        ..LimitChanges::default()
    });
    let sealed = bench.run_requested(other, &asked)?;
    let seen = bench.see(&sealed)?;
    let held = seen.ended_with(&[Code::ApprovalMismatch]) && seen.is_untouched();
    validation.check("changed_contract_is_mismatch", held, || seen.told());
    Ok(seen)
}

/// Work of its owner that is in no commit yet. Nothing of it may be lost, so nothing begins.
pub fn dirty_start(bench: &mut Bench<'_>, target: &Target) -> Result<Seen, Failure> {
    let asked = approved(bench, target)?;
    let request = request(bench, Some(target.whole()?))?;
    let note = target.path().join("unfinished.txt");
    let unwritable = |error: std::io::Error| {
        Failure::internal("no_fixture", "the repository cannot be changed").because(&error)
    };
    let before = fs::metadata(target.path()).and_then(|meta| meta.modified());
    fs::write(&note, "not committed\n").map_err(unwritable)?;
    let sealed = bench.run_requested(request, &asked);
    fs::remove_file(&note).map_err(unwritable)?;
    // The directory is as it was, to its time.
    let dir = fs::File::open(target.path()).map_err(unwritable)?;
    before
        .and_then(|time| dir.set_modified(time))
        .map_err(unwritable)?;
    bench.see(&sealed?)
}

/// The approval of a run that was started already.
pub fn consumed(
    bench: &mut Bench<'_>,
    validation: &mut Validation,
    (target, waiting): (&Target, &Waiting),
) -> Result<Seen, Failure> {
    let request = request(bench, Some(target.whole()?))?;
    let sealed = bench.run_requested(request, &waiting.asked)?;
    let seen = bench.see(&sealed)?;
    let held = seen.ended_with(&[Code::ApprovalConsumed]) && seen.is_untouched();
    validation.check("approval_consumed_blocks", held, || seen.told());
    Ok(seen)
}
