//! The ladder to a real repository: what is proven, what is refused, and what stays untouched.

mod agents;
mod approvals;
mod attacks;
mod stage3;
mod stage4;
mod stage5;
mod stage5_around;
mod targets;

use std::fs;
use std::path::Path;

use cto_core::verify::Standing;
use cto_testkit::{Bundle, Forged, House, Repo, copy_dir};
use serde_json::{Value, json};

use crate::verdict;

pub const CASE: &str = "r1-string-slugify";

/// A repository with the files of a built-in case and a history of two commits.
pub fn repo_of_case(house: &House, name: &str) -> Repo {
    let repo = Repo {
        dir: house.root().join(name),
    };
    fs::create_dir_all(&repo.dir).unwrap();
    repo.git(&["init", "-q", "-b", "main"]);
    repo.write("README.md", "mine\n");
    repo.commit("first");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    copy_dir(&files.join(CASE).join("workspace"), &repo.dir);
    repo.commit("second");
    repo
}

/// The record of a repository of one's own.
pub fn source_record(house: &House, repo: &Repo, change: impl FnOnce(&mut Value)) -> String {
    let mut record = json!({
        "path": repo.dir.canonicalize().unwrap(), "owner": "me", "ownership_evidence": "I made it",
        "class": "owned_local",
    });
    change(&mut record);
    let name = repo.dir.file_name().unwrap().to_str().unwrap();
    file(house, &format!("{name}.source.json"), &record)
}

pub fn file(house: &House, name: &str, value: &Value) -> String {
    let path = house.root().join(name);
    fs::write(&path, serde_json::to_vec_pretty(value).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A bundle that was changed and then digested and signed anew is bad, and this is why.
pub fn assert_forged(forged: &Forged, why: &str) {
    let found = verdict(&forged.reseal().bundle());
    let said: Vec<&str> = found.problems.iter().map(|p| p.message.as_str()).collect();
    assert_eq!(found.standing, Standing::Bad, "{why}: {said:?}");
    assert!(said.join("\n").contains(why), "{why}: {said:?}");
}

pub fn run_at(house: &House, stage: &str, more: &[&str]) -> Bundle {
    let args = [&["run", CASE, "--stage", stage, "--json"][..], more].concat();
    house.run_args(&args).1
}
