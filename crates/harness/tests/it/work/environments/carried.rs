//! What comes along can be written, is thrown away, and is nobody else's.

use std::fs;

use cto_testkit::{shell, write};

use super::*;
use crate::fixtures::people::houses;

fn right() -> String {
    write("answer.txt", "right\n")
}

#[test]
fn an_environment_comes_along_and_stays_as_it_was() {
    for kind in KINDS {
        for (files, carried) in SIZES {
            let (house, what) = (house_with(kind), format!("{kind}, {carried}"));
            let repo = repo_ignoring(&house, "warm");
            install(&repo, "node_modules", files);
            let before = repo.bytes();
            let spoil = "echo spoilt > node_modules/pkg/tool && rm node_modules/pkg/f1 && \
                         mkdir node_modules/.cache && echo x > node_modules/.cache/y";
            let test = "grep -qx right node_modules/pkg/tool answer.txt && \
                        test -e node_modules/pkg/f1 && test ! -e node_modules/.cache && \
                        echo cache > node_modules/.cache";
            let (answer, bundle) = attempt(
                &house,
                &repo,
                &[right(), shell(spoil)],
                &["--test", test, "--test", test],
            );
            assert_passed(&answer, &bundle, &what);
            assert_eq!(repo.bytes(), before, "{what}: the original is as it was");
            let used = environment(&bundle, "node_modules");
            assert_eq!(used["carried"], carried, "{what}");
            assert_eq!(used["kind"], "node_modules");
            assert_eq!(used["files"], files);
            assert_eq!(used["state"].as_str().map(str::len), Some(64), "{used}");
            assert_eq!(bundle.changed_files(), ["answer.txt"], "{what}");
            let plan = bundle.event("plan.updated").unwrap();
            assert_eq!(plan["environments"], bundle.report()["environments"]);
            assert!(
                plan["summary"]
                    .as_str()
                    .unwrap()
                    .contains("with your node_modules/"),
                "{plan}"
            );
            assert!(
                bundle
                    .text("report.md")
                    .contains("node_modules/ (node packages")
            );
            assert!(house.work_entries().is_empty(), "{what}");
            let shown = house.cto(&["show", "last"]);
            assert!(
                shown.stdout.contains("with your node_modules/"),
                "{}",
                shown.stdout
            );
        }
    }
}

#[test]
fn setup_and_the_command_it_prepares_share_what_they_write() {
    for (files, carried) in SIZES {
        let house = house_with("copy");
        let repo = repo_ignoring(&house, "prepared");
        install(&repo, "node_modules", files);
        let setup = "test ! -e node_modules/.made && echo made > node_modules/.made";
        let test = "grep -qx made node_modules/.made && echo more >> node_modules/.made && \
                    grep -qx right answer.txt";
        let more = ["--setup", setup, "--test", test, "--test", test];
        let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
        assert_passed(&answer, &bundle, carried);
        assert!(!repo.at("node_modules/.made").exists());
    }
}

#[test]
fn a_small_one_can_be_removed_and_a_large_one_says_why_not() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "removed");
    install(&repo, "node_modules", 3);
    let test = "rm -rf node_modules && test ! -e node_modules && mkdir gone && \
                grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "small");
    install(&repo, "node_modules", 2_050);
    let before = repo.bytes();
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let notes = bundle.report()["environment_notes"].to_string();
    assert!(notes.contains("EBUSY"), "{notes}");
    assert_eq!(repo.bytes(), before);
    crate::assert_good(&bundle);
}

#[test]
fn tokens_and_orders_in_an_environment_are_seen_by_nobody() {
    for (files, carried) in SIZES {
        let house = house_with("copy");
        let repo = repo_ignoring(&house, "tokens");
        install(&repo, "node_modules", files);
        let secrets = [
            ".npmrc",
            "pkg/pip.conf",
            "pkg/.pypirc",
            "pkg/.env",
            "pkg/credentials",
            "pkg/deep/.netrc",
            "pkg/.claude/settings.json",
        ];
        for secret in secrets {
            repo.write(&format!("node_modules/{secret}"), "do-not-show-me\n");
        }
        let seen = "! grep -rq do-not-show-me node_modules && test -f node_modules/.npmrc && \
                    test -f node_modules/pkg/deep/.netrc";
        let reveal = format!(
            "{seen} && rm node_modules/.npmrc && {{ test ! -s node_modules/.npmrc; }} && \
             mv node_modules/pkg/deep node_modules/pkg/moved && \
             ! grep -rq do-not-show-me node_modules && echo right > answer.txt"
        );
        let test = format!("{seen} && grep -qx right answer.txt");
        let (answer, bundle) = attempt(&house, &repo, &[shell(&reveal)], &["--test", &test]);
        assert_passed(&answer, &bundle, carried);
        assert_eq!(
            environment(&bundle, "node_modules")["hidden"],
            secrets.len()
        );
    }
}

