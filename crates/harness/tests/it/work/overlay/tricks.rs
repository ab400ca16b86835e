//! Setup, control and the tricks of an engine: the same in both kinds of workspace.

use std::fs;
use std::os::unix::fs::symlink;

use cto_testkit::{Repo, shell};

use super::{CONTAINED, KINDS, house_with, right, try_it};
use crate::assert_good;

#[test]
fn setup_works_and_is_held_to_the_same_rules() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let test = "grep -qx ready setup.log && grep -qx right answer.txt && test \"$(git status -s)\" = 'M  answer.txt'";
        let (answer, bundle) = try_it(
            &house,
            &repo,
            &[right()],
            &["--setup", "echo ready > setup.log", "--test", test],
        );
        assert_eq!(
            answer.code,
            Some(0),
            "{kind}: {answer:?} {}",
            bundle.text("test.log")
        );
        assert_eq!(bundle.report()["workspace_scratch"]["count"], 1, "{kind}");
        for litter in [
            "echo x > stray",
            "rm src/keep.txt",
            "chmod +x answer.txt",
            "rm -r src && mkdir src",
        ] {
            let (answer, bundle) = try_it(&house, &repo, &[right()], &["--setup", litter]);
            assert_eq!(
                (answer.code, bundle.codes()),
                (Some(3), vec!["toolchain_unavailable".to_owned()]),
                "{kind}: {litter}"
            );
        }
    }
}

#[test]
fn a_control_patch_turns_the_copy_red_in_both() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        repo.write("dir/only.txt", "only\n");
        repo.commit("a directory with one file");
        let patch = house.root().join("scripts/control.patch");
        let moved = "diff --git a/dir/only.txt b/moved.txt\nsimilarity index 100%\nrename from dir/only.txt\nrename to moved.txt\n";
        fs::write(&patch, moved).unwrap();
        let (control, test) = (
            patch.display().to_string(),
            "test -d dir && grep -qx right answer.txt",
        );
        let (answer, bundle) = try_it(
            &house,
            &repo,
            &[right()],
            &["--control", &control, "--test", test],
        );
        assert_eq!(
            answer.code,
            Some(0),
            "{kind}: {answer:?} {}",
            bundle.text("test.log")
        );
    }
}

/// Something done to hide a change, the path it must be found at, and as what.
const TRICKS: [(&str, &str, &str); 19] = [
    (
        "echo x >> src/keep.txt; git commit -qam hidden",
        "src/keep.txt",
        "modified",
    ),
    (
        "git update-index --assume-unchanged src/keep.txt; echo x >> src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "git update-index --skip-worktree src/keep.txt; echo x >> src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "touch -r src/keep.txt s.log; echo kee2 > src/keep.txt; touch -r s.log src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "echo kee2 > src/keep.txt; touch -d '1970-01-01 00:00:01' src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "cp -p src/keep.txt c.log; echo kee2 > c.log; touch -r src/keep.txt c.log; mv c.log src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    ("chmod +x src/keep.txt", "src/keep.txt", "mode_changed"),
    (
        "ln -sf /etc/passwd src/keep.txt",
        "src/keep.txt",
        "type_changed",
    ),
    ("rm src/keep.txt", "src/keep.txt", "deleted"),
    ("rm -r src", "src/keep.txt", "deleted"),
    ("rm -r src; mkdir src", "src/keep.txt", "deleted"),
    ("rm -r src; echo x > src", "src", "added"),
    (
        "rm answer.txt; mkdir answer.txt; echo x > answer.txt/x",
        "answer.txt/x",
        "added",
    ),
    (
        "mv src/keep.txt src/kept.txt; echo x > src/keep.log",
        "src/kept.txt",
        "added",
    ),
    ("mv src else", "else/keep.txt", "added"),
    ("echo x > ANSWER.txt", "ANSWER.txt", "added"),
    (
        "echo '*.txt' > .gitignore; echo '*' > .git/info/exclude; echo x > new.txt",
        "new.txt",
        "added",
    ),
    (
        "ln src/keep.txt src/two; echo x >> src/two",
        "src/keep.txt",
        "modified",
    ),
    ("mkfifo pipe.log", "pipe.log", "unrecordable"),
];

#[test]
fn nothing_an_engine_does_hides_a_change_in_either() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        for (trick, path, change) in TRICKS {
            let (answer, bundle) = try_it(&house, &repo, &[right(), shell(trick)], CONTAINED);
            assert!(!answer.panicked(), "{answer:?}");
            let report = bundle.report();
            let changes = report["observed"]["changes"]
                .as_array()
                .unwrap_or_else(|| panic!("{kind}: {trick}: {answer:?}"));
            let found = changes
                .iter()
                .find(|found| found["path"] == path)
                .unwrap_or_else(|| panic!("{kind}: {trick}: {changes:?}"));
            assert_eq!(
                (found["kind"].as_str(), bundle.status().as_str()),
                (Some(change), "fail"),
                "{kind}: {trick}"
            );
            assert!(
                bundle.has_code("disallowed_file_change"),
                "{kind}: {trick}: {:?}",
                bundle.codes()
            );
            assert_good(&bundle);
        }
        for trick in [
            "mkdir .GIT",
            "mkdir -p src/.git",
            "mkdir in.log; git init -q in.log",
            "touch .git/index.lock",
        ] {
            let (_, bundle) = try_it(&house, &repo, &[right(), shell(trick)], CONTAINED);
            assert!(
                bundle.has_code("dirty_ending_tree") && bundle.status() == "fail",
                "{kind}: {trick}: {:?}",
                bundle.codes()
            );
        }
    }
}

