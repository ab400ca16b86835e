//! What a run may spend on its model, and what it has spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::RefusalReason;
use crate::values::money::SpendLimit;

/// What a run may spend on its model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Calls that go to the endpoint.
    pub calls: u64,
    /// Input and output together.
    pub tokens: u64,
    /// Bodies, both ways together.
    pub bytes: u64,
    /// From the opening of the gateway.
    pub wall_ms: u64,
    /// Money, where the operator named a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<SpendLimit>,
}

impl Default for Budget {
    /// Wide enough for an honest run, narrow enough that a loop ends.
    fn default() -> Self {
        Self {
            calls: 200,
            tokens: 2_000_000,
            bytes: 1 << 30,
            wall_ms: 4 * 60 * 60 * 1000,
            spend: None,
        }
    }
}

/// What an engine has asked of its model until now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireCounts {
    /// Calls that were let through.
    pub calls: u64,
    pub tokens: u64,
    /// It is being asked just now.
    pub waiting: bool,
}

/// What has been spent so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    pub calls: u64,
    pub tokens: u64,
    pub bytes: u64,
    pub elapsed_ms: u64,
    /// In millionths, by the price of the budget; nothing without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micros: Option<u64>,
}

impl Budget {
    /// May one more call begin?
    pub fn admits(&self, spent: &Spent) -> Result<(), RefusalReason> {
        match () {
            () if spent.elapsed_ms >= self.wall_ms => Err(RefusalReason::Time),
            () if spent.calls >= self.calls => Err(RefusalReason::Calls),
            () if spent.tokens >= self.tokens => Err(RefusalReason::Tokens),
            () if self.spends_all(spent) => Err(RefusalReason::Spend),
            () if spent.bytes >= self.bytes => Err(RefusalReason::Bytes),
            () => Ok(()),
        }
    }

    fn spends_all(&self, spent: &Spent) -> bool {
        self.spend
            .is_some_and(|limit| spent.micros.unwrap_or(0) >= limit.micros)
    }
}
