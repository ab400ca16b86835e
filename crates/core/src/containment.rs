//! `containment.json`: what confinement was asked for and what the kernel enforced, two fields,
//! never one; and the one decision whether that is enough.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How strongly a process is confined. `none` is said out loud wherever it appears.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Containment {
    None,
    /// In the jail: workspace writable, everything else read-only or absent, judged afterwards.
    Contained,
}

impl Containment {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Contained => "contained",
        }
    }
}

macro_rules! layers {
    ($($variant:ident $name:literal $what:literal;)*) => {
        /// One layer of the jail. Each alone stops something (`docs/threat-model.md` has the table).
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
        found.copied().ok_or_else(|| format!("{text:?} is not a layer"))
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

/// What one jailed process measured about its jail before it became what it was started for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JailReport {
    pub layers: Vec<LayerReport>,
    pub canaries: Vec<CanaryResult>,
    /// The kernel's name of its pid namespace, for counting survivors.
    pub pid_namespace: String,
}

/// Everything that is not proven: layers not enforced or not reported, canaries that got through or did not run.
pub fn unproven(report: &JailReport) -> Vec<String> {
    let enforced: BTreeSet<Layer> = report.layers.iter().filter(|l| l.enforced).map(|l| l.layer).collect();
    let refused: BTreeSet<Canary> = report.canaries.iter().filter(|c| c.refused).map(|c| c.canary).collect();
    let got_through: BTreeSet<Canary> = report.canaries.iter().filter(|c| !c.refused).map(|c| c.canary).collect();
    let denied: BTreeSet<Layer> = report.layers.iter().filter(|l| !l.enforced).map(|l| l.layer).collect();
    let layers = Layer::ALL
        .iter()
        .filter(|layer| !enforced.contains(layer) || denied.contains(layer))
        .map(|layer| format!("layer {}", layer.as_str()));
    let canaries = Canary::ALL
        .iter()
        .filter(|canary| !refused.contains(canary) || got_through.contains(canary))
        .map(|canary| format!("canary {}", canary.as_str()));
    layers.chain(canaries).collect()
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
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    pub asked: bool,
    pub enforced: bool,
    pub what: String,
}

impl ContainmentReport {
    /// Sums up the processes of a run. `asked` comes from the plan; `started` says whether anything ran at all.
    pub fn summarise(asked: Containment, processes: Vec<ProcessReport>, started: bool) -> Self {
        let started = started || !processes.is_empty();
        let proven = !processes.is_empty() && processes.iter().all(|process| unproven(&process.jail).is_empty());
        let enforced = if proven && asked == Containment::Contained { Containment::Contained } else { Containment::None };
        let everywhere = |layer: Layer| {
            let has = |process: &ProcessReport| process.jail.layers.iter().any(|l| l.layer == layer && l.enforced);
            !processes.is_empty() && processes.iter().all(has)
        };
        let axes = Layer::ALL.iter().map(|layer| {
            let axis =
                Axis { asked: asked == Containment::Contained, enforced: everywhere(*layer), what: layer.what().to_owned() };
            (layer.as_str().to_owned(), axis)
        });
        let notes = match (asked, started) {
            (_, false) => vec!["no process of the contract was started".to_owned()],
            (Containment::None, true) => vec!["the engine ran as the operator's own user, without containment".to_owned()],
            (Containment::Contained, true) if processes.is_empty() => {
                vec!["the run was cut short before what contained it was written down".to_owned()]
            }
            (Containment::Contained, true) => Vec::new(),
        };
        let survivors = match (started, asked) {
            (false, _) => Some(0),
            (true, Containment::None) => None,
            (true, Containment::Contained) if processes.is_empty() => None,
            (true, Containment::Contained) => processes.iter().map(|process| process.survivors).sum(),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proven() -> JailReport {
        JailReport {
            layers: Layer::ALL.iter().map(|layer| LayerReport { layer: *layer, enforced: true, detail: String::new() }).collect(),
            canaries: Canary::ALL
                .iter()
                .map(|canary| CanaryResult { canary: *canary, refused: true, detail: String::new() })
                .collect(),
            pid_namespace: "pid:[1]".into(),
        }
    }

    #[test]
    fn every_layer_and_canary_counts() {
        assert_eq!(unproven(&proven()), Vec::<String>::new());
        for index in 0..Layer::ALL.len() {
            let mut report = proven();
            report.layers[index].enforced = false;
            assert_eq!(unproven(&report), [format!("layer {}", Layer::ALL[index].as_str())]);
            report.layers.remove(index);
            assert_eq!(unproven(&report).len(), 1, "not reported is not proven");
        }
        for index in 0..Canary::ALL.len() {
            let mut report = proven();
            report.canaries[index].refused = false;
            assert_eq!(unproven(&report), [format!("canary {}", Canary::ALL[index].as_str())]);
            report.canaries.remove(index);
            assert_eq!(unproven(&report).len(), 1, "not tried is not proven");
        }
    }

    #[test]
    fn a_contradiction_is_not_proof() {
        let mut report = proven();
        report.canaries.push(CanaryResult { canary: Canary::Connect, refused: false, detail: String::new() });
        report.layers.push(LayerReport { layer: Layer::Seccomp, enforced: false, detail: String::new() });
        assert_eq!(unproven(&report), ["layer seccomp", "canary connect"]);
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
            vec![process(proven(), Some(0)), process(proven(), Some(1))],
            true,
        );
        assert_eq!((good.enforced, good.survivors), (Containment::Contained, Some(1)));
        let mut weak = proven();
        weak.layers[0].enforced = false;
        let bad =
            ContainmentReport::summarise(Containment::Contained, vec![process(proven(), Some(0)), process(weak, None)], true);
        assert_eq!((bad.enforced, bad.survivors), (Containment::None, None));
        assert!(!bad.axes["mount-namespace"].enforced && bad.axes["seccomp"].enforced);
        let none = ContainmentReport::summarise(Containment::None, vec![], true);
        assert_eq!((none.enforced, none.survivors, none.notes.len()), (Containment::None, None, 1));
        assert_eq!(ContainmentReport::summarise(Containment::Contained, vec![], false).survivors, Some(0));
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
