//! Canaries: things that must be refused, tried inside the jail just before the engine starts, and
//! the state of the jail read back from the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::path::Path;

use cto_core::containment::{Canary, CanaryResult, JailReport, Layer, LayerReport};

use super::spec::{JailSpec, Outside};
use super::{guard, sys};

/// Everything the engine is about to be confined by, as this process finds it.
pub fn report(spec: &JailSpec, notes: &[(Layer, String)]) -> JailReport {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let layers = Layer::ALL
        .iter()
        .map(|layer| read_back(*layer, spec, &status, notes))
        .collect();
    let canaries = Canary::ALL
        .iter()
        .map(|canary| try_one(*canary, spec))
        .collect();
    JailReport {
        layers,
        canaries,
        pid_namespace: namespace("pid"),
        guard: spec.guard.as_ref().map(guard::report),
    }
}

/// The kernel's name for one of this process's namespaces.
pub fn namespace(kind: &str) -> String {
    fs::read_link(format!("/proc/self/ns/{kind}"))
        .map(|link| link.display().to_string())
        .unwrap_or_default()
}

/// The namespaces of the harness, and its pid, for comparison from inside.
pub fn outside() -> Outside {
    let kinds = ["mnt", "pid", "ipc", "uts", "net"];
    Outside {
        namespaces: kinds
            .iter()
            .map(|kind| ((*kind).to_owned(), namespace(kind)))
            .collect(),
        pid: std::process::id(),
    }
}

fn read_back(
    layer: Layer,
    spec: &JailSpec,
    status: &str,
    notes: &[(Layer, String)],
) -> LayerReport {
    let field = |name: &str| {
        let line = status.lines().find(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(':'))
        });
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let differs = |kind: &str| {
        let (now, before) = (
            namespace(kind),
            spec.outside
                .namespaces
                .iter()
                .find(|(k, _)| k == kind)
                .map(|(_, name)| name.clone()),
        );
        (
            !now.is_empty() && before.is_some_and(|before| !before.is_empty() && before != now),
            now,
        )
    };
    let note = notes
        .iter()
        .find(|(noted, _)| *noted == layer)
        .map(|(_, text)| text.clone());
    let (enforced, detail) = match layer {
        Layer::MountNamespace => differs("mnt"),
        Layer::PidNamespace => differs("pid"),
        Layer::IpcNamespace => differs("ipc"),
        Layer::UtsNamespace => differs("uts"),
        Layer::NetworkNamespace => differs("net"),
        Layer::PrivateRoot => {
            // Names of mounts are any bytes.
            let root =
                String::from_utf8_lossy(&fs::read("/proc/self/mountinfo").unwrap_or_default())
                    .into_owned();
            let is_tmpfs = root.lines().any(|line| {
                line.split(' ').nth(4) == Some("/")
                    && line.contains(" - tmpfs ")
                    && line.contains(" ro,")
            });
            (
                is_tmpfs,
                if is_tmpfs {
                    "root is a read-only tmpfs".into()
                } else {
                    "root is the host's".into()
                },
            )
        }
        // Landlock has nothing to read back: what the call answered is kept, and a canary tries it.
        Layer::Landlock => (note.is_some(), note.unwrap_or_else(|| "not applied".into())),
        Layer::Seccomp => (
            field("Seccomp") == "2",
            format!(
                "mode {}, {} filters",
                field("Seccomp"),
                field("Seccomp_filters")
            ),
        ),
        Layer::NoCapabilities => {
            let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(&field);
            (
                sets.iter()
                    .all(|set| !set.is_empty() && set.bytes().all(|b| b == b'0')),
                format!("bounding {}", sets[3]),
            )
        }
        Layer::NoNewPrivileges => (
            field("NoNewPrivs") == "1",
            format!("NoNewPrivs {}", field("NoNewPrivs")),
        ),
        Layer::UnprivilegedUid => {
            let uid = host_uid();
            (
                uid.is_some_and(|uid| uid != 0),
                uid.map_or("unknown".into(), |uid| format!("host uid {uid}")),
            )
        }
        Layer::ResourceLimits => {
            let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
            let core = limits
                .lines()
                .find(|line| line.starts_with("Max core file size"));
            let core = core
                .and_then(|line| line.split_whitespace().nth(4))
                .unwrap_or_default();
            let bounded = limits
                .lines()
                .any(|line| line.starts_with("Max processes") && !line.contains("unlimited"));
            let handler = if core == "0" {
                "; the host's crash handler is not kept out"
            } else {
                ""
            };
            (
                matches!(core, "0" | "1") && bounded,
                format!("{} processes{handler}", spec.limits.processes),
            )
        }
    };
    LayerReport {
        layer,
        enforced,
        detail,
    }
}

