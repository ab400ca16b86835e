//! The ladder of stages: what proves a stage, for which lane, and what makes a proof invalid again.
//! `stage3.rs`: the proof of a copied repository, `stage4.rs` of a disposable one. `rungs.rs`: all of it as a person sees it.

pub mod rungs;
pub mod stage3;
pub mod stage4;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle;
use crate::bundle::report::{ApprovalStatus, Reliance, RelianceKind, Report};
use crate::containment::Containment;
use crate::engine::manifest::DEFAULT_ENGINE;
use crate::run::event::{Kind, Origin};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::contract::{Contract, Label, Lane, ModelPair, Stage};
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::maybe_known::MaybeKnown;
use crate::values::verdict::Status;

/// What a proof belongs to. If any part changes, the lane has no proof any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LaneKey {
    pub engine: EngineId,
    pub source_pin: Option<String>,
    pub executable_sha256: MaybeKnown<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter_sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages_sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<Digest>,
    pub model: Option<ModelPair>,
    /// Absent where the tree that decides it was not looked at.
    pub containment: Option<Containment>,
}

impl LaneKey {
    pub fn of(lane: &Lane) -> Self {
        Self {
            engine: lane.engine.clone(),
            source_pin: lane.source_pin.clone(),
            executable_sha256: lane.executable_sha256,
            interpreter_sha256: lane.interpreter_sha256,
            packages_sha256: lane.packages_sha256,
            manifest_sha256: lane.manifest_sha256,
            model: lane.model.clone(),
            containment: lane.containment,
        }
    }

    /// Which parts differ from the lane that is asked for, in words.
    pub fn changed(&self, other: &Self) -> Vec<&'static str> {
        // Asked again once a source was looked at; until then there is nothing to compare.
        // Where the lane has none, none was compared; a proof of before has none and proves nothing of one.
        let differs = |proven: Option<Digest>, now: Option<Digest>| now.is_some() && proven != now;
        let both_known = self.containment.is_some() && other.containment.is_some();
        [
            ("engine", self.engine != other.engine),
            ("source pin", self.source_pin != other.source_pin),
            (
                "executable digest",
                self.executable_sha256 != other.executable_sha256,
            ),
            (
                "interpreter",
                differs(self.interpreter_sha256, other.interpreter_sha256),
            ),
            (
                "packages",
                differs(self.packages_sha256, other.packages_sha256),
            ),
            (
                "manifest",
                differs(self.manifest_sha256, other.manifest_sha256),
            ),
            ("model pair", self.model != other.model),
            (
                "containment policy",
                both_known && self.containment != other.containment,
            ),
        ]
        .into_iter()
        .filter_map(|(what, differs)| differs.then_some(what))
        .collect()
    }
}

/// One stage, proven for one lane by one bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageProof {
    pub stage: Stage,
    pub lane: LaneKey,
    pub run_id: RunId,
    /// The artifact that is the proof, and its digest.
    pub artifact: &'static str,
    pub sha256: Digest,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing<'a> {
    Proven(&'a StageProof),
    /// There is a proof for this engine, but these parts changed since.
    Demoted(Vec<&'static str>),
    Unproven,
}

/// Looks for a stage's proof of this very lane; the newest counts, by the order of run ids.
pub fn find_proof<'a>(proofs: &'a [StageProof], stage: u8, lane: &LaneKey) -> Standing<'a> {
    let of_stage = || {
        proofs
            .iter()
            .filter(|proof| proof.stage.number() == stage && proof.lane.engine == lane.engine)
    };
    let newest = |a: &&StageProof, b: &&StageProof| a.run_id.sort_key().cmp(&b.run_id.sort_key());
    if let Some(proof) = of_stage()
        .filter(|proof| proof.lane.changed(lane).is_empty())
        .max_by(newest)
    {
        return Standing::Proven(proof);
    }
    match of_stage().max_by(newest) {
        Some(proof) => Standing::Demoted(proof.lane.changed(lane)),
        None => Standing::Unproven,
    }
}

/// The stage of a run where nobody named one: an engine whose own default is stage 1, which runs
/// nothing, is meant to run once that stage is proven for this lane. Never more than stage 2.
pub fn default_stage(of_engine: Stage, proofs: &[StageProof], lane: &Lane) -> Stage {
    let proven = || {
        matches!(
            find_proof(proofs, 1, &LaneKey::of(lane)),
            Standing::Proven(_)
        )
    };
    match of_engine {
        Stage::One if proven() => Stage::Two,
        other => other,
    }
}

/// `stage1-gate-proof.json`: the engine is refused by default, and with its gate open still not
/// run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage1Proof {
    pub schema_version: u32,
    pub stage: Stage,
    pub case_id: CaseId,
    pub lane: LaneKey,
    /// The run without its gate, by the digest of its `SHA256SUMS`.
    pub refused_by_default: RefusedRun,
    pub with_gate: Code,
    pub process_started: bool,
    /// The steps that the gates prevented, in order; none of them happened.
    pub gate_precedes: Vec<String>,
    pub default_engine: String,
    pub allowed_mutation_scope: String,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedRun {
    pub run_id: RunId,
    pub sums_sha256: Digest,
    pub blocker: Code,
}

/// A step that a closed gate prevents.
pub const GATE_PRECEDES: [&str; 4] = ["workspace copy", "git init", "target look", "process start"];