#[test]
fn no_device_or_mark_of_an_engines_hides_a_change() {
    let mark = |path: &str, name: &str| {
        format!(
            "python3 -c 'import os; os.setxattr(\"{path}\", \"user.overlay.{name}\", b\"y\")' 2>/dev/null"
        )
    };
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let device =
            "rm src/keep.txt; mknod src/keep.txt c 0 0; mknod new c 0 0; mknod src/more c 0 0";
        for (trick, found) in [
            (device.to_owned(), "src/keep.txt"),
            (
                format!(
                    "echo x >> src/keep.txt; {}",
                    mark("src/keep.txt", "whiteout")
                ),
                "src/keep.txt",
            ),
            (
                format!(
                    "echo x >> src/keep.txt; {}",
                    mark("src/keep.txt", "metacopy")
                ),
                "src/keep.txt",
            ),
            (
                format!(
                    "echo x > src/new; {}; {}",
                    mark("src", "opaque"),
                    mark("src", "redirect")
                ),
                "src/new",
            ),
        ] {
            let (_, bundle) = try_it(&house, &repo, &[right(), shell(&trick)], CONTAINED);
            assert!(
                bundle.has_code("disallowed_file_change"),
                "{kind}: {trick}: {:?}",
                bundle.codes()
            );
            let report = bundle.report();
            let changes = report["observed"]["changes"].as_array().unwrap();
            assert!(
                changes.iter().any(|change| change["path"] == found),
                "{kind}: {trick}: {changes:?}"
            );
            let hidden = changes
                .iter()
                .any(|change| change["path"] == "src/keep.txt")
                == (found == "src/keep.txt");
            assert!(hidden, "{kind}: {trick}: {changes:?}");
        }
    }
}

#[test]
fn scratch_is_counted_by_the_rules_of_the_baseline_and_forbidden_paths_win() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        repo.write("held/.gitignore", "*\n!.gitignore\n");
        symlink("held", repo.at("way")).unwrap();
        repo.commit("rules of a directory");
        let litter =
            "printf 12345 > note.log; echo x > held/x; rm way; mkdir way; printf 123 > way/y.log";
        let (_, bundle) = try_it(
            &house,
            &repo,
            &[right(), shell(litter)],
            &[CONTAINED, &["--allow", "answer.txt", "--allow", "way"]].concat(),
        );
        assert_eq!(
            bundle.report()["workspace_scratch"],
            serde_json::json!({"count": 3, "bytes": 10}),
            "{kind}"
        );
        let (_, bundle) = try_it(
            &house,
            &repo,
            &[right(), shell("echo x > held/x")],
            &[CONTAINED, &["--forbid", "held"]].concat(),
        );
        assert_eq!(bundle.codes(), ["forbidden_path_change"], "{kind}");
    }
}

#[test]
fn the_result_commit_is_the_harnesss_own() {
    let commits = KINDS.map(|kind| {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let (_, bundle) = try_it(
            &house,
            &repo,
            &[right(), shell("git add -A; git commit -qm mine")],
            &[],
        );
        bundle.event("git.diff.checked").unwrap()["result_commit"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    assert_eq!(
        commits[0], commits[1],
        "the same whoever measured it, and whatever the engine committed"
    );
}
