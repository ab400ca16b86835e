//! Stage 5: a repository of its operator's. Every defect of its admission blocks before anything of it is looked at; a
//! green result waits for its operator's word, and lands once that was said.
//!
//! - this file: the order, and what a blocked run must not tell; `target.rs` the repository and its admission
//! - `gates.rs` what blocks before an engine; `word.rs` a green run, and what is said of it

mod gates;
mod target;
mod word;

use std::fs;
use std::path::Path;

use cto_core::bundle;
use cto_core::values::blocker::Code;
use memchr::memmem;

use super::{Bench, Validation, only_doubles, stage1, stage2, stage3, stage4};
use crate::host::failure::Failure;
use target::Target;

const FAILURES: [&str; 10] = [
    "approval-denied",
    "target-unowned",
    "target-critical",
    "outcome-missing",
    "disallowed-file",
    "dirty-starting-tree",
    "dirty-ending-lock",
    "failed-tests",
    "timeout-engine",
    "provider-unavailable",
];

/// What is checked, in the order it is reported.
const CHECKS: [&str; 20] = [
    "target_admission_missing_blocks",
    "unowned_blocks",
    "critical_blocks",
    "empty_paths_block",
    "missing_action_blocks",
    "missing_approval_blocks",
    "no_outcome_required_blocks",
    "paths_beyond_admission_block",
    "target_not_admitted_blocks",
    "changed_contract_is_mismatch",
    "outcome_missing_blocks",
    "approval_consumed_blocks",
    "blocked_report_hides_target_path",
    "target_untouched_before_a_word",
    "target_with_history",
    "target_clean_start",
    "target_clean_end",
    "accepted_result_lands",
    "stage5_settlement_verifies",
    "stage5_validator_run_proves_nothing",
];

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    only_doubles(bench, 5)?;
    bench.run_rows(&all_failures())?;
    let mut former = stage4::validate(bench)?;
    let mut validation = Validation::default();
    match former.ok {
        true => climb(bench, &mut validation)?,
        false => validation.not_reached(&CHECKS, "a stage before it was not shown"),
    }
    bench.close_failures(&FAILURES, &mut validation)?;
    former.include(validation);
    Ok(former.done())
}

/// Those of every stage: they run side by side.
fn all_failures() -> Vec<&'static str> {
    let stages: [&[&str]; 5] = [
        &stage1::FAILURES,
        &stage2::FAILURES,
        &stage3::FAILURES,
        &stage4::FAILURES,
        &FAILURES,
    ];
    stages.concat()
}

fn climb(bench: &mut Bench<'_>, validation: &mut Validation) -> Result<(), Failure> {
    let target = Target::make(bench)?;
    let before = target.look()?;
    let mut blocked = gates::admissions(bench, validation, &target)?;
    blocked.push(gates::changed_contract(bench, validation, &target)?);
    let dirty = gates::dirty_start(bench, &target)?;
    let clean_starts = dirty.ended_with(&[Code::DirtyStartingTree]);
    let waiting = word::green_run(bench, validation, &target)?;
    blocked.push(gates::consumed(bench, validation, (&target, &waiting))?);
    let telling: Vec<String> = blocked
        .iter()
        .chain([&dirty, &waiting.seen])
        .filter(|seen| tells(&seen.dir, target.path()))
        .map(|seen| seen.report.run_id.to_string())
        .collect();
    validation.check(
        "blocked_report_hides_target_path",
        telling.is_empty(),
        || format!("told by {}", telling.join(", ")),
    );
    let touched = before.differences(&target.look()?);
    validation.check("target_untouched_before_a_word", touched.is_empty(), || {
        touched.join(", ")
    });
    word::accept(bench, validation, (&target, &waiting), clean_starts)?;
    let failed = blocked.iter().chain([&dirty, &waiting.seen]);
    let reports = failed.map(|seen| seen.dir.join(bundle::REPORT));
    let reports = reports.map(|path| path.display().to_string());
    validation.failure_reports.extend(reports);
    Ok(())
}

/// Does any file below name this path?
fn tells(dir: &Path, path: &Path) -> bool {
    let wanted = memmem::Finder::new(path.as_os_str().as_encoded_bytes());
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|found| {
        match found.is_dir() {
            true => tells(&found, path),
            // What cannot be read could tell anything.
            false => fs::read(&found).map_or(true, |bytes| wanted.find(&bytes).is_some()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_in_any_file_below() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, path) = (temp.path().join("bundle"), Path::new("/srv/mine"));
        fs::create_dir_all(dir.join("backend")).unwrap();
        fs::write(dir.join("report.json"), b"{}").unwrap();
        fs::write(dir.join("backend/stdout.log"), b"in /srv/other").unwrap();
        assert!(!tells(&dir, path));
        fs::write(dir.join("backend/stdout.log"), b"\x00 in /srv/mine/x").unwrap();
        assert!(tells(&dir, path));
    }
}
