//! Stage 4: a case in a repository that is made to be thrown away, once somebody approved it.

use std::fs;
use std::path::Path;
use std::process::Command;

use cto_testkit::{Bundle, Forged, House};
use serde_json::{Value, json};

use super::approvals::Desk;
use super::{CASE, assert_forged, repo_of_case, run_at, source_record};
use crate::house;

const PROOF: &str = "stage4-disposable-sandbox-proof.json";

/// A lane that is proven at stage 3, and somebody who may approve.
pub fn desk() -> Desk {
    let house = house();
    let repo = repo_of_case(&house, "mine");
    let record = source_record(&house, &repo, |_| ());
    let bundle = run_at(&house, "3", &["--source", &record]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    Desk::of(house, CASE.to_owned())
}

/// The honest script of the case, with more for a shell to do.
pub fn also(house: &House, name: &str, commands: &[&str]) -> String {
    let honest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let honest = honest.join(CASE).join("scripts/oracle.toml");
    let mut script = fs::read_to_string(honest).unwrap();
    for command in commands {
        script += &format!("\n[[step]]\ndo = \"shell\"\ncommand = '''{command}'''\n");
    }
    let path = house.root().join(format!("{name}.toml"));
    fs::write(&path, script).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Asked for, approved and run.
pub fn approved(desk: &Desk, more: &[&str]) -> Bundle {
    let request = desk.request_with(&[&["--stage", "4"][..], more].concat());
    desk.approve(&request);
    desk.run(&request)
}

fn good(desk: &Desk, bundle: &Bundle) {
    let verified = desk.house.cto(&["verify", &bundle.run_id(), "--json"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

fn rung(house: &House) -> (Value, Value) {
    let ladder = house.cto(&["ladder", "--engine", "fake", "--json"]).json();
    let engine = &ladder["engines"][0];
    (engine["rungs"][3].clone(), engine["next"].clone())
}

#[test]
fn an_approved_run_in_a_disposable_repository_proves_stage_four() {
    let desk = desk();
    let (four, next) = rung(&desk.house);
    assert_eq!(four["standing"], "unproven");
    let command = next["command"].as_str().unwrap();
    assert_eq!(command, "request CASE --stage 4 --engine fake");
    let unasked = run_at(&desk.house, "4", &[]);
    assert_eq!(unasked.codes(), ["approval_missing"]);
    assert_eq!(unasked.report()["process_started"], false);

    let request = desk.request_with(&["--stage", "4"]);
    let sentence = request["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("against a disposable repository"),
        "{sentence}"
    );
    let head = request["target_head"].as_str().unwrap().to_owned();
    assert_eq!(head.len(), 40);
    desk.approve(&request);
    let bundle = desk.run(&request);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    good(&desk, &bundle);

    let types = bundle.event_types();
    let place = |name: &str| types.iter().position(|kind| kind == name).unwrap();
    assert!(place("approval.granted") < place("branch.policy.recorded"));
    assert!(place("branch.policy.recorded") < place("engine.started"));
    assert!(place("verification.completed") < place("branch.policy.checked"));
    let contract = bundle.json("contract.json");
    assert_eq!(contract["mutation_mode"], "sandbox-repo");
    assert_eq!(contract["approval_required"], true);
    assert_eq!(contract["lane"]["target_head"], json!(head));
    assert_eq!(contract["branch_policy"]["base_commit"], json!(head));
    let told = bundle.event("branch.policy.recorded").unwrap();
    assert_eq!(told["policy"], contract["branch_policy"]);
    assert_eq!(told["base_commit"], json!(head));
    let checked = bundle.event("branch.policy.checked").unwrap();
    assert_eq!(checked["moves"]["moved"], json!([]));
    assert_eq!(
        checked["result_commit"],
        bundle.report()["result"]["commit"]
    );

    let proof = bundle.json(PROOF);
    for (field, want) in [
        ("stage", json!(4)),
        ("approval_status", json!("granted")),
        ("branch_policy", told.clone()),
        (
            "creation_source",
            json!("made by the harness from the files of the case"),
        ),
        ("disposal_or_retention", json!("disposed")),
        ("push_attempted", json!(false)),
        ("merge_attempted", json!(false)),
        ("deploy_attempted", json!(false)),
        ("close_attempted", json!(false)),
        ("pr_open_attempted", json!(false)),
        ("public_publication_attempted", json!(false)),
        (
            "allowed_mutation_scope",
            json!("disposable repository only"),
        ),
        ("runtime_default_activation", json!(false)),
    ] {
        assert_eq!(proof[field], want, "{field}");
    }
    let stands_on = proof["stands_on"]["id"].as_str().unwrap();
    assert!(
        stands_on.ends_with("/stage3-copied-repo-proof.json"),
        "{stands_on}"
    );
    let dir = proof["disposable_repository_dir"].as_str().unwrap();
    assert_eq!(dir, format!("home:work/{}/workspace", bundle.run_id()));
    assert!(
        !desk
            .house
            .state()
            .join("work")
            .join(bundle.run_id())
            .exists()
    );

    let (four, next) = rung(&desk.house);
    assert_eq!(four["standing"], "proven");
    assert_eq!(next["stage"], 5);
    forged(&bundle);
}

fn forged(bundle: &Bundle) {
    for (field, value) in [
        ("disposal_or_retention", json!("retained")),
        ("creation_source", json!("elsewhere")),
        (
            "stands_on",
            json!({"kind": "proof", "id": "x", "sha256": "0".repeat(64)}),
        ),
    ] {
        let forged = Forged::copy_of(bundle);
        forged.edit(PROOF, |proof| proof[field] = value);
        assert_forged(&forged, "is not what contract and chain show");
    }
    let forged = Forged::copy_of(bundle);
    forged.edit_event("branch.policy.checked", |data| {
        data["moves"]["moved"] = json!([{"name": "refs/heads/main", "from": "1", "to": "2"}]);
    });
    assert_forged(&forged, "is not what contract and chain show");
    let forged = Forged::copy_of(bundle);
    forged.edit_event("branch.policy.recorded", |data| {
        data["policy"]["remotes"] = json!(1)
    });
    assert_forged(&forged, "is not what contract and chain show");
}

#[test]
fn a_denied_request_makes_no_repository() {
    let desk = desk();
    let request = desk.request_with(&["--stage", "4"]);
    let id = request["request_id"].as_str().unwrap();
    let key = desk.key.to_str().unwrap();
    let denied = desk.house.cto(&["deny", id, "--key", key, "--json"]);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    let bundle = desk.run(&request);
    assert_eq!(bundle.codes(), ["approval_denied"]);
    assert_eq!(bundle.report()["process_started"], false);
    assert!(bundle.event("branch.policy.recorded").is_none());
    assert!(!bundle.has(PROOF));
    assert!(
        !desk
            .house
            .state()
            .join("work")
            .join(bundle.run_id())
            .exists()
    );
}

#[test]
fn a_kept_repository_is_noted_and_its_evidence_outlives_it() {
    let desk = desk();
    let script = also(
        &desk.house,
        "commits",
        &[
            "git -c user.name=e -c user.email=e@e commit -qam mine && git log --oneline | wc -l > /dev/null",
        ],
    );
    let request = desk.request_with(&["--stage", "4", "--script", &script]);
    desk.approve(&request);
    let id = request["request_id"].as_str().unwrap();
    let (_, bundle) = desk
        .house
        .run_args(&["run", "--request", id, "--keep", "--json"]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    let proof = bundle.json(PROOF);
    assert_eq!(proof["disposal_or_retention"], "retained");
    let work = desk.house.state().join("work").join(bundle.run_id());
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(work.join("workspace")).args(args);
        git.args(["--"]).env("GIT_CONFIG_COUNT", "1");
        git.env("GIT_CONFIG_KEY_0", "safe.directory")
            .env("GIT_CONFIG_VALUE_0", "*");
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    };
    assert_eq!(
        git(&["log", "--format=%s", "main"]),
        "baseline\nbaseline\n",
        "it has a past"
    );
    assert_eq!(git(&["log", "--format=%s"]), "mine\nbaseline\nbaseline\n");
    // What the engine committed is seen, allowed on its own branch, and not the result.
    let checked = bundle.event("branch.policy.checked").unwrap();
    let moved = checked["moves"]["moved"].as_array().unwrap();
    let names: Vec<&str> = moved
        .iter()
        .map(|moved| moved["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["refs/heads/cto-work"]);
    assert_ne!(moved[0]["to"], checked["result_commit"]);
    fs::remove_dir_all(&work).unwrap();
    good(&desk, &bundle);
    assert_eq!(rung(&desk.house).0["standing"], "proven");
}

#[test]
fn what_an_engine_moves_against_the_policy_fails_its_run() {
    let desk = desk();
    const AS: &str = "git -c user.name=e -c user.email=e@e";
    for (name, command, says) in [
        (
            "base",
            format!("{AS} commit -qam x && git branch -f main HEAD"),
            "refs/heads/main was moved",
        ),
        ("tag", "git tag v1".to_owned(), "refs/tags/v1 was made"),
        (
            "branch",
            "git checkout -q -b other".to_owned(),
            "HEAD was moved",
        ),
        (
            "remote",
            "mkdir -p .git/remotes && echo URL: https://example.com/x > .git/remotes/o".to_owned(),
            "1 remotes",
        ),
        (
            "result",
            "git branch cto-result".to_owned(),
            "refs/heads/cto-result was made",
        ),
        (
            "gone",
            "git update-ref -d refs/heads/main".to_owned(),
            "refs/heads/main was removed",
        ),
        (
            "link",
            "rm .git/HEAD && ln -s refs/heads/main .git/HEAD".to_owned(),
            "cannot be read",
        ),
    ] {
        let script = also(&desk.house, name, &[&command]);
        let bundle = approved(&desk, &["--script", &script]);
        assert_eq!(bundle.status(), "fail", "{name}");
        assert!(
            bundle.has_code("dirty_ending_tree"),
            "{name}: {:?}",
            bundle.codes()
        );
        let report = bundle.report();
        let blockers = report["blockers"].as_array().unwrap();
        let told = blockers
            .iter()
            .any(|b| b["detail"].as_str().unwrap_or("").contains(says));
        assert!(told, "{name}: {blockers:?}");
        assert!(
            !desk
                .house
                .state()
                .join("work")
                .join(bundle.run_id())
                .exists()
        );
        good(&desk, &bundle);
    }
    assert_eq!(rung(&desk.house).0["standing"], "unproven");
}

#[test]
fn nothing_is_published_from_a_sandbox() {
    let desk = desk();
    let script = also(
        &desk.house,
        "push",
        &["git push https://example.com/x HEAD; true"],
    );
    let bundle = approved(&desk, &["--script", &script]);
    assert!(
        bundle.has_code("forbidden_action_attempted"),
        "{:?}",
        bundle.codes()
    );
    assert!(!bundle.has(PROOF), "nothing says that nothing was tried");
    good(&desk, &bundle);
}

#[test]
fn what_is_less_than_proven_is_too_little_here() {
    let desk = desk();
    // A compiler has read its change; nothing ran it.
    let quick = cto_testkit::Case::new("quick")
        .allowed("[\"answer.py\"]")
        .commands("[\"python3 -m py_compile answer.py && grep -qx fine control.txt\"]")
        .file("workspace/answer.py", "ANSWER = 'wrong'\n")
        .file(
            "scripts/oracle.toml",
            "[[step]]\ndo = \"write\"\npath = \"answer.py\"\ntext = \"ANSWER = 'right'\\n\"\n",
        );
    let quick = desk.house.case(&quick);
    let quick = Desk {
        case: quick,
        ..desk
    };
    let bundle = approved(&quick, &[]);
    assert_eq!(bundle.codes(), ["verification_unproven"]);
    assert_eq!(bundle.status(), "blocked");
    good(&quick, &bundle);
    assert_eq!(rung(&quick.house).0["standing"], "unproven");
}

#[test]
fn another_start_is_another_contract() {
    let house = house();
    let repo = repo_of_case(&house, "mine");
    let record = source_record(&house, &repo, |_| ());
    assert_eq!(run_at(&house, "3", &["--source", &record]).status(), "pass");
    let cases = house.root().join("cases");
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../cases")
        .join(CASE);
    fs::create_dir_all(&cases).unwrap();
    cto_testkit::copy_dir(&built_in, &cases.join(CASE));
    let desk = Desk::of(house, cases.join(CASE).to_str().unwrap().to_owned());
    let request = desk.request_with(&["--stage", "4"]);
    let again = desk.request_with(&["--stage", "4"]);
    assert_eq!(
        request["target_head"], again["target_head"],
        "the same wherever it is made"
    );
    desk.approve(&request);
    fs::write(cases.join(CASE).join("workspace/new.py"), "new = 1\n").unwrap();
    let other = desk.request_with(&["--stage", "4"]);
    assert_ne!(request["target_head"], other["target_head"]);
    let bundle = desk.run(&request);
    assert_eq!(bundle.codes(), ["approval_mismatch"]);
    assert_eq!(bundle.report()["process_started"], false);
}
