//! What an engine did to the tree is seen, whatever it did to hide it.

use cto_testkit::{Bundle, Case, House, ORACLE, append, script, shell, write};

use crate::assert_good;
use crate::house;

fn ran(house: &House, commands: &[&str]) -> Bundle {
    let case = house.case(&Case::new("quick"));
    let mut steps = vec![write("answer.txt", "right\n")];
    steps.extend(commands.iter().map(|command| shell(command)));
    let (answer, bundle) = house.run(&case, &script(&steps), &["--contain", "contained"]);
    assert!(!answer.panicked(), "{answer:?}");
    assert_good(&bundle);
    bundle
}

#[test]
fn scratch_is_counted_and_left_out() {
    let house = house();
    let bundle = ran(
        &house,
        &["printf 12345 > note.tmp; mkdir cache; printf 123 > cache/x"],
    );
    assert_eq!(bundle.status(), "pass");
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    assert_eq!(
        bundle.report()["workspace_scratch"],
        serde_json::json!({"count": 2, "bytes": 8})
    );
    assert!(!bundle.text("patch.diff").contains("note.tmp"));
}

#[test]
fn a_rule_the_engine_wrote_hides_nothing() {
    let house = house();
    let bundle = ran(
        &house,
        &[
            "echo '*.evil' >> .gitignore; echo x > a.evil; echo '*.more' >> .git/info/exclude; echo y > b.more",
        ],
    );
    assert_eq!(bundle.status(), "fail");
    assert_eq!(
        bundle.changed_files(),
        [".gitignore", "a.evil", "answer.txt", "b.more"]
    );
    assert_eq!(bundle.codes(), ["disallowed_file_change"]);
}

/// Git follows no link to rules, and whoever puts something in its place ends nothing.
#[test]
fn rules_behind_a_link_are_none() {
    for kind in ["copy", "overlay"] {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = cto_testkit::Repo::new(&house, "linked");
        repo.write("rules", "*.tmp\n");
        repo.write("sub/keep.txt", "keep\n");
        let link = std::path::Path::new(repo.path()).join("sub/.gitignore");
        std::os::unix::fs::symlink("../rules", link).unwrap();
        repo.commit("rules behind a link");
        let put = "rm sub/.gitignore && mkdir sub/.gitignore && echo x > sub/.gitignore/x.tmp";
        let steps = script(&[write("sub/keep.txt", "right\n"), shell(put)]);
        let asked = ["--test", "grep -q right sub/keep.txt", "--allow", "."];
        let (_, bundle) = house.try_on(&repo, &steps, &asked);
        assert!(
            !bundle.has_code("interrupted"),
            "{kind}: {:?}",
            bundle.codes()
        );
        let changed = bundle.changed_files();
        assert!(
            changed.contains(&"sub/.gitignore/x.tmp".to_owned()),
            "{kind}: {changed:?}"
        );
    }
}

#[test]
fn an_ignored_forbidden_file_is_no_scratch() {
    let house = house();
    let bundle = ran(&house, &["mkdir secret; echo x > secret/y.tmp"]);
    assert_eq!(bundle.codes(), ["forbidden_path_change"]);
}

#[test]
fn commits_and_index_flags_hide_nothing() {
    let house = house();
    for trick in [
        "echo x >> keep.txt; git commit -qam hidden",
        "git update-index --assume-unchanged keep.txt; echo x >> keep.txt",
        "git update-index --skip-worktree keep.txt; echo x >> keep.txt",
        "echo x >> keep.txt; git config core.worktree /tmp; git config core.fsmonitor 'touch /tmp/never'",
        "echo x >> keep.txt; rm -rf .git",
        "touch -r keep.txt stamp.tmp; echo kept > keep.txt; touch -r stamp.tmp keep.txt",
        "echo 'keep.txt filter=x' > .gitattributes; git config filter.x.clean 'echo keep'; echo x >> keep.txt",
    ] {
        let bundle = ran(&house, &[trick]);
        assert!(
            bundle.changed_files().contains(&"keep.txt".to_owned()),
            "{trick}: {:?}",
            bundle.changed_files()
        );
        assert!(
            bundle.has_code("disallowed_file_change") && bundle.status() == "fail",
            "{trick}: {:?}",
            bundle.codes()
        );
    }
}

