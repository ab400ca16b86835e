//! The packages around a program are part of what is admitted: with the tree of the real Pi, and with
//! a small one that somebody changes while it runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use cto_testkit::{is_root, sha256_hex, wait_until};
use serde_json::json;

use crate::assert_good;
use crate::fixtures::people::{Person, UNPRIVILEGED};
use crate::fixtures::pi_lab::{
    DONE, Lab, PROBE, edit, executable, executable_of_before, packages_root, packages_sha256, pi,
    quick, tool,
};

const MAIN: &str = "@earendil-works/pi-coding-agent/dist/main.js";

/// A Pi of one's own, which may be changed: the program, and the tree around it.
fn own_copy(lab: &Lab, program: &Path) -> (PathBuf, PathBuf) {
    let root = packages_root(program).unwrap();
    let to = lab.house.root().join("own");
    fs::create_dir(&to).unwrap();
    let copied = Command::new("cp").arg("-a").arg(&root).arg(&to).status();
    assert!(copied.unwrap().success());
    let root_here = to.join("node_modules").canonicalize().unwrap();
    let here = root_here.join(program.strip_prefix(&root).unwrap());
    (here, root_here)
}

/// What the gates say, without a run.
fn asked(lab: &Lab, url_file: &str) -> (Option<i32>, String) {
    let base = ["--base-url-file", url_file];
    let args = ["eligibility", &lab.case, "--engine", "pi", "--stage", "2"];
    let answer = lab.house.cto(&[&args[..], &base].concat());
    (answer.code, answer.stdout)
}

type Change = fn(&Path);

/// What is changed, how it is taken back, and how it is said.
const CHANGES: &[(Change, Change, &str)] = &[
    (
        |root| append(&root.join(MAIN), "\n// more\n"),
        |root| cut(&root.join(MAIN), "\n// more\n"),
        "dist/main.js was changed",
    ),
    (
        |root| fs::write(root.join("left-pad.js"), "").unwrap(),
        |root| fs::remove_file(root.join("left-pad.js")).unwrap(),
        "left-pad.js was added",
    ),
    (
        |root| mode(&root.join(MAIN), 0o666),
        |root| mode(&root.join(MAIN), 0o644),
        "dist/main.js has mode 0666, was 0644",
    ),
    (
        |root| relink(&root.join(".bin/pi"), "../elsewhere"),
        |root| {
            relink(
                &root.join(".bin/pi"),
                "../@earendil-works/pi-coding-agent/dist/cli.js",
            )
        },
        ".bin/pi leads elsewhere",
    ),
];

fn append(file: &Path, text: &str) {
    let whole = fs::read_to_string(file).unwrap() + text;
    fs::write(file, whole).unwrap();
}

fn cut(file: &Path, text: &str) {
    let whole = fs::read_to_string(file).unwrap();
    fs::write(file, whole.strip_suffix(text).unwrap()).unwrap();
}

fn mode(file: &Path, mode: u32) {
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

fn relink(link: &Path, to: &str) {
    fs::remove_file(link).unwrap();
    symlink(to, link).unwrap();
}

#[test]
fn what_is_changed_behind_the_same_launcher_is_refused_by_its_path() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let (own, root) = own_copy(&lab, &program);
    mode(&root.join(MAIN), 0o644);
    lab.record("executable", &executable(&own));
    let model = lab.model(&format!("{PROBE}{DONE}"));
    let (_, said) = asked(&lab, &model.url_file);
    let (launcher, only_demoted) = (fs::read(&own).unwrap(), "changed since: packages");
    // The proof was about the tree elsewhere, which is the same but for one mode.
    assert!(
        said.contains(only_demoted) || !said.contains("stage_not_proven"),
        "{said}"
    );
    assert!(!said.contains("executable_not_admitted"), "{said}");
    for (change, back, words) in CHANGES {
        change(&root);
        let (code, said) = asked(&lab, &model.url_file);
        assert_eq!(code, Some(3), "{words}: {said}");
        assert!(said.contains("executable_not_admitted"), "{words}: {said}");
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(fs::read(&own).unwrap(), launcher);
        back(&root);
        // Touched, and equal again.
        let (_, said) = asked(&lab, &model.url_file);
        assert!(!said.contains("executable_not_admitted"), "{words}: {said}");
    }
    let package = root.join("@earendil-works/pi-coding-agent/package.json");
    let other = fs::read_to_string(&package)
        .unwrap()
        .replace("0.74.2", "0.74.3");
    fs::write(&package, other).unwrap();
    let (_, said) = asked(&lab, &model.url_file);
    assert!(
        said.contains("is version 0.74.3, and 0.74.2 is admitted"),
        "{said}"
    );
}

#[test]
fn a_record_of_before_is_due_for_review_and_says_what_to_do() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    lab.record("executable", &executable_of_before(&program));
    let model = lab.model(&format!("{PROBE}{}{DONE}", edit()));
    let (answer, bundle) = lab.run(&model, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["review_due".to_owned()])
    );
    let why = bundle.report()["blockers"][0].to_string();
    assert!(why.contains("`cto setup pi`"), "{why}");
    assert_eq!(bundle.report()["process_started"], false);
    assert_good(&bundle);
    // What runs it is pinned like what it was installed with.
    let mut unnamed = executable(&program);
    let fields = unnamed.as_object_mut().unwrap();
    fields.retain(|name, _| !name.starts_with("interpreter"));
    lab.record("executable", &unnamed);
    let (_, bundle) = lab.run(&model, &[]);
    assert_eq!(bundle.codes(), ["review_due"]);
    let why = bundle.report()["blockers"][0].to_string();
    let words = "it holds no digest of node, which runs the file";
    assert!(why.contains(words) && !why.contains("packages"), "{why}");
}

