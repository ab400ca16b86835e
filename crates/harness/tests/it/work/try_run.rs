//! `cto try`: a private copy of somebody's own repository, which stays exactly as it was.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use cto_testkit::{Answer, Bundle, Forged, House, Repo, script, shell, wait_until, write};

use crate::assert_bad;
use crate::assert_good;
use crate::house;

const TEST: &str = "grep -qx right answer.txt";

/// The right change, by a scripted engine.
fn fix() -> String {
    script(&[write("answer.txt", "right\n")])
}

/// What somebody does to a repository, and how it is called.
type Done<'a> = (&'a str, &'a dyn Fn(&Repo));

fn try_with(house: &House, repo: &Repo, steps: &str, more: &[&str]) -> (Answer, Bundle) {
    let file = house.script(&format!("try-{}", house.run_dirs().len()), steps);
    let mut args = vec![
        "try",
        "--repo",
        repo.path(),
        "--task",
        "Make the answer right",
        "--script",
        &file,
        "--json",
    ];
    if !more.contains(&"--allow") {
        args.extend(["--allow", "answer.txt"]);
    }
    if !more.contains(&"--test") {
        args.extend(["--test", TEST]);
    }
    args.extend(more);
    house.run_args(&args)
}

/// Blocked before anything ran, by this code, and the repository is byte for byte as it was.
fn assert_refused(house: &House, repo: &Repo, more: &[&str], code: &str) -> Bundle {
    let before = repo.bytes();
    let (answer, bundle) = try_with(house, repo, &fix(), more);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(bundle.codes(), [code], "{answer:?}");
    assert_eq!(bundle.report()["process_started"], false);
    assert_eq!(repo.bytes(), before);
    assert!(house.work_entries().is_empty());
    assert_good(&bundle);
    bundle
}

#[test]
fn a_try_passes_on_a_copy_and_leaves_the_source_alone() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let before = repo.bytes();
    let (answer, bundle) = try_with(&house, &repo, &fix(), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(repo.bytes(), before);
    let report = bundle.report();
    assert_eq!(
        (report["label"].as_str(), report["stage"].as_u64()),
        (Some("try"), Some(3))
    );
    assert_eq!(
        report["not_applicable"]["stage_proof"],
        "a try proves no stage"
    );
    assert_eq!(
        report["allowed_mutation_scope"],
        "copied local repository fixture only"
    );
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
    let source = bundle.json("source.json");
    assert_eq!(source["record"]["class"], "owned_local");
    assert_eq!(
        source["source_head_before"],
        repo.git(&["rev-parse", "HEAD"])
    );
    assert_eq!(source["tree"], repo.git(&["rev-parse", "HEAD^{tree}"]));
    for (field, want) in [
        ("source_repository_mutated", false),
        ("copied_fixture_start_clean", true),
        ("copied_fixture_end_clean", true),
    ] {
        assert_eq!(source[field], want, "{field}");
    }
    for aspect in ["head", "status", "fingerprint"] {
        assert_eq!(
            source[format!("source_{aspect}_before")],
            source[format!("source_{aspect}_after")],
            "{aspect}"
        );
    }
    let contract = bundle.json("contract.json");
    assert_eq!(contract["mutation_mode"], "copied-repo");
    assert_eq!(contract["objective"], "Make the answer right");
    assert_eq!(contract["source"]["head"], source["source_head_before"]);
    assert!(
        !bundle.has("stage3-copied-repo-proof.json"),
        "a try proves no stage"
    );
    assert!(answer.json()["next"].as_str().unwrap().contains("apply"));
    assert!(house.work_entries().is_empty());
    assert_good(&bundle);
}

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
    let (answer, bundle) = try_with(&house, &repo, &fix(), &["--test", test]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
    );
    assert_good(&bundle);
}