#[test]
fn an_honest_engine_may_commit() {
    let house = house();
    let bundle = ran(&house, &["git add -A; git commit -qm done"]);
    assert_eq!(
        (bundle.status(), bundle.changed_files()),
        ("pass".into(), vec!["answer.txt".to_owned()])
    );
}

#[test]
fn nested_repositories_are_left_over_state() {
    let house = house();
    for trick in [
        "mkdir sub; git init -q sub",
        "mkdir -p cache/sub; git init -q cache/sub",
        "mkdir sub; echo 'gitdir: /x' > sub/.git",
    ] {
        let bundle = ran(&house, &[trick]);
        assert_eq!(bundle.status(), "fail", "{trick}");
        assert!(
            bundle.has_code("dirty_ending_tree"),
            "{trick}: {:?}",
            bundle.codes()
        );
        assert!(
            bundle.text("report.json").contains("nested repository"),
            "{trick}"
        );
    }
}

#[test]
fn unfinished_git_business_is_left_over_state() {
    let house = house();
    for trick in [
        "touch .git/index.lock",
        "git rev-parse HEAD > .git/MERGE_HEAD",
        "mkdir .git/rebase-merge",
    ] {
        let bundle = ran(&house, &[trick]);
        assert_eq!(bundle.status(), "fail", "{trick}: {:?}", bundle.codes());
        assert!(
            bundle.has_code("dirty_ending_tree"),
            "{trick}: {:?}",
            bundle.codes()
        );
    }
}

#[test]
fn links_pipes_and_modes_are_changes() {
    let house = house();
    for (trick, path, kind) in [
        ("ln -s /etc/passwd link", "link", "added"),
        ("ln -sf /etc/passwd keep.txt", "keep.txt", "type_changed"),
        ("mkfifo pipe", "pipe", "unrecordable"),
        ("chmod +x keep.txt", "keep.txt", "mode_changed"),
        ("rm keep.txt", "keep.txt", "deleted"),
        (
            "rm keep.txt; mkdir keep.txt; echo x > keep.txt/x",
            "keep.txt",
            "deleted",
        ),
        ("mkfifo pipe.tmp", "pipe.tmp", "unrecordable"),
    ] {
        let bundle = ran(&house, &[trick]);
        let report = bundle.report();
        let changes = report["observed"]["changes"].as_array().unwrap();
        let found = changes
            .iter()
            .find(|change| change["path"] == path)
            .unwrap_or_else(|| panic!("{trick}: {changes:?}"));
        assert_eq!(found["kind"], kind, "{trick}");
        assert_eq!(
            (bundle.status(), bundle.codes()),
            ("fail".into(), vec!["disallowed_file_change".to_owned()]),
            "{trick}"
        );
        assert!(
            !bundle.text("patch.diff").contains("root:"),
            "{trick}: a link was followed"
        );
    }
}

#[test]
fn an_allowed_path_that_became_a_link_or_a_pipe_never_passes() {
    let house = house();
    for trick in [
        "rm answer.txt; mkfifo answer.txt",
        "rm answer.txt; ln -s /proc/self/environ answer.txt",
    ] {
        let bundle = ran(&house, &[trick]);
        assert_eq!(bundle.status(), "fail", "{trick}: {:?}", bundle.codes());
    }
}

#[test]
fn odd_names_are_measured_and_shown() {
    let house = house();
    let bundle = ran(
        &house,
        &[
            "printf x > \"$(printf 'line\\nbreak')\"; printf x > \"$(printf '\\377')\"; printf x > '\"q\"'",
        ],
    );
    assert_eq!(bundle.status(), "fail");
    assert_eq!(bundle.changed_files().len(), 4);
}

#[test]
fn an_unreadable_file_is_never_a_pass() {
    if cto_testkit::is_root() {
        return cto_testkit::skip("root may read everything");
    }
    let house = house();
    let bundle = ran(&house, &["echo x > dark.tmp; chmod 000 dark.tmp"]);
    assert_eq!(bundle.status(), "fail", "{:?}", bundle.codes());
    assert!(bundle.has_code("dirty_ending_tree"));
}

