//! Is everything there that this run must have left? The gates it was asked, the jails its processes
//! were in, the page that was rendered, the time it ended: each follows from contract, chain and
//! report, and is computed here.
//!
//! Rules 2 refuse what does not fit. Bundles judged by rules 1 were sealed before anybody asked: what
//! does not fit in them is said in the answer and changes nothing else.

use super::{Documents, Verifier};
use crate::bundle;
use crate::bundle::report::{self, Report};
use crate::bundle::report_md::Renderer;
use crate::containment::{Containment, ENGINE_PROCESS};
use crate::gate::eligibility::{self, Eligibility};
use crate::gate::{GateResult, GateVerdict, Phase};
use crate::run::event::{CheckKind, ControlRun, ProcessEnd};
use crate::run::facts::{ApprovalFact, Facts, Folded};
use crate::run::judge;
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::blocker::{Blocker, Code};
use crate::values::time::Utc;

/// The gates every run is asked since rules 2, in order. A gate that is added later is asked as well
/// and is not missed in older bundles: this list grows with a number of the rules only.
pub(super) const GATES_OF_RULES_2: [(&str, Phase); 21] = [
    ("contract", Phase::Records),
    ("engine", Phase::Records),
    ("stage", Phase::Records),
    ("provider-decision", Phase::Records),
    ("model-admission", Phase::Records),
    ("executable-admission", Phase::Records),
    ("source-admission", Phase::Records),
    ("review", Phase::Records),
    ("credentials", Phase::Records),
    ("endpoint", Phase::Records),
    ("stage-proof", Phase::Records),
    ("source", Phase::Records),
    ("mutation-mode", Phase::Records),
    ("verification-command", Phase::Records),
    ("approval", Phase::Records),
    ("setup", Phase::Records),
    ("provider", Phase::Host),
    ("toolchains", Phase::Host),
    ("containment", Phase::Host),
    ("source-state", Phase::Look),
    ("model-answer", Phase::Network),
];

/// How far a signer's clock may be ahead of the reader's: local time taken for UTC is at most this.
const CLOCKS_APART_MILLIS: i64 = 24 * 3600 * 1000;

/// When things happened, as far as somebody else can know.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// The last event of the chain.
    pub last_event: Option<Utc>,
    /// The signer's clock.
    pub signed_at: Option<Utc>,
    /// It is the clock of this machine, whatever it shows.
    pub is_own_clock: bool,
}

impl Verifier<'_> {
    pub(super) fn whole(
        &mut self,
        rules: Rules,
        documents: &Documents,
        folded: &Folded,
        times: Times,
    ) {
        self.page(rules, &documents.report);
        let facts = &folded.facts;
        // A settlement plans, starts and contains nothing.
        if facts.settles {
            if let Some(what) = wrong_blockers(documents, facts) {
                self.problem("report", bundle::REPORT, what);
            }
            if let Some(what) = wrong_finish(rules, &documents.report, times) {
                self.problem("freshness", bundle::REPORT, what);
            }
            return self.signing_time(rules, times);
        }
        for (check, artifact, what) in [
            ("judgement", bundle::GATES, wrong_gates(documents, facts)),
            ("judgement", bundle::ELIGIBILITY, wrong_decision(documents)),
            (
                "judgement",
                bundle::CONTAINMENT,
                missing_jail(documents, facts),
            ),
            ("report", bundle::REPORT, wrong_blockers(documents, facts)),
            (
                "freshness",
                bundle::REPORT,
                wrong_finish(rules, &documents.report, times),
            ),
        ] {
            if let Some(what) = what {
                self.asked_since_2(rules, check, artifact, what);
            }
        }
        self.signing_time(rules, times);
    }

    /// Refused by rules 2; by rules 1 only said.
    fn asked_since_2(&mut self, rules: Rules, check: &str, artifact: &str, what: String) {
        match rules {
            Rules::One => self.not_re_derived(check, artifact, what),
            _ => self.problem(check, artifact, what),
        }
    }

    /// `report.md`, rendered again by the renderer the report names.
    fn page(&mut self, rules: Rules, report: &Report) {
        let Some(renderer) = Renderer::of(report.report_renderer) else {
            let message = format!(
                "not re-derived: written by renderer {}, which this cto does not know",
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
            return;
        }
        match renderer.page(report) {
            None => {
                let message = format!(
                    "only its first line was checked: renderer {} is no longer at hand",
                    report.report_renderer.0
                );
                // Rules 2 came after that renderer: none of their runs was written by it.
                self.asked_since_2(rules, "report", bundle::REPORT_MD, message);
            }
            Some(page) if page.as_bytes() == self.bytes(bundle::REPORT_MD) => {}
            Some(_) => {
                let message = format!(
                    "is not what renderer {} writes of this report",
                    report.report_renderer.0
                );
                self.asked_since_2(rules, "report", bundle::REPORT_MD, message);
            }
        }
    }

    /// A signature from the future: whose clock is wrong cannot be known here.
    fn signing_time(&mut self, rules: Rules, times: Times) {
        let (Some(signed), Some(now)) = (times.signed_at, self.found.read_at) else {
            return;
        };
        if signed.as_millis().saturating_sub(now.as_millis()) <= CLOCKS_APART_MILLIS {
            return;
        }
        let message = format!("was signed at {signed}, and here it is only {now}");
        match rules >= Rules::Two && !times.is_own_clock {
            true => self.unknown("freshness", bundle::ATTESTATION, message),
            false => self.not_re_derived("freshness", bundle::ATTESTATION, message),
        }
    }
}

