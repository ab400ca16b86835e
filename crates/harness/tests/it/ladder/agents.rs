//! The whole ladder by engines that have a model: the real Pi, and the double of Case, each from its gate to a commit in
//! a repository that somebody owns.

use std::fs;
use std::path::Path;

use cto_testkit::Bundle;
use serde_json::{Value, json};

use super::approvals::Desk;
use super::targets::admission;
use super::{CASE, file, repo_of_case, source_record};
use crate::engines::agents::case as case_double;
use crate::fixtures::lasting::lasting;
use crate::fixtures::pi_lab::{self, Agent, DONE, Lab, PROBE, assert_no_leak, pi, tool};
use crate::house;

const FIX: &str = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";

fn writes() -> String {
    tool("write", json!({"path": "strings.py", "content": FIX}))
}

/// Climbs from stage 2 on; stage 1 is proven by the lab. Each rung answers the same scenario anew.
fn climb(agent: &Agent, program: &Path, scenario: &str) {
    let mut source = pi_lab::source();
    source["engine"] = json!(agent.engine);
    source["source_name"] = json!(agent.engine);
    source["pinned_tag"] = json!("v1");
    source["allowed_execution_modes"] = json!([
        "copied-fixture",
        "copied-repo",
        "sandbox-repo",
        "owned-noncritical-repo"
    ]);
    source["blocked_execution_modes"] = json!(["candidate-default"]);
    let lab = Lab::admitting(agent, program, house(), CASE.into(), &source);
    let engine = ["--engine", agent.engine];
    let passes = |args: &[&str]| -> Bundle {
        let model = lab.model(scenario);
        let end = ["--base-url-file", &model.url_file, "--json"];
        let (_, bundle) = lab.house.run_args(&[args, &engine, &end].concat());
        assert_no_leak(&bundle, &model);
        assert_eq!(
            bundle.status(),
            "pass",
            "{args:?}: {}",
            bundle.report()["blockers"]
        );
        bundle
    };
    passes(&["run", CASE, "--stage", "2"]);
    let mine = repo_of_case(&lab.house, "mine");
    let record = source_record(&lab.house, &mine, |_| ());
    passes(&["run", CASE, "--stage", "3", "--source", &record]);

    let target = repo_of_case(&lab.house, "target");
    let admitted = file(&lab.house, "target.json", &admission(target.path()));
    let url = lab.house.root().join("url");
    let Lab { house, .. } = lab;
    let desk = Desk::of(house, CASE.into());
    // What was asked for is run again as it was asked: the file of the address stays, the model behind it is another.
    let asks = |stage: &str, more: &[&str]| -> (Value, Bundle) {
        let model = || {
            let model = pi_lab::model_in(&desk.house, scenario);
            fs::copy(&model.url_file, &url).unwrap();
            model
        };
        let _asked = model();
        let url = url.to_str().unwrap();
        let common = [&["--stage", stage, "--base-url-file", url][..], &engine].concat();
        let request = desk.request_with(&[&common[..], more].concat());
        desk.approve(&request);
        let model = model();
        let bundle = desk.run(&request);
        assert_no_leak(&bundle, &model);
        (request, bundle)
    };
    let (request, four) = asks("4", &[]);
    assert_eq!(four.status(), "pass", "{}", four.report()["blockers"]);
    assert_eq!(request["reach"]["model"]["model"], "scripted");
    let before = target.bytes();
    let (_, five) = asks("5", &["--target", &admitted]);
    assert_eq!(
        five.codes(),
        ["missing_operator_outcome"],
        "{}",
        five.report()["blockers"]
    );
    assert_eq!(target.bytes(), before);
    let key = desk.key.to_str().unwrap();
    let word = ["outcome", &five.run_id(), "accept", "--key", key, "--json"];
    let accepted = desk.house.cto(&word);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert_eq!(target.git(&["status", "--porcelain"]), "");
    let result = five.report()["result"]["commit"].clone();
    assert_eq!(json!(target.git(&["rev-parse", "HEAD"]).trim()), result);
    let ladder = ["ladder", "--engine", agent.engine, "--json"];
    let ladder = desk.house.cto(&ladder).json();
    let rungs = ladder["engines"][0]["rungs"].as_array().unwrap().clone();
    let proven = rungs
        .iter()
        .take(5)
        .all(|rung| rung["standing"] == "proven");
    assert!(proven, "{rungs:?}");
    let settled = accepted.json()["settlement"]["run_id"].clone();
    for id in [&five.run_id(), settled.as_str().unwrap()] {
        let verified = desk.house.cto(&["verify", id, "--json"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

#[test]
fn the_real_pi_climbs_to_a_commit_in_a_repository_of_its_operator() {
    let Some(program) = pi() else { return };
    let scenario = format!("{PROBE}{}{DONE}", writes());
    climb(&pi_lab::PI, &program, &scenario);
}

#[test]
fn the_double_of_case_climbs_to_a_commit_in_a_repository_of_its_operator() {
    let Some(place) = lasting() else { return };
    let program = case_double::double_in(place.path());
    let turns = [
        writes(),
        case_double::commits(),
        case_double::fine().repeat(5),
    ];
    climb(&pi_lab::CASE, &program, &case_double::scenario(&turns));
}
