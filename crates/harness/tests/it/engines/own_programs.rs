//! What runs an agent is what was verified: no program, variable or mount of the repository comes before it,
//! and nobody exchanges it on the way. With the real Pi.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use cto_testkit::{Answer, Bundle, Repo, skip, wait_until};
use serde_json::json;

use crate::assert_good;
use crate::fixtures::pi_lab::{
    DONE, Lab, Model, PROBE, edit, executable, packages_root, pi, quick, tool,
};

/// A lab whose Pi is proven, and a repository for it.
fn lab(program: &Path) -> (Lab, Repo) {
    let lab = Lab::new(program, &quick());
    prove(&lab);
    let repo = Repo::new(&lab.house, "mine");
    repo.write("answer.txt", "wrong\n");
    repo.write("control.txt", "fine\n");
    repo.write(".gitignore", "/.venv/\n/node_modules/\n");
    repo.commit("a bug");
    (lab, repo)
}

fn prove(lab: &Lab) {
    let bundle = lab.play(&format!("{PROBE}{}{DONE}", edit()), &[]);
    assert_eq!(bundle.status(), "pass", "{}", bundle.report()["blockers"]);
}

fn tries(lab: &Lab, repo: &str, model: &Model, more: &[&str]) -> (Answer, Bundle) {
    let control = lab.house.root().join("control.patch");
    let patch = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n";
    fs::write(&control, patch).unwrap();
    let start = [
        "try",
        "--repo",
        repo,
        "--engine",
        "pi",
        "--task",
        "Make the answer right",
        "--allow",
        "answer.txt",
        "--allow",
        "seen.txt",
        "--test",
        "grep -qx right answer.txt && grep -qx fine control.txt && test \"$NODE_OPTIONS\" = --require=/nowhere.js",
        "--control",
        control.to_str().unwrap(),
        "--base-url-file",
        &model.url_file,
        "--env",
        "NODE_OPTIONS=--require=/nowhere.js",
        "--json",
    ];
    lab.house.run_args(&[&start[..], more].concat())
}

/// A Pi of one's own at this place.
fn copied(program: &Path, to: &Path) -> (PathBuf, PathBuf) {
    let root = packages_root(program).unwrap();
    fs::create_dir_all(to).unwrap();
    let done = Command::new("cp").arg("-a").arg(&root).arg(to).status();
    assert!(done.unwrap().success());
    let here = to.join("node_modules").canonicalize().unwrap();
    (here.join(program.strip_prefix(&root).unwrap()), here)
}

#[test]
fn neither_programs_nor_variables_of_the_repository_run_it() {
    let Some(program) = pi() else { return };
    let (lab, repo) = lab(&program);
    repo.program(".venv/bin/helper", "#!/bin/sh\necho helped\n");
    repo.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    let path = format!(
        "{}:{}",
        repo.at(".venv/bin").display(),
        std::env::var("PATH").unwrap()
    );
    let lab = lab.with("PATH", &path);
    // It comes to be after everything was looked at, first on the PATH of every jail.
    let plant = "for name in node git bash; do printf '#!/bin/sh\\nexit 7\\n' > .venv/bin/$name; chmod +x .venv/bin/$name; done";
    let look = "command -v node git helper > seen.txt; helper >> seen.txt; echo options=$NODE_OPTIONS >> seen.txt";
    let seen = tool("bash", json!({"command": look}));
    let model = lab.model(&format!("{PROBE}{seen}{}{DONE}", edit()));
    let (answer, bundle) = tries(&lab, repo.path(), &model, &["--setup", plant]);
    let blockers = &bundle.report()["blockers"];
    assert_eq!(answer.code, Some(0), "{blockers} {answer:?}");
    let patch = bundle.text("patch.diff");
    for want in [
        "+/engine/programs/node\n",
        "+/engine/programs/git\n",
        "/.venv/bin/helper\n",
        "+helped\n",
        "+options=\n",
    ] {
        assert!(patch.contains(want), "{want}: {patch}");
    }
    assert!(
        model.heard("variables that you have not: NODE_OPTIONS"),
        "it is told"
    );
    assert_good(&bundle);
}

#[test]
fn one_that_lies_in_the_repository_it_works_on_is_not_started() {
    let Some(program) = pi() else { return };
    // No stage that works on a repository has a program in a temporary directory.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if target.starts_with("/tmp") {
        skip("the target directory is a temporary one");
        return;
    }
    let (lab, repo) = lab(&program);
    let place = tempfile::tempdir_in(target).unwrap();
    let there = place.path().canonicalize().unwrap().join("mine");
    cto_testkit::copy_dir(Path::new(repo.path()), &there);
    let (own, _) = copied(&program, &there);
    lab.record("executable", &executable(&own));
    lab.house.hand_over(place.path());
    let proven = lab.house.cto(&["validate", "stage1", "--engine", "pi"]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    prove(&lab);
    let model = lab.model(&format!("{PROBE}{}{DONE}", edit()));
    let (answer, bundle) = tries(&lab, there.to_str().unwrap(), &model, &[]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let why = bundle.report()["blockers"].to_string();
    assert_eq!(bundle.codes(), ["executable_not_admitted"], "{why}");
    assert!(why.contains("install the engine elsewhere"), "{why}");
    assert_eq!(bundle.event("engine.started"), None);
    assert_good(&bundle);
}

#[test]
fn packages_that_are_exchanged_before_the_jail_mounts_them_are_not_started() {
    let Some(program) = pi() else { return };
    let case = quick().extra("setup = [\"sleep 1\"]\n");
    let lab = Lab::new(&program, &case);
    let (own, root) = copied(&program, &lab.house.root().join("own"));
    lab.record("executable", &executable(&own));
    let proven = lab.house.cto(&["validate", "stage1", "--engine", "pi"]);
    assert_eq!(proven.code, Some(0), "{proven:?}");
    let (_, other) = copied(&program, &lab.house.root().join("other"));
    let model = lab.model(&format!("{PROBE}{}{DONE}", edit()));
    let (answer, bundle) = thread::scope(|scope| {
        scope.spawn(|| {
            // The gates have looked, and setup runs.
            assert!(wait_until(|| model.requests() >= 1));
            fs::rename(&root, root.with_extension("aside")).unwrap();
            fs::rename(&other, &root).unwrap();
        });
        lab.run(&model, &[])
    });
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let why = bundle.report()["blockers"].to_string();
    assert_eq!(bundle.codes(), ["executable_not_admitted"], "{why}");
    assert!(why.contains("node_modules was exchanged"), "{why}");
    assert_eq!(bundle.event("engine.started"), None);
    assert_eq!(model.requests(), 1, "the probe alone");
    assert_good(&bundle);
}
