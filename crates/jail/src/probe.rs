//! Can this host contain a process? Found out by doing it: a jail is entered, measured and left.

use std::collections::BTreeMap;
use std::path::Path;

use cto_core::containment::{JailReport, unproven_layers};

use crate::{Entry, Given, JailError, JailPlan, Mount, go, prepare, sever};

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
        Entry::start([Given::Null, Given::Null, Given::Null], false)?,
        &plan,
        Path::new("/bin/true"),
        &[],
        Path::new("/"),
        &BTreeMap::new(),
    )?;
    sever(&ready.control);
    let _ = ready.child.wait();
    Ok(ready.report)
}

/// Runs one shell line in a jail with these mounts, and waits for it.
pub fn line_in(mounts: Vec<Mount>, line: &str) -> Result<bool, JailError> {
    let args = ["-c".into(), line.into()];
    let mut ready = prepare(
        Entry::start([Given::Null, Given::Null, Given::Null], false)?,
        &JailPlan::new(mounts),
        Path::new("/bin/sh"),
        &args,
        Path::new("/"),
        &BTreeMap::new(),
    )?;
    go(&ready.control).map_err(JailError::Silent)?;
    Ok(ready.child.wait().map_err(JailError::Silent)?.success())
}
