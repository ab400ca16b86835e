//! The ladder as a person sees it: what is proven for a lane, rung by rung, and what the next rung needs.

use serde::Serialize;

use super::{LaneKey, StageProof, Standing, find_proof};
use crate::task::contract::Stage;
use crate::values::ids::{EngineId, RunId};

/// One rung, held against the lane as it is now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rung {
    pub stage: Stage,
    #[serde(flatten)]
    pub standing: RungStanding,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum RungStanding {
    Proven {
        run_id: RunId,
    },
    /// Proven once; these parts of the lane changed since.
    Demoted {
        changed: Vec<&'static str>,
    },
    Unproven,
    /// `fake` stands above it without a proof.
    NotNeeded,
}

/// The rungs that a run can prove.
const CLIMBED: [Stage; 5] = [
    Stage::One,
    Stage::Two,
    Stage::Three,
    Stage::Four,
    Stage::Five,
];

pub fn rungs(is_gated: bool, proofs: &[StageProof], lane: &LaneKey) -> Vec<Rung> {
    let standing = |stage: Stage| match find_proof(proofs, stage.number(), lane) {
        _ if !is_gated && stage <= Stage::Two => RungStanding::NotNeeded,
        Standing::Proven(proof) => RungStanding::Proven {
            run_id: proof.run_id.clone(),
        },
        Standing::Demoted(changed) => RungStanding::Demoted { changed },
        Standing::Unproven => RungStanding::Unproven,
    };
    CLIMBED
        .into_iter()
        .map(|stage| Rung {
            stage,
            standing: standing(stage),
        })
        .collect()
}

/// The first rung that is not proven, and how it is climbed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NextRung {
    pub stage: Stage,
    pub needs: String,
    /// What to type, after the name of this program.
    pub command: String,
}

pub fn next_rung(engine: &EngineId, rungs: &[Rung]) -> Option<NextRung> {
    let open = |rung: &&Rung| {
        matches!(
            rung.standing,
            RungStanding::Unproven | RungStanding::Demoted { .. }
        )
    };
    let stage = rungs.iter().find(open)?.stage;
    let (needs, command) = match stage {
        Stage::One => (
            "its records, and that it is refused until its gate is opened",
            format!("setup {engine}"),
        ),
        Stage::Two => (
            "a case that passes, compared with fake",
            format!("validate stage2 --engine {engine}"),
        ),
        Stage::Three => (
            "a record of a repository of yours, and a case that passes on a copy of it",
            format!("run CASE --stage 3 --source FILE --engine {engine}"),
        ),
        Stage::Four => (
            "your approval of a run in a repository that is made to be thrown away",
            format!("request CASE --stage 4 --engine {engine}"),
        ),
        Stage::Five => (
            "an admitted repository of yours, your approval, and your word on the result",
            format!("request CASE --stage 5 --target FILE --engine {engine}"),
        ),
        Stage::Six => (
            "a comparison of lanes, which this version does not make yet",
            format!("ladder --engine {engine}"),
        ),
    };
    Some(NextRung {
        stage,
        needs: needs.to_owned(),
        command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle;
    use crate::task::contract::tests::sample;
    use crate::values::digest::Digest;

    #[test]
    fn rungs_say_what_is_proven_and_what_changed() {
        let lane = LaneKey::of(&sample().lane);
        let proof = |stage: Stage, lane: LaneKey| StageProof {
            stage,
            lane,
            run_id: "20260102T030405Z-demo-k3v9".parse().unwrap(),
            artifact: bundle::STAGE3_PROOF,
            sha256: Digest::of(b""),
        };
        let other = LaneKey {
            source_pin: Some("old".into()),
            ..lane.clone()
        };
        let engine: EngineId = "fake".parse().unwrap();
        let seen = |gated: bool, proofs: &[StageProof]| {
            let rungs = rungs(gated, proofs, &lane);
            let next = next_rung(&engine, &rungs).unwrap().stage;
            (rungs, next)
        };
        assert_eq!(seen(true, &[]).1, Stage::One);
        let (found, next) = seen(false, &[]);
        assert_eq!(found[1].standing, RungStanding::NotNeeded);
        assert_eq!(next, Stage::Three);
        let (found, next) = seen(false, &[proof(Stage::Three, lane.clone())]);
        assert!(matches!(found[2].standing, RungStanding::Proven { .. }));
        assert_eq!(next, Stage::Four);
        let (found, next) = seen(false, &[proof(Stage::Three, other)]);
        let changed = RungStanding::Demoted {
            changed: vec!["source pin"],
        };
        assert_eq!((&found[2].standing, next), (&changed, Stage::Three));
        let word = serde_json::to_value(&found[2]).unwrap();
        assert_eq!(
            (word["stage"].as_u64(), word["standing"].as_str()),
            (Some(3), Some("demoted"))
        );
    }
}
