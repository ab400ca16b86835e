//! `stage3-copied-repo-proof.json`: an engine worked on a copy of a repository of the operator's, and the
//! repository stayed as it was. Every field follows from other documents of its bundle, so that who
//! verifies it makes it again and compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LaneKey, relied_on};
use crate::bundle::report::Reliance;
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::contract::{Contract, Label, Stage};
use crate::task::source::{CopiedRepo, RepositoryName, SourceRecord, SourceStatus};
use crate::values::digest::Digest;
use crate::values::ids::CaseId;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage3Proof {
    pub schema_version: u32,
    pub stage: Stage,
    pub case_id: CaseId,
    pub lane: LaneKey,
    /// The proof of the stage before; null for `fake`, which needs none.
    pub stands_on: Option<Reliance>,
    pub source: SourceRecord,
    pub repository: RepositoryName,
    pub source_repository_mutated: bool,
    pub source_head_before: String,
    pub source_head_after: String,
    pub source_status_before: SourceStatus,
    pub source_status_after: SourceStatus,
    pub source_fingerprint_before: Digest,
    pub source_fingerprint_after: Digest,
    pub copied_fixture_start_clean: bool,
    pub copied_fixture_end_clean: bool,
    pub allowed_mutation_scope: String,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

impl Stage3Proof {
    /// What the looks at the source show; none where they do not show all of it. Whether the run passed
    /// says its report.
    pub fn of(contract: &Contract, copied: &CopiedRepo, relies_on: &[Reliance]) -> Option<Self> {
        let untouched = copied.source_repository_mutated == Some(false);
        let clean = copied.source_status_before.dirt().is_none() && !copied.from_head;
        let (start, end) = (
            copied.copied_fixture_start_clean,
            copied.copied_fixture_end_clean,
        );
        let kept = start == Some(true) && end == Some(true);
        let is_stage = contract.label == Label::Case && contract.lane.stage == Stage::Three;
        if !(untouched && clean && kept && is_stage) {
            return None;
        }
        Some(Self {
            schema_version: 1,
            stage: Stage::Three,
            case_id: contract.case_id.clone(),
            lane: LaneKey::of(&contract.lane),
            stands_on: relied_on(relies_on, 2).cloned(),
            source: copied.record.clone(),
            repository: copied.repository.clone()?,
            source_repository_mutated: false,
            source_head_before: copied.source_head_before.clone(),
            source_head_after: copied.source_head_after.clone()?,
            source_status_before: copied.source_status_before.clone(),
            source_status_after: copied.source_status_after.clone()?,
            source_fingerprint_before: copied.source_fingerprint_before,
            source_fingerprint_after: copied.source_fingerprint_after?,
            copied_fixture_start_clean: true,
            copied_fixture_end_clean: true,
            allowed_mutation_scope: Stage::Three.allowed_mutation_scope().to_owned(),
            runtime_default_activation: NeverActivated,
            core_promotion_status: CorePromotion::NotPromoted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle;
    use crate::bundle::report::RelianceKind;
    use crate::task::contract::tests::sample;
    use crate::task::source::{Looked, tests as sources};

    fn contract() -> Contract {
        let mut contract = sample();
        contract.lane.stage = Stage::Three;
        contract.source = Some(sources::source());
        contract
    }

    fn copied() -> CopiedRepo {
        let (source, repository) = (sources::source(), sources::repository());
        let mut copied = CopiedRepo::begun(&source, Some(&repository), &sources::look());
        copied.ended(&Looked::Found(sources::look()), None, true);
        copied.copied_fixture_start_clean = Some(true);
        copied.copied_fixture_end_clean = Some(true);
        copied
    }

    #[test]
    fn only_a_case_on_a_clean_and_untouched_source_shows_it() {
        assert!(Stage3Proof::of(&contract(), &copied(), &[]).is_some());
        let broken: [fn(&mut CopiedRepo); 8] = [
            |copied| copied.source_repository_mutated = Some(true),
            |copied| copied.source_repository_mutated = None,
            |copied| copied.from_head = true,
            |copied| copied.source_status_before.count = 1,
            |copied| copied.copied_fixture_start_clean = None,
            |copied| copied.copied_fixture_end_clean = Some(false),
            |copied| copied.source_head_after = None,
            |copied| copied.repository = None,
        ];
        for (at, change) in broken.into_iter().enumerate() {
            let mut copied = copied();
            change(&mut copied);
            assert_eq!(Stage3Proof::of(&contract(), &copied, &[]), None, "row {at}");
        }
        for (label, stage) in [(Label::Try, Stage::Three), (Label::Case, Stage::Two)] {
            let mut contract = contract();
            (contract.label, contract.lane.stage) = (label, stage);
            assert_eq!(Stage3Proof::of(&contract, &copied(), &[]), None);
        }
    }

    #[test]
    fn it_names_the_proof_it_stands_on() {
        let on = |id: &str, kind| Reliance {
            kind,
            id: id.into(),
            sha256: Digest::of(b""),
        };
        let run = "20260102T030405Z-demo-k3v9";
        let proof = on(
            &format!("{run}/{}", bundle::STAGE2_COMPARISON),
            RelianceKind::Proof,
        );
        let others = [
            on(run, RelianceKind::Proof),
            on(
                &format!("{run}/{}", bundle::STAGE1_PROOF),
                RelianceKind::Proof,
            ),
            on(&proof.id, RelianceKind::Approval),
        ];
        let stands = |on: &[Reliance]| {
            Stage3Proof::of(&contract(), &copied(), on)
                .unwrap()
                .stands_on
        };
        assert_eq!(stands(&others), None);
        assert_eq!(stands(&[others[0].clone(), proof.clone()]), Some(proof));
    }
}
