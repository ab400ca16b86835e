//! A green run, which is blocked by its operator's missing word alone, and the word: accepted, it lands as the one commit
//! that the run named, and the proof of the stage lies in the settlement.

use cto_core::bundle;
use cto_core::gate::ladder::stage5::Stage5Proof;
use cto_core::run::event::Outcome;
use cto_core::values::blocker::Code;
use cto_core::values::ids::RunId;
use cto_core::values::verdict::Status;

use super::gates::{approved, request};
use super::target::Target;
use crate::host::failure::Failure;
use crate::proof::validate::seen::Seen;
use crate::proof::validate::{Bench, Validation, report_path};

/// A green run that waits, and the request it used up.
pub struct Waiting {
    pub asked: RunId,
    pub seen: Seen,
    /// The commit that the target was at.
    head: String,
}

pub fn green_run(
    bench: &mut Bench<'_>,
    validation: &mut Validation,
    target: &Target,
) -> Result<Waiting, Failure> {
    let head = target.head()?;
    let asked = approved(bench, target)?;
    let again = request(bench, Some(target.whole()?))?;
    let sealed = bench.run_requested(again, &asked)?;
    let seen = bench.see(&sealed)?;
    let report = &seen.report;
    let green = report.process_started && report.tests_passed == Some(true);
    let waits = seen.ended_with(&[Code::MissingOperatorOutcome]) && green;
    validation.check("outcome_missing_blocks", waits, || seen.told());
    Ok(Waiting { asked, seen, head })
}

/// Says yes, and looks at what came of it.
pub fn accept(
    bench: &mut Bench<'_>,
    validation: &mut Validation,
    (target, waiting): (&Target, &Waiting),
    clean_starts: bool,
) -> Result<(), Failure> {
    let accepted = bench
        .desk()?
        .say(Outcome::Accepted, &waiting.seen.dir, bench.cancel);
    let sealed = match accepted {
        Ok(sealed) => sealed,
        Err(failure) => {
            validation.not_reached(&super::CHECKS, &failure.to_string());
            return Ok(());
        }
    };
    let seen = bench.see(&sealed)?;
    let proof: Option<Stage5Proof> = seen.read(bundle::STAGE5_PROOF);
    let proof = proof.as_ref();
    let said = |holds: fn(&Stage5Proof) -> bool| proof.is_some_and(holds);
    let unsaid = || "stage5-owned-repo-proof.json does not say so".to_owned();
    let head = target.head()?;
    let on_its_own =
        |proof: &Stage5Proof| proof.baseline_commit == waiting.head && proof.target_commit == head;
    validation.check("target_with_history", proof.is_some_and(on_its_own), unsaid);
    let clean = clean_starts && said(|proof| proof.target_repository_start_clean);
    validation.check("target_clean_start", clean, unsaid);
    let clean = said(|proof| proof.target_repository_ending_clean);
    validation.check("target_clean_end", clean, unsaid);
    let passed = seen.report.status == Status::Pass && said(Stage5Proof::proves);
    let landed = passed && head != waiting.head;
    validation.check("accepted_result_lands", landed, || seen.told());
    validation.check("stage5_settlement_verifies", seen.good, || seen.told());
    match passed {
        true => validation.pass_reports.push(report_path(&sealed)),
        false => validation.failure_reports.push(report_path(&sealed)),
    }
    if proof.is_some() {
        let path = sealed.dir.join(bundle::STAGE5_PROOF);
        validation.proof_paths.push(path.display().to_string());
    }
    let counts = bench.counts(&seen.report);
    validation.check("stage5_validator_run_proves_nothing", !counts, || {
        "it was taken for a proof".into()
    });
    Ok(())
}
