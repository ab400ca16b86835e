//! Containment as data: which layers a jail has, and whether a report of them is proof.
//!
//! - this file: layers, canaries, what a process reported, what is not proven
//! - `guard.rs` which places become read-only under `strict`; `masks.rs` which are hidden,
//!   `environment_masks.rs` which of an environment
//! - `mounts/` which places of the host a jail is shown; `orders.rs` what of a directory of the
//!   operator's own gives orders to other programs
//! - `advice.rs` a host that cannot contain: the exact fix
//! - `mapping.rs` a directory whose file system cannot show it as a jail's own: why, and what to do
//! - `descriptors.rs` what descriptors 0–2 inside are, and whose keys are read
//! - `ordinary.rs` what of the host's settings every jail is shown, and what it has instead
//! - `outside.rs` which programs may run outside a jail; `ownership.rs` who could have written what
//!   a path leads to
//!
//! Imports: values, workspace. The shell that enforces all this is the crate `cto-jail`.

pub mod advice;
pub mod descriptors;
pub mod environment_masks;
pub mod guard;
pub mod mapping;
pub mod masks;
pub mod mounts;
pub mod orders;
pub mod ordinary;
pub mod outside;
pub mod ownership;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::containment::mounts::HostPlace;
use crate::values::paths::TreePath;

/// How strongly a process is confined. `none` is said out loud wherever it appears.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Containment {
    None,
    /// In the jail: workspace writable, everything else read-only or absent, judged afterwards.
    Contained,
    /// The same, and what the workspace holds outside the allowed paths cannot be changed at all.
    Strict,
}

impl Containment {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Contained => "contained",
            Self::Strict => "strict",
        }
    }
}

macro_rules! layers {
    ($($variant:ident $name:literal $what:literal;)*) => {
        /// One layer of the jail. Each alone stops something (`docs/threat-model.md` has the
        /// table).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum Layer {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Layer {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)*
                }
            }
        }
    };
}

layers! {
    MountNamespace "mount-namespace" "mounts of its own";
    PidNamespace "pid-namespace" "sees and signals only its own processes";
    IpcNamespace "ipc-namespace" "no shared memory or queues of the host";
    UtsNamespace "uts-namespace" "a host name of its own";
    NetworkNamespace "network-namespace" "no network but a private loopback";
    PrivateRoot "private-root" "a root file system with nothing of the host's but a read-only system";
    Landlock "landlock" "writes only to workspace, scratch and temporary files";
    Seccomp "seccomp" "no namespaces, odd sockets, io_uring, bpf or keys";
    NoCapabilities "no-capabilities" "no capability, now or later";
    NoNewPrivileges "no-new-privileges" "set-uid programs give nothing";
    UnprivilegedUid "unprivileged-uid" "not root on the host";
    ResourceLimits "resource-limits" "bounded processes, files and core dumps";
}

impl std::str::FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|layer| layer.as_str() == text);
        found
            .copied()
            .ok_or_else(|| format!("{text:?} is not a layer"))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LayerReport {
    pub layer: Layer,
    /// As read back from the kernel, not as requested.
    pub enforced: bool,
    pub detail: String,
}

macro_rules! canaries {
    ($($variant:ident $name:literal;)*) => {
        /// Something that must be refused inside the jail, tried just before the engine starts.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum Canary {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Canary {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

canaries! {
    ForbiddenWrite "forbidden-write";
    ForbiddenRead "forbidden-read";
    Connect "connect";
    ForeignPid "foreign-pid";
    HostUid "root-on-the-host";
    CorePattern "core-pattern";
    Vsock "vsock";
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CanaryResult {
    pub canary: Canary,
    pub refused: bool,
    pub detail: String,
}

/// What the plan says about the workspace's protection.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GuardPlan {
    /// Mounts that keep what exists as it is, beside those of git's own directory.
    pub mounts: u64,
    /// Configuration for agents and files named for secrets that the engine is not shown.
    pub masked: Vec<TreePath>,
    /// The same that it is shown, because the contract allows it by name or an input is it.
    pub shown: Vec<TreePath>,
    /// Why the containment is less than what was asked for.
    pub fallback: Option<String>,
    /// What of the host is shown beyond the system, read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_of_host: Vec<HostPlace>,
    /// Entries of the operator's PATH that are not searched for programs, or not wholly, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_searched: Vec<HostPlace>,
    /// Visible checks may trace their own processes; nothing else of the run may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traced_checks: bool,
    /// Variables that every process has where nobody may trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untraced: Vec<String>,
}

/// What one jailed process measured about its jail before it became what it was started for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JailReport {
    pub layers: Vec<LayerReport>,
    pub canaries: Vec<CanaryResult>,
    /// The kernel's name of its pid namespace, for counting survivors.
    pub pid_namespace: String,
    /// The protected places of the workspace, where any were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardReport>,
}

/// How many mounts protect the workspace: asked for, and found to hold by trying each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GuardReport {
    pub asked: u64,
    pub held: u64,
}

