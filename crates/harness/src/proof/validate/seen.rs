//! What a run of a validator left: read from the bytes that were verified, whatever lies under their names by now.

use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::gate::GateReport;
use cto_core::run::chain::EventLine;
use cto_core::run::event::{Event, Origin};
use cto_core::values::blocker::Code;
use cto_core::values::event_type::EventType;
use cto_core::values::json;
use cto_core::verify::{FoundBundle, Standing};
use serde::de::DeserializeOwned;

use super::Bench;
use crate::bundles::{reader, verifier};
use crate::evidence::SealedBundle;
use crate::evidence::keys::KeyStore;
use crate::host::failure::Failure;
use crate::records;

/// A sealed run, verified.
pub struct Seen {
    pub dir: PathBuf,
    pub report: Report,
    pub good: bool,
    found: FoundBundle,
    lines: Vec<EventLine>,
}

impl Bench<'_> {
    /// Verifies a run of this validator's own place.
    pub fn see(&self, sealed: &SealedBundle) -> Result<Seen, Failure> {
        self.see_at(&sealed.dir, &sealed.report)
    }

    pub fn see_at(&self, dir: &Path, report: &Report) -> Result<Seen, Failure> {
        let trust = KeyStore::of(self.home)
            .trust()
            .map_err(|error| error.failure())?;
        let (found, good) = verifier::examine(dir, &trust)
            .map(|(found, verification)| (found, verification.standing == Standing::Good))
            .unwrap_or_default();
        Ok(Seen {
            dir: dir.to_owned(),
            report: report.clone(),
            good,
            found,
            lines: reader::event_lines(dir, report).unwrap_or_default(),
        })
    }

    /// Whether a run counts as a proof for its operator: only one of a real engine may.
    pub fn counts(&self, report: &Report) -> bool {
        records::proofs(&report.backend, self.home, Origin::Operator)
            .iter()
            .any(|proof| proof.run_id == report.run_id)
    }
}

impl Seen {
    /// A document of the bundle; none where it is not there or cannot be read.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        json::read(self.found.documents.get(name)?).ok()
    }

    pub fn has(&self, name: &str) -> bool {
        self.found.documents.contains_key(name)
    }

    /// The gates that were asked, in their order.
    pub fn gates(&self) -> Vec<String> {
        let report: Option<GateReport> = self.read(bundle::GATES);
        let gates = report.map(|report| report.gates).unwrap_or_default();
        gates
            .into_iter()
            .map(|gate| gate.gate.to_string())
            .collect()
    }

    /// Where a type of event stands in the chain for the first time.
    pub fn place(&self, kind: EventType) -> Option<usize> {
        let events = self.lines.iter().map(|line| &line.event);
        events.map(Event::kind).position(|found| found == kind)
    }

    /// Both are there, and the first is before the second.
    pub fn in_order(&self, first: EventType, second: EventType) -> bool {
        match (self.place(first), self.place(second)) {
            (Some(first), Some(second)) => first < second,
            _ => false,
        }
    }

    /// Nothing was started, and nothing changed.
    pub fn is_untouched(&self) -> bool {
        let report = &self.report;
        let patch = self.found.files.get(bundle::PATCH);
        !report.process_started
            && report.result.is_none()
            && patch.is_some_and(|patch| patch.bytes == 0)
    }

    /// It ended with exactly these, and its evidence is good.
    pub fn ended_with(&self, codes: &[Code]) -> bool {
        self.good && self.codes() == codes
    }

    pub fn codes(&self) -> Vec<Code> {
        let blockers = self.report.blockers.iter();
        blockers.map(|blocker| blocker.code).collect()
    }

    /// How it ended, for whoever reads what did not hold.
    pub fn told(&self) -> String {
        let word = match self.good {
            true => "",
            false => ", and does not verify",
        };
        format!(
            "{} ended with: {}{word}",
            self.report.run_id,
            told(&self.report)
        )
    }
}

/// The blockers of a run, each with its detail.
pub fn told(report: &Report) -> String {
    let lines = report.blockers.iter().map(|blocker| match &blocker.detail {
        Some(detail) => format!("{}: {detail}", blocker.code.as_str()),
        None => blocker.code.as_str().to_owned(),
    });
    lines.collect::<Vec<_>>().join("; ")
}
