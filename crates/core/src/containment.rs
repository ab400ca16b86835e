//! `containment.json`: what confinement was asked for and what the kernel enforced, two fields, never one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How strongly a process is confined. `none` is said out loud wherever it appears.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Containment {
    None,
}

impl Containment {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContainmentReport {
    pub schema_version: u32,
    pub asked: Containment,
    pub enforced: Containment,
    pub axes: BTreeMap<String, Axis>,
    pub canary: Canary,
    /// Processes left after the end; null when it was not measured.
    pub survivors: Option<u64>,
    pub notes: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    pub asked: String,
    pub enforced: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Canary {
    pub ran: bool,
    pub reason: Option<String>,
}

impl ContainmentReport {
    /// A run without a jail: every axis open, and said so.
    pub fn none(engine_ran: bool) -> Self {
        let open = || Axis { asked: "none".into(), enforced: "none".into() };
        let axes = ["filesystem", "network", "processes", "resources", "privileges"];
        let notes = match engine_ran {
            true => vec!["the engine ran as the operator's own user, without containment".to_owned()],
            false => vec!["no engine was started".to_owned()],
        };
        Self {
            schema_version: 1,
            asked: Containment::None,
            enforced: Containment::None,
            axes: axes.into_iter().map(|axis| (axis.to_owned(), open())).collect(),
            canary: Canary { ran: false, reason: Some("there is no jail to test".into()) },
            survivors: (!engine_ran).then_some(0),
            notes,
        }
    }
}
