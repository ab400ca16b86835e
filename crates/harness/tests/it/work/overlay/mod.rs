//! Both kinds of workspace, by the same runs: an overlay of a cached checkout, and a plain copy.
//! Whatever is done in one is measured as it is in the other, for root and for an ordinary user.

mod checkouts;
mod same_measure;
mod tricks;

use std::fs;
use std::path::{Path, PathBuf};

use cto_testkit::{Answer, Bundle, House, Repo, script, write};

use crate::house;

/// All of the workspace can be written, so that what is done there is measured and not refused.
const CONTAINED: &[&str] = &["--contain", "contained"];

const KINDS: [&str; 2] = ["overlay", "copy"];

fn house_with(kind: &str) -> House {
    house().with("CTO_TEST_WORKSPACE", kind)
}

fn try_it(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> (Answer, Bundle) {
    house.try_on(repo, &script(steps), more)
}

fn right() -> String {
    write("answer.txt", "right\n")
}

/// How the workspace was made, by the trace.
fn made(bundle: &Bundle) -> String {
    let lines = bundle.lines("trace.jsonl");
    let line = lines
        .iter()
        .find(|line| line["action"] == "workspace.prepare")
        .unwrap();
    line["detail"].as_str().unwrap_or_default().to_owned()
}

fn checkouts(house: &House) -> PathBuf {
    house.state().join("cache/checkouts")
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