#[test]
fn a_change_outside_the_patch_by_verification_is_thrown_away() {
    let house = house();
    let case = Case::new("quick").commands(
        "[\"echo x >> keep.txt; grep -qx right answer.txt && grep -qx fine control.txt\"]",
    );
    let (answer, bundle) = house.run(&house.case(&case), ORACLE, &[]);
    assert_eq!(
        (answer.code, bundle.changed_files()),
        (Some(0), vec!["answer.txt".to_owned()])
    );
}

#[test]
fn binary_and_large_changes_survive_the_patch() {
    let house = house();
    let case = house.case(&Case::new("quick").allowed("[\"answer.txt\", \"blob.bin\"]"));
    let blob =
        "printf '\\0\\1\\2' > blob.bin; head -c 300000 /dev/zero | tr '\\0' '\\377' >> blob.bin";
    let (answer, bundle) = house.run(
        &case,
        &script(&[
            write("answer.txt", "right\n"),
            shell(blob),
            append("answer.txt", "no end"),
        ]),
        &[],
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(bundle.text("patch.diff").contains("GIT binary patch"));
    assert_good(&bundle);
}

/// What a tool left behind is named, and nothing else is made of it.
#[test]
fn a_stash_is_named_and_not_judged() {
    let house = house();
    let aside = "echo other > answer.txt; git -c user.name=x -c user.email=x@example.invalid stash -q; printf 'right\\n' > answer.txt";
    let bundle = ran(&house, &[aside]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    let report = bundle.report();
    assert_eq!(
        report["observed"]["leftovers"],
        serde_json::json!([".git/refs/stash"])
    );
    assert!(bundle.text("report.md").contains("refs/stash"));
}

/// Names that git takes for its own directory are refused as such, and end nothing.
#[test]
fn names_that_git_keeps_for_itself_are_refused() {
    let house = house();
    for name in [".GIT", "git~1", "GIT~1", "sub/git~1", ".git.", "sub/.Git "] {
        let trick = format!("mkdir -p '{name}'; echo x > '{name}/config'");
        let bundle = ran(&house, &[&trick]);
        assert_eq!(bundle.codes(), ["dirty_ending_tree"], "{name}");
        let detail = bundle.report()["blockers"][0]["detail"].to_string();
        assert!(
            detail.contains("a name git keeps for itself") && detail.contains(name.trim()),
            "{detail}"
        );
    }
    let bundle = ran(&house, &["mkdir cache; echo x > cache/git~2"]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
}

/// A path that the change takes out of the rules is part of the change.
#[test]
fn a_path_that_is_no_longer_ignored_is_a_change() {
    for kind in ["copy", "overlay"] {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = cto_testkit::Repo::new(&house, "ignoring");
        repo.write(".gitignore", "*.gen\n*.log\n");
        repo.write("sub/.gitignore", "made/\n");
        repo.write("sub/keep.txt", "keep\n");
        repo.write("answer.txt", "wrong\n");
        repo.commit("the beginning");
        let made = "echo right > answer.txt; echo x > a.gen; echo x > a.log; mkdir sub/made; echo x > sub/made/b";
        for (rules, want) in [
            ("", vec!["answer.txt"]),
            (
                "; echo '*.log' > .gitignore",
                vec![".gitignore", "a.gen", "answer.txt"],
            ),
            (
                "; echo '!a.gen' >> .gitignore",
                vec![".gitignore", "a.gen", "answer.txt"],
            ),
            (
                "; rm sub/.gitignore",
                vec!["answer.txt", "sub/.gitignore", "sub/made/b"],
            ),
            (
                "; echo '*.more' >> .gitignore; echo x > c.more",
                vec![".gitignore", "answer.txt", "c.more"],
            ),
        ] {
            let steps = script(&[shell(&format!("{made}{rules}"))]);
            let asked = ["--allow", ".", "--test", "grep -qx right answer.txt"];
            let (answer, bundle) = house.try_on(&repo, &steps, &asked);
            assert!(!answer.panicked(), "{answer:?}");
            assert_good(&bundle);
            assert_eq!(bundle.changed_files(), want, "{kind}{rules}");
        }
    }
}
