//! `cto apply`: only a verified pass, only onto clean paths, nothing staged, nothing committed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use cto_testkit::{Answer, Bundle, Case, House, ORACLE, Repo, script, shell};

use crate::house;

/// Changes a file, removes one, adds a program, a link and bytes that are no text.
const CHANGES: &str = "echo right > answer.txt && rm src/old/gone.txt && printf '#!/bin/sh\\n' > src/tool && chmod 755 src/tool && ln -s tool src/link && printf '\\000\\377' > src/new/deep.bin";
const TOUCHED: [&str; 5] = [
    "answer.txt",
    "src/link",
    "src/new/deep.bin",
    "src/old/gone.txt",
    "src/tool",
];

/// What was done to a repository, and how it is called.
type Prepared<'a> = (&'a str, &'a dyn Fn(&Repo));

fn tried(house: &House) -> (Repo, Bundle) {
    let repo = Repo::new(house, "project");
    repo.write("src/old/gone.txt", "goes away\n");
    repo.write("elsewhere.txt", "not touched by the patch\n");
    repo.commit("more");
    let steps = script(&[shell(&format!("mkdir -p src/new && {CHANGES}"))]);
    let (answer, bundle) = house.try_on(&repo, &steps, &["--allow", "."]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (repo, bundle)
}

fn apply(house: &House, bundle: &Bundle, more: &[&str]) -> Answer {
    house.cto(&[&["apply", &bundle.run_id(), "--json"][..], more].concat())
}

/// Refused with this code and exit 3, and not one byte of the repository is different.
fn assert_refused(house: &House, repo: &Repo, bundle: &Bundle, code: &str, name: &str) {
    for more in [&[][..], &["--check"]] {
        let before = repo.bytes();
        let answer = apply(house, bundle, more);
        assert_eq!(answer.code, Some(3), "{name}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], code, "{name}: {answer:?}");
        assert_eq!(repo.bytes(), before, "{name}");
    }
}

#[test]
fn a_verified_patch_goes_in_unstaged_and_uncommitted() {
    let house = house();
    let (repo, bundle) = tried(&house);
    let (before, head) = (repo.bytes(), repo.git(&["rev-parse", "HEAD"]));
    let checked = apply(&house, &bundle, &["--check"]);
    assert_eq!(
        (checked.code, &checked.json()["applied"]),
        (Some(0), &false.into()),
        "{checked:?}"
    );
    assert_eq!(repo.bytes(), before, "--check changes nothing");
    let applied = apply(&house, &bundle, &[]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(applied.json()["changed_files"], serde_json::json!(TOUCHED));
    assert_eq!(repo.read("answer.txt"), "right\n");
    assert!(
        !repo.at("src/old").exists(),
        "a directory that holds nothing is gone"
    );
    assert_eq!(fs::read(repo.at("src/new/deep.bin")).unwrap(), [0, 255]);
    assert_eq!(
        fs::metadata(repo.at("src/tool"))
            .unwrap()
            .permissions()
            .mode()
            & 0o100,
        0o100
    );
    assert_eq!(
        fs::read_link(repo.at("src/link")).unwrap().to_str(),
        Some("tool")
    );
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "");
    assert!(
        !fs::read_dir(&repo.dir)
            .unwrap()
            .flatten()
            .any(|e| e.file_name().to_string_lossy().starts_with(".cto-apply"))
    );
    // What is there now is exactly the tree that was verified.
    repo.git(&["add", "-A"]);
    assert_eq!(
        repo.git(&["write-tree"]),
        bundle.report()["result"]["tree"].as_str().unwrap()
    );
    assert!(house.work_entries().is_empty());
}

#[test]
fn a_second_time_says_so_and_changes_nothing() {
    let house = house();
    let (repo, bundle) = tried(&house);
    assert_eq!(apply(&house, &bundle, &[]).code, Some(0));
    let before = repo.bytes();
    let again = apply(&house, &bundle, &[]);
    assert_eq!(
        (again.code, &again.json()["was_applied_before"]),
        (Some(0), &true.into()),
        "{again:?}"
    );
    assert_eq!(repo.bytes(), before);
}

#[test]
fn dirty_paths_are_never_touched() {
    let dirts: [Prepared<'_>; 8] = [
        ("edited", &|repo| repo.write("answer.txt", "my work\n")),
        ("staged", &|repo| {
            repo.write("answer.txt", "staged\n");
            repo.git(&["add", "answer.txt"]);
            repo.write("answer.txt", "wrong\n");
        }),
        ("in the way", &|repo| {
            repo.write("src/tool", "mine, untracked\n")
        }),
        ("ignored and in the way", &|repo| {
            repo.write(".git/info/exclude", "src/tool\n");
            repo.write("src/tool", "mine, ignored\n");
        }),
        ("removed", &|repo| {
            fs::remove_file(repo.at("answer.txt")).unwrap()
        }),
        ("a link on the way", &|repo| {
            fs::rename(repo.at("src"), repo.at("real")).unwrap();
            symlink("real", repo.at("src")).unwrap();
        }),
        ("assumed unchanged", &|repo| {
            repo.git(&["update-index", "--assume-unchanged", "answer.txt"]);
            repo.write("answer.txt", "hidden from git\n");
        }),
        ("a merge under way", &|repo| {
            repo.write(
                ".git/MERGE_HEAD",
                "0000000000000000000000000000000000000000\n",
            )
        }),
    ];
    for (name, make) in dirts {
        let house = house();
        let (repo, bundle) = tried(&house);
        make(&repo);
        assert_refused(&house, &repo, &bundle, "dirty_path", name);
    }
}

#[test]
fn other_dirty_paths_and_later_commits_do_not_matter() {
    let house = house();
    let (repo, bundle) = tried(&house);
    repo.write("later.txt", "committed since\n");
    repo.commit("later");
    repo.write("elsewhere.txt", "my own work\n");
    repo.write("untracked.txt", "mine\n");
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    assert_eq!(apply(&house, &bundle, &[]).code, Some(0));
    assert_eq!(
        (repo.read("answer.txt"), repo.read("elsewhere.txt")),
        ("right\n".into(), "my own work\n".into())
    );
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "staged.txt");
}

#[test]
fn a_commit_that_touched_the_path_is_not_overwritten() {
    let house = house();
    let (repo, bundle) = tried(&house);
    // Far from the changed line, so that a patch tool would not mind.
    repo.write("answer.txt", "wrong\n2\n3\n4\n5\n6\n7\n8\n");
    repo.commit("moved on");
    assert_refused(&house, &repo, &bundle, "dirty_path", "committed since");
}

#[test]
fn only_a_verified_pass_of_a_copied_repository_is_applied() {
    let house = house();
    let (repo, bundle) = tried(&house);
    let bytes = bundle.bytes("patch.diff");
    fs::write(
        bundle.dir.join("patch.diff"),
        String::from_utf8_lossy(&bytes).replace("+right", "+other"),
    )
    .unwrap();
    assert_refused(&house, &repo, &bundle, "not_a_verified_pass", "tampered");

    let (other, failed) = {
        let repo = Repo::new(&house, "failing");
        let (answer, bundle) = house.try_on(&repo, "", &["--allow", ".", "--test", "true"]);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        (repo, bundle)
    };
    assert_refused(&house, &other, &failed, "not_a_verified_pass", "failed");

    let case = house.case(&Case::new("quick"));
    let (_, case_run) = house.run(&case, ORACLE, &[]);
    assert_refused(&house, &repo, &case_run, "no_source", "a case");
}

#[test]
fn another_repository_is_refused() {
    let house = house();
    let (_, bundle) = tried(&house);
    let other = Repo {
        dir: house.root().join("other"),
    };
    fs::create_dir(&other.dir).unwrap();
    other.git(&["init", "-q"]);
    other.write("answer.txt", "wrong\n");
    other.commit("unrelated");
    let before = other.bytes();
    let answer = apply(&house, &bundle, &["--repo", other.path()]);
    assert_eq!(
        (answer.code, &answer.json()["error"]["code"]),
        (Some(3), &"other_repository".into()),
        "{answer:?}"
    );
    assert_eq!(other.bytes(), before);
    let answer = apply(&house, &bundle, &["--repo", house.root().to_str().unwrap()]);
    assert_eq!(
        (answer.code, &answer.json()["error"]["code"]),
        (Some(3), &"no_repository".into()),
        "{answer:?}"
    );
}

#[test]
fn a_clone_with_the_same_commit_will_do() {
    let house = house();
    let (repo, bundle) = tried(&house);
    let clone = Repo {
        dir: house.root().join("clone"),
    };
    repo.git(&["clone", "-q", ".", clone.path()]);
    assert_eq!(
        apply(&house, &bundle, &["--repo", clone.path()]).code,
        Some(0)
    );
    assert_eq!(
        (clone.read("answer.txt"), repo.read("answer.txt")),
        ("right\n".into(), "wrong\n".into())
    );
}

#[test]
fn git_and_its_hooks_do_not_apply() {
    for variable in ["GIT_DIR", "GIT_PREFIX", "GIT_EXEC_PATH"] {
        let house = house();
        let (repo, bundle) = tried(&house);
        let house = house.with(variable, ".git");
        assert_refused(&house, &repo, &bundle, "not_typed_by_a_person", variable);
    }
}

/// A try of one shell command on a fresh repository, and the bundle it left.
fn tried_with(house: &House, prepare: &dyn Fn(&Repo), command: &str) -> (Repo, Bundle) {
    let repo = Repo::new(house, "other-project");
    prepare(&repo);
    repo.commit("prepared");
    let steps = script(&[shell(command)]);
    let more = [
        "--allow",
        ".",
        "--test",
        "true",
        "--unchecked",
        "only applied",
    ];
    let (answer, bundle) = house.try_on(&repo, &steps, &more);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (repo, bundle)
}

#[test]
fn modes_and_kinds_change_as_verified() {
    let prepare = |repo: &Repo| {
        repo.write("x", "a file\n");
        repo.write("d/y", "in a directory\n");
        repo.write("run.sh", "#!/bin/sh\n");
    };
    let house = house();
    let (repo, bundle) = tried_with(
        &house,
        &prepare,
        "rm x && mkdir x && echo new > x/y && rm -r d && echo file > d && chmod 755 run.sh",
    );
    let applied = apply(&house, &bundle, &[]);
    assert_eq!(
        (applied.code, &applied.json()["was_applied_before"]),
        (Some(0), &false.into()),
        "{applied:?}"
    );
    assert_eq!(
        (repo.read("x/y"), repo.read("d")),
        ("new\n".into(), "file\n".into())
    );
    assert_eq!(
        fs::metadata(repo.at("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o111,
        0o111
    );
    repo.git(&["add", "-A"]);
    assert_eq!(
        repo.git(&["write-tree"]),
        bundle.report()["result"]["tree"].as_str().unwrap()
    );
}

#[test]
fn a_repository_inside_the_repository_is_not_written_to() {
    let house = house();
    let (repo, bundle) = tried_with(
        &house,
        &|repo| repo.write("a", "a\n"),
        "mkdir n && echo f > n/f",
    );
    let inner = Repo { dir: repo.at("n") };
    fs::create_dir(&inner.dir).unwrap();
    inner.git(&["init", "-q"]);
    assert_refused(&house, &repo, &bundle, "dirty_path", "a nested repository");
}

#[test]
fn many_at_once_leave_all_of_it_or_say_no() {
    let house = house();
    let (repo, bundle) = tried_with(
        &house,
        &|repo| (0..6).for_each(|n| repo.write(&format!("f{n}"), "old\n")),
        "for n in 0 1 2 3 4 5; do echo new > f$n; done",
    );
    let mut children: Vec<_> = (0..6)
        .map(|_| house.start(&["apply", &bundle.run_id()]))
        .collect();
    let codes: Vec<_> = children
        .iter_mut()
        .map(|child| child.wait().unwrap().code())
        .collect();
    assert!(
        codes.contains(&Some(0)) && codes.iter().all(|code| matches!(code, Some(0 | 3))),
        "{codes:?}"
    );
    (0..6).for_each(|n| assert_eq!(repo.read(&format!("f{n}")), "new\n", "{codes:?}"));
}