impl Stage1Proof {
    pub fn new(case_id: CaseId, lane: LaneKey, refused_by_default: RefusedRun) -> Self {
        Self {
            schema_version: 1,
            stage: Stage::One,
            case_id,
            lane,
            refused_by_default,
            with_gate: Code::StageGateClosed,
            process_started: false,
            gate_precedes: GATE_PRECEDES.map(str::to_owned).to_vec(),
            default_engine: DEFAULT_ENGINE.to_owned(),
            allowed_mutation_scope: Stage::One.allowed_mutation_scope().to_owned(),
            runtime_default_activation: NeverActivated,
            core_promotion_status: CorePromotion::NotPromoted,
        }
    }
}

/// A verified bundle, as far as a proof is read from it.
pub struct Candidate<'a> {
    pub report: &'a Report,
    pub contract: &'a Contract,
    /// Digest of every file.
    pub artifacts: &'a BTreeMap<String, Digest>,
    pub stage1: Option<&'a Stage1Proof>,
    /// The run that a proof of stage 1 names, as it was found and verified where it should lie.
    pub refused: Option<&'a RefusedRun>,
}

/// The proof that a bundle holds, if any. The bundle's own facts decide; the artifact only says
/// that a proof was intended. The caller must have verified the bundle. A proof counts only for
/// whoever made it: a validator's run never counts for an operator.
pub fn proof_of(candidate: &Candidate<'_>, by: Origin) -> Option<StageProof> {
    let (report, contract) = (candidate.report, candidate.contract);
    let by_the_same =
        report.origin == by && report.kind == Kind::Run && report.label == Label::Case;
    let lane = LaneKey::of(&contract.lane);
    let artifact = match report.stage {
        _ if !by_the_same || contract.lane.stage != report.stage => return None,
        Stage::One if proves_stage1(candidate, &lane) => bundle::STAGE1_PROOF,
        Stage::Two if proves_stage2(candidate) => bundle::STAGE2_COMPARISON,
        Stage::Three if proves_stage3(candidate) => bundle::STAGE3_PROOF,
        Stage::Four if proves_stage4(candidate) => bundle::STAGE4_PROOF,
        _ => return None,
    };
    let sha256 = *candidate.artifacts.get(artifact)?;
    Some(StageProof {
        stage: report.stage,
        lane,
        run_id: report.run_id.clone(),
        artifact,
        sha256,
    })
}

fn proves_stage1(candidate: &Candidate<'_>, lane: &LaneKey) -> bool {
    let report = candidate.report;
    let only_the_stage =
        matches!(report.blockers.as_slice(), [one] if one.code == Code::StageGateClosed);
    let said = candidate.stage1.is_some_and(|proof| {
        *proof
            == Stage1Proof::new(
                report.case_id.clone(),
                lane.clone(),
                proof.refused_by_default.clone(),
            )
            && proof.refused_by_default.blocker == Code::EngineGateClosed
            // No proof outlives the run it names.
            && candidate.refused == Some(&proof.refused_by_default)
    });
    report.status == Status::Blocked && only_the_stage && !report.process_started && said
}

/// A pass that is proven, with both artifacts of the stage.
fn proves_stage2(candidate: &Candidate<'_>) -> bool {
    let report = candidate.report;
    // Bundles of before know no belief.
    let belief = report.belief.as_ref();
    let believed = belief.is_none_or(|belief| belief.word.proves_a_stage());
    let has = |name: &str| candidate.artifacts.contains_key(name);
    passed_with_red_control(report)
        && believed
        && has(bundle::STAGE2_NO_TARGET)
        && has(bundle::STAGE2_COMPARISON)
}

/// A pass that is proven, on a copy of a repository that stayed as it was, standing on stage 2. What the
/// artifact says was compared with `source.json` by whoever verified the bundle.
fn proves_stage3(candidate: &Candidate<'_>) -> bool {
    let report = candidate.report;
    let believed = report.belief.as_ref();
    passed_with_red_control(report)
        && believed.is_some_and(|belief| belief.word.proves_a_stage())
        && candidate.contract.source.is_some()
        && candidate.artifacts.contains_key(bundle::STAGE3_PROOF)
        && (is_default(&report.backend) || relied_on(&report.relies_on, 2).is_some())
}

/// A pass that is proven, approved, in a disposable repository, standing on stage 3. What the artifact says was
/// compared with the chain by whoever verified the bundle.
fn proves_stage4(candidate: &Candidate<'_>) -> bool {
    let report = candidate.report;
    let believed = report.belief.as_ref();
    passed_with_red_control(report)
        && believed.is_some_and(|belief| belief.word.proves_a_stage())
        && report.approval_status == ApprovalStatus::Granted
        && candidate.contract.branch_policy.is_some()
        && candidate.artifacts.contains_key(bundle::STAGE4_PROOF)
        && relied_on(&report.relies_on, 3).is_some()
}

/// `fake` needs no proof of stages 1 and 2.
fn is_default(engine: &EngineId) -> bool {
    engine.as_str() == DEFAULT_ENGINE
}

fn passed_with_red_control(report: &Report) -> bool {
    let control = report.verification_control.as_ref();
    report.status == Status::Pass && control.is_some_and(|control| control.red == Some(true))
}

/// The artifact that proves a stage, for every stage that has one.
pub const PROVEN_BY: [(u8, &str); 4] = [
    (1, bundle::STAGE1_PROOF),
    (2, bundle::STAGE2_COMPARISON),
    (3, bundle::STAGE3_PROOF),
    (4, bundle::STAGE4_PROOF),
];

/// The proof of a stage among what a run relied on.
pub fn relied_on(relies_on: &[Reliance], stage: u8) -> Option<&Reliance> {
    let (_, artifact) = PROVEN_BY.iter().find(|(number, _)| *number == stage)?;
    let named = |on: &&Reliance| {
        let id = on.id.split_once('/');
        on.kind == RelianceKind::Proof && id.is_some_and(|(_, name)| name == *artifact)
    };
    relies_on.iter().find(named)
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