/// Everything that is not proven: layers not enforced or not reported, canaries that got through or
/// did not run, protected places that can be written.
pub fn unproven_layers(report: &JailReport) -> Vec<String> {
    let enforced: BTreeSet<Layer> = report
        .layers
        .iter()
        .filter(|l| l.enforced)
        .map(|l| l.layer)
        .collect();
    let refused: BTreeSet<Canary> = report
        .canaries
        .iter()
        .filter(|c| c.refused)
        .map(|c| c.canary)
        .collect();
    let got_through: BTreeSet<Canary> = report
        .canaries
        .iter()
        .filter(|c| !c.refused)
        .map(|c| c.canary)
        .collect();
    let denied: BTreeSet<Layer> = report
        .layers
        .iter()
        .filter(|l| !l.enforced)
        .map(|l| l.layer)
        .collect();
    let layers = Layer::ALL
        .iter()
        .filter(|layer| !enforced.contains(layer) || denied.contains(layer))
        .map(|layer| format!("layer {}", layer.as_str()));
    let canaries = Canary::ALL
        .iter()
        .filter(|canary| !refused.contains(canary) || got_through.contains(canary))
        .map(|canary| format!("canary {}", canary.as_str()));
    let guard = report.guard.filter(|guard| guard.held != guard.asked);
    let guard = guard.map(|guard| {
        format!(
            "guard: {} of {} protected places hold",
            guard.held, guard.asked
        )
    });
    layers.chain(canaries).chain(guard).collect()
}

/// One contained process of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReport {
    /// `engine`, `setup`, or the verification command's place.
    pub process: String,
    pub jail: JailReport,
    /// Counted on the host after the end; zombies are not survivors.
    pub survivors: Option<u64>,
    /// Processes that were still running when the main one ended, and were ended with it.
    pub ended_with_it: u64,
    pub peak_memory_kib: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ContainmentReport {
    pub schema_version: u32,
    pub asked: Containment,
    pub enforced: Containment,
    /// Per layer: asked for, and enforced for every process of the run.
    pub axes: BTreeMap<String, Axis>,
    pub processes: Vec<ProcessReport>,
    /// Over all processes; null when any was not measured.
    pub survivors: Option<u64>,
    pub memory_meter: String,
    pub notes: Vec<String>,
    /// What of the host processes were shown beyond the system, read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown_of_host: Vec<HostPlace>,
    /// Entries of the operator's PATH that were not searched for programs, or not wholly, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_searched: Vec<HostPlace>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    pub asked: bool,
    pub enforced: bool,
    pub what: String,
}

/// The process whose workspace is protected.
pub const ENGINE_PROCESS: &str = "engine";