#[test]
fn a_submodule_is_named_and_not_copied() {
    let house = house();
    let (inner, repo) = (Repo::new(&house, "inner"), Repo::new(&house, "outer"));
    repo.git(&["submodule", "--quiet", "add", inner.path(), "module"]);
    repo.commit("a submodule");
    let test = format!("test -d module && test -z \"$(ls module)\" && {TEST}");
    let (answer, bundle) = try_with(&house, &repo, &fix(), &["--test", &test]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
    );
    assert_eq!(bundle.changed_files(), ["answer.txt"]);
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
    for (place, test) in [
        (&tree, format!("test -e only-here.txt && {TEST}")),
        (
            &Repo {
                dir: repo.at("src"),
            },
            TEST.to_owned(),
        ),
    ] {
        let (answer, bundle) = try_with(&house, place, &fix(), &["--test", &test]);
        assert_eq!(
            answer.code,
            Some(0),
            "{answer:?} {}",
            bundle.text("test.log")
        );
        assert_good(&bundle);
    }
}

#[test]
fn allowed_paths_mean_files_directories_or_everything() {
    let house = house();
    let repo = Repo::new(&house, "scope");
    let steps = script(&[write("answer.txt", "right\n"), write("src/new.txt", "x\n")]);
    for (allow, code) in [
        (&["--allow", "answer.txt", "--allow", "src"][..], 0),
        (&["--allow", "."], 0),
        (&["--allow", "answer.txt"], 1),
        (&["--allow", ".", "--forbid", "src"], 1),
    ] {
        let (answer, bundle) = try_with(&house, &repo, &steps, allow);
        assert_eq!(answer.code, Some(code), "{allow:?}: {answer:?}");
        assert_good(&bundle);
    }
}

#[test]
fn what_is_no_repository_is_refused_with_a_bundle() {
    let house = house();
    let plain = Repo {
        dir: house.root().join("plain"),
    };
    fs::create_dir(&plain.dir).unwrap();
    let unborn = Repo {
        dir: house.root().join("unborn"),
    };
    fs::create_dir(&unborn.dir).unwrap();
    unborn.git(&["init", "-q"]);
    let bare = Repo {
        dir: house.root().join("bare"),
    };
    fs::create_dir(&bare.dir).unwrap();
    bare.git(&["init", "-q", "--bare"]);
    let other = Repo {
        dir: house.root().join("sha256"),
    };
    fs::create_dir(&other.dir).unwrap();
    other.git(&["init", "-q", "--object-format=sha256"]);
    other.write("answer.txt", "wrong\n");
    other.commit("start");
    let missing = Repo {
        dir: house.root().join("missing"),
    };
    for repo in [&plain, &unborn, &bare, &other, &missing] {
        let bundle = assert_refused(&house, repo, &[], "source_not_admitted");
        assert!(!bundle.has("source.json"));
        assert_eq!(bundle.json("contract.json")["start_tree"], "not_seen");
    }
}

