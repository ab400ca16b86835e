//! Environments of the repository that are on PATH, as an activated one is: they are still there by
//! the copy alone, or not at all.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use cto_testkit::{shell, write};

use super::*;

fn right() -> String {
    write("answer.txt", "right\n")
}

/// PATH as it is after `. .venv/bin/activate`, or in a script of npm.
fn with_first(house: House, dir: &std::path::Path) -> House {
    house.with(
        "PATH",
        &format!("{}:/usr/local/bin:/usr/bin:/bin", dir.display()),
    )
}

/// A Python environment that is based on the system's, with one program.
fn venv(repo: &Repo, place: &str) {
    let dir = repo.at(place);
    let packages = dir.join("lib/python3.11/site-packages");
    fs::create_dir_all(dir.join("bin")).unwrap();
    fs::create_dir_all(&packages).unwrap();
    fs::write(packages.join("installed.py"), "").unwrap();
    fs::write(dir.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    symlink("/usr/bin/python3", dir.join("bin/python3")).unwrap();
    let tool = dir.join("bin/tool");
    fs::write(&tool, "#!/bin/sh\ncat \"$(dirname \"$0\")/../word\"\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.join("word"), "installed\n").unwrap();
}

#[test]
fn an_environment_on_path_is_carried_and_can_be_taken_away() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = repo_ignoring(&house, "active");
        venv(&repo, ".venv");
        fs::write(repo.at(".venv/.npmrc"), "do-not-show-me\n").unwrap();
        let house = with_first(house, &repo.at(".venv/bin"));
        // It can be written, so it is no original; and what is hidden is hidden.
        let test = "tool | grep -qx installed && test ! -s .venv/.npmrc && touch .venv/new && \
                    grep -qx right answer.txt";
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
        assert_passed(&answer, &bundle, kind);
        assert!(!repo.at(".venv/new").exists());
        let gone = "test ! -e .venv && ! command -v tool && grep -qx right answer.txt";
        for more in [&["--no-env"][..], &["--no-input", ".venv"]] {
            let words = [&["--test", gone], more].concat();
            let (answer, bundle) = attempt(&house, &repo, &[right()], &words);
            assert_passed(&answer, &bundle, kind);
        }
    }
}

#[test]
fn what_is_tracked_is_never_covered_by_the_original() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = repo_ignoring(&house, "tracked");
        venv(&repo, "tools");
        repo.commit("an environment that is part of the repository");
        fs::write(repo.at("tools/seen.tox"), "").unwrap();
        let house = with_first(house, &repo.at("tools/bin"));
        let change = write("tools/word", "changed\n");
        let test =
            "tool | grep -qx changed && grep -qx changed tools/word && test ! -e tools/seen.tox";
        let (answer, bundle) = attempt(&house, &repo, &[change], &["--from-head", "--test", test]);
        assert_passed(&answer, &bundle, kind);
    }
}

#[test]
fn a_link_to_an_environment_of_the_repository_shows_no_original() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "behind");
    venv(&repo, ".venv");
    fs::write(repo.at(".venv/.npmrc"), "do-not-show-me\n").unwrap();
    let outside = house.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(repo.at(".venv"), outside.join("env")).unwrap();
    symlink(repo.at(".venv/bin/tool"), outside.join("tool")).unwrap();
    let env = outside.join("env");
    for first in [env.join("bin"), outside.clone()] {
        let house = with_first(house_with("copy"), &first);
        let test = format!(
            "test ! -s {env}/.npmrc && test ! -s .venv/.npmrc && touch .venv/new && grep -qx right answer.txt",
            env = env.display()
        );
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", &test]);
        assert_passed(&answer, &bundle, "behind");
    }
}

#[test]
fn nobody_outside_answers_in_an_environment_that_is_read_only() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = repo_ignoring(&house, "sockets");
        install(&repo, "node_modules", 3);
        let _listens = UnixListener::bind(repo.at("node_modules/s")).unwrap();
        let pipe = repo.at("node_modules/p");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o666),
            0,
        )
        .unwrap();
        let look = "test ! -S node_modules/s && test ! -p node_modules/p";
        let test = format!("{look} && grep -qx right node_modules/pkg/tool answer.txt");
        let words = ["--forbid", "node_modules", "--test", &test];
        let (answer, bundle) = attempt(&house, &repo, &[shell(look), right()], &words);
        assert_passed(&answer, &bundle, kind);
        assert_eq!(environment(&bundle, "node_modules")["carried"], "read_only");
    }
}

#[test]
fn a_changed_choice_of_programs_is_said() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "chosen");
    let steps = [write("web/.python-version", "3.1\n"), right()];
    let test = ["--test", "grep -qx right answer.txt"];
    let (answer, bundle) = attempt(&house, &repo, &steps, &test);
    assert_passed(&answer, &bundle, "chosen");
    let notes = bundle.report()["environment_notes"].to_string();
    assert!(
        notes.contains("web/.python-version changed, and the programs"),
        "{notes}"
    );
}
