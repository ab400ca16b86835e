//! Canaries: things that must be refused, tried inside the jail just before the engine starts, and
//! the state of the jail read back from the kernel.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::UdpSocket;
use std::path::Path;

use cto_core::containment::{Canary, CanaryResult, JailReport, Layer, LayerReport};
use rustix::fs::StatVfsMountFlags;
use rustix::process::{Resource, getrlimit};

use crate::inside::guard;
use crate::spec::{JailSpec, Outside};
use crate::sys;

/// Everything the engine is about to be confined by, as this process finds it.
pub fn report(spec: &JailSpec, notes: &[(Layer, String)]) -> JailReport {
    let kernel = Kernel {
        status: read_status().unwrap_or_default(),
        host_uid: host_uid(),
    };
    let layers = Layer::ALL
        .iter()
        .map(|layer| read_back(*layer, spec, &kernel, notes))
        .collect();
    let canaries = Canary::ALL
        .iter()
        .map(|canary| try_one(*canary, spec, &kernel))
        .collect();
    JailReport {
        layers,
        canaries,
        pid_namespace: namespace("pid"),
        guard: spec.guard.as_ref().map(guard::report),
    }
}

/// What the kernel says of this process, read once.
struct Kernel {
    status: String,
    /// The uid this process has outside every user namespace.
    host_uid: Option<u32>,
}

/// In two reads: without a size the standard library would begin with small pieces.
fn read_status() -> io::Result<String> {
    let mut status = String::with_capacity(8 << 10);
    File::open("/proc/self/status")?.read_to_string(&mut status)?;
    Ok(status)
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

/// Asks the kernel about one layer: is it in force, and what was found.
fn read_back(
    layer: Layer,
    spec: &JailSpec,
    kernel: &Kernel,
    notes: &[(Layer, String)],
) -> LayerReport {
    let status = kernel.status.as_str();
    let (enforced, detail) = match layer {
        Layer::MountNamespace => left_namespace(spec, "mnt"),
        Layer::PidNamespace => left_namespace(spec, "pid"),
        Layer::IpcNamespace => left_namespace(spec, "ipc"),
        Layer::UtsNamespace => left_namespace(spec, "uts"),
        Layer::NetworkNamespace => left_namespace(spec, "net"),
        Layer::PrivateRoot => private_root(),
        // Landlock has nothing to read back: what the call answered is kept, and a canary tries it.
        Layer::Landlock => {
            let note = notes.iter().find(|(noted, _)| *noted == layer);
            (
                note.is_some(),
                note.map_or("not applied".into(), |(_, text)| text.clone()),
            )
        }
        Layer::Seccomp => {
            let (mode, filters) = (field(status, "Seccomp"), field(status, "Seccomp_filters"));
            let traced = if spec.traced { ", tracing allowed" } else { "" };
            (
                mode == "2",
                format!("mode {mode}, {filters} filters{traced}"),
            )
        }
        Layer::NoCapabilities => {
            let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
            let sets = sets.map(|name| field(status, name));
            let empty = |set: &&str| !set.is_empty() && set.bytes().all(|b| b == b'0');
            (sets.iter().all(empty), format!("bounding {}", sets[3]))
        }
        Layer::NoNewPrivileges => {
            let bit = field(status, "NoNewPrivs");
            (bit == "1", format!("NoNewPrivs {bit}"))
        }
        Layer::UnprivilegedUid => {
            let uid = kernel.host_uid;
            (
                uid.is_some_and(|uid| uid != 0),
                uid.map_or("unknown".into(), |uid| format!("host uid {uid}")),
            )
        }
        Layer::ResourceLimits => resource_limits(spec),
    };
    LayerReport {
        layer,
        enforced,
        detail,
    }
}

/// A line of `/proc/self/status`, without its name; empty where there is none.
fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found == name).then_some(value)
    });
    line.unwrap_or_default().trim()
}

/// Is this process in another namespace of this kind than the harness?
fn left_namespace(spec: &JailSpec, kind: &str) -> (bool, String) {
    let now = namespace(kind);
    let before = spec.outside.namespaces.iter().find(|(k, _)| k == kind);
    let left = before.is_some_and(|(_, before)| !before.is_empty() && *before != now);
    (!now.is_empty() && left, now)
}

/// Is the root a read-only tmpfs?
fn private_root() -> (bool, String) {
    let is_tmpfs = rustix::fs::statfs("/").is_ok_and(|root| root.f_type == libc::TMPFS_MAGIC);
    let is_read_only =
        rustix::fs::statvfs("/").is_ok_and(|root| root.f_flag.contains(StatVfsMountFlags::RDONLY));
    let found = match is_tmpfs && is_read_only {
        true => "root is a read-only tmpfs",
        false => "root is the host's",
    };
    (is_tmpfs && is_read_only, found.into())
}

fn resource_limits(spec: &JailSpec) -> (bool, String) {
    let core = getrlimit(Resource::Core).current;
    let processes = getrlimit(Resource::Nproc);
    let bounded = processes.current.is_some() && processes.maximum.is_some();
    let handler = if core == Some(0) {
        "; the host's crash handler is not kept out"
    } else {
        ""
    };
    (
        matches!(core, Some(0 | 1)) && bounded,
        format!("{} processes{handler}", spec.limits.processes),
    )
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

fn try_one(canary: Canary, spec: &JailSpec, kernel: &Kernel) -> CanaryResult {
    let (refused, detail) = match canary {
        Canary::ForbiddenWrite => all_refused(
            &["/usr/cto-canary", "/cto-canary", "/etc/cto-canary"],
            |path| fs::write(path, "x"),
        ),
        Canary::ForbiddenRead => {
            let places = [
                "/etc/shadow",
                "/root",
                "/var/lib",
                "/sys/kernel",
                "/run/dbus",
                "/home",
            ];
            let targets: Vec<&Path> = spec.mounts.iter().map(|m| m.target.as_path()).collect();
            all_refused(&places, |path| {
                only_what_is_shown(Path::new(path), &targets)
            })
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
        Canary::HostUid => match kernel.host_uid {
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

/// Can anything be found at a place of the host? A mount of the contract may lie below it: then the
/// place exists, and holds nothing but the way there. What is mounted at or above it was shown.
fn only_what_is_shown(place: &Path, targets: &[&Path]) -> io::Result<()> {
    let refused = || io::Error::from(io::ErrorKind::NotFound);
    if targets.iter().any(|target| place.starts_with(target)) {
        return Err(refused());
    }
    let mut pending = vec![place.to_owned()];
    let on_the_way = |path: &Path| targets.iter().any(|target| target.starts_with(path));
    if !on_the_way(place) {
        return fs::metadata(place).map(drop);
    }
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if !on_the_way(&path) {
                return Ok(());
            }
            if !targets.contains(&path.as_path()) {
                pending.push(path);
            }
        }
    }
    Err(refused())
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
