//! Limits that an engine runs under where nobody said otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::contract::Limits;

/// What an engine needs beyond, or can do with less than, the limits of the house.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnLimits {
    pub engine_wall_seconds: Option<u32>,
    pub engine_idle_seconds: Option<u32>,
    pub model_calls: Option<u32>,
}

impl OwnLimits {
    /// The limits of a contract with the engine's own where the contract has the house's default:
    /// whoever said a number is heard first. The contract keeps its own, so one task on two engines
    /// stays one task.
    pub fn beneath(&self, said: &Limits) -> Limits {
        let house = Limits::default();
        let or_own = |said: u32, house: u32, own: Option<u32>| match own {
            Some(own) if said == house => own,
            _ => said,
        };
        Limits {
            engine_wall_seconds: or_own(
                said.engine_wall_seconds,
                house.engine_wall_seconds,
                self.engine_wall_seconds,
            ),
            engine_idle_seconds: or_own(
                said.engine_idle_seconds,
                house.engine_idle_seconds,
                self.engine_idle_seconds,
            ),
            model_calls: said.model_calls.or(self.model_calls),
            ..*said
        }
    }
}
