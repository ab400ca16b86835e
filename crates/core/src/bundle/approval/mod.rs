//! Requests and the answers to them: an approval is a fact about one exact contract, given by a person, used once.
//!
//! - this file: the two records and the sentence; `decide.rs` whether an answer lets a run start
//! - `sshsig.rs` the signature under an answer; `signers.rs` whose count
//!
//! The bytes that are signed are the bytes of the record, in canonical JSON: what `ssh-keygen -Y verify` is given.

mod decide;
pub mod signers;
pub mod sshsig;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use decide::{Granted, Presented, Refused, Use, may_start, read_answer};

use crate::records::{Difference, name_difference};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::contract::{Action, Contract, Limits, ModelPair, MutationMode, Stage};
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::json::{self, JsonError};
use crate::values::maybe_known::MaybeKnown;
use crate::values::paths::PathRule;
use crate::values::time::Utc;

/// What an approval, or its refusal, covers.
pub const EXECUTION_SCOPE: &str = "one approved Harness run only";
/// How long an approval counts where nobody says otherwise, in hours, and at most.
pub const DEFAULT_HOURS: u32 = 24;
pub const MOST_HOURS: u32 = 24 * 30;

/// The file of the signature under an approval that a bundle relies on.
pub fn signature_name(id: &str) -> String {
    format!("{}approval-{id}.json.sig", crate::bundle::RELIED_DIR)
}

/// What is asked for: nothing was started, and nothing may be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecutionRequest {
    pub schema_version: u32,
    /// Named like a run: when, for which case.
    pub request_id: RunId,
    pub work_id: String,
    pub requested_at: Utc,
    /// The store that holds it. An answer counts in no other.
    pub store_id: Digest,
    pub contract_digest: Digest,
    pub task_digest: Digest,
    pub case_id: CaseId,
    pub title: String,
    pub engine: EngineId,
    pub executable_sha256: MaybeKnown<Digest>,
    pub stage: Stage,
    pub mutation_mode: MutationMode,
    pub allowed_mutation_scope: String,
    /// What would be changed, in words that name no place of this host.
    pub target: String,
    pub target_head: MaybeKnown<String>,
    /// What the run may reach; absent in requests of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
    pub allowed_paths: Vec<PathRule>,
    pub forbidden_paths: Vec<PathRule>,
    pub blocked_actions: Vec<Action>,
    pub verification_commands: Vec<String>,
    pub success_criteria: Vec<String>,
    pub rollback: String,
    pub next_allowed_action: String,
    /// What has to be said word for word.
    pub sentence: String,
    pub approval_granted: bool,
    pub execution_allowed: bool,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

/// What a run may reach, as far as its contract says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// The only branch of a repository of the operator's that a result may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelPair>,
    pub network: String,
    pub limits: Limits,
    /// Packages that the engine's program comes with, where its admission pins them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages_sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_test_rationale: Option<String>,
}

impl Reach {
    fn of(contract: &Contract) -> Self {
        let lane = &contract.lane;
        let network = match lane.model {
            Some(_) => "its model, through the door of the harness, and nothing else",
            None => "none",
        };
        Self {
            branch: lane.target_branch.clone(),
            model: lane.model.clone(),
            network: network.to_owned(),
            limits: contract.limits,
            packages_sha256: lane.packages_sha256,
            no_test_rationale: contract.no_test_rationale.clone(),
        }
    }
}

/// Who asks, where and when.
pub struct Asking<'a> {
    pub request_id: RunId,
    pub work_id: &'a str,
    pub store_id: Digest,
    pub at: Utc,
}

impl ExecutionRequest {
    pub fn new(contract: &Contract, digests: (Digest, Digest), asking: Asking<'_>) -> Self {
        let (contract_digest, task_digest) = digests;
        let target = target_of(contract);
        Self {
            schema_version: 1,
            sentence: sentence(asking.work_id, &target, &contract.title),
            request_id: asking.request_id,
            work_id: asking.work_id.to_owned(),
            requested_at: asking.at,
            store_id: asking.store_id,
            contract_digest,
            task_digest,
            case_id: contract.case_id.clone(),
            title: contract.title.clone(),
            engine: contract.lane.engine.clone(),
            executable_sha256: contract.lane.executable_sha256,
            stage: contract.lane.stage,
            mutation_mode: contract.mutation_mode,
            allowed_mutation_scope: contract.lane.stage.allowed_mutation_scope().to_owned(),
            target,
            target_head: contract.lane.target_head.clone(),
            reach: Some(Reach::of(contract)),
            allowed_paths: contract.allowed_paths.clone(),
            forbidden_paths: contract.forbidden_paths.clone(),
            blocked_actions: contract.forbidden_actions.iter().copied().collect(),
            verification_commands: contract.verification_commands.clone(),
            success_criteria: contract.success_criteria.clone(),
            rollback: contract.rollback.clone(),
            next_allowed_action: "approve or deny".into(),
            approval_granted: false,
            execution_allowed: false,
            runtime_default_activation: NeverActivated,
            core_promotion_status: CorePromotion::NotPromoted,
        }
    }