/// Cut short: what was not yet written down is not there.
fn cut_short(report: &Report) -> bool {
    report
        .blockers
        .iter()
        .any(|blocker| matches!(blocker.code, Code::Interrupted | Code::ArtifactWriteFailure))
}

/// Every gate was asked, in order; none was passed over but behind a closed one; and the chain tells
/// of every gate that was closed.
fn wrong_gates(documents: &Documents, facts: &Facts) -> Option<String> {
    let rows = &documents.gates.gates;
    if rows.is_empty() && cut_short(&documents.report) {
        return None;
    }
    let is_there = |id: &str| rows.iter().any(|row| row.gate == id);
    if let Some((id, _)) = GATES_OF_RULES_2.iter().find(|(id, _)| !is_there(id)) {
        return Some(format!("gate {id} was not asked"));
    }
    let mut wanted = GATES_OF_RULES_2.iter().peekable();
    for row in rows {
        match wanted.peek() {
            Some((id, phase)) if *id == row.gate && *phase == row.phase => drop(wanted.next()),
            _ if GATES_OF_RULES_2.iter().any(|(id, _)| *id == row.gate) => {
                return Some(format!("gate {} is there twice or out of order", row.gate));
            }
            _ => {}
        }
    }
    rows.iter()
        .find_map(|row| wrong_row(row, rows, documents, facts))
}

fn wrong_row(
    row: &GateResult,
    rows: &[GateResult],
    documents: &Documents,
    facts: &Facts,
) -> Option<String> {
    let blocked = row.result == GateVerdict::Blocked;
    if blocked != row.code.is_some() {
        return Some(format!(
            "gate {} has a code without being closed, or is closed without one",
            row.gate
        ));
    }
    let behind_a_closed_one = rows
        .iter()
        .any(|other| other.phase < row.phase && other.result == GateVerdict::Blocked);
    if row.result == GateVerdict::NotSeen && !behind_a_closed_one {
        return Some(format!("gate {} was passed over", row.gate));
    }
    let told = row.code.is_none_or(|code| is_told(code, facts));
    (!told && !cut_short(&documents.report))
        .then(|| format!("gate {} is closed, and the chain does not say so", row.gate))
}

/// Is this code of a closed gate in one of the events that can carry it?
fn is_told(code: Code, facts: &Facts) -> bool {
    facts.gate_blocks.iter().any(|block| block.reason == code)
        || facts
            .contract
            .as_ref()
            .is_some_and(|created| created.blockers.contains(&code))
        || facts
            .verification
            .as_ref()
            .is_some_and(|done| done.blockers.contains(&code))
        || facts.findings.iter().any(|finding| finding.code == code)
        || (code == Code::ApprovalDenied && matches!(facts.approval, ApprovalFact::Denied(_)))
}

