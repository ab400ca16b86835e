//! What a report, its events and its files say about each other: re-derived, never believed.

use std::collections::BTreeSet;

use super::{Documents, Verifier, process_started};
use crate::bundle;
use crate::bundle::report::{self, RelianceKind, Report};
use crate::bundle::report_md::Renderer;
use crate::containment::{Containment, ContainmentReport};
use crate::gate::{GateResult, GateVerdict};
use crate::run::event::Origin;
use crate::run::facts::{ApprovalFact, Folded};
use crate::run::judge::{self, Judgement};
use crate::task::contract::Contract;
use crate::task::source::CopiedRepo;
use crate::values::blocker::{Blocker, Code, headline, worst};
use crate::values::event_type::EventType;
use crate::values::paths::TreePath;
use crate::values::verdict::Status;
use crate::workspace::change::ChangeKind;
impl Verifier<'_> {
    /// The files the events speak of are the files in the bundle.
    pub(super) fn facts(&mut self, documents: &Documents, folded: &Folded) {
        let facts = &folded.facts;
        if let Some(patch) = &facts.patch {
            // A patch that held a secret was replaced by a tombstone; its digest stays in the
            // chain.
            let tombstoned = facts
                .findings
                .iter()
                .any(|finding| finding.code == Code::SecretLeak);
            let found = self.found.files.get(bundle::PATCH);
            if !tombstoned
                && found.is_none_or(|file| file.sha256 != patch.sha256 || file.bytes != patch.bytes)
            {
                self.problem(
                    "judgement",
                    bundle::PATCH,
                    "is not the patch the chain captured",
                );
            }
            let measured: BTreeSet<TreePath> = facts
                .diff
                .iter()
                .flat_map(|diff| &diff.changes)
                .filter(|change| change.kind != ChangeKind::Unrecordable)
                .map(|change| change.path.clone())
                .collect();
            if !tombstoned
                && facts.diff.is_some()
                && self
                    .found
                    .patch_paths
                    .as_ref()
                    .and_then(|p| p.as_ref().ok())
                    != Some(&measured)
            {
                self.problem(
                    "judgement",
                    bundle::PATCH,
                    "does not change the paths the chain measured",
                );
            }
        } else if self
            .found
            .files
            .get(bundle::PATCH)
            .is_some_and(|file| file.bytes != 0)
        {
            self.problem(
                "judgement",
                bundle::PATCH,
                "has content although no change was captured",
            );
        }
        if let Some(done) = &facts.verification
            && self
                .found
                .files
                .get(bundle::TEST_LOG)
                .is_none_or(|file| file.sha256 != done.log_sha256)
        {
            self.problem(
                "judgement",
                bundle::TEST_LOG,
                "is not the log the chain names",
            );
        }
        for output in facts
            .engine_ended
            .iter()
            .flat_map(|ended| [&ended.stdout, &ended.stderr])
        {
            // A capped log is shorter than what was digested; a whole one is exactly that.
            let whole = output.kept_bytes == output.bytes;
            let same = self
                .found
                .files
                .get(&output.file)
                .is_some_and(|file| file.sha256 == output.sha256);
            let withheld = facts
                .findings
                .iter()
                .any(|finding| finding.code == Code::SecretLeak);
            if whole && !same && !withheld {
                self.problem(
                    "judgement",
                    &output.file,
                    "is not the output the chain names",
                );
            }
        }
        let blocked: Vec<(String, Option<Code>)> = documents
            .gates
            .blocked()
            .map(|gate| (gate.gate.clone(), gate.code))
            .collect();
        for block in &facts.gate_blocks {
            if block.executed || !blocked.contains(&(block.gate.clone(), Some(block.reason))) {
                self.problem(
                    "judgement",
                    bundle::GATES,
                    format!(
                        "does not show {} blocking at gate {}",
                        block.reason.as_str(),
                        block.gate
                    ),
                );
            }
        }
        self.approval(documents, folded);
        self.permission(documents, folded);
    }

    /// A denial is a closed gate and carries its code; a request and a grant carry none. Only a
    /// validator's own grant relies on no approval.
    fn approval(&mut self, documents: &Documents, folded: &Folded) {
        let fits = match &folded.facts.approval {
            ApprovalFact::NotRequired => true,
            ApprovalFact::Requested(approval) => approval.reason.is_none(),
            ApprovalFact::Granted(approval) => {
                let report = &documents.report;
                let relies = report
                    .relies_on
                    .iter()
                    .any(|on| on.kind == RelianceKind::Approval);
                approval.reason.is_none() && (relies || report.origin == Origin::Validator)
            }
            ApprovalFact::Denied(approval) => {
                let closed = |gate: &GateResult| {
                    gate.gate == "approval" && gate.code == Some(Code::ApprovalDenied)
                };
                approval.reason == Some(Code::ApprovalDenied)
                    && documents.gates.blocked().any(closed)
            }
        };
        if !fits {
            self.problem(
                "judgement",
                bundle::GATES,
                "does not show the answer that the chain records",
            );
        }
    }

    /// An engine ran only where every gate let it, and the decision names it.
    fn permission(&mut self, documents: &Documents, folded: &Folded) {
        let gates = &documents.gates.gates;
        let ran = process_started(&folded.facts);
        let open = |gate: &GateResult| {
            matches!(gate.result, GateVerdict::Pass | GateVerdict::NotApplicable)
        };
        let asked = |id: &str| gates.iter().any(|gate| gate.gate == id);
        // A run that was cut short may have lost its gates; one that passed may not.
        let passed = documents.report.status == Status::Pass;
        let copies = documents
            .contract
            .valid()
            .is_some_and(|contract| contract.source.is_some());
        let needed = ["contract", "engine", "stage", "containment"]
            .into_iter()
            .chain(copies.then_some("source-state"));
        let complete = !passed || needed.into_iter().all(asked);
        if ran && !(gates.iter().all(open) && complete) {
            self.problem(
                "judgement",
                bundle::GATES,
                "an engine ran although not every gate let it",
            );
        }
        let selected = documents.eligibility.selected_backend.as_str();
        let denied = !folded.facts.gate_blocks.is_empty()
            || matches!(folded.facts.approval, ApprovalFact::Denied(_));
        if (ran && selected != documents.report.backend.as_str()) || (denied && selected != "none")
        {
            self.problem("judgement", bundle::ELIGIBILITY, "does not select what ran");
        }
    }

    /// A pass that was to be contained shows proof for every process of it.
    pub(super) fn containment(&mut self, documents: &Documents, folded: &Folded) {
        let (shown, facts) = (&documents.containment, &folded.facts);
        let planned = facts.containment.unwrap_or(Containment::None);
        if shown.asked != planned || documents.report.containment != planned {
            self.problem(
                "judgement",
                bundle::CONTAINMENT,
                "asks for another containment than the plan",
            );
        }
        let again = ContainmentReport::summarise(
            shown.asked,
            facts.guard.as_ref(),
            shown.processes.clone(),
            process_started(facts),
        );
        if again != *shown {
            self.problem(
                "judgement",
                bundle::CONTAINMENT,
                "its summary is not what its processes measured",
            );
        }
        if documents.report.status == Status::Pass && again.enforced != planned {
            self.problem(
                "judgement",
                bundle::CONTAINMENT,
                "a contained run passed without proof of containment",
            );
        }
        let policy = documents
            .contract
            .valid()
            .and_then(|contract| contract.lane.containment);
        let without_jail = planned == Containment::None;
        if facts.containment.is_some()
            && !without_jail
            && policy.is_some_and(|policy| policy != planned)
        {
            self.problem(
                "judgement",
                bundle::CONTRACT,
                "its lane has another containment policy than the plan",
            );
        }
        if documents.report.workspace_guard != facts.guard {
            self.problem(
                "report",
                bundle::REPORT,
                "workspace_guard is not what the evidence says",
            );
        }
        if documents.report.toolchains != facts.toolchains {
            self.problem(
                "report",
                bundle::REPORT,
                "toolchains is not what the evidence says",
            );
        }
    }

    /// A copied repository is the one the contract names, and stayed as it was or is said not to
    /// have.
    pub(super) fn source(&mut self, documents: &Documents, folded: &Folded) {
        let source = documents
            .contract
            .valid()
            .and_then(|contract| contract.source.as_ref());
        let shown = self.found.files.contains_key(bundle::SOURCE);
        match (source, shown) {
            (None, false) => {}
            (None, true) => self.problem(
                "judgement",
                bundle::SOURCE,
                "is there although no repository was copied",
            ),
            (Some(_), false) if process_started(&folded.facts) => {
                self.problem("judgement", bundle::SOURCE, "is missing")
            }
            (Some(_), false) => {}
            (Some(source), true) => {
                let Some(copied) = self.parsed::<CopiedRepo>(bundle::SOURCE) else {
                    return;
                };
                let facts = &folded.facts;
                let baseline = facts.diff.as_ref().map(|diff| diff.baseline_tree.as_str());
                for what in
                    copied.contradictions(source, &facts.findings, process_started(facts), baseline)
                {
                    self.problem("judgement", bundle::SOURCE, what);
                }
            }
        }
    }

    /// Judges again from the facts; the worse of chain and report counts.
    pub(super) fn judgement(&mut self, documents: &Documents, folded: &Folded) -> Judgement {
        let contract = documents.contract.valid();
        let mut judgement = judge::judge(contract, &folded.facts);
        if let Some(done) = &folded.completed
            && (done.status != judgement.status || done.blockers != judgement.codes())
        {
            self.problem(
                "judgement",
                bundle::EVENTS,
                format!(
                    "run.completed says {}, the facts say {}",
                    done.status.as_str(),
                    judgement.status.as_str()
                ),
            );
        }
        self.event_codes(contract, folded);
        let late: Vec<Blocker> = documents
            .report
            .blockers
            .iter()
            .filter(|b| b.event.is_none())
            .cloned()
            .collect();
        for blocker in &late {
            if !matches!(blocker.code, Code::ArtifactWriteFailure | Code::Interrupted) {
                self.problem(
                    "judgement",
                    bundle::REPORT,
                    format!(
                        "{} cannot be found after the chain ended",
                        blocker.code.as_str()
                    ),
                );
            }
        }
        judgement.blockers.extend(late);
        judgement.status = worst(&judgement.blockers);
        judgement
    }

    /// Codes an event carries are the codes its own facts mean.
    fn event_codes(&mut self, contract: Option<&Contract>, folded: &Folded) {
        let facts = &folded.facts;
        let ended_well = judge::engine_ended_well(facts);
        if let (Some(contract), Some(diff)) = (contract, &facts.diff) {
            let codes: Vec<Code> = judge::diff_blockers(contract, diff, ended_well)
                .iter()
                .map(|b| b.code)
                .collect();
            if codes != diff.blockers {
                self.problem(
                    "judgement",
                    bundle::EVENTS,
                    "git.diff.checked carries codes its facts do not mean",
                );
            }
        }
        if let Some(done) = facts.verification.as_ref().filter(|_| facts.diff.is_some())
            && judge::verification_codes(contract, &facts.reviews, done) != done.blockers
        {
            self.problem(
                "judgement",
                bundle::EVENTS,
                "verification.completed carries codes its facts do not mean",
            );
        }
    }

    pub(super) fn report(&mut self, documents: &Documents, folded: &Folded) {
        let facts = &folded.facts;
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
        let wrong = [
            (
                "status",
                report.status != worst(&report.blockers) || report.status < judged.status,
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
                report.verification != report::verification_lines(facts),
            ),
            (
                "tests_passed",
                report.tests_passed != report::tests_passed(documents.contract.valid(), facts),
            ),
            (
                "backend_exit_code",
                report.backend_exit_code
                    != facts.engine_ended.as_ref().and_then(|e| e.end.exit_code()),
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
        ];
        let misquoted = report::misquoted(report, documents.contract.valid(), facts);
        for field in wrong
            .into_iter()
            .filter_map(|(field, is_wrong)| is_wrong.then_some(field))
            .chain(misquoted)
        {
            self.problem(
                "report",
                bundle::REPORT,
                format!("{field} is not what the evidence says"),
            );
        }
        let Some(renderer) = Renderer::of(report.report_renderer) else {
            let message = format!(
                "written by renderer {}, which this cto does not know",
                report.report_renderer.0
            );
            self.unknown("report", bundle::REPORT_MD, message);
            return;
        };
        let title = renderer.title(report.status, report.case_id.as_str());
        if !self
            .bytes(bundle::REPORT_MD)
            .starts_with(format!("{title}\n").as_bytes())
        {
            self.problem(
                "report",
                bundle::REPORT_MD,
                "does not begin with the report's verdict",
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