#[test]
fn the_operator_adds_takes_away_and_starts_cold() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "choice");
    install(&repo, "node_modules", 3);
    install(&repo, "deps", 3);
    install(&repo, "build", 3);
    let gone = "test ! -e node_modules && test ! -e build && grep -qx right answer.txt";
    for more in [
        &["--no-env"][..],
        &["--no-input", "node_modules"],
        &["--no-input", "./node_modules/"],
    ] {
        let all = [more, &["--test", gone]].concat();
        let (answer, bundle) = attempt(&house, &repo, &[right()], &all);
        assert_passed(&answer, &bundle, &format!("{more:?}"));
    }
    let there =
        "test -e node_modules && test ! -e deps && test ! -e build && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", there]);
    assert_passed(&answer, &bundle, "by the table");
    let added = "grep -qx right deps/pkg/tool build/pkg/tool answer.txt && echo x > deps/new && rm -r build";
    let more = [
        "--no-env", "--input", "deps", "--input", "build", "--test", added,
    ];
    let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
    assert_passed(&answer, &bundle, "named");
    assert_eq!(environment(&bundle, "deps")["kind"], "named");
    assert!(!repo.at("deps/new").exists() && repo.at("build/pkg/tool").exists());
}

#[test]
fn only_ignored_directories_come_along() {
    let house = house_with("copy");
    let repo = Repo::new(&house, "unignored");
    install(&repo, "node_modules", 3);
    let test = "test ! -e node_modules && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--from-head", "--test", test]);
    assert_passed(&answer, &bundle, "untracked and not ignored");
    assert_eq!(environment(&bundle, "node_modules")["carried"], "not");
    // Ignored by what it says of itself, as environments of Python do.
    fs::write(repo.at("node_modules/.gitignore"), "*\n").unwrap();
    let test = "test -e node_modules/pkg/tool && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "ignored by itself");
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
}

#[test]
fn a_changed_list_of_dependencies_is_said() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "lists");
    install(&repo, "node_modules", 3);
    let steps = [right(), write("package.json", "{\"dependencies\": {}}\n")];
    let (answer, bundle) = attempt(&house, &repo, &steps, &[]);
    assert_passed(&answer, &bundle, "package.json");
    let notes = bundle.report()["environment_notes"].to_string();
    assert!(notes.contains("package.json changed"), "{notes}");
}

#[test]
fn a_run_of_a_case_gets_none() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "case");
    install(&repo, "node_modules", 3);
    let case = house.case(&cto_testkit::Case::new("plain"));
    let (_, bundle) = house.run(&case, &script(&[right()]), &[]);
    assert!(bundle.report().get("environments").is_none());
}

#[test]
fn tools_are_told_what_keeps_them_honest() {
    let house = house_with("copy");
    let repo = repo_ignoring(&house, "told");
    repo.write("tox.ini", "[testenv]\ncommands = true\n");
    repo.commit("tox");
    let test = "test \"$UV_NO_SYNC$UV_OFFLINE$PIP_NO_INDEX\" = 111 && test \"$CARGO_NET_OFFLINE\" = true && \
                test \"$TOX_OVERRIDE\" = testenv.package=wheel && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "a wheel of the copy");
    let plan = bundle.event("plan.updated").unwrap();
    let summary = plan["summary"].as_str().unwrap();
    assert!(
        summary.contains("TOX_OVERRIDE=testenv.package=wheel"),
        "{summary}"
    );
    // What the operator sets stays, and is added to.
    let test = "test \"$UV_OFFLINE\" = 0 && \
                test \"$TOX_OVERRIDE\" = 'testenv.deps=x;testenv.package=wheel' && grep -qx right answer.txt";
    let more = [
        "--env",
        "UV_OFFLINE=0",
        "--env",
        "TOX_OVERRIDE=testenv.deps=x",
        "--test",
        test,
    ];
    let (answer, bundle) = attempt(&house, &repo, &[right()], &more);
    assert_passed(&answer, &bundle, "the operator's own");
    repo.write("tox.ini", "[testenv]\npackage = editable\n");
    repo.commit("editable");
    let test = "test -z \"$TOX_OVERRIDE\" && grep -qx right answer.txt";
    let (answer, bundle) = attempt(&house, &repo, &[right()], &["--test", test]);
    assert_passed(&answer, &bundle, "an editable install");
}

#[test]
fn an_ordinary_user_has_them_as_root_has() {
    for kind in KINDS {
        for (files, carried) in SIZES {
            for house in houses() {
                let house = house.with("CTO_TEST_WORKSPACE", kind);
                let repo = repo_ignoring(&house, "anybody");
                install(&repo, "node_modules", files);
                repo.write("node_modules/.npmrc", "do-not-show-me\n");
                house.hand_over(&repo.dir);
                let write_there = "echo new > node_modules/new && echo more >> node_modules/pkg/tool && \
                                   rm node_modules/pkg/f1";
                let test = format!(
                    "grep -qx right answer.txt node_modules/pkg/tool && test -e node_modules/pkg/f1 && \
                     test ! -s node_modules/.npmrc && {write_there}"
                );
                let steps = [right(), shell(write_there)];
                let more = ["--test", &test, "--test", &test];
                let (answer, bundle) = attempt(&house, &repo, &steps, &more);
                assert_passed(&answer, &bundle, &format!("{kind}, {carried}"));
                assert_eq!(environment(&bundle, "node_modules")["carried"], carried);
                assert!(repo.at("node_modules/pkg/f1").exists());
            }
        }
    }
}