impl ContainmentReport {
    /// Sums up the processes of a run. `asked` and `guard` come from the plan; `started` says
    /// whether anything ran at all.
    pub fn summarise(
        asked: Containment,
        guard: Option<&GuardPlan>,
        processes: Vec<ProcessReport>,
        started: bool,
    ) -> Self {
        let started = started || !processes.is_empty();
        let proven = !processes.is_empty()
            && processes
                .iter()
                .all(|process| unproven_layers(&process.jail).is_empty());
        let guarded = |process: &ProcessReport| {
            let mounts = guard.map_or(0, |guard| guard.mounts);
            process.process != ENGINE_PROCESS
                || process
                    .jail
                    .guard
                    .is_some_and(|found| found.asked >= mounts)
        };
        let enforced = match asked {
            Containment::Strict if proven && processes.iter().all(guarded) => Containment::Strict,
            Containment::Contained | Containment::Strict if proven => Containment::Contained,
            _ => Containment::None,
        };
        let jailed = asked != Containment::None;
        let everywhere = |layer: Layer| {
            let has = |process: &ProcessReport| {
                process
                    .jail
                    .layers
                    .iter()
                    .any(|l| l.layer == layer && l.enforced)
            };
            !processes.is_empty() && processes.iter().all(has)
        };
        let axes = Layer::ALL.iter().map(|layer| {
            let axis = Axis {
                asked: jailed,
                enforced: everywhere(*layer),
                what: layer.what().to_owned(),
            };
            (layer.as_str().to_owned(), axis)
        });
        let mut notes: Vec<String> = guard
            .and_then(|guard| guard.fallback.clone())
            .into_iter()
            .collect();
        notes.extend(match (jailed, started) {
            (_, false) => Some("no process of the contract was started".to_owned()),
            (false, true) => {
                Some("the engine ran as the operator's own user, without containment".to_owned())
            }
            (true, true) if processes.is_empty() => {
                Some("the run was cut short before what contained it was written down".to_owned())
            }
            (true, true) => None,
        });
        let survivors = match (started, jailed) {
            (false, _) => Some(0),
            (true, false) => None,
            (true, true) if processes.is_empty() => None,
            (true, true) => processes.iter().map(|process| process.survivors).sum(),
        };
        Self {
            schema_version: 1,
            asked,
            enforced,
            axes: axes.collect(),
            survivors,
            memory_meter: "sampled".to_owned(),
            processes,
            notes,
            shown_of_host: guard
                .map(|guard| guard.shown_of_host.clone())
                .unwrap_or_default(),
            not_searched: guard
                .map(|guard| guard.not_searched.clone())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proven() -> JailReport {
        JailReport {
            layers: Layer::ALL
                .iter()
                .map(|layer| LayerReport {
                    layer: *layer,
                    enforced: true,
                    detail: String::new(),
                })
                .collect(),
            canaries: Canary::ALL
                .iter()
                .map(|canary| CanaryResult {
                    canary: *canary,
                    refused: true,
                    detail: String::new(),
                })
                .collect(),
            pid_namespace: "pid:[1]".into(),
            guard: None,
        }
    }

    #[test]
    fn every_layer_and_canary_counts() {
        assert_eq!(unproven_layers(&proven()), Vec::<String>::new());
        for index in 0..Layer::ALL.len() {
            let mut report = proven();
            report.layers[index].enforced = false;
            assert_eq!(
                unproven_layers(&report),
                [format!("layer {}", Layer::ALL[index].as_str())]
            );
            report.layers.remove(index);
            assert_eq!(
                unproven_layers(&report).len(),
                1,
                "not reported is not proven"
            );
        }
        for index in 0..Canary::ALL.len() {
            let mut report = proven();
            report.canaries[index].refused = false;
            assert_eq!(
                unproven_layers(&report),
                [format!("canary {}", Canary::ALL[index].as_str())]
            );
            report.canaries.remove(index);
            assert_eq!(unproven_layers(&report).len(), 1, "not tried is not proven");
        }
    }

    #[test]
    fn a_contradiction_is_not_proof() {
        let mut report = proven();
        report.canaries.push(CanaryResult {
            canary: Canary::Connect,
            refused: false,
            detail: String::new(),
        });
        report.layers.push(LayerReport {
            layer: Layer::Seccomp,
            enforced: false,
            detail: String::new(),
        });
        assert_eq!(
            unproven_layers(&report),
            ["layer seccomp", "canary connect"]
        );
    }

    #[test]
    fn enforced_only_when_every_process_was() {
        let process = |jail: JailReport, survivors| ProcessReport {
            process: "engine".into(),
            jail,
            survivors,
            ended_with_it: 0,
            peak_memory_kib: None,
        };
        let good = ContainmentReport::summarise(
            Containment::Contained,
            None,
            vec![process(proven(), Some(0)), process(proven(), Some(1))],
            true,
        );
        assert_eq!(
            (good.enforced, good.survivors),
            (Containment::Contained, Some(1))
        );
        let mut weak = proven();
        weak.layers[0].enforced = false;
        let bad = ContainmentReport::summarise(
            Containment::Contained,
            None,
            vec![process(proven(), Some(0)), process(weak, None)],
            true,
        );
        assert_eq!((bad.enforced, bad.survivors), (Containment::None, None));
        assert!(!bad.axes["mount-namespace"].enforced && bad.axes["seccomp"].enforced);
        let none = ContainmentReport::summarise(Containment::None, None, vec![], true);
        assert_eq!(
            (none.enforced, none.survivors, none.notes.len()),
            (Containment::None, None, 1)
        );
        assert_eq!(
            ContainmentReport::summarise(Containment::Contained, None, vec![], false).survivors,
            Some(0)
        );
    }

    #[test]
    fn strict_is_enforced_only_where_every_protected_place_holds() {
        let plan = GuardPlan {
            mounts: 7,
            ..GuardPlan::default()
        };
        let engine = |guard| ProcessReport {
            process: ENGINE_PROCESS.into(),
            jail: JailReport { guard, ..proven() },
            survivors: Some(0),
            ended_with_it: 0,
            peak_memory_kib: None,
        };
        let check = ProcessReport {
            process: "check".into(),
            ..engine(None)
        };
        let enforced = |asked, guard| {
            ContainmentReport::summarise(
                asked,
                Some(&plan),
                vec![engine(guard), check.clone()],
                true,
            )
            .enforced
        };
        let report = |asked, held| Some(GuardReport { asked, held });
        assert_eq!(
            enforced(Containment::Strict, report(12, 12)),
            Containment::Strict
        );
        assert_eq!(
            enforced(Containment::Strict, report(7, 7)),
            Containment::Strict
        );
        assert_eq!(
            enforced(Containment::Strict, report(6, 6)),
            Containment::Contained,
            "fewer than planned"
        );
        assert_eq!(enforced(Containment::Strict, None), Containment::Contained);
        assert_eq!(
            enforced(Containment::Strict, report(12, 11)),
            Containment::None,
            "one of them can be written"
        );
        assert_eq!(
            enforced(Containment::Contained, report(12, 12)),
            Containment::Contained
        );
        let over = GuardPlan {
            fallback: Some("too many".into()),
            ..plan.clone()
        };
        let shown = ContainmentReport::summarise(
            Containment::Contained,
            Some(&over),
            vec![engine(report(7, 7))],
            true,
        );
        assert_eq!(shown.notes, ["too many"]);
    }

    #[test]
    fn layers_have_one_spelling() {
        for layer in Layer::ALL {
            assert_eq!(layer.as_str().parse::<Layer>(), Ok(*layer));
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.as_str());
        }
        assert!("seccmp".parse::<Layer>().is_err());
    }
}
