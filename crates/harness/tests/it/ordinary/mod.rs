//! What works outside a jail works inside: names, places, settings, tools that people have. Each
//! with the real tool, and beside each what must stay out of reach.

mod checks_git;
mod large_files;
mod linux;
mod modes;
mod repository;
mod submodules;
mod tracing;

use std::process::Command;

use cto_testkit::skip;

/// A control for tests that also want `control.txt` to say `fine`.
const CONTROL: &str = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n";

/// Is this tool installed for the whole system? Without it, what it would show is not shown.
fn has(tool: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {tool}")])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output()
        .unwrap()
        .status
        .success();
    if !found {
        skip(&format!("{tool} is not installed"));
    }
    found
}
