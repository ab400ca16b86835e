//! The verifier: re-derives everything a bundle claims from its own bytes.
//!
//! It shares types and the state machine with the run, but nothing of the run path: it believes no
//! field of the report that it can compute itself.
//!
//! - this file: what is found and what is said about it; the order of the checks
//! - `documents.rs` files, sums, digests, schemas; `history.rs` the chain and its order
//! - `consistency.rs` files against events; `tests_seen.rs` the log against the tests that ran
//! - `relied.rs` the baseline of an earlier run that tests were compared with
//! - `judgement.rs` the verdict derived again; `report_fields.rs` the report against it
//! - `whole.rs` gates, jails, page and end: computed, and refused by rules 2
//! - `seal.rs` the short question of a list: is this report the sealed one?
//! - `signature.rs` who signed; `links/` the bundles this one relies on, or whose patch it judges again
//!
//! Imports: every room below it. Imported by proof, operator and the harness.

mod consistency;
mod documents;
mod history;
mod judgement;
pub mod links;
mod loading;
mod relied;
mod report_fields;
pub mod seal;
pub mod signature;
mod tests_seen;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle;
use crate::bundle::attest::Trust;
use crate::bundle::report::Report;
use crate::checks::missing_module::AskedFor;
use crate::checks::test_log::FoundLog;
use crate::containment::ContainmentReport;
use crate::gate::GateReport;
use crate::gate::eligibility::Eligibility;
use crate::run::facts::Folded;
use crate::run::judge::Judgement;
use crate::run::rules::{Rules, RulesNumber};
use crate::task::contract::ContractDocument;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json::{self, JsonError};
use crate::values::paths::TreePath;
use crate::values::time::Utc;
use crate::workspace::patch::PatchError;

pub use links::{Linked, Links};
pub use signature::{Signature, SignatureStanding};

/// A bundle as found: every file hashed, the small ones also as bytes.
#[derive(Default)]
pub struct FoundBundle {
    pub files: BTreeMap<String, FoundFile>,
    /// Entries that are not regular files, whose names are not UTF-8, or that are larger than any
    /// file of a bundle.
    pub strangers: Vec<String>,
    /// Contents of the documents this module reads, by name.
    pub documents: BTreeMap<String, Vec<u8>>,
    /// Paths `patch.diff` changes.
    pub patch_paths: Option<Result<BTreeSet<TreePath>, PatchError>>,
    /// What it adds to lists of dependencies.
    pub asked_for: AskedFor,
    /// Header and frames of `test.log`.
    pub test_log: Option<FoundLog>,
    /// Files that nothing lists, by name alone: not a byte of them was read.
    pub unread: BTreeSet<String>,
    /// The reader's clock.
    pub read_at: Option<Utc>,
    /// The run whose name the directory or archive bears, if it bears one.
    pub named: Option<RunId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundFile {
    pub bytes: u64,
    pub sha256: Digest,
}

/// Must a reader supply this file as bytes?
pub fn is_document(name: &str) -> bool {
    DOCUMENTS.contains(&name)
        || bundle::SIGNED.contains(&name)
        || name == bundle::ENGINE_MANIFEST
        || name.starts_with(bundle::RELIED_DIR)
}

/// Is this file worth opening? `listed` is what `SHA256SUMS` names, where that can be read. Anything
/// else may be of any size and says nothing.
pub fn is_expected(name: &str, listed: Option<&BTreeMap<String, Digest>>) -> bool {
    let listed = || match listed {
        Some(listed) => bundle::is_summed(name) && listed.contains_key(name),
        None => DOCUMENTS.contains(&name),
    };
    name == bundle::SUMS || bundle::SIGNED.contains(&name) || listed()
}

const DOCUMENTS: [&str; 17] = [
    bundle::STAGE1_PROOF,
    bundle::STAGE2_NO_TARGET,
    bundle::STAGE2_COMPARISON,
    bundle::STAGE3_PROOF,
    bundle::STAGE4_PROOF,
    bundle::STAGE5_PROOF,
    bundle::REPORT,
    bundle::REPORT_MD,
    bundle::SUMS,
    bundle::CONTRACT,
    bundle::GATES,
    bundle::ELIGIBILITY,
    bundle::EVENTS,
    bundle::TRACE,
    bundle::CONTAINMENT,
    bundle::SOURCE,
    bundle::TEST_IDS,
];

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Good,
    Bad,
    Unknown,
}

/// Something that is wrong with a bundle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Which check found it: `sums`, `chain`, `order`, `judgement`, …
    pub check: String,
    pub artifact: String,
    pub message: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    pub schema_version: u32,
    pub standing: Standing,
    pub signature: Signature,
    pub run_id: Option<String>,
    /// The verdict as re-derived; null unless the bundle is good.
    pub status: Option<crate::values::verdict::Status>,
    /// The rules it was judged by: the number its chain names. Null where no chain could be read.
    pub rules: Option<RulesNumber>,
    pub checked: Vec<Checked>,
    pub problems: Vec<Problem>,
    /// What could not be decided here: without these the bundle would be good.
    pub unknowns: Vec<Problem>,
    /// What a bundle of older rules says and nothing here confirms. It was not asked for then, so
    /// the bundle is no worse for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_re_derived: Vec<Problem>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    pub name: String,
    pub ok: bool,
}

/// Names of the checks, in order.
const CHECKS: [&str; 11] = [
    "files",
    "sums",
    "schema",
    "digests",
    "chain",
    "order",
    "judgement",
    "report",
    "freshness",
    "signature",
    "links",
];