#[test]
fn a_proof_of_other_packages_is_demoted_and_the_digests_stand_in_contract_and_report() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let bundle = lab.play(&format!("{PROBE}{}{DONE}", edit()), &[]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    assert_good(&bundle);
    let (contract, report) = (bundle.json("contract.json"), bundle.report());
    let packages = json!(packages_sha256(&packages_root(&program).unwrap()));
    assert_eq!(contract["lane"]["packages_sha256"], packages, "{contract}");
    assert_eq!(report["engine"]["packages_sha256"], packages);
    assert!(
        contract["lane"]["manifest_sha256"].is_string(),
        "{contract}"
    );
    // Another tree, and it is admitted: what was proven was proven for the first.
    let (own, root) = own_copy(&lab, &program);
    fs::write(root.join("more.js"), "").unwrap();
    lab.record("executable", &executable(&own));
    let model = lab.model(&format!("{PROBE}{DONE}"));
    let (_, said) = asked(&lab, &model.url_file);
    assert!(said.contains("changed since: packages"), "{said}");
    assert!(!said.contains("executable_not_admitted"), "{said}");
}

#[test]
fn a_change_while_it_runs_is_seen_and_the_run_is_no_pass() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let (own, root) = own_copy(&lab, &program);
    lab.record("executable", &executable(&own));
    let proven = lab.house.cto(&["validate", "stage1", "--engine", "pi"]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    // Long enough for a thread of this test, and nothing waits for it to be over.
    let wait = tool("bash", json!({"command": "sleep 5"}));
    let model = lab.model(&format!("{PROBE}{wait}{}{DONE}", edit()));
    let (answer, bundle) = thread::scope(|scope| {
        scope.spawn(|| {
            // The probe and the first turn: it runs.
            assert!(wait_until(|| model.requests() >= 2));
            append(&root.join(MAIN), "\n// more\n");
            cut(&root.join(MAIN), "\n// more\n");
        });
        lab.run(&model, &[])
    });
    assert_ne!(answer.code, Some(0), "{answer:?}");
    assert!(
        bundle.has_code("executable_not_admitted"),
        "{:?}",
        bundle.codes()
    );
    let why = bundle.report()["blockers"].to_string();
    assert!(
        why.contains("dist/main.js in its packages changed while it ran"),
        "{why}"
    );
    assert_good(&bundle);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_admitted() {
    let person = Person::new("somebody who may not read everything", is_root());
    let root = person.at("ws/node_modules");
    let dist = root.join("pi/dist");
    fs::create_dir_all(&dist).unwrap();
    let program = dist.join("cli");
    fs::write(&program, "#!/bin/sh\necho pi 0.74.2\n").unwrap();
    mode(&program, 0o755);
    fs::write(dist.join("main.js"), "").unwrap();
    mode(&dist.join("main.js"), 0o000);
    if is_root() {
        let owner = UNPRIVILEGED.parse().unwrap();
        for place in [
            &root,
            &root.join("pi"),
            &dist,
            &program,
            &dist.join("main.js"),
        ] {
            std::os::unix::fs::chown(place, Some(owner), Some(owner)).unwrap();
        }
    }
    let program = program.display().to_string();
    let args = [
        "admit",
        "executable",
        "new",
        "--engine",
        "pi",
        "--bin",
        &program,
    ];
    let said = person.cto(&args);
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(3), "{text}");
    assert!(text.contains("executable_not_admitted"), "{text}");
    assert!(
        text.contains("pi/dist/main.js in its packages cannot be read"),
        "{text}"
    );
}

#[test]
fn another_interpreter_while_it_runs_is_seen_as_well() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let node = lab.house.root().join("tools/bin/node");
    fs::create_dir_all(node.parent().unwrap()).unwrap();
    fs::copy("/usr/bin/node", &node).unwrap();
    let path = format!(
        "{}:{}",
        node.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let lab = lab.with("PATH", &path);
    let mut record = executable(&program);
    record["interpreter"] = json!("node");
    record["interpreter_path"] = json!(node.display().to_string());
    record["interpreter_sha256"] = json!(sha256_hex(&fs::read(&node).unwrap()));
    lab.record("executable", &record);
    let proven = lab.house.cto(&["validate", "stage1", "--engine", "pi"]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    let wait = tool("bash", json!({"command": "sleep 5"}));
    let model = lab.model(&format!("{PROBE}{wait}{}{DONE}", edit()));
    let (answer, bundle) = thread::scope(|scope| {
        scope.spawn(|| {
            assert!(wait_until(|| model.requests() >= 2));
            // It is being run, so that nobody may write to it; its times are anybody's who owns it.
            mode(&node, 0o700);
            mode(&node, 0o755);
        });
        lab.run(&model, &[])
    });
    assert_ne!(answer.code, Some(0), "{answer:?}");
    assert_eq!(bundle.codes(), ["executable_not_admitted"]);
    let why = bundle.report()["blockers"].to_string();
    assert!(why.contains("node changed while it ran"), "{why}");
    assert_good(&bundle);
}
