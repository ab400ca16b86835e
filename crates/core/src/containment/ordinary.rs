//! What makes a jail look like an ordinary Linux: which of the host's settings it is shown, all of
//! them by name, and what it has of its own instead of the host's. Nothing here tells who the
//! operator is or which host this is.

use std::path::Path;

/// The name every jail has.
pub const HOST_NAME: &str = "cto";

/// Read-only places of the host's `/etc` that programs below `/usr` lead to or cannot do without.
/// Where a directory also holds secrets (keys beside certificates, passwords in settings of a
/// tool), what is needed of it is named instead.
pub const OF_ETC: &[&str] = &[
    // Libraries, and which of several programs is meant.
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    // Certificates of others, and how to use them.
    "/etc/ca-certificates",
    "/etc/crypto-policies/back-ends",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/java",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    // What is the same on every host of a kind.
    "/etc/debian_version",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/protocols",
    "/etc/services",
    // Time and words.
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/timezone",
    // Settings of tools.
    "/etc/fonts",
    "/etc/groff",
    "/etc/magic",
    "/etc/maven/logging",
    "/etc/maven/m2.conf",
    "/etc/perl",
    "/etc/terminfo",
    "/etc/xml",
];

/// The same for names that hold a version.
const FAMILIES: [&str; 3] = ["java-", "python2.", "python3"];

/// Is this name in `/etc` one that holds a version, and shown?
pub fn is_of_family(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Is this place of `/etc`, or what it lies in, shown to every jail?
pub fn is_of_etc(path: &Path) -> bool {
    let in_family = || {
        let name = path.strip_prefix("/etc").ok()?.components().next()?;
        Some(is_of_family(name.as_os_str().to_str()?))
    };
    OF_ETC.iter().any(|place| path.starts_with(place)) || in_family().unwrap_or(false)
}

/// Settings of the kernel that a jail can read, below `/proc/sys`: what programs size themselves
/// by. Not the host's name, not what tells one boot from another, nothing that is a switch.
pub const SETTINGS: &[&str] = &[
    "fs/file-max",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/nr_open",
    "fs/pipe-max-size",
    "kernel/cap_last_cap",
    "kernel/ngroups_max",
    "kernel/osrelease",
    "kernel/ostype",
    "kernel/overflowgid",
    "kernel/overflowuid",
    "kernel/pid_max",
    "kernel/random/entropy_avail",
    "kernel/random/poolsize",
    "kernel/randomize_va_space",
    "kernel/shmall",
    "kernel/shmmax",
    "kernel/shmmni",
    "kernel/threads-max",
    "kernel/version",
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "vm/max_map_count",
    "vm/mmap_min_addr",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
];

/// The one that is another with each look.
pub const LIVE_SETTING: &str = "kernel/random/uuid";

/// Devices that are described: processors and their memory, as `/proc/cpuinfo` does.
pub const OF_SYS: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// The users of a jail: its own, root that nobody is, and nobody.
pub fn passwd(uid: u32, gid: u32) -> String {
    let mut text =
        format!("engine:x:{uid}:{gid}::/scratch/home:/bin/sh\nroot:x:0:0:root:/root:/bin/sh\n");
    if uid != NOBODY {
        text += "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
    }
    text
}

pub fn group(gid: u32) -> String {
    let mut text = format!("engine:x:{gid}:\nroot:x:0:\n");
    if gid != NOBODY {
        text += "nogroup:x:65534:\n";
    }
    text
}

const NOBODY: u32 = 65534;

/// Its own name leads to itself.
pub fn hosts() -> String {
    format!(
        "127.0.0.1 localhost\n127.0.0.1 {HOST_NAME}\n::1 localhost ip6-localhost ip6-loopback\n"
    )
}

/// What git goes by where nothing else says anything: a repository's own word, and a home's, win.
pub const GIT_CONFIG: &str = "[user]\n\tname = engine\n\temail = engine@cto.invalid\n";

/// The variable that tells git where that is, and the place.
pub const GIT_CONFIG_PLACE: [&str; 2] = ["GIT_CONFIG_SYSTEM", "/etc/gitconfig"];

/// The variable that LeakSanitizer listens to.
pub const LEAK_OPTIONS: &str = "LSAN_OPTIONS";

/// Its value where nothing may be traced: the search for leaks is a trace of oneself. What was set
/// is kept; of two words the last counts.
pub fn without_leak_search(set: Option<&str>) -> String {
    const OFF: &str = "detect_leaks=0";
    match set {
        None | Some("") => OFF.to_owned(),
        Some(set) => format!("{set}:{OFF}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_of_etc_holds_secrets() {
        for path in [
            "/etc",
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/machine-id",
            "/etc/hostname",
            "/etc/ssl",
            "/etc/ssl/private",
            "/etc/ssl/private/key.pem",
            "/etc/pki/tls/private",
            "/etc/ssh/ssh_host_rsa_key",
            "/etc/sudoers",
            "/etc/environment",
            "/etc/maven",
            "/etc/maven/settings.xml",
            "/etc/cto",
            "/etc/javascript",
            "/etc/ca-certificates.conf",
        ] {
            assert!(!is_of_etc(Path::new(path)), "{path}");
        }
        for path in [
            "/etc/ssl/certs",
            "/etc/ssl/certs/java/cacerts",
            "/etc/java-17-openjdk",
            "/etc/java-17-openjdk/security/java.security",
            "/etc/python3.11/sitecustomize.py",
            "/etc/os-release",
        ] {
            assert!(is_of_etc(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn no_setting_is_a_switch_or_a_name_of_the_host() {
        let all: Vec<&str> = SETTINGS.iter().copied().chain([LIVE_SETTING]).collect();
        for told in [
            "kernel/hostname",
            "kernel/domainname",
            "kernel/random/boot_id",
            "kernel/core_pattern",
            "kernel/modprobe",
            "vm/drop_caches",
        ] {
            assert!(!all.contains(&told), "{told}");
        }
        assert!(
            all.iter()
                .all(|name| !name.starts_with('/') && !name.contains(".."))
        );
        let mut sorted = SETTINGS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted, SETTINGS);
    }

    #[test]
    fn the_first_user_of_a_uid_is_the_jails() {
        for uid in [1000, NOBODY, 0] {
            let text = passwd(uid, uid);
            let first = text.lines().find(|line| line.contains(&format!(":{uid}:")));
            assert!(first.unwrap().starts_with("engine:"), "{text}");
            assert!(text.contains("\nroot:x:0:0:") && group(uid).contains("\nroot:x:0:"));
        }
        assert_eq!(passwd(NOBODY, NOBODY).matches(":65534:65534:").count(), 1);
    }

    #[test]
    fn what_was_set_for_leaks_is_kept() {
        for (set, want) in [
            (None, "detect_leaks=0"),
            (Some(""), "detect_leaks=0"),
            (Some("verbosity=1"), "verbosity=1:detect_leaks=0"),
            (Some("detect_leaks=1"), "detect_leaks=1:detect_leaks=0"),
        ] {
            assert_eq!(without_leak_search(set), want);
        }
    }
}