#[test]
fn a_closed_gate_keeps_the_source_unseen() {
    let house = house();
    // Nothing of it exists: a look would say so.
    let missing = house.root().join("missing");
    let args = [
        "try",
        "--repo",
        missing.to_str().unwrap(),
        "--task",
        "x",
        "--allow",
        "a",
        "--test",
        "true",
    ];
    let (answer, bundle) = house.run_args(&[&args[..], &["--engine", "pi", "--json"]].concat());
    assert_eq!(answer.code, Some(3));
    assert_eq!(bundle.codes(), ["engine_gate_closed"]);
    let contract = bundle.json("contract.json");
    assert_eq!(
        (&contract["source"]["head"], &contract["start_tree"]),
        (&"not_seen".into(), &"not_seen".into())
    );
    let gates = bundle.json("gates.json");
    let state = gates["gates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|gate| gate["gate"] == "source-state")
        .unwrap();
    assert_eq!(state["result"], "not_seen");
    assert!(!bundle.has("source.json"));
    assert_good(&bundle);
}

/// Everything in a repository that makes ordinary git run a program.
#[test]
fn nothing_of_the_repository_is_executed() {
    let house = house();
    let repo = Repo::new(&house, "hostile");
    let marker = house.root().join("ran");
    let trap = format!("touch {}", marker.display());
    repo.write(".gitattributes", "*.txt filter=trap diff=trap\n");
    repo.commit("attributes");
    for (key, value) in [
        ("filter.trap.clean", trap.as_str()),
        ("filter.trap.smudge", &trap),
        ("filter.trap.process", &trap),
        ("diff.trap.textconv", &trap),
        ("diff.external", &trap),
        ("core.fsmonitor", &trap),
        ("core.sshCommand", &trap),
        ("core.pager", &trap),
    ] {
        repo.git(&["config", key, value]);
    }
    for hook in [
        "post-checkout",
        "post-index-change",
        "pre-commit",
        "reference-transaction",
        "fsmonitor-watchman",
    ] {
        repo.program(
            &format!(".git/hooks/{hook}"),
            &format!("#!/bin/sh\n{trap}\n"),
        );
    }
    let before = repo.bytes();
    let (answer, bundle) = try_with(&house, &repo, &fix(), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let applied = house.cto(&["apply", &bundle.run_id(), "--check"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(!marker.exists(), "a program of the repository ran");
    assert_eq!(repo.bytes(), before);
}

/// A partial clone asks its remote for what it lacks, by a program its configuration names.
#[test]
fn a_missing_object_is_not_fetched() {
    for kind in ["HEAD", "HEAD^{tree}"] {
        let house = house();
        let repo = Repo::new(&house, "partial");
        let marker = house.root().join("ran");
        repo.program(
            "../upload",
            &format!("#!/bin/sh\ntouch {}\nexit 1\n", marker.display()),
        );
        let id = repo.git(&["rev-parse", kind]);
        let upload = house.root().join("upload").display().to_string();
        for (key, value) in [
            ("core.repositoryformatversion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.url", "/nowhere"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.uploadpack", &upload),
        ] {
            repo.git(&["config", key, value]);
        }
        fs::remove_file(repo.at(format!(".git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
        assert_refused(&house, &repo, &[], "source_not_admitted");
        assert!(!marker.exists(), "{kind}: a program of the repository ran");
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
    let (answer, bundle) = try_with(
        &house,
        &repo,
        &fix(),
        &[
            "--input",
            "deps",
            "--test",
            "grep -qx right deps/tool answer.txt",
        ],
    );
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
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
        "rmdir module; echo x > module; echo right > answer.txt",
    ] {
        let (answer, bundle) =
            try_with(&house, &repo, &script(&[shell(command)]), &["--allow", "."]);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert_eq!(bundle.codes(), ["dirty_ending_tree"]);
        assert_good(&bundle);
    }
}

#[test]
fn a_pipe_in_the_repository_does_not_hang() {
    let house = house();
    let repo = Repo::new(&house, "pipes");
    fs::remove_file(repo.at(".git/info/exclude")).unwrap_or_default();
    std::process::Command::new("mkfifo")
        .arg(repo.at(".git/info/exclude"))
        .status()
        .unwrap();
    let file = house.script("fix", &fix());
    let args = [
        "try",
        "--repo",
        repo.path(),
        "--task",
        "x",
        "--allow",
        "answer.txt",
        "--test",
        TEST,
        "--script",
        &file,
        "--json",
    ];
    let (answer, bundle) = house.run_args(&args);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["source_not_admitted".to_owned()]),
        "{answer:?}"
    );
}

#[test]
fn the_engine_sees_neither_history_nor_the_place_it_came_from() {
    let house = house();
    let repo = Repo::new(&house, "history");
    repo.write("old-secret.txt", "in the past\n");
    repo.commit("once");
    fs::remove_file(repo.at("old-secret.txt")).unwrap();
    repo.commit("no more");
    let look = format!(
        "git log --oneline | wc -l | grep -qx 1 && ! git cat-file -e {} 2>/dev/null && ! ls {} 2>/dev/null && echo right > answer.txt",
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

#[test]
fn a_source_that_changes_meanwhile_fails_the_run() {
    let changes: [Done<'_>; 6] = [
        ("told not to look", &|repo| {
            repo.git(&["update-index", "--assume-unchanged", "src/keep.txt"]);
        }),
        ("edited", &|repo| repo.write("src/keep.txt", "edited\n")),
        ("committed", &|repo| {
            repo.git(&["commit", "-q", "--allow-empty", "-m", "meanwhile"]);
        }),
        ("branch", &|repo| {
            repo.git(&["branch", "meanwhile"]);
        }),
        ("configured", &|repo| {
            repo.git(&["config", "core.fsmonitor", "evil"]);
        }),
        ("hooked", &|repo| {
            repo.program(".git/hooks/pre-push", "#!/bin/sh\n")
        }),
    ];
    for (name, change) in changes {
        // The engine waits for its own workspace to hold a file that the test puts there: only a
        // plain copy can be reached.
        let house = house().with("CTO_TEST_WORKSPACE", "copy");
        let repo = Repo::new(&house, "watched");
        let steps = script(&[
            shell("while ! test -e .git/go; do sleep 0.01; done"),
            write("answer.txt", "right\n"),
        ]);
        let file = house.script("wait", &steps);
        let args = [
            "try",
            "--repo",
            repo.path(),
            "--task",
            "x",
            "--allow",
            "answer.txt",
            "--test",
            TEST,
            "--script",
            &file,
        ];
        let mut child = house.start(&args);
        let workspace = || {
            Some(
                house
                    .state()
                    .join("work")
                    .join(house.work_entries().iter().find(|n| n.contains("-try-"))?),
            )
        };
        assert!(
            wait_until(
                || workspace().is_some_and(|work| work.join("workspace/.git/index").exists())
            ),
            "{name}"
        );
        change(&repo);
        fs::write(workspace().unwrap().join("workspace/.git/go"), "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{name}");
        let bundle = Bundle::at(house.run_dirs().pop().unwrap());
        assert_eq!(bundle.codes(), ["source_repository_mutated"], "{name}");
        assert_eq!(
            bundle.json("source.json")["source_repository_mutated"],
            true,
            "{name}"
        );
        assert_good(&bundle);
    }
}

#[test]
fn a_forged_source_is_noticed() {
    let house = house();
    let repo = Repo::new(&house, "forged");
    let (_, bundle) = try_with(&house, &repo, &fix(), &[]);
    let edits: [(&str, &str); 5] = [
        (
            "\"source_repository_mutated\": false",
            "\"source_repository_mutated\": true",
        ),
        (
            "\"source_repository_mutated\": false",
            "\"source_repository_mutated\": null",
        ),
        ("\"class\": \"owned_local\"", "\"class\": \"external\""),
        ("\"from_head\": false", "\"from_head\": true"),
        (
            "\"copied_fixture_start_clean\": true",
            "\"copied_fixture_start_clean\": false",
        ),
    ];
    for (from, to) in edits {
        let text = bundle.text("source.json");
        assert!(text.contains(from), "{from}");
        let forged = Forged::copy_of(&bundle);
        forged
            .put("source.json", text.replace(from, to).as_bytes())
            .reseal();
        assert_bad(&forged.bundle(), to);
    }
    let forged = Forged::copy_of(&bundle);
    forged.remove("source.json").edit_report(|report| {
        report["freshness"]["artifacts"]
            .as_object_mut()
            .unwrap()
            .remove("source.json");
    });
    forged.reseal();
    assert_bad(&forged.bundle(), "source.json removed");
}

#[test]
fn bad_words_are_usage_errors() {
    let house = house();
    let repo = Repo::new(&house, "usage");
    let file = house.script("fix", &fix());
    let base = ["try", "--repo", repo.path(), "--script", &file];
    for (more, want) in [
        (
            &["--task", " ", "--allow", "a", "--test", "true"][..],
            "empty_task",
        ),
        (
            &["--task", "x", "--allow", "../a", "--test", "true"],
            "bad_path",
        ),
        (
            &["--task", "x", "--allow", "/etc", "--test", "true"],
            "bad_path",
        ),
        (&["--task", "x", "--allow", "a"], "--test"),
        (&["--task", "x", "--test", "true"], "--allow"),
        (&["--allow", "a", "--test", "true"], "--task"),
        (
            &[
                "--task",
                "x",
                "--allow",
                "a",
                "--test",
                "true",
                "--control",
                "/nonexistent",
            ],
            "unreadable_control",
        ),
    ] {
        let answer = house.cto(&[&base[..], more].concat());
        assert_eq!(answer.code, Some(2), "{more:?}: {answer:?}");
        assert!(answer.stderr.contains(want), "{more:?}: {}", answer.stderr);
    }
    let answer = house.cto(&[
        "try",
        "--repo",
        repo.path(),
        "--task",
        "x",
        "--allow",
        "a",
        "--test",
        "true",
    ]);
    assert!(
        answer.code == Some(2) && answer.stderr.contains("script_missing"),
        "{answer:?}"
    );
    assert!(house.run_dirs().is_empty());
}

#[test]
fn a_patch_file_can_be_played() {
    let house = house();
    let repo = Repo::new(&house, "patched");
    repo.write("answer.txt", "right\n");
    let patch = house.root().join("fix.patch");
    fs::write(&patch, repo.git(&["diff"]) + "\n").unwrap();
    repo.git(&["checkout", "-q", "answer.txt"]);
    let args = [
        "try",
        "--repo",
        repo.path(),
        "--task",
        "x",
        "--allow",
        "answer.txt",
        "--test",
        TEST,
        "--json",
        "--script",
    ];
    let (answer, bundle) = house.run_args(&[&args[..], &[patch.to_str().unwrap()]].concat());
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("backend/stderr.log")
    );
}

#[test]
fn a_control_patch_must_turn_the_test_red() {
    let house = house();
    let repo = Repo::new(&house, "controlled");
    let control = house.root().join("control.patch");
    let patch =
        |line: &str| format!("--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-right\n+{line}\n");
    for (line, code) in [("wrong", 0), ("right\n+more", 1)] {
        fs::write(
            &control,
            patch(line).replace(
                "@@ -1 +1 @@",
                if line == "wrong" {
                    "@@ -1 +1 @@"
                } else {
                    "@@ -1 +1,2 @@"
                },
            ),
        )
        .unwrap();
        let (answer, bundle) = try_with(
            &house,
            &repo,
            &fix(),
            &["--control", control.to_str().unwrap()],
        );
        assert_eq!(
            answer.code,
            Some(code),
            "{answer:?} {}",
            bundle.text("test.log")
        );
    }
}

#[test]
fn a_failed_workspace_can_be_kept() {
    let house = house();
    let repo = Repo::new(&house, "kept");
    let (answer, _) = try_with(
        &house,
        &repo,
        &script(&[write("answer.txt", "still wrong\n")]),
        &["--keep"],
    );
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let kept = answer.json()["workspace"].as_str().unwrap().to_owned();
    assert_eq!(
        fs::read_to_string(format!("{kept}/answer.txt")).unwrap(),
        "still wrong\n"
    );
    let (passed, _) = try_with(&house, &repo, &fix(), &["--keep"]);
    assert_eq!(
        (passed.code, &passed.json()["workspace"]),
        (Some(0), &serde_json::Value::Null)
    );
    assert_eq!(house.work_entries().len(), 1, "only the failed one is kept");
}
