//! The statement a bundle is signed by: its artifacts as subjects, its verdict as predicate.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Sealed;
use super::key::PublicKey;
use crate::bundle;
use crate::bundle::report::{ChainHead, Continues, Reliance, Report, ResultTree};
use crate::run::event::{Kind, Origin};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::again::Reverifies;
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::time::Utc;
use crate::values::verdict::Status;

/// in-toto's own name for this version of a statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The verdict of a run. Another meaning is another version.
pub const VERDICT_TYPE: &str = "urn:cto-harness:verdict:v1";

/// Subjects that are objects of git, not files of the bundle.
const RESULT_TREE: &str = "result.tree";
const RESULT_COMMIT: &str = "result.commit";

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Statement<P> {
    #[serde(rename = "_type")]
    pub kind: String,
    pub subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: P,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    pub name: String,
    pub digest: BTreeMap<String, String>,
}

impl Subject {
    pub fn file(name: &str, sha256: Digest) -> Self {
        Self {
            name: name.to_owned(),
            digest: BTreeMap::from([("sha256".to_owned(), sha256.to_hex())]),
        }
    }

    fn git(name: &str, algorithm: &str, id: &str) -> Self {
        Self {
            name: name.to_owned(),
            digest: BTreeMap::from([(algorithm.to_owned(), id.to_owned())]),
        }
    }
}

/// Predicate of `attestation.json`. All but the last three fields repeat the report; the verifier
/// makes them again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of the bundle format, so that a signed bundle cannot be passed off as one of
    /// another.
    pub bundle_format: u32,
    pub kind: Kind,
    pub origin: Origin,
    pub run_id: RunId,
    pub case_id: CaseId,
    pub engine: EngineId,
    pub stage: u8,
    pub status: Status,
    pub blockers: Vec<Code>,
    pub task_digest: Digest,
    pub contract_digest: Digest,
    pub events: ChainHead,
    pub result: Option<ResultTree>,
    pub relies_on: Vec<Reliance>,
    pub continues: Option<Continues>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverifies: Option<Reverifies>,
    pub run_started_at: Utc,
    pub run_finished_at: Utc,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
    pub sums_sha256: Digest,
    /// Digests of the other envelopes, so that none can be taken away or exchanged.
    pub companions: BTreeMap<String, Digest>,
    /// By the signer's clock. It proves nothing: whoever has the key can write any time here.
    pub signed_at: Utc,
    pub signer: Signer,
}

/// The key that signs, inside what it signs. It says which key to look for, not that the key is to
/// be trusted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Signer {
    pub algorithm: String,
    pub key_id: Digest,
    /// Base64 of the 32 bytes.
    pub public_key: String,
}

impl Signer {
    pub fn of(key: &PublicKey) -> Self {
        Self {
            algorithm: "ed25519".to_owned(),
            key_id: key.id(),
            public_key: key.to_base64(),
        }
    }

    /// The key, if it is one and has this name.
    pub fn key(&self) -> Option<PublicKey> {
        PublicKey::from_base64(&self.public_key)
            .ok()
            .filter(|key| *self == Self::of(key))
    }
}

/// Every artifact, the sums themselves, and the result as git knows it.
pub fn subjects(sealed: &Sealed<'_>) -> Vec<Subject> {
    let mut out: Vec<Subject> = sealed
        .sums
        .iter()
        .map(|(name, digest)| Subject::file(name, *digest))
        .collect();
    out.push(Subject::file(bundle::SUMS, sealed.sums_sha256));
    out.sort();
    out.extend(result_subjects(sealed.report));
    out
}

pub(super) fn result_subjects(report: &Report) -> Vec<Subject> {
    let Some(result) = &report.result else {
        return Vec::new();
    };
    let tree = Subject::git(RESULT_TREE, "gitTree", &result.tree);
    let commit = result
        .commit
        .as_ref()
        .map(|commit| Subject::git(RESULT_COMMIT, "gitCommit", commit));
    [tree].into_iter().chain(commit).collect()
}

/// The statement that is signed last and binds everything else.
pub fn verdict(
    sealed: &Sealed<'_>,
    companions: BTreeMap<String, Digest>,
    signer: &PublicKey,
    signed_at: Utc,
) -> Statement<Verdict> {
    let report = sealed.report;
    Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: subjects(sealed),
        predicate_type: VERDICT_TYPE.to_owned(),
        predicate: Verdict {
            bundle_format: report.schema_version,
            kind: report.kind,
            origin: report.origin,
            run_id: report.run_id.clone(),
            case_id: report.case_id.clone(),
            engine: report.backend.clone(),
            stage: report.stage.number(),
            status: report.status,
            blockers: report.blockers.iter().map(|blocker| blocker.code).collect(),
            task_digest: report.task_digest,
            contract_digest: report.contract_digest,
            events: report.events,
            result: report.result.clone(),
            relies_on: report.relies_on.clone(),
            continues: report.continues.clone(),
            reverifies: report.reverifies.clone(),
            run_started_at: report.run_started_at,
            run_finished_at: report.run_finished_at,
            runtime_default_activation: NeverActivated,
            core_promotion_status: CorePromotion::NotPromoted,
            sums_sha256: sealed.sums_sha256,
            companions,
            signed_at,
            signer: Signer::of(signer),
        },
    }
}
