//! What this host can do, found out by trying. A yes is remembered until the host restarts or the
//! program changes; a no is asked again.

use std::path::PathBuf;

use super::{Home, make_private_dir};

/// What a jail on this host cannot prove. A host that could before is not asked again: every jail
/// proves itself anew before anything runs in it.
pub fn missing_containment(home: &Home) -> Vec<String> {
    let mut found = Vec::new();
    remembered(home, "jail-", || {
        found = cto_jail::probe::probe().missing;
        found.is_empty()
    });
    found
}

/// Asks, unless the answer was yes before, since the host was started and with this very program.
pub fn remembered(home: &Home, prefix: &str, ask: impl FnOnce() -> bool) -> bool {
    let Some(marker) = marker(home, prefix) else {
        return ask();
    };
    if marker.exists() {
        return true;
    }
    let yes = ask();
    if yes {
        // Not remembering only costs the next run a probe.
        forget_others(home, prefix);
        let _ = make_private_dir(&home.cache()).and_then(|()| std::fs::write(marker, b""));
    }
    yes
}

/// Markers of earlier boots and binaries mean nothing any more.
fn forget_others(home: &Home, prefix: &str) {
    let entries = std::fs::read_dir(home.cache())
        .into_iter()
        .flatten()
        .flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        let _ = std::fs::remove_file(entry.path());
    }
}

fn marker(home: &Home, prefix: &str) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let own = std::fs::metadata("/proc/self/exe").ok()?;
    let name = format!(
        "{prefix}{}-{}-{}-{}",
        boot.trim(),
        rustix::process::geteuid().as_raw(),
        own.ino(),
        own.ctime_nsec()
    );
    Some(home.cache().join(name))
}
