//! Looking at the host: what a jail needs of it, found by trying, and the signs that explain a
//! refusal.

use std::fs;
use std::path::Path;

use cto_core::containment::advice::HostSigns;
use cto_jail::probe::Probe;

pub fn look(probe: &Probe) -> HostSigns {
    let number = |path: &str| {
        fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse().ok())
    };
    HostSigns {
        is_root: cto_jail::is_root(),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
        max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
        apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        landlock: landlock_known(probe),
        in_container: Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists(),
        proc_masked: fs::read_to_string("/proc/self/mountinfo")
            .unwrap_or_default()
            .lines()
            .any(|line| line.contains(" /proc/")),
        missing: probe.missing.clone(),
    }
}

/// Where securityfs is not mounted, only a try can tell; without one, assume the kernel has it.
fn landlock_known(probe: &Probe) -> bool {
    match fs::read_to_string("/sys/kernel/security/lsm") {
        Ok(modules) => modules.contains("landlock"),
        Err(_) => !probe
            .missing
            .iter()
            .any(|missing| missing.contains("landlock") || missing.contains("Landlock")),
    }
}

/// Variables of the operator's older setup: recognised, and without effect here.
pub const UNUSED_VARIABLES: [&str; 3] = [
    "GITHUB_ORG",
    "DEFAULT_SANDCASTLE_PROVIDER",
    "SANDCASTLE_REPO",
];

/// Programs worth knowing about.
pub const PROGRAMS: [&str; 5] = ["git", "sh", "python3", "node", "cargo"];
