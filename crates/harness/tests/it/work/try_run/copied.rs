//! What comes along into the copy and what stays at home.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use cto_testkit::{Repo, script, shell};

use super::{Done, TEST, assert_refused, fix, passes, try_with};
use crate::assert_good;
use crate::house;

#[test]
fn a_dirty_source_is_refused_by_name_or_left_out() {
    let house = house();
    let dirts: [Done<'_>; 4] = [
        ("answer.txt", &|repo| {
            repo.write("answer.txt", "my own work\n")
        }),
        ("staged.txt", &|repo| {
            repo.write("staged.txt", "staged\n");
            repo.git(&["add", "staged.txt"]);
        }),
        ("new.txt", &|repo| repo.write("new.txt", "untracked\n")),
        ("MERGE_HEAD", &|repo| {
            repo.write(
                ".git/MERGE_HEAD",
                &format!("{}\n", repo.git(&["rev-parse", "HEAD"])),
            )
        }),
    ];
    for (number, (name, make)) in dirts.iter().enumerate() {
        let repo = Repo::new(&house, &format!("dirty-{number}"));
        make(&repo);
        let bundle = assert_refused(&house, &repo, &[], "dirty_starting_tree");
        let report = bundle.report();
        let blocker = &report["blockers"][0];
        assert_eq!(blocker["event"], "task.contract.created");
        assert!(
            blocker["detail"].as_str().unwrap().contains(name),
            "{blocker}"
        );
        assert_eq!(
            bundle.event("task.contract.created").unwrap()["blockers"][0],
            "dirty_starting_tree"
        );
        assert_eq!(
            bundle.json("source.json")["source_repository_mutated"],
            false
        );
        let before = repo.bytes();
        let (answer, bundle) = try_with(&house, &repo, &fix(), &["--from-head"]);
        assert_eq!(answer.code, Some(0), "{name}: {answer:?}");
        assert_eq!(repo.bytes(), before, "{name}");
        assert!(
            bundle.text("patch.diff").contains("-wrong\n+right"),
            "the copy is HEAD, not the work tree"
        );
        assert_good(&bundle);
    }
}

#[test]
fn ignored_files_stay_at_home_and_everything_else_comes_along() {
    let house = house();
    let repo = Repo::new(&house, "odd");
    repo.write("private.log", "not committed\n");
    repo.program("run.sh", "#!/bin/sh\n");
    symlink("answer.txt", repo.at("link")).unwrap();
    symlink("/nowhere/at/all", repo.at("dangling")).unwrap();
    for name in [
        &b"-dash"[..],
        b"new\nline",
        b"\xff\xfe",
        b"with space",
        b"quo\"te",
    ] {
        fs::write(repo.at(OsStr::from_bytes(name)), "odd\n").unwrap();
    }
    repo.write("text.txt", "a\r\nb\r\n");
    repo.write(".gitattributes", "*.txt text eol=lf\n");
    repo.commit("odd names");
    let test = "test ! -e private.log && test -x run.sh && test -L link && test -L dangling && test \"$(ls | wc -l)\" -ge 10 && grep -qx right answer.txt";
    let bundle = passes(&house, &repo, &fix(), &["--test", test]);
    assert_good(&bundle);
}

#[test]
fn a_submodule_that_is_not_checked_out_is_named_and_empty() {
    let house = house();
    let (inner, repo) = (Repo::new(&house, "inner"), Repo::new(&house, "outer"));
    repo.git(&["submodule", "--quiet", "add", inner.path(), "module"]);
    repo.commit("a submodule");
    repo.git(&["submodule", "--quiet", "deinit", "module"]);
    let test = format!("test -d module && test -z \"$(ls module)\" && {TEST}");
    let bundle = passes(&house, &repo, &fix(), &["--test", &test]);
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    let warnings = bundle.report()["engine"]["warnings"].to_string();
    assert!(warnings.contains("submodule module"), "{warnings}");
}

#[test]
fn work_trees_and_subdirectories_are_found() {
    let house = house();
    let repo = Repo::new(&house, "main");
    let tree = Repo {
        dir: house.root().join("second"),
    };
    repo.git(&["worktree", "add", "-q", "-b", "other", tree.path()]);
    tree.write("only-here.txt", "x\n");
    tree.commit("on the other branch");
    // Paths count from the place that is named.
    for (place, test, answer) in [
        (
            &tree,
            format!("test -e only-here.txt && {TEST}"),
            "answer.txt",
        ),
        (
            &Repo {
                dir: repo.at("src"),
            },
            TEST.to_owned(),
            "../answer.txt",
        ),
    ] {
        let bundle = passes(&house, place, &fix(), &["--test", &test, "--allow", answer]);
        assert_good(&bundle);
    }
}

#[test]
fn an_input_is_an_untracked_place_and_no_link() {
    let house = house();
    let repo = Repo::new(&house, "inputs");
    repo.write(".gitignore", "*.log\n/deps/\n/away\n");
    repo.commit("ignored places");
    repo.write("deps/tool", "right\n");
    symlink("/etc", repo.at("away")).unwrap();
    passes(
        &house,
        &repo,
        &fix(),
        &[
            "--input",
            "deps",
            "--test",
            "grep -qx right deps/tool && grep -qx right answer.txt",
        ],
    );
    assert_refused(&house, &repo, &["--input", "src"], "source_not_admitted");
    assert_refused(
        &house,
        &repo,
        &["--input", "answer.txt"],
        "source_not_admitted",
    );
    assert_refused(&house, &repo, &["--input", "away"], "toolchain_unavailable");
}

#[test]
fn what_is_written_in_a_submodules_place_fails() {
    let house = house();
    let (inner, repo) = (Repo::new(&house, "inner"), Repo::new(&house, "outer"));
    repo.git(&["submodule", "--quiet", "add", inner.path(), "module"]);
    repo.commit("a submodule");
    for command in [
        "echo x > module/x; echo right > answer.txt",
        "rm -rf module; echo x > module; echo right > answer.txt",
    ] {
        let (answer, bundle) =
            try_with(&house, &repo, &script(&[shell(command)]), &["--allow", "."]);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert_eq!(bundle.codes(), ["dirty_ending_tree"]);
        assert_good(&bundle);
    }
}

#[test]
fn the_engine_sees_neither_history_nor_what_else_lies_where_it_stands() {
    let house = house();
    let repo = Repo::new(&house, "history");
    repo.write("old-secret.txt", "in the past\n");
    repo.commit("once");
    fs::remove_file(repo.at("old-secret.txt")).unwrap();
    repo.commit("no more");
    repo.write("only-there.log", "ignored");
    let look = format!(
        "git log --oneline | wc -l | grep -qx 1 && ! git cat-file -e {} 2>/dev/null && ! ls {}/only-there.log 2>/dev/null && echo right > answer.txt",
        repo.git(&["rev-parse", "HEAD~1:old-secret.txt"]),
        repo.path(),
    );
    let (answer, bundle) = try_with(&house, &repo, &script(&[shell(&look)]), &[]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("backend/stderr.log")
    );
}
