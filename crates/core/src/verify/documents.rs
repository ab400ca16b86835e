//! Are the files those that are listed, with the digests they are listed with, and readable?

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{Documents, Verifier};
use crate::bundle;
use crate::bundle::report::{self, Report};
use crate::bundle::sums;
use crate::containment::ContainmentReport;
use crate::engine::manifest::Manifest;
use crate::gate::GateReport;
use crate::gate::eligibility::Eligibility;
use crate::run::event::Kind;
use crate::run::facts::Folded;
use crate::run::trace::TraceLine;
use crate::task::again::REVERIFY;
use crate::task::contract::ContractDocument;
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::json::{self, JsonError};

impl Verifier<'_> {
    pub(super) fn files(&mut self) {
        for name in bundle::ALWAYS.into_iter().chain(bundle::SIGNED) {
            if !self.found.files.contains_key(name) && !self.found.unread.contains(name) {
                self.problem("files", name, "is missing");
            }
        }
        for name in &self.found.strangers {
            self.problem(
                "files",
                name,
                "is not a regular file with a readable name and a possible size",
            );
        }
    }

    /// The list of files is exactly the files, and each has the digest it is listed with.
    pub(super) fn sums(&mut self) -> Option<BTreeMap<String, Digest>> {
        let sums = match sums::parse_sums(self.bytes(bundle::SUMS)) {
            Ok(sums) => sums,
            Err(error) => {
                self.problem("sums", bundle::SUMS, error.to_string());
                return None;
            }
        };
        let names: BTreeSet<&String> = sums
            .keys()
            .chain(
                self.found
                    .files
                    .keys()
                    .chain(&self.found.unread)
                    .filter(|name| bundle::is_summed(name)),
            )
            .collect();
        for name in names {
            match (sums.get(name), self.found.files.get(name)) {
                (Some(listed), Some(found)) if *listed == found.sha256 => {}
                (Some(_), Some(_)) => {
                    self.problem("sums", name, "does not have the digest it is listed with")
                }
                (Some(_), None) => self.problem("sums", name, "is listed but missing"),
                (None, _) => self.problem("sums", name, "is not listed"),
            }
        }
        Some(sums)
    }

    pub(super) fn schema(&mut self, report: Result<Value, JsonError>) -> Option<Documents> {
        let own_digest = report
            .as_ref()
            .ok()
            .and_then(|value| bundle::report_self_digest(value).ok());
        let report = report.and_then(|value| Report::deserialize(value).map_err(JsonError::Shape));
        let report = report
            .map_err(|error| self.problem("schema", bundle::REPORT, error.to_string()))
            .ok();
        let gates = self.parsed::<GateReport>(bundle::GATES);
        let eligibility = self.parsed::<Eligibility>(bundle::ELIGIBILITY);
        let containment = self.parsed::<ContainmentReport>(bundle::CONTAINMENT);
        self.trace();
        let contract = ContractDocument::read(self.bytes(bundle::CONTRACT));
        let (contract, sealed) = match contract {
            Ok(pair) => pair,
            Err(error) => {
                self.problem("schema", bundle::CONTRACT, error.to_string());
                return None;
            }
        };
        let report = report?;
        if report.schema_version != report::SCHEMA_VERSION {
            self.problem(
                "schema",
                bundle::REPORT,
                format!("schema_version {} is not known", report.schema_version),
            );
            return None;
        }
        Some(Documents {
            report,
            own_digest,
            contract,
            task_digest: sealed.task_digest,
            contract_digest: sealed.contract_digest,
            gates: gates?,
            eligibility: eligibility?,
            containment: containment?,
        })
    }

    fn trace(&mut self) {
        let bytes = self.bytes(bundle::TRACE).to_vec();
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            self.problem("schema", bundle::TRACE, "the last line is torn");
        }
        for (index, line) in bytes
            .split(|b| *b == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.is_empty())
        {
            if let Err(error) = json::read::<TraceLine>(line) {
                self.problem(
                    "schema",
                    bundle::TRACE,
                    format!("line {}: {error}", index + 1),
                );
                return;
            }
        }
    }

    pub(super) fn digests(
        &mut self,
        documents: &Documents,
        sums: Option<&BTreeMap<String, Digest>>,
    ) {
        let report = &documents.report;
        if let Some(sums) = sums
            && let Some(name) = bundle::digests_disagree(&report.artifact_digests, sums)
        {
            self.problem(
                "digests",
                &name,
                "report.json and SHA256SUMS disagree about it",
            );
        }
        if documents.own_digest.as_ref() != report.artifact_digests.get(bundle::REPORT) {
            self.problem("digests", bundle::REPORT, "its own digest does not match");
        }
        if report.contract_digest != documents.contract_digest
            || report.task_digest != documents.task_digest
        {
            self.problem(
                "digests",
                bundle::CONTRACT,
                "the report names another contract",
            );
        }
        self.engine_manifest(&documents.contract);
    }

    /// Where the manifest is beside the contract, it is the one that the contract names.
    fn engine_manifest(&mut self, contract: &ContractDocument) {
        if !self.found.files.contains_key(bundle::ENGINE_MANIFEST) {
            return;
        }
        let named = contract.valid();
        let named = named.and_then(|contract| contract.lane.manifest_sha256);
        let text = std::str::from_utf8(self.bytes(bundle::ENGINE_MANIFEST)).ok();
        let says = text.and_then(Manifest::digest_of);
        if says.is_none() || says != named {
            let what = "is not what the contract names";
            self.problem("digests", bundle::ENGINE_MANIFEST, what);
        }
    }

    /// A stranger sees what the engine was told: the bytes are there wherever the contract names them and one was
    /// started.
    pub(super) fn instructions(&mut self, documents: &Documents, folded: &Folded) {
        let contract = documents.contract.valid();
        let named = contract.and_then(|contract| contract.instructions_sha256);
        let found = self.found.files.get(bundle::INSTRUCTIONS);
        // Nobody was told anything: the bundle whose patch is judged again holds them.
        let nobody = contract.is_some_and(|contract| contract.lane.engine.as_str() == REVERIFY)
            || (documents.report.kind != Kind::Settlement
                && !folded
                    .facts
                    .engine_events
                    .contains(&EventType::EngineStarted));
        let what = match (named, found.map(|file| file.sha256)) {
            (None, None) => return,
            (Some(named), Some(found)) if named == found => return,
            (Some(_), None) if nobody => return,
            (Some(_), None) => "is missing although the contract names it",
            (Some(_), Some(_)) => "is not what the contract names",
            (None, Some(_)) => "is there although the contract names none",
        };
        self.problem("digests", bundle::INSTRUCTIONS, what);
    }
}
