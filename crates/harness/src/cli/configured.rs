//! What the config file says where no flag does.

use std::path::PathBuf;

use cto_core::task::contract::LimitChanges;

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::host::settings;

impl Context {
    /// Whole seconds of a setting that only the config file can give.
    pub(super) fn configured_seconds(&self, key: &str) -> Option<u32> {
        self.config
            .get(key)
            .and_then(|given| given.value.parse().ok())
    }

    /// The limits of the config file.
    pub(super) fn configured_limits(&self) -> LimitChanges {
        LimitChanges {
            engine_wall_seconds: self.configured_seconds("timeout"),
            engine_idle_seconds: self.configured_seconds("idle"),
            ..LimitChanges::default()
        }
    }

    /// The price file, when no flag names one.
    pub(super) fn configured_prices(&self) -> Result<Option<PathBuf>, Failure> {
        self.config
            .get("prices")
            .map(|given| settings::directory(&given.value, &self.env))
            .transpose()
    }

    /// Where cases are looked for, when no flag says so.
    pub(super) fn configured_cases(&self) -> Result<Option<PathBuf>, Failure> {
        self.config
            .get("cases")
            .map(|given| settings::directory(&given.value, &self.env))
            .transpose()
    }
}
