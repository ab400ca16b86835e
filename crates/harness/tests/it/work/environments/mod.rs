//! Environments of the operator's work tree in `cto try`: what comes along, how it can be written,
//! who sees what was written, and what of it nobody sees. In both kinds of workspace, and for
//! environments that are copied as for those below an overlay.

mod cargo;
mod carried;
mod compiled;
mod homes;
mod links;
mod lists;
mod live;
mod names;
mod odd;
mod on_path;
mod places;
mod times;
mod typescript;

use std::fs;

use cto_testkit::{Answer, Bundle, House, Repo, script};
use serde_json::Value;

use crate::house;

const KINDS: [&str; 2] = ["overlay", "copy"];
/// One that is copied, and one that is below an overlay.
const SIZES: [(usize, &str); 2] = [(3, "copied"), (2_050, "overlay")];

fn house_with(kind: &str) -> House {
    house().with("CTO_TEST_WORKSPACE", kind)
}

/// A repository that ignores `node_modules` and what else environments are called.
fn repo_ignoring(house: &House, name: &str) -> Repo {
    let repo = Repo::new(house, name);
    let names = "node_modules\n/target/\n.venv/\n/build/\n/deps/\n_version.py\n.tox\n/.env/\n";
    repo.write(".gitignore", names);
    repo.write("package.json", "{}\n");
    repo.commit("ignored places");
    repo
}

/// Packages, as many files as asked for.
fn install(repo: &Repo, place: &str, files: usize) {
    let dir = repo.at(place);
    fs::create_dir_all(dir.join("pkg")).unwrap();
    fs::write(dir.join("pkg/tool"), "right\n").unwrap();
    for number in 1..files {
        fs::write(dir.join(format!("pkg/f{number}")), "x").unwrap();
    }
}

fn attempt(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> (Answer, Bundle) {
    // What comes along is tried here, by commands that need not be about the change.
    let about = ["--allow", ".", "--unchecked", "what comes along is tried"];
    house.try_on(repo, &script(steps), &[&about[..], more].concat())
}

/// What the report says of one environment.
fn environment(bundle: &Bundle, path: &str) -> Value {
    let report = bundle.report();
    let all = report["environments"].as_array().cloned();
    let found = all.unwrap_or_default();
    let one = found.into_iter().find(|used| used["path"] == path);
    one.unwrap_or_else(|| panic!("{path}: {}", report["environments"]))
}

fn assert_passed(answer: &Answer, bundle: &Bundle, what: &str) {
    assert_eq!(
        answer.code,
        Some(0),
        "{what}: {} {}\n{}\n{}",
        bundle.report()["blockers"],
        bundle.report()["environments"],
        bundle.text("test.log"),
        bundle.text("backend/stderr.log"),
    );
    crate::assert_good(bundle);
}
