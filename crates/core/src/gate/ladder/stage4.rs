//! `stage4-disposable-sandbox-proof.json`: somebody approved it, and an engine worked in a repository that was made to
//! be thrown away. Every field follows from contract and chain, so that who verifies it makes it again and compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LaneKey, relied_on};
use crate::bundle::report::{ApprovalStatus, Reliance};
use crate::run::attempt::{ActionsSeen, Deed};
use crate::run::event::{BranchPolicyRecorded, Disposal};
use crate::run::facts::{ApprovalFact, Facts};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::contract::{Contract, Label, MutationMode, Stage};
use crate::values::ids::CaseId;

/// Where the repository came from.
const CREATED: &str = "made by the harness from the files of the case";

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage4Proof {
    pub schema_version: u32,
    pub stage: Stage,
    pub case_id: CaseId,
    pub lane: LaneKey,
    /// The proof of the stage before; every lane needs one here.
    pub stands_on: Reliance,
    pub approval_status: ApprovalStatus,
    /// As it was recorded before the engine started.
    pub branch_policy: BranchPolicyRecorded,
    pub disposable_repository_dir: String,
    pub creation_source: String,
    pub disposal_or_retention: Disposal,
    pub push_attempted: bool,
    pub merge_attempted: bool,
    pub deploy_attempted: bool,
    pub close_attempted: bool,
    pub pr_open_attempted: bool,
    pub public_publication_attempted: bool,
    pub allowed_mutation_scope: String,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

impl Stage4Proof {
    /// What the chain shows; none where it does not show all of it. Whether the run passed says its report.
    pub fn of(contract: &Contract, facts: &Facts, relies_on: &[Reliance]) -> Option<Self> {
        let is_stage = contract.label == Label::Case
            && contract.lane.stage == Stage::Four
            && contract.mutation_mode == MutationMode::SandboxRepo;
        let policy = contract.branch_policy.as_ref()?;
        let bound = policy.base_commit == contract.lane.target_head;
        let (recorded, checked) = (facts.branch_policy.clone()?, facts.branches.as_ref()?);
        let kept = recorded.policy == *policy && policy.broken_by(&checked.moves).is_none();
        let granted = matches!(facts.approval, ApprovalFact::Granted(_));
        let seen = facts.engine_ended.as_ref()?.actions.as_ref()?;
        let published = PUBLISHES.iter().any(|deed| attempted(seen, *deed));
        if !(is_stage && bound && kept && granted && seen.recorded) || published {
            return None;
        }
        Some(Self {
            schema_version: 1,
            stage: Stage::Four,
            case_id: contract.case_id.clone(),
            lane: LaneKey::of(&contract.lane),
            stands_on: relied_on(relies_on, 3).cloned()?,
            approval_status: ApprovalStatus::Granted,
            branch_policy: recorded,
            disposable_repository_dir: checked.repository_dir.clone(),
            creation_source: CREATED.to_owned(),
            disposal_or_retention: checked.disposal_or_retention,
            push_attempted: false,
            merge_attempted: false,
            deploy_attempted: false,
            close_attempted: false,
            pr_open_attempted: false,
            public_publication_attempted: false,
            allowed_mutation_scope: Stage::Four.allowed_mutation_scope().to_owned(),
            runtime_default_activation: NeverActivated,
            core_promotion_status: CorePromotion::NotPromoted,
        })
    }
}

/// What leaves the sandbox, or would.
const PUBLISHES: [Deed; 6] = [
    Deed::Push,
    Deed::Merge,
    Deed::Deploy,
    Deed::Close,
    Deed::PrOpen,
    Deed::PublicPublication,
];

/// Was it seen at all, listed or only counted?
fn attempted(seen: &ActionsSeen, deed: Deed) -> bool {
    let listed = seen.attempts.iter().any(|attempt| attempt.action == deed);
    listed || seen.not_listed.contains_key(&deed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle;
    use crate::bundle::report::RelianceKind;
    use crate::run::attempt::Attempt;
    use crate::run::event::{Approval, BranchPolicyChecked};
    use crate::run::judge::tests::good;
    use crate::task::contract::tests::sample;
    use crate::task::source::branch_policy::{BranchPolicy, Moves, RefMoved};
    use crate::values::digest::Digest;
    use crate::values::maybe_known::MaybeKnown;
    use crate::values::time::Utc;

    fn contract() -> Contract {
        let mut contract = sample();
        let base = MaybeKnown::Known("b0".to_owned());
        contract.lane.stage = Stage::Four;
        contract.lane.target_head = base.clone();
        contract.mutation_mode = MutationMode::SandboxRepo;
        contract.branch_policy = Some(BranchPolicy {
            base_commit: base,
            ..BranchPolicy::disposable()
        });
        contract
    }

    fn facts() -> Facts {
        let mut facts = good();
        facts.approval = ApprovalFact::Granted(Approval {
            actor: "me".into(),
            scope: "one".into(),
            mutation_mode: MutationMode::SandboxRepo,
            timestamp: Utc::from_millis(0).unwrap(),
            expiry: None,
            reason: None,
        });
        facts.branch_policy = Some(BranchPolicyRecorded {
            policy: contract().branch_policy.unwrap(),
            base_commit: "b0".into(),
            history: 1,
        });
        facts.branches = Some(BranchPolicyChecked {
            moves: Moves::default(),
            result_commit: "c".into(),
            result_parent: "b0".into(),
            repository_dir: "home:work/r/workspace".into(),
            disposal_or_retention: Disposal::Retained,
        });
        let seen = ActionsSeen {
            recorded: true,
            reason: None,
            attempts: Vec::new(),
            not_listed: std::collections::BTreeMap::new(),
        };
        facts.engine_ended.as_mut().unwrap().actions = Some(seen);
        facts
    }

    fn stands_on() -> Vec<Reliance> {
        vec![Reliance {
            kind: RelianceKind::Proof,
            id: format!("20260102T030405Z-demo-k3v9/{}", bundle::STAGE3_PROOF),
            sha256: Digest::of(b""),
        }]
    }

    #[test]
    fn it_says_what_the_chain_shows() {
        let proof = Stage4Proof::of(&contract(), &facts(), &stands_on()).unwrap();
        assert_eq!(proof.disposal_or_retention, Disposal::Retained);
        let value = serde_json::to_value(&proof).unwrap();
        for name in [
            "approval_status",
            "branch_policy",
            "disposable_repository_dir",
            "creation_source",
            "disposal_or_retention",
            "push_attempted",
            "merge_attempted",
            "deploy_attempted",
            "close_attempted",
            "pr_open_attempted",
            "public_publication_attempted",
        ] {
            assert!(value.get(name).is_some(), "{name}");
        }
        assert_eq!(value["approval_status"], "granted");
    }

    #[test]
    fn what_is_not_shown_is_not_proven() {
        assert_eq!(Stage4Proof::of(&contract(), &facts(), &[]), None);
        let contracts: [fn(&mut Contract); 6] = [
            |contract| contract.label = Label::Try,
            |contract| contract.lane.stage = Stage::Three,
            |contract| contract.mutation_mode = MutationMode::CopiedRepo,
            |contract| contract.branch_policy = None,
            |contract| contract.lane.target_head = MaybeKnown::Known("b1".into()),
            |contract| contract.branch_policy.as_mut().unwrap().remotes = 1,
        ];
        for (row, change) in contracts.into_iter().enumerate() {
            let mut contract = contract();
            change(&mut contract);
            let found = Stage4Proof::of(&contract, &facts(), &stands_on());
            assert_eq!(found, None, "contract {row}");
        }
        let seen = |facts: &mut Facts, deed: Deed| {
            let ended = facts.engine_ended.as_mut().unwrap();
            ended.actions.as_mut().unwrap().attempts.push(Attempt {
                action: deed,
                program: "gh".into(),
                argv: Vec::new(),
                count: 1,
            });
        };
        for deed in PUBLISHES {
            let mut facts = facts();
            seen(&mut facts, deed);
            let found = Stage4Proof::of(&contract(), &facts, &stands_on());
            assert_eq!(found, None, "{deed:?}");
        }
        let changes: [fn(&mut Facts); 7] = [
            |facts| facts.approval = ApprovalFact::NotRequired,
            |facts| facts.branch_policy = None,
            |facts| facts.branches = None,
            |facts| {
                let moved = &mut facts.branches.as_mut().unwrap().moves.moved;
                moved.push(RefMoved {
                    name: "refs/heads/main".into(),
                    from: None,
                    to: None,
                });
            },
            |facts| facts.engine_ended.as_mut().unwrap().actions = None,
            |facts| {
                let ended = facts.engine_ended.as_mut().unwrap();
                ended.actions = Some(ActionsSeen::unseen("no witness"));
            },
            |facts| {
                let ended = facts.engine_ended.as_mut().unwrap();
                let seen = ended.actions.as_mut().unwrap();
                seen.not_listed.insert(Deed::PrOpen, 1);
            },
        ];
        for (row, change) in changes.into_iter().enumerate() {
            let mut facts = facts();
            change(&mut facts);
            let found = Stage4Proof::of(&contract(), &facts, &stands_on());
            assert_eq!(found, None, "facts {row}");
        }
    }
}
