//! Can this host contain a process? Found out by doing it: a jail is entered, measured and left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cto_core::containment::{JailReport, unproven_layers};

use crate::host::Home;

use super::{JailError, JailPlan, Mount, go, prepare, sever};

/// What a probe found.
#[derive(Clone, Debug)]
pub struct Probe {
    pub report: Option<JailReport>,
    /// Empty when everything is proven.
    pub missing: Vec<String>,
}

impl Probe {
    pub fn works(&self) -> bool {
        self.missing.is_empty()
    }
}

/// What a jail on this host cannot prove. A host that could once, since it was started and with
/// this very program, is not asked again: every jail proves itself anew before anything runs in it.
pub fn missing(home: &Home) -> Vec<String> {
    let mut found = Vec::new();
    remembered(home, "jail-", || {
        found = probe().missing;
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
        let _ =
            crate::host::make_private_dir(&home.cache()).and_then(|()| std::fs::write(marker, b""));
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

/// Enters a jail around nothing.
pub fn probe() -> Probe {
    match try_probe() {
        Ok(report) => Probe {
            missing: unproven_layers(&report),
            report: Some(report),
        },
        Err(error) => Probe {
            missing: vec![error.to_string()],
            report: None,
        },
    }
}

fn try_probe() -> Result<JailReport, JailError> {
    let plan = JailPlan::new(Vec::new());
    let mut ready = prepare(
        &plan,
        Path::new("/bin/true"),
        &[],
        Path::new("/"),
        &BTreeMap::new(),
        (Stdio::null(), Stdio::null()),
    )?;
    sever(&ready.control);
    let _ = ready.child.wait();
    Ok(ready.report)
}

/// Runs one shell line in a jail with these mounts, and waits for it.
pub fn line_in(mounts: Vec<Mount>, line: &str) -> Result<bool, JailError> {
    let args = ["-c".into(), line.into()];
    let (plan, nothing) = (JailPlan::new(mounts), (Stdio::null(), Stdio::null()));
    let mut ready = prepare(
        &plan,
        Path::new("/bin/sh"),
        &args,
        Path::new("/"),
        &BTreeMap::new(),
        nothing,
    )?;
    go(&ready.control).map_err(JailError::Silent)?;
    Ok(ready.child.wait().map_err(JailError::Silent)?.success())
}
