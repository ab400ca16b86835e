//! What a contract lets its processes and its model use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::money::SpendLimit;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub engine_wall_seconds: u32,
    pub engine_idle_seconds: u32,
    pub verification_wall_seconds: u32,
    pub verification_idle_seconds: u32,
    /// Kept bytes of each output stream; more is counted and digested, not stored.
    pub output_bytes: u32,
    /// Memory of all processes of a jail together.
    pub memory_mib: u32,
    /// Processes and threads of a jail together.
    pub processes: u32,
    /// Calls of a model that may be let through; the gateway's own limit where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u32>,
    /// Tokens of all those calls, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_tokens: Option<u32>,
    /// What all those calls may cost, by the operator's price; no case file says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_spend: Option<SpendLimit>,
    /// Seconds its endpoint may stay silent; three quarters of the engine's own idle limit where
    /// nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_stall_seconds: Option<u32>,
    /// CPUs that processes of the run may use together; all that there are where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            engine_wall_seconds: 1800,
            engine_idle_seconds: 300,
            verification_wall_seconds: 600,
            verification_idle_seconds: 300,
            output_bytes: 8 << 20,
            memory_mib: 4096,
            processes: 512,
            model_calls: None,
            model_tokens: None,
            model_spend: None,
            model_stall_seconds: None,
            cpus: None,
        }
    }
}

impl Limits {
    const LONGEST: u32 = 7 * 24 * 3600;

    /// What is wrong with the limits of a case file.
    pub fn problem(&self) -> Option<String> {
        if self.model_spend.is_some() {
            return Some("limits: model_spend is the operator's to say, with --spend".into());
        }
        if self.model_calls == Some(0) || self.model_tokens == Some(0) {
            return Some("limits: model_calls and model_tokens must be at least 1".into());
        }
        [
            ("engine_wall_seconds", self.engine_wall_seconds),
            ("engine_idle_seconds", self.engine_idle_seconds),
            ("verification_wall_seconds", self.verification_wall_seconds),
            ("verification_idle_seconds", self.verification_idle_seconds),
        ]
        .into_iter()
        .find(|(_, value)| *value == 0 || *value > Self::LONGEST)
        .map(|(name, value)| {
            format!(
                "limits: {name} is {value}; it must be 1 to {} seconds",
                Self::LONGEST
            )
        })
        .or_else(|| {
            (self.memory_mib < 16).then(|| {
                format!(
                    "limits: memory_mib is {}; it must be at least 16",
                    self.memory_mib
                )
            })
        })
        .or_else(|| {
            (self.processes < 8).then(|| {
                format!(
                    "limits: processes is {}; it must be at least 8",
                    self.processes
                )
            })
        })
        .or_else(|| {
            (!(4096..=1 << 30).contains(&self.output_bytes)).then(|| {
                format!(
                    "limits: output_bytes is {}; it must be 4096 to {}",
                    self.output_bytes,
                    1 << 30
                )
            })
        })
    }
}

/// Limits given on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitChanges {
    pub engine_wall_seconds: Option<u32>,
    pub engine_idle_seconds: Option<u32>,
    pub model_calls: Option<u32>,
    pub model_tokens: Option<u32>,
    pub model_spend: Option<SpendLimit>,
    /// For each command that verifies, silent or not.
    pub verification_seconds: Option<u32>,
    pub memory_mib: Option<u32>,
    pub cpus: Option<u32>,
}

impl LimitChanges {
    /// These limits with what was changed.
    pub fn of(&self, limits: Limits) -> Limits {
        let seconds = self.verification_seconds;
        Limits {
            engine_wall_seconds: self
                .engine_wall_seconds
                .unwrap_or(limits.engine_wall_seconds),
            engine_idle_seconds: self
                .engine_idle_seconds
                .unwrap_or(limits.engine_idle_seconds),
            // Who gives a test more time does not want it ended for its silence.
            verification_wall_seconds: seconds.unwrap_or(limits.verification_wall_seconds),
            verification_idle_seconds: seconds.unwrap_or(limits.verification_idle_seconds),
            memory_mib: self.memory_mib.unwrap_or(limits.memory_mib),
            model_calls: self.model_calls.or(limits.model_calls),
            model_tokens: self.model_tokens.or(limits.model_tokens),
            model_spend: self.model_spend.or(limits.model_spend),
            cpus: self.cpus.or(limits.cpus),
            ..limits
        }
    }
}
