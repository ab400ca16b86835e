//! Why a host cannot contain a process, and the exact fix.

use serde::Serialize;

/// What a look at the host found; absent means the file is not there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSigns {
    pub is_root: bool,
    pub kernel: String,
    /// `kernel.unprivileged_userns_clone` (Debian, older Ubuntu).
    pub userns_clone: Option<u64>,
    /// `user.max_user_namespaces`.
    pub max_user_namespaces: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns` (Ubuntu 23.10 and later).
    pub apparmor_restricts: Option<u64>,
    /// Landlock is among the security modules.
    pub landlock: bool,
    pub in_container: bool,
    /// Masks over the host's own `/proc`, as container engines put them.
    pub proc_masked: bool,
    /// What a real try could not prove.
    pub missing: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Advice {
    pub problem: String,
    pub fix: String,
}

/// The oldest kernel with every call the jail makes and process limits that count per user
/// namespace.
const OLDEST_KERNEL: (u64, u64) = (5, 14);

/// What to do, most likely cause first. Empty when everything is proven.
pub fn advise_host(signs: &HostSigns) -> Vec<Advice> {
    let mut out = Vec::new();
    if signs.missing.is_empty() {
        return out;
    }
    let mut say = |problem: &str, fix: &str| {
        out.push(Advice {
            problem: problem.to_owned(),
            fix: fix.to_owned(),
        })
    };
    if kernel_version(&signs.kernel).is_some_and(|version| version < OLDEST_KERNEL) {
        say(
            "this kernel is older than 5.14",
            "use a newer kernel; nothing else replaces it",
        );
    }
    if !signs.is_root && signs.userns_clone == Some(0) {
        say(
            "unprivileged user namespaces are switched off",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        );
    }
    if !signs.is_root && signs.max_user_namespaces == Some(0) {
        say(
            "no user namespace may be made",
            "sudo sysctl -w user.max_user_namespaces=15000",
        );
    }
    if !signs.is_root && signs.apparmor_restricts.is_some_and(|value| value != 0) {
        say(
            "AppArmor restricts unprivileged user namespaces",
            "sudo cp packaging/apparmor/cto /etc/apparmor.d/cto && sudo apparmor_parser -r /etc/apparmor.d/cto (set the path of the binary in it first)",
        );
    }
    if !signs.landlock {
        say(
            "Landlock is not among the kernel's security modules",
            "boot with lsm=landlock,... (CONFIG_SECURITY_LANDLOCK=y)",
        );
    }
    if signs.in_container && signs.is_root {
        say(
            "a container without the right to make namespaces",
            "start it with --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run as an ordinary user",
        );
    }
    if signs.in_container && !signs.is_root {
        say(
            "a container that masks /proc or refuses namespaces",
            "start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined",
        );
    } else if signs.proc_masked && !signs.is_root {
        say(
            "parts of /proc are masked, so no new one may be mounted",
            "run outside the container, or unmask /proc (--security-opt systempaths=unconfined)",
        );
    }
    if out.is_empty() {
        out.push(Advice {
            problem: format!("a real try failed: {}", signs.missing.join(", ")),
            fix: "no known cause fits; the step above is the one the kernel refused".to_owned(),
        });
    }
    out
}

fn kernel_version(release: &str) -> Option<(u64, u64)> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(change: impl FnOnce(&mut HostSigns)) -> Vec<String> {
        let mut signs = HostSigns {
            kernel: "6.18.1".into(),
            landlock: true,
            missing: vec!["layer pid-namespace".into()],
            ..HostSigns::default()
        };
        change(&mut signs);
        advise_host(&signs)
            .into_iter()
            .map(|advice| format!("{} -> {}", advice.problem, advice.fix))
            .collect()
    }

    #[test]
    fn nothing_is_wrong_where_everything_is_proven() {
        let signs = HostSigns {
            userns_clone: Some(0),
            ..HostSigns::default()
        };
        assert!(
            advise_host(&signs).is_empty(),
            "a proven jail needs no advice, whatever the signs"
        );
    }

    #[test]
    fn each_sign_has_its_fix() {
        for (change, want) in [
            (
                (|s| s.userns_clone = Some(0)) as fn(&mut HostSigns),
                "unprivileged_userns_clone=1",
            ),
            (
                |s| s.max_user_namespaces = Some(0),
                "max_user_namespaces=15000",
            ),
            (|s| s.apparmor_restricts = Some(1), "apparmor_parser -r"),
            (|s| s.landlock = false, "lsm=landlock"),
            (|s| s.in_container = true, "systempaths=unconfined"),
            (|s| s.proc_masked = true, "unmask /proc"),
            (
                |s| (s.in_container, s.is_root) = (true, true),
                "--cap-add SYS_ADMIN",
            ),
            (|s| s.kernel = "5.10.0-8-amd64".into(), "newer kernel"),
            (|_| {}, "the kernel refused"),
        ] {
            let found = broken(change);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(want), "{found:?}");
        }
    }

    #[test]
    fn root_needs_no_user_namespace() {
        let found = broken(|s| {
            s.is_root = true;
            s.userns_clone = Some(0);
            s.apparmor_restricts = Some(1);
        });
        assert!(found[0].contains("the kernel refused"), "{found:?}");
    }
}