/// The decision follows from the gates. Its sentences are for people and are not compared.
fn wrong_decision(documents: &Documents) -> Option<String> {
    if cut_short(&documents.report) {
        return None;
    }
    let report = &documents.report;
    let again = eligibility::decide_backend(
        &report.backend,
        report.stage,
        documents.contract.valid(),
        &documents.contract_digest,
        &documents.gates,
    );
    let wordless = |decision: &Eligibility| Eligibility {
        denied_backends: Vec::new(),
        reasons: Vec::new(),
        recommended_by_engine: None,
        ..decision.clone()
    };
    (wordless(&again) != wordless(&documents.eligibility))
        .then(|| "is not the decision that follows from the gates".to_owned())
}

/// Every process the chain tells of was in a jail, and each jail is there.
fn missing_jail(documents: &Documents, facts: &Facts) -> Option<String> {
    let shown = &documents.containment.processes;
    let planned = facts.containment.unwrap_or(Containment::None);
    if planned == Containment::None || (shown.is_empty() && cut_short(&documents.report)) {
        return None;
    }
    let wanted = processes(documents.contract.valid(), facts);
    let count = |list: &mut dyn Iterator<Item = &str>, name: &str| {
        list.filter(|found| *found == name).count()
    };
    let missing = wanted.iter().find(|name| {
        count(
            &mut shown.iter().map(|process| process.process.as_str()),
            name,
        ) < count(&mut wanted.iter().map(String::as_str), name)
    })?;
    Some(format!("shows no jail for {missing:?}"))
}

/// The names of the processes that must have run, as often as they must have.
fn processes(contract: Option<&Contract>, facts: &Facts) -> Vec<String> {
    let setup = contract
        .map(|contract| contract.setup.as_slice())
        .unwrap_or_default();
    let mut out: Vec<String> = Vec::new();
    let prepared = |out: &mut Vec<String>| {
        out.extend(setup.iter().map(|command| format!("setup: {command}")));
    };
    if facts.engine_ended.is_some() {
        prepared(&mut out);
        out.push(ENGINE_PROCESS.to_owned());
    }
    let Some(done) = &facts.verification else {
        return out;
    };
    // A check that was lost never became a process.
    let ran = |checks: &[crate::run::event::Check], kind: Option<CheckKind>, word: &str| {
        checks
            .iter()
            .filter(|check| check.end != ProcessEnd::Lost)
            .filter(|check| kind.is_none_or(|kind| check.kind == kind))
            .map(|check| format!("{word}: {}", check.command))
            .collect::<Vec<_>>()
    };
    let control = match &done.control {
        Some(ControlRun::Ran { checks, .. }) => checks.as_slice(),
        _ => &[],
    };
    for names in [
        ran(&done.checks, Some(CheckKind::Visible), "check"),
        ran(&done.checks, Some(CheckKind::Hidden), "hidden check"),
        ran(control, None, "must-fail control"),
        ran(&done.baseline_checks, None, "baseline check"),
    ] {
        if !names.is_empty() {
            prepared(&mut out);
        }
        out.extend(names);
    }
    for round in done.loading.iter().flat_map(|run| &run.rounds) {
        let names = ran(&round.checks, None, "loading control");
        if !names.is_empty() {
            prepared(&mut out);
        }
        out.extend(names);
    }
    out
}

/// Reasons in the words of the judge: a code that fits with a sentence that lies is a lie.
fn wrong_blockers(documents: &Documents, facts: &Facts) -> Option<String> {
    let judged = judge::judge(documents.contract.valid(), facts).blockers;
    let late = documents
        .report
        .blockers
        .iter()
        .filter(|blocker| blocker.event.is_none())
        .map(|blocker| Blocker::after_the_chain(blocker.code, blocker.detail.clone()));
    let again: Vec<Blocker> = judged.into_iter().chain(late).collect();
    (again != documents.report.blockers)
        .then(|| "blockers are not in the words of the judge".to_owned())
}

/// A run ends with its chain, and is signed after that.
fn wrong_finish(rules: Rules, report: &Report, times: Times) -> Option<String> {
    let (Some(last), Some(signed)) = (times.last_event, times.signed_at) else {
        return None;
    };
    let finished = report.run_finished_at;
    let fits = match rules {
        Rules::One => finished >= last && finished <= signed,
        _ => finished == report::finish(report.run_started_at, last) && finished <= signed,
    };
    (!fits).then(|| {
        format!("run_finished_at is {finished}, its chain ended at {last}, and it was signed at {signed}")
    })
}

#[cfg(test)]
#[path = "whole_tests.rs"]
mod tests;