struct Verifier<'a> {
    found: &'a FoundBundle,
    trust: &'a Trust,
    find: &'a mut Finder<'a>,
    /// The bundles this one relies on, once they are known.
    links: Links,
    problems: Vec<Problem>,
    unknowns: Vec<Problem>,
    not_re_derived: Vec<Problem>,
    rules: Option<RulesNumber>,
}

/// Verifies the bundles of some runs and says what they are, as far as they can be found.
pub type Finder<'a> = dyn FnMut(&BTreeSet<RunId>) -> Links + 'a;

/// Checks a whole bundle. `find` is asked for the bundles it relies on, if any. Never panics,
/// whatever the bytes.
pub fn verify<'a>(
    found: &'a FoundBundle,
    trust: &'a Trust,
    find: &'a mut Finder<'a>,
) -> Verification {
    let mut verifier = Verifier {
        found,
        trust,
        find,
        links: Links::new(),
        problems: Vec::new(),
        unknowns: Vec::new(),
        not_re_derived: Vec::new(),
        rules: None,
    };
    let report = json::parse_strict(verifier.bytes(bundle::REPORT));
    let run_id = report
        .as_ref()
        .ok()
        .and_then(|value| value.get("run_id")?.as_str().map(str::to_owned));
    let (judged, signature) = verifier.run(report);
    let Verifier {
        problems,
        unknowns,
        not_re_derived,
        rules,
        ..
    } = verifier;
    let standing = match (problems.is_empty(), unknowns.is_empty()) {
        (true, true) => Standing::Good,
        (true, false) => Standing::Unknown,
        (false, _) => Standing::Bad,
    };
    let ok = |name: &str| {
        !problems
            .iter()
            .chain(&unknowns)
            .any(|problem| problem.check == name)
    };
    Verification {
        schema_version: 1,
        standing,
        signature,
        run_id,
        status: judged
            .filter(|_| standing == Standing::Good)
            .map(|judgement| judgement.status),
        rules,
        checked: CHECKS
            .iter()
            .map(|name| Checked {
                name: (*name).to_owned(),
                ok: ok(name),
            })
            .collect(),
        problems,
        unknowns,
        not_re_derived,
    }
}

/// The typed documents of a bundle.
struct Documents {
    report: Report,
    /// The digest the report must hold of itself.
    own_digest: Option<Digest>,
    contract: ContractDocument,
    task_digest: Digest,
    contract_digest: Digest,
    gates: GateReport,
    eligibility: Eligibility,
    containment: ContainmentReport,
}

impl Verifier<'_> {
    fn problem(&mut self, check: &str, artifact: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            check: check.to_owned(),
            artifact: artifact.to_owned(),
            message: message.into(),
        });
    }

    fn unknown(&mut self, check: &str, artifact: &str, message: impl Into<String>) {
        self.unknowns.push(Problem {
            check: check.to_owned(),
            artifact: artifact.to_owned(),
            message: message.into(),
        });
    }

    fn not_re_derived(&mut self, check: &str, artifact: &str, message: impl Into<String>) {
        self.not_re_derived.push(Problem {
            check: check.to_owned(),
            artifact: artifact.to_owned(),
            message: message.into(),
        });
    }

    fn run(&mut self, report: Result<Value, JsonError>) -> (Option<Judgement>, Signature) {
        self.files();
        let sums = self.sums();
        let documents = self.schema(report);
        let signature = self.signature(
            documents.as_ref().map(|documents| &documents.report),
            sums.as_ref(),
        );
        (
            documents.and_then(|documents| self.documents(&documents, sums.as_ref(), &signature)),
            signature,
        )
    }

    fn documents(
        &mut self,
        documents: &Documents,
        sums: Option<&BTreeMap<String, Digest>>,
        signature: &Signature,
    ) -> Option<Judgement> {
        if self
            .found
            .named
            .as_ref()
            .is_some_and(|named| *named != documents.report.run_id)
        {
            self.problem(
                "files",
                bundle::REPORT,
                "lies under the name of another run",
            );
        }
        self.digests(documents, sums);
        self.freshness(&documents.report);
        let wanted = links::wanted(&documents.report);
        if !wanted.is_empty() {
            self.links = (self.find)(&wanted);
        }
        self.links(&documents.report);
        self.judged_again(documents);
        let (events, last_event) = self.chain(documents)?;
        let folded = self.order(&events, documents)?;
        self.instructions(documents, &folded);
        let rules = self.rules(&folded)?;
        self.facts(documents, &folded);
        self.verified(rules, documents, &folded);
        self.compared(rules, documents);
        self.stage_proofs(documents, &folded);
        self.approved(documents, &folded);
        self.settled(documents, &folded);
        self.containment(documents, &folded);
        self.source(documents, &folded);
        let judgement = self.judgement(documents, &folded);
        self.report(documents, &folded);
        let times = whole::Times {
            last_event,
            signed_at: signature.signed_at,
            is_own_clock: signature.standing == SignatureStanding::Own,
        };
        self.whole(rules, documents, &folded, times);
        Some(judgement)
    }

    /// A run is judged by the rules its chain names. A newer program's rules cannot be applied
    /// here.
    fn rules(&mut self, folded: &Folded) -> Option<Rules> {
        let number = folded.facts.rules;
        self.rules = Some(number);
        let known = Rules::of(number);
        if known.is_none() {
            let newest = Rules::NEWEST.number().0;
            let message = format!(
                "judged by rules {}; this cto knows rules 1 to {newest}",
                number.0
            );
            self.unknown("judgement", bundle::EVENTS, message);
        }
        known
    }

    fn bytes(&self, name: &str) -> &[u8] {
        self.found
            .documents
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn parsed<T: for<'de> Deserialize<'de>>(&mut self, name: &str) -> Option<T> {
        match json::read(self.bytes(name)) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem("schema", name, error.to_string());
                None
            }
        }
    }
}
