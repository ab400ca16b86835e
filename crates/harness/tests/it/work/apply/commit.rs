//! `cto apply --commit` and `--branch`: a verified patch as a commit of the person who types it.

use std::fs;
use std::time::Duration;

use cto_testkit::{Answer, Bundle, House, ORACLE, Repo, is_root, skip};

use crate::house;
use crate::work::full_disks::SmallDisk;

fn tried(house: &House) -> (Repo, Bundle) {
    let repo = Repo::new(house, "project");
    repo.git(&["config", "user.name", "A. Owner"]);
    repo.git(&["config", "user.email", "owner@example.invalid"]);
    let (answer, bundle) = house.try_on(&repo, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (repo, bundle)
}

fn apply(house: &House, bundle: &Bundle, more: &[&str]) -> Answer {
    house.cto(&[&["apply", &bundle.run_id(), "--json"][..], more].concat())
}

fn tidy(repo: &Repo) {
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    for (name, _) in repo.bytes() {
        assert!(
            !name.contains("cto-landing") && !name.contains("index.lock"),
            "{name}"
        );
    }
}

#[test]
fn a_commit_is_the_persons_and_names_the_run() {
    let house = house();
    let (repo, bundle) = tried(&house);
    let (head, before) = (repo.git(&["rev-parse", "HEAD"]), repo.bytes());
    let checked = apply(&house, &bundle, &["--commit", "--check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert_eq!(checked.json()["applied"], false);
    assert_eq!(repo.bytes(), before, "--check changes nothing");
    let answer = apply(&house, &bundle, &["--commit", "-m", "Make it right"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let landed = &answer.json()["landed"];
    assert_eq!(landed["way"], "merge");
    assert_eq!(landed["commit"], repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), head);
    let said = repo.git(&["log", "-1", "--format=%s|%an|%ce|%(trailers:separator=;)"]);
    let run = bundle.run_id();
    assert_eq!(
        said,
        format!("Make it right|A. Owner|owner@example.invalid|Cto-Run: {run}")
    );
    assert_eq!(repo.read("answer.txt"), "right\n");
    // The tree that was verified is the tree of the commit.
    let tree = bundle.report()["result"]["tree"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(repo.git(&["rev-parse", "HEAD^{tree}"]), tree);
    tidy(&repo);
    let again = apply(&house, &bundle, &["--commit"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(house.work_entries().is_empty());
}

#[test]
fn a_branch_is_a_ref_only() {
    let house = house();
    let (repo, bundle) = tried(&house);
    repo.write("answer.txt", "my own work\n");
    let head = repo.git(&["rev-parse", "HEAD"]);
    let index = fs::read(repo.at(".git/index")).unwrap();
    let answer = apply(&house, &bundle, &["--branch", "fix/right"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["landed"]["branch"], "refs/heads/fix/right");
    assert_eq!(repo.git(&["show", "fix/right:answer.txt"]), "right");
    assert_eq!(
        (repo.git(&["rev-parse", "HEAD"]), repo.read("answer.txt")),
        (head, "my own work\n".into())
    );
    assert_eq!(fs::read(repo.at(".git/index")).unwrap(), index);
    let taken = apply(&house, &bundle, &["--branch", "fix"]);
    assert_eq!(
        taken.json()["error"]["code"],
        "landing_unsupported",
        "{taken:?}"
    );
    for (words, code) in [
        (&["--branch", "../x"][..], "bad_branch"),
        (&["--branch", "x", "-m", "Cto-Run: another"], "bad_message"),
        (&["-m", "words alone"], "no_commit"),
    ] {
        let refused = apply(&house, &bundle, words);
        assert_eq!(
            (refused.code, &refused.json()["error"]["code"]),
            (Some(2), &code.into()),
            "{refused:?}"
        );
    }
}

#[test]
fn what_cannot_land_is_refused_with_its_reason_and_not_one_byte_changes() {
    type Make = fn(&Repo);
    let rows: [(&str, &str, Make); 5] = [
        ("dirty_path", "not as HEAD", |repo| {
            repo.write("answer.txt", "mine\n")
        }),
        ("landing_unsupported", "no branch", |repo| {
            drop(repo.git(&["checkout", "-q", "--detach"]))
        }),
        ("landing_unsupported", "never started", |repo| {
            repo.write(".git/info/attributes", "*.txt filter=lfs\n")
        }),
        ("landing_unsupported", "checked out", |repo| {
            drop(repo.git(&["config", "core.sparseCheckout", "true"]))
        }),
        ("busy", "another git", |repo| {
            repo.write(".git/index.lock", "")
        }),
    ];
    let house = house();
    for (code, reason, make) in rows {
        let (repo, bundle) = tried(&house);
        make(&repo);
        let before = repo.bytes();
        let answer = apply(&house, &bundle, &["--commit"]);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.code, &error["code"]),
            (Some(3), &code.into()),
            "{answer:?}"
        );
        assert!(error["because"].to_string().contains(reason), "{error}");
        assert_eq!(repo.bytes(), before, "{code} {reason}");
        fs::remove_dir_all(&repo.dir).unwrap();
    }
}

#[test]
fn git_and_its_hooks_do_not_commit() {
    for variable in ["GIT_DIR", "GIT_INDEX_FILE"] {
        let house = house();
        let (repo, bundle) = tried(&house);
        let (before, house) = (repo.bytes(), house.with(variable, ".git"));
        let answer = apply(&house, &bundle, &["--commit"]);
        let code = &answer.json()["error"]["code"];
        assert_eq!(code, "not_typed_by_a_person", "{answer:?}");
        assert_eq!(repo.bytes(), before);
    }
}

/// The real program, killed at whatever moment: then one `cto recover`.
#[test]
fn killed_at_any_moment_it_is_the_old_or_the_new_commit() {
    let house = house();
    let (repo, bundle) = tried(&house);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let mut landed = 0;
    for number in 0..40u64 {
        let mut child = house.start(&["apply", &bundle.run_id(), "--commit"]);
        std::thread::sleep(Duration::from_millis(20 + number * 8));
        child.kill().unwrap();
        child.wait().unwrap();
        let answer = house.cto(&["recover", "--json"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        tidy(&repo);
        let now = repo.git(&["rev-parse", "HEAD"]);
        let text = repo.read("answer.txt");
        match now == head {
            true => assert_eq!(text, "wrong\n", "{number}"),
            false => {
                assert_eq!(text, "right\n", "{number}");
                landed += 1;
                repo.git(&["reset", "-q", "--hard", &head]);
            }
        }
    }
    assert!(landed < 40, "it was never killed in time");
}

#[test]
fn a_full_disk_leaves_the_repository_as_it_was() {
    if !is_root() {
        return skip("mounts a file system");
    }
    let house = house();
    let Some(_disk) = SmallDisk::mount_with(&house.root().join("project"), "size=600k") else {
        return skip("no mount");
    };
    let (repo, bundle) = tried(&house);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let filler = repo.at(".git/filler");
    let mut refused = 0;
    // Everything full, and then a page more room each time.
    for pages in 0..24usize {
        let _ = fs::write(&filler, vec![b'x'; 1 << 20]);
        let size = fs::metadata(&filler).unwrap().len();
        let left = size.saturating_sub(pages as u64 * 4096);
        fs::OpenOptions::new()
            .write(true)
            .open(&filler)
            .unwrap()
            .set_len(left)
            .unwrap();
        let answer = apply(&house, &bundle, &["--commit"]);
        fs::remove_file(&filler).unwrap();
        match answer.code {
            Some(0) => break,
            Some(3) => refused += 1,
            _ => panic!("{pages}: {answer:?}"),
        }
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), head, "{pages}");
        assert_eq!(repo.read("answer.txt"), "wrong\n", "{pages}");
        tidy(&repo);
    }
    assert!(refused > 0, "the disk was never full");
    assert_eq!(repo.read("answer.txt"), "right\n");
    tidy(&repo);
}