/// The uid this process has outside every user namespace.
fn host_uid() -> Option<u32> {
    let inside = sys::effective_ids().0;
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    map.lines().find_map(|line| {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [first, host, count] = numbers.as_slice() else {
            return None;
        };
        let offset = u64::from(inside).checked_sub(*first)?;
        (offset < *count).then(|| u32::try_from(host + offset).ok())?
    })
}

fn try_one(canary: Canary, spec: &JailSpec) -> CanaryResult {
    let (refused, detail) = match canary {
        Canary::ForbiddenWrite => all_refused(
            &["/usr/cto-canary", "/cto-canary", "/etc/cto-canary"],
            |path| fs::write(path, "x"),
        ),
        Canary::ForbiddenRead => {
            // A mount of the contract may lie below one of these; then the place exists, and is not
            // the host's.
            let declared: BTreeSet<&Path> = spec
                .mounts
                .iter()
                .flat_map(|mount| mount.target.ancestors())
                .collect();
            let places = [
                "/etc/shadow",
                "/root",
                "/var/lib",
                "/sys/kernel",
                "/run/dbus",
                "/home",
            ];
            let tried: Vec<&str> = places
                .into_iter()
                .filter(|place| !declared.contains(Path::new(place)))
                .collect();
            all_refused(&tried, |path| fs::metadata(path).map(drop))
        }
        Canary::Connect => {
            // Connecting a datagram socket only asks for a route: nothing is ever sent.
            let asked =
                UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect(("192.0.2.1", 9)));
            outcome(asked)
        }
        // A number of the host's that means nothing here, unless this namespace has one of its own.
        Canary::ForeignPid => match spec.outside.pid > 64 {
            true => outcome(sys::can_see_pid(spec.outside.pid)),
            false => (
                !namespace("pid").is_empty(),
                "the harness has a low pid; compared by namespace".into(),
            ),
        },
        Canary::HostUid => match host_uid() {
            Some(uid) => (uid != 0, format!("host uid {uid}")),
            None => (false, "unknown".into()),
        },
        Canary::CorePattern => all_refused(&["/proc/sys/kernel/core_pattern"], |path| {
            fs::OpenOptions::new().write(true).open(path).map(drop)
        }),
        Canary::Vsock => {
            let made = rustix::net::socket(
                rustix::net::AddressFamily::VSOCK,
                rustix::net::SocketType::STREAM,
                None,
            );
            outcome(made.map(drop).map_err(io::Error::from))
        }
    };
    CanaryResult {
        canary,
        refused,
        detail,
    }
}

fn all_refused(paths: &[&str], attempt: impl Fn(&str) -> io::Result<()>) -> (bool, String) {
    match paths.iter().find(|path| attempt(path).is_ok()) {
        Some(path) => (false, format!("{path} got through")),
        None => (true, format!("{} refused", paths.join(", "))),
    }
}

fn outcome(result: io::Result<()>) -> (bool, String) {
    match result {
        Ok(()) => (false, "got through".into()),
        Err(error) => (true, error.to_string()),
    }
}
