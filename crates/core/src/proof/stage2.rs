//! The artifacts of stage 2: that no target was looked at, and how a gated engine's run compares
//! with `fake` on the same case. A difference is recorded, not judged: the verdict of the run
//! itself decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle::report::{self, Report};
use crate::gate::ladder::LaneKey;
use crate::run::event::Event;
use crate::run::facts::{Facts, fold_events};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::run::judge;
use crate::run::order::OutOfOrder;
use crate::task::contract::{Contract, Stage};
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::maybe_known::MaybeKnown;

/// `stage2-no-target-inspection.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoTargetInspection {
    pub schema_version: u32,
    pub stage: Stage,
    pub case_id: CaseId,
    pub lane: LaneKey,
    /// As the contract has it: `none`.
    pub target_repository: String,
    pub target_head: MaybeKnown<String>,
    /// A repository was copied.
    pub source_repository: bool,
    /// The argument template of the engine, before anything of the run is put into it.
    pub argv_template: Vec<String>,
    pub target_exposed: bool,
    pub allowed_mutation_scope: String,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

/// Says what a contract exposes of a target. Argument template, environment and config of an engine
/// are made from the contract, the workspace and nothing else, so what the contract does not name
/// they cannot show.
pub fn no_target(contract: &Contract, argv_template: &[String]) -> NoTargetInspection {
    let none = |text: &str| text == "none";
    let exposed = !none(&contract.target_repository)
        || !matches!(&contract.lane.target_head, MaybeKnown::Known(head) if none(head))
        || contract.source.is_some();
    NoTargetInspection {
        schema_version: 1,
        stage: Stage::Two,
        case_id: contract.case_id.clone(),
        lane: LaneKey::of(&contract.lane),
        target_repository: contract.target_repository.clone(),
        target_head: contract.lane.target_head.clone(),
        source_repository: contract.source.is_some(),
        argv_template: argv_template.to_vec(),
        target_exposed: exposed,
        allowed_mutation_scope: Stage::Two.allowed_mutation_scope().to_owned(),
        runtime_default_activation: NeverActivated,
        core_promotion_status: CorePromotion::NotPromoted,
    }
}

#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    ReportShape,
    EventOrder,
    AllowedWrites,
    Verification,
    Blockers,
    Digests,
    Freshness,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    Match,
    Difference,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    pub aspect: Aspect,
    pub result: Likeness,
    pub engine: String,
    pub baseline: String,
}

/// `stage2-fake-baseline-comparison.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineComparison {
    pub schema_version: u32,
    pub stage: Stage,
    pub case_id: CaseId,
    pub engine: EngineId,
    /// The run of `fake`, by the digest of its `SHA256SUMS`.
    pub baseline: BaselineRun,
    pub aspects: Vec<Compared>,
    pub runtime_default_activation: NeverActivated,
    pub core_promotion_status: CorePromotion,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineRun {
    pub run_id: RunId,
    pub sums_sha256: Digest,
}

/// A run as far as it got: its contract and its events.
pub struct Side<'a> {
    pub contract: &'a Contract,
    pub task_digest: Digest,
    pub events: &'a [Event],
}

/// Compares a run that is about to be sealed with a sealed run of `fake`.
pub fn compare_runs(
    engine: &Side<'_>,
    fake: &Side<'_>,
    report: &Report,
    baseline: BaselineRun,
) -> Result<BaselineComparison, OutOfOrder> {
    let (ours, theirs) = (
        fold_events(engine.events)?.facts,
        fold_events(fake.events)?.facts,
    );
    let aspect = |aspect: Aspect, engine: String, baseline: String| {
        let result = if engine == baseline {
            Likeness::Match
        } else {
            Likeness::Difference
        };
        Compared {
            aspect,
            result,
            engine,
            baseline,
        }
    };
    let both = |which: Aspect, tell: &dyn Fn(&Side<'_>, &Facts) -> String| {
        aspect(which, tell(engine, &ours), tell(fake, &theirs))
    };
    let fresh = report
        .freshness
        .artifacts
        .values()
        .all(|time| *time >= report.run_started_at);
    let aspects = vec![
        aspect(
            Aspect::ReportShape,
            format!("schema {}", report::SCHEMA_VERSION),
            format!("schema {}", report.schema_version),
        ),
        both(Aspect::EventOrder, &|side, _| order(side.events)),
        both(
            Aspect::AllowedWrites,
            &|side, facts| match report::path_results(Some(side.contract), facts) {
                Some((true, true)) => "passed".into(),
                Some(_) => "not passed".into(),
                None => "no tree was measured".into(),
            },
        ),
        both(
            Aspect::Verification,
            &|side, facts| match report::tests_passed(Some(side.contract), facts) {
                Some(true) => "passed".into(),
                Some(false) => "not passed".into(),
                None => "not run".into(),
            },
        ),
        both(Aspect::Blockers, &|side, facts| {
            blockers(side.contract, facts)
        }),
        both(Aspect::Digests, &|side, _| {
            let start = side
                .contract
                .start_tree
                .known()
                .map_or("not seen".into(), Digest::to_hex);
            format!("task {}, start {start}", side.task_digest)
        }),
        // A stale artifact of this run is found at its seal and fails it; of the baseline it is
        // found here.
        aspect(
            Aspect::Freshness,
            "fresh".into(),
            if fresh {
                "fresh".into()
            } else {
                "stale".into()
            },
        ),
    ];
    Ok(BaselineComparison {
        schema_version: 1,
        stage: Stage::Two,
        case_id: engine.contract.case_id.clone(),
        engine: engine.contract.lane.engine.clone(),
        baseline,
        aspects,
        runtime_default_activation: NeverActivated,
        core_promotion_status: CorePromotion::NotPromoted,
    })
}

/// The harness's own events in order; what an engine says in between is its own affair, and the end
/// is not yet.
fn order(events: &[Event]) -> String {
    use crate::values::event_type::EventType::{EngineEnded, EngineStarted, RunCompleted};
    let kinds = events.iter().map(Event::kind);
    let ours = kinds
        .filter(|kind| !kind.is_engine() || matches!(kind, EngineStarted | EngineEnded))
        .filter(|kind| *kind != RunCompleted);
    ours.map(|kind| kind.as_str()).collect::<Vec<_>>().join(" ")
}

/// Codes known before the end. That the end is still to come is no blocker.
fn blockers(contract: &Contract, facts: &Facts) -> String {
    let judged = judge::judge(Some(contract), facts).blockers;
    let codes = judged
        .iter()
        .map(|blocker| blocker.code)
        .filter(|code| *code != Code::MissingRequiredEvent);
    match codes.map(Code::as_str).collect::<Vec<_>>() {
        none if none.is_empty() => "none".into(),
        some => some.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::contract::tests::sample;

    #[test]
    fn a_contract_without_a_target_exposes_none() {
        let contract = sample();
        assert!(!no_target(&contract, &["--json".into()]).target_exposed);
        let mut other = contract.clone();
        other.target_repository = "x".into();
        assert!(no_target(&other, &[]).target_exposed);
        let mut other = contract.clone();
        other.lane.target_head = MaybeKnown::NotLookedAt;
        assert!(no_target(&other, &[]).target_exposed);
        let mut other = contract;
        other.source = Some(crate::task::source::tests::source());
        assert!(no_target(&other, &[]).target_exposed);
    }
}
