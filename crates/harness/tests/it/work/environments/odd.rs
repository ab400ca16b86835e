//! Environments that are not what they should be.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use cto_testkit::{is_root, shell, skip, write};

use super::*;

fn right() -> String {
    write("answer.txt", "right\n")
}

const GONE: &str = "test ! -e node_modules/pkg && grep -qx right answer.txt";

#[test]
fn a_link_out_of_the_repository_shows_nothing() {
    for kind in KINDS {
        let house = house_with(kind);
        let away = house.root().join("away");
        fs::create_dir_all(away.join("pkg")).unwrap();
        fs::write(away.join("pkg/tool"), "elsewhere\n").unwrap();
        let repo = repo_ignoring(&house, "linked");
        symlink(&away, repo.at("node_modules")).unwrap();
        symlink("/nowhere", repo.at(".tox")).unwrap();
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", GONE]);
        assert_passed(&answer, &bundle, kind);
        for path in ["node_modules", ".tox"] {
            let used = environment(&bundle, path);
            assert_eq!(used["carried"], "not");
            assert!(used["why"].as_str().unwrap().contains("link"), "{used}");
        }
        // A link inside leads nowhere that is not shown.
        fs::remove_file(repo.at("node_modules")).unwrap();
        install(&repo, "node_modules", 3);
        symlink(&away, repo.at("node_modules/out")).unwrap();
        let test = "test -e node_modules/pkg/tool && ! cat node_modules/out/pkg/tool && grep -qx right answer.txt";
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
        assert_passed(&answer, &bundle, kind);
    }
}

#[test]
fn what_belongs_to_somebody_else_is_read_only() {
    if !is_root() {
        return skip("only root can give a file away");
    }
    for (files, _) in SIZES {
        let house = house_with("copy");
        let repo = repo_ignoring(&house, "foreign");
        install(&repo, "node_modules", files);
        fs::write(repo.at("node_modules/.npmrc"), "do-not-show-me\n").unwrap();
        std::os::unix::fs::chown(repo.at("node_modules/pkg/f1"), Some(4321), None).unwrap();
        let test = "grep -qx right node_modules/pkg/tool answer.txt && ! touch node_modules/new && \
                    test ! -s node_modules/.npmrc";
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
        assert_passed(&answer, &bundle, "foreign");
        let used = environment(&bundle, "node_modules");
        assert_eq!(used["carried"], "read_only");
        assert!(
            used["why"].as_str().unwrap().contains("another owner"),
            "{used}"
        );
    }
}

#[test]
fn an_engine_can_put_nothing_in_the_way_of_an_environment() {
    // In place of it, in place of the directory it lies in, or behind a link on the way: the copy
    // for the checks then has what the engine made, and no environment, and nobody else's place is
    // written.
    for kind in KINDS {
        for (files, _) in SIZES {
            let house = house_with(kind);
            let repo = repo_ignoring(&house, "blocked");
            repo.write("web/package.json", "{}\n");
            repo.commit("a package below");
            install(&repo, "web/node_modules", files);
            let before = repo.bytes();
            for (what, steps, test) in [
                (
                    "a directory on the way is a link",
                    "cp -r web /tmp/web; rm -rf web 2>/dev/null; mv web aside 2>/dev/null; ln -s /etc web; echo right > answer.txt; true",
                    "grep -qx right answer.txt",
                ),
                (
                    "a link in its place",
                    "rm -rf web/node_modules 2>/dev/null; ln -s /etc web/node_modules 2>/dev/null; echo right > answer.txt; true",
                    "grep -qx right answer.txt && test ! -e web/node_modules/passwd",
                ),
                (
                    "everything in it is gone",
                    "rm -rf web/node_modules/* web/node_modules 2>/dev/null; echo right > answer.txt; true",
                    "grep -qx right answer.txt web/node_modules/pkg/tool",
                ),
            ] {
                let more = ["--contain", "contained", "--test", test];
                let (answer, bundle) = attempt(&house, &repo, &[shell(steps)], &more);
                assert!(!answer.panicked(), "{what}: {answer:?}");
                crate::assert_good(&bundle);
                assert_eq!(repo.bytes(), before, "{kind}: {what}");
                let status = bundle.status();
                assert!(
                    status == "pass" || bundle.has_code("scope_violation") || status == "fail",
                    "{kind}: {what}: {status} {:?} {}",
                    bundle.codes(),
                    bundle.report()["blockers"],
                );
                assert!(
                    !bundle.has_code("containment_unavailable"),
                    "{kind}: {what}"
                );
                assert!(
                    !bundle.has_code("interrupted"),
                    "{kind}: {what}: {}",
                    bundle.report()["blockers"]
                );
            }
        }
    }
}

#[test]
fn half_deleted_closed_and_empty_ones_are_no_error() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "half");
    fs::create_dir_all(repo.at("node_modules")).unwrap();
    let test = "test -d node_modules && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "empty");
    // The configuration of an environment is there, and nothing else of it.
    repo.write(".venv/pyvenv.cfg", "home = /nowhere/bin\n");
    let test = "test ! -e .venv && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "a Python that is gone");
    let used = environment(&bundle, ".venv");
    assert!(used["why"].as_str().unwrap().contains("Python"), "{used}");
    repo.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    let test = "grep -q home .venv/pyvenv.cfg && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "a Python that is there");
    if !is_root() {
        fs::create_dir_all(repo.at("node_modules/closed")).unwrap();
        let closed = repo.at("node_modules/closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", GONE]);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
        assert_passed(&answer, &bundle, "closed");
    }
}

#[test]
fn a_name_that_is_hidden_is_not_carried() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "named");
    repo.write(".env/pyvenv.cfg", "home = /usr/bin\n");
    repo.write(".env/token", "do-not-show-me\n");
    let test = "test ! -e .env && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, ".env");
    assert_eq!(environment(&bundle, ".env")["carried"], "not");
}

#[test]
fn an_environment_that_the_contract_forbids_is_read_only() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "forbidden");
    install(&repo, "node_modules", 3);
    let test = "! touch node_modules/x && grep -qx right answer.txt node_modules/pkg/tool";
    let more = ["--forbid", "node_modules/", "--test", test];
    let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
    assert_passed(&answer, &bundle, "forbidden");
    assert_eq!(environment(&bundle, "node_modules")["carried"], "read_only");
}
