//! What events and files say about each other: re-derived, never believed.

use std::collections::BTreeSet;

use super::{Documents, Verifier};
use crate::bundle;
use crate::bundle::report::{RelianceKind, environment_notes};
use crate::containment::{Containment, ContainmentReport};
use crate::gate::{GateResult, GateVerdict};
use crate::run::event::{Origin, Toolchain};
use crate::run::facts::{ApprovalFact, Facts, Folded};
use crate::run::judge::judges_source;
use crate::run::rules::Rules;
use crate::task::program::{BoundProgram, ProgramPlace};
use crate::task::source::CopiedRepo;
use crate::values::blocker::Code;
use crate::values::paths::TreePath;
use crate::values::verdict::Status;
use crate::workspace::change::ChangeKind;

impl Verifier<'_> {
    /// The files the events speak of are the files in the bundle.
    pub(super) fn facts(&mut self, documents: &Documents, folded: &Folded) {
        self.patch_file(&folded.facts);
        self.log_files(&folded.facts);
        self.gate_blocks(documents, &folded.facts);
        self.approval(documents, folded);
        self.permission(documents, folded);
    }

    fn patch_file(&mut self, facts: &Facts) {
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
    }

    fn log_files(&mut self, facts: &Facts) {
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
    }

    /// Every gate the chain says was closed is closed in `gates.json` too.
    fn gate_blocks(&mut self, documents: &Documents, facts: &Facts) {
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
        let ran = folded.facts.copy_was_used();
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
            facts.copy_was_used(),
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
        let contract = documents.contract.valid();
        let traced = facts.guard.as_ref().map(|guard| guard.traced_checks);
        if contract.is_some_and(|contract| traced.is_some_and(|traced| traced != contract.trace)) {
            self.problem(
                "judgement",
                bundle::CONTRACT,
                "allows other checks to trace than the plan",
            );
        }
        let bound = contract.map_or(&[][..], |contract| &contract.lane.programs);
        let since_5 = Rules::of(facts.rules).is_none_or(|rules| rules >= Rules::Five);
        if facts.containment.is_some()
            && since_5
            && let Some(name) = shown_otherwise(bound, &facts.toolchains)
        {
            self.problem(
                "judgement",
                bundle::CONTRACT,
                format!("its lane binds another {name} than the plan shows"),
            );
        }
        if documents.report.workspace_guard != facts.guard {
            self.problem(
                "report",
                bundle::REPORT,
                "workspace_guard is not what the evidence says",
            );
        }
        if documents.report.git != facts.git {
            self.problem(
                "report",
                bundle::REPORT,
                "git is not what the evidence says",
            );
        }
        if documents.report.environments != facts.environments
            || documents.report.environment_notes != environment_notes(facts)
        {
            self.problem(
                "report",
                bundle::REPORT,
                "environments is not what the evidence says",
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
        let contract = documents.contract.valid();
        let source = contract.and_then(|contract| contract.source.as_ref());
        let repository = contract.and_then(|contract| contract.lane.repository.as_ref());
        let shown = self.found.files.contains_key(bundle::SOURCE);
        let mut meanwhile = None;
        match (source, shown) {
            (None, false) => {}
            (None, true) => self.problem(
                "judgement",
                bundle::SOURCE,
                "is there although no repository was copied",
            ),
            (Some(_), false) if folded.facts.copy_was_used() => {
                self.problem("judgement", bundle::SOURCE, "is missing")
            }
            (Some(_), false) => {}
            (Some(source), true) => {
                let Some(copied) = self.parsed::<CopiedRepo>(bundle::SOURCE) else {
                    return;
                };
                let facts = &folded.facts;
                let baseline = facts.diff.as_ref().map(|diff| diff.baseline_tree.as_str());
                let started = facts.copy_was_used();
                let named = (source, repository);
                let label = contract.map(|contract| contract.label).unwrap_or_default();
                let judged = Rules::of(facts.rules)
                    .and_then(|rules| judges_source(rules, label, &documents.containment));
                let findings = &facts.findings;
                for what in copied.contradictions(named, findings, judged, started, baseline) {
                    self.problem("judgement", bundle::SOURCE, what);
                }
                meanwhile = judged.map(|_| copied.meanwhile());
            }
        }
        if documents.report.source != meanwhile {
            let message = "source is not what the evidence says";
            self.problem("report", bundle::REPORT, message);
        }
    }
}

/// A program that a contract binds and the plan does not show as it is bound. Those of the system are
/// visible as they are, and no plan names them.
fn shown_otherwise<'a>(bound: &'a [BoundProgram], shown: &[Toolchain]) -> Option<&'a str> {
    let is_shown = |program: &BoundProgram| {
        program.place == ProgramPlace::System
            || shown
                .iter()
                .any(|one| one.name == program.name && one.sha256 == program.sha256)
    };
    let other = bound.iter().find(|program| !is_shown(program))?;
    Some(&other.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::digest::Digest;

    #[test]
    fn a_bound_program_is_shown_as_it_is_bound() {
        let bound = |place| {
            [BoundProgram {
                name: "tool".into(),
                place,
                version: None,
                sha256: Digest::of(b"1"),
            }]
        };
        let shown = |name: &str, bytes: &[u8]| {
            [Toolchain {
                name: name.into(),
                program: "~/tool".into(),
                sha256: Digest::of(bytes),
                also: Vec::new(),
            }]
        };
        for place in [
            ProgramPlace::Environment,
            ProgramPlace::Named,
            ProgramPlace::Installation,
            ProgramPlace::Single,
        ] {
            let bound = bound(place);
            assert_eq!(shown_otherwise(&bound, &shown("tool", b"1")), None);
            for other in [&shown("tool", b"2")[..], &shown("other", b"1"), &[]] {
                assert_eq!(shown_otherwise(&bound, other), Some("tool"), "{place:?}");
            }
        }
        let system = bound(ProgramPlace::System);
        assert_eq!(shown_otherwise(&system, &[]), None);
        assert_eq!(shown_otherwise(&[], &shown("tool", b"2")), None);
    }
}
