//! `stage5-owned-repo-proof.json`: an engine's work on a repository of the operator's was approved, verified,
//! accepted and landed. It lies in the settlement; every field follows from that and from the run it settles, so
//! that who verifies it makes it again and compares.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LaneKey;
use crate::bundle::approval::Answer;
use crate::bundle::report::{Continues, RelianceKind, Report};
use crate::bundle::settlement::{Told, may_be_settled};
use crate::records::AdmissionStatus;
use crate::run::attempt::ActionsSeen;
use crate::run::belief::Belief;
use crate::run::event::{LandMode, Outcome};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::contract::{Action, Contract, Label, Stage};
use crate::task::source::{CopiedRepo, RepositoryName};
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, RunId};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage5Proof {
    pub schema_version: u32,
    pub stage: Stage,
    pub case_id: CaseId,
    pub lane: LaneKey,
    /// The run that is settled: gates, approval, patch and checks are there.
    pub run: Continues,
    pub target_admission_sha256: Digest,
    pub target_repository: RepositoryName,
    pub target_repository_admission_status: AdmissionStatus,
    pub target_repository_start_clean: bool,
    pub target_repository_ending_clean: bool,
    pub target_fingerprint_before: Digest,
    pub target_fingerprint_after: Digest,
    pub allowed_paths_passed: bool,
    pub forbidden_paths_passed: bool,
    /// Was anything tried that the contract forbids?
    pub forbidden_actions_attempted: bool,
    /// Whether every start of a program was looked at.
    pub forbidden_actions_recorded: bool,
    /// Each action that the contract forbids, as `<action>_attempted`.
    pub attempted: BTreeMap<String, bool>,
    pub approval_source: String,
    pub approval_id: RunId,
    pub operator_outcome: Outcome,
    pub outcome_given_ahead: bool,
    pub land_mode: LandMode,
    pub belief: Belief,
    pub baseline_commit: String,
    pub target_commit: String,
    pub allowed_mutation_scope: String,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

/// The run that is settled, as its own bundle has it.
#[derive(Clone, Copy)]
pub struct SettledRun<'a> {
    pub report: &'a Report,
    pub contract: &'a Contract,
    pub named: &'a Continues,
    /// What was read of its looks at the target, and of the approval it used.
    pub looks: Option<&'a CopiedRepo>,
    pub approval: Option<&'a Answer>,
}

impl Stage5Proof {
    /// What run and settlement show; none where they do not show all of it. Whether the settlement passed says its
    /// own report.
    pub fn of(run: SettledRun<'_>, told: &Told) -> Option<Self> {
        let SettledRun {
            report,
            contract,
            named,
            ..
        } = run;
        let (looks, answer) = (run.looks?, run.approval?);
        let is_stage = contract.label == Label::Case && contract.lane.stage == Stage::Five;
        let untouched = looks.source_repository_mutated == Some(false) && !looks.from_head;
        let approved = report
            .relies_on
            .iter()
            .any(|on| on.kind == RelianceKind::Approval && on.id == answer.request_id.as_str());
        if !is_stage || !untouched || !approved || may_be_settled(report).is_err() {
            return None;
        }
        let landed = told
            .landed()
            .filter(|_| told.outcome == Outcome::Accepted)?;
        let result = report.result.as_ref()?.commit.clone()?;
        let base = looks.source_head_before.clone();
        let as_approved = landed.old_commit.as_ref() == Some(&base)
            && landed.new_commit.as_ref() == Some(&result)
            && contract.lane.target_head.known() == Some(&base);
        let seen = report.forbidden_actions.as_ref()?;
        let clean_after = looks.source_status_after.as_ref()?.dirt().is_none();
        as_approved.then_some(())?;
        Some(Self {
            schema_version: 1,
            stage: Stage::Five,
            case_id: contract.case_id.clone(),
            lane: LaneKey::of(&contract.lane),
            run: named.clone(),
            target_admission_sha256: contract.lane.target_admission_sha256?,
            target_repository: looks.repository.clone()?,
            target_repository_admission_status: AdmissionStatus::Admitted,
            target_repository_start_clean: looks.source_status_before.dirt().is_none(),
            target_repository_ending_clean: clean_after,
            target_fingerprint_before: looks.source_fingerprint_before,
            target_fingerprint_after: looks.source_fingerprint_after?,
            allowed_paths_passed: report.allowed_writes_passed?,
            forbidden_paths_passed: report.forbidden_paths_passed?,
            forbidden_actions_attempted: seen.failing(&contract.forbidden_actions).is_some(),
            forbidden_actions_recorded: seen.recorded,
            attempted: attempted(contract, seen),
            approval_source: answer.approval_source.clone(),
            approval_id: answer.request_id.clone(),
            operator_outcome: told.outcome,
            outcome_given_ahead: told.given_ahead,
            land_mode: landed.mode,
            belief: report.belief.as_ref()?.word,
            baseline_commit: base,
            target_commit: result,
            allowed_mutation_scope: Stage::Five.allowed_mutation_scope().to_owned(),
            runtime_default_activation: NeverActivated,
            core_promotion_status: CorePromotion::NotPromoted,
        })
    }

    /// Does it show everything that the stage asks for? What it says is what the evidence shows.
    pub fn proves(&self) -> bool {
        let clean = self.target_repository_start_clean && self.target_repository_ending_clean;
        let within = self.allowed_paths_passed && self.forbidden_paths_passed;
        let accepted = self.operator_outcome == Outcome::Accepted;
        let believed = self.belief.proves_a_stage();
        clean && within && accepted && believed && !self.forbidden_actions_attempted
    }
}

/// Each forbidden action by its own name: was it seen to be tried?
fn attempted(contract: &Contract, seen: &ActionsSeen) -> BTreeMap<String, bool> {
    let tried = |word: &str| {
        let listed = seen.attempts.iter().map(|attempt| attempt.action.as_str());
        let counted = seen.not_listed.keys().map(|deed| deed.as_str());
        listed.chain(counted).any(|deed| deed == word)
    };
    let named = contract
        .forbidden_actions
        .iter()
        .map(|action: &Action| action.as_str());
    named
        .map(|word| (format!("{word}_attempted"), tried(word)))
        .collect()
}
