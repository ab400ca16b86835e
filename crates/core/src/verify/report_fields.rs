//! The report, field by field, against what facts and verdict say; and the times it records.

use super::{Documents, Verifier};
use crate::bundle;
use crate::bundle::report::{self, Report};
use crate::run::facts::{Facts, Folded};
use crate::run::judge;
use crate::values::blocker::{Code, headline, worst_status};
use crate::values::event_type::EventType;
use crate::values::paths::TreePath;

impl Verifier<'_> {
    pub(super) fn report(&mut self, documents: &Documents, folded: &Folded) {
        let report = &documents.report;
        let misquoted = report::misquoted_fields(report, documents.contract.valid(), &folded.facts);
        for field in wrong_fields(documents, &folded.facts)
            .into_iter()
            .chain(misquoted)
        {
            self.problem(
                "report",
                bundle::REPORT,
                format!("{field} is not what the evidence says"),
            );
        }
    }

    /// Recorded times only: copies change real ones.
    pub(super) fn freshness(&mut self, report: &Report) {
        let stale_reported = report
            .blockers
            .iter()
            .any(|blocker| blocker.code == Code::StaleArtifact);
        let old: Vec<String> = report
            .freshness
            .artifacts
            .iter()
            .filter(|(_, mtime)| **mtime < report.run_started_at)
            .map(|(name, _)| name.clone())
            .collect();
        if report.freshness.checked_at < report.run_started_at {
            self.problem(
                "freshness",
                bundle::REPORT,
                "was checked before the run started",
            );
        }
        for name in old.iter().filter(|_| !stale_reported) {
            self.problem("freshness", name, "is older than the run");
        }
        let missing: Vec<&str> = bundle::ALWAYS
            .into_iter()
            .filter(|name| {
                !matches!(
                    *name,
                    bundle::REPORT
                        | bundle::REPORT_MD
                        | bundle::SUMS
                        | bundle::EVENTS
                        | bundle::TRACE
                )
            })
            .filter(|name| !report.freshness.artifacts.contains_key(*name))
            .collect();
        let excused = report
            .blockers
            .iter()
            .any(|b| matches!(b.code, Code::Interrupted | Code::ArtifactWriteFailure));
        for name in missing.iter().filter(|_| !excused) {
            self.problem("freshness", name, "has no recorded time");
        }
    }
}

/// Fields of the report that facts and verdict contradict.
fn wrong_fields(documents: &Documents, facts: &Facts) -> Vec<&'static str> {
    let report = &documents.report;
    let judged = judge::judge(documents.contract.valid(), facts);
    let shown: Vec<Code> = report
        .blockers
        .iter()
        .filter(|b| b.event.is_some())
        .map(|b| b.code)
        .collect();
    let measured: Vec<&TreePath> = facts
        .diff
        .iter()
        .flat_map(|diff| &diff.changes)
        .map(|change| &change.path)
        .collect();
    let paths = report::path_results(documents.contract.valid(), facts);
    [
        (
            "status",
            report.status != worst_status(&report.blockers) || report.status < judged.status,
        ),
        ("blockers", shown != judged.codes()),
        (
            "failure_reason",
            report.failure_reason != headline(&report.blockers).map(|b| b.message.clone()),
        ),
        ("changed_files", !report.changed_files.iter().eq(measured)),
        (
            "allowed_writes_passed",
            report.allowed_writes_passed != paths.map(|(allowed, _)| allowed),
        ),
        (
            "forbidden_paths_passed",
            report.forbidden_paths_passed != paths.map(|(_, forbidden)| forbidden),
        ),
        (
            "verification",
            report.verification != report::verification_lines(documents.contract.valid(), facts),
        ),
        (
            "tests_passed",
            report.tests_passed != report::tests_passed(documents.contract.valid(), facts),
        ),
        (
            "backend_exit_code",
            report.backend_exit_code != facts.engine_ended.as_ref().and_then(|e| e.end.exit_code()),
        ),
        (
            "process_started",
            report.process_started != facts.engine_events.contains(&EventType::EngineStarted),
        ),
        (
            "artifacts_dir",
            report.artifacts_dir != report.run_id.as_str()
                || report.artifacts_dir != report.run_artifact_dir,
        ),
        (
            "allowed_mutation_scope",
            report.allowed_mutation_scope != report.stage.allowed_mutation_scope(),
        ),
        (
            "required_events_passed",
            report.required_events_passed
                == report
                    .blockers
                    .iter()
                    .any(|b| b.code == Code::MissingRequiredEvent),
        ),
    ]
    .into_iter()
    .filter_map(|(field, is_wrong)| is_wrong.then_some(field))
    .collect()
}
