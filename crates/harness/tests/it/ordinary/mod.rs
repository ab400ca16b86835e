//! What works outside a jail works inside: names, places, settings, tools that people have. Each
//! with the real tool, and beside each what must stay out of reach.

mod checks_git;
mod large_files;
mod linux;
mod modes;
mod object_names;
mod repository;
mod submodules;
mod tracing;

use std::process::Command;

use cto_testkit::{Answer, Bundle, House, Repo, script, skip, write};

use crate::assert_good;

/// A control for tests that also want `control.txt` to say `fine`.
const CONTROL: &str = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n";

/// How copies are made.
const KINDS: [&str; 2] = ["overlay", "copy"];
/// A test that is right with [`right`] and red with the control.
const RIGHT: &str = "grep -qx right answer.txt && grep -qx fine control.txt";

/// A try with that control, in which everything may be changed.
fn tried(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> (Answer, Bundle) {
    let control = house.script("control", CONTROL);
    let all = [&["--allow", ".", "--control", &control], more].concat();
    house.try_on(repo, &script(steps), &all)
}

fn right() -> String {
    write("answer.txt", "right\n")
}

fn passed(what: &str, answer: &Answer, bundle: &Bundle) {
    let log = bundle.text("test.log");
    assert_eq!(answer.code, Some(0), "{what}: {answer:?} {log}");
    assert_good(bundle);
}

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