    /// Does it tell of this contract, in every word a person was shown?
    pub fn tells_of(&self, contract: &Contract) -> bool {
        let asking = Asking {
            request_id: self.request_id.clone(),
            work_id: &self.work_id,
            store_id: self.store_id,
            at: self.requested_at,
        };
        let mut told = Self::new(contract, (self.contract_digest, self.task_digest), asking);
        if self.reach.is_none() {
            // One of before did not tell of it.
            told.reach = None;
        }
        told == *self
    }

    /// The bytes that are kept, travel and are named by digest.
    pub fn to_bytes(&self) -> Result<Vec<u8>, JsonError> {
        json::canonical(self)
    }
}

/// What a contract changes, named without a place of this host.
fn target_of(contract: &Contract) -> String {
    match contract.mutation_mode {
        MutationMode::None => "nothing".into(),
        MutationMode::CopiedFixture => format!("a copy of the files of {}", contract.case_id),
        MutationMode::CopiedRepo => match &contract.lane.repository {
            Some(repository) => format!("a copy of {}", repository.name),
            None => "a copied repository".into(),
        },
        MutationMode::SandboxRepo => "a disposable repository".into(),
        MutationMode::OwnedNoncriticalRepo | MutationMode::CandidateDefault => {
            contract.target_repository.clone()
        }
    }
}

fn sentence(work_id: &str, target: &str, title: &str) -> String {
    format!("I approve {work_id} against {target} for the {title}.")
}

/// Is this the sentence, word for word? Why not, otherwise; neither is repeated.
pub fn wrong_sentence(said: &str, wanted: &str) -> Option<String> {
    name_difference(said, wanted).map(|difference| match difference {
        Difference::Name => "it is another sentence".to_owned(),
        close => close.to_string(),
    })
}

/// An approval or a denial. Its canonical bytes are what is signed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub schema_version: u32,
    pub request_id: RunId,
    /// Of the request's bytes: a request that was changed afterwards is another.
    pub request_sha256: Digest,
    pub work_id: String,
    pub actor: String,
    pub approval_source: String,
    pub execution_scope: String,
    pub mutation_mode: MutationMode,
    pub contract_digest: Digest,
    pub target_head: MaybeKnown<String>,
    pub store_id: Digest,
    /// As it was said; absent where nothing was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    pub timestamp: Utc,
    pub expiry: Utc,
    pub approval_granted: bool,
    pub execution_allowed: bool,
}

/// What somebody says to a request.
pub struct Said<'a> {
    pub granted: bool,
    pub actor: &'a str,
    pub source: &'a str,
    pub at: Utc,
    pub expiry: Utc,
}

impl Answer {
    pub fn to(request: &ExecutionRequest, request_sha256: Digest, said: &Said<'_>) -> Self {
        Self {
            schema_version: 1,
            request_id: request.request_id.clone(),
            request_sha256,
            work_id: request.work_id.clone(),
            actor: said.actor.to_owned(),
            approval_source: said.source.to_owned(),
            execution_scope: EXECUTION_SCOPE.into(),
            mutation_mode: request.mutation_mode,
            contract_digest: request.contract_digest,
            target_head: request.target_head.clone(),
            store_id: request.store_id,
            sentence: said.granted.then(|| request.sentence.clone()),
            timestamp: said.at,
            expiry: said.expiry,
            approval_granted: said.granted,
            execution_allowed: said.granted,
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, JsonError> {
        json::canonical(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_sentence_is_the_sentence() {
        let wanted = sentence("CTO-WORK-049", "a disposable repository", "slug fix");
        let exact = "I approve CTO-WORK-049 against a disposable repository for the slug fix.";
        assert_eq!(wanted, exact);
        assert_eq!(wrong_sentence(&wanted, &wanted), None);
        for other in [
            "",
            "yes",
            &exact.to_lowercase(),
            &exact.replace("fix.", "fix"),
            &exact.replace(' ', "  "),
            &format!("{exact} "),
            &format!("{exact}\n"),
            &exact.replace('a', "а"),
            &exact.replace("049", "O49"),
        ] {
            assert!(wrong_sentence(other, &wanted).is_some(), "{other:?}");
        }
    }
}
