//! Stage 5 amid what happens: kills at any instant, secrets in the repository, and what its owner has lying around.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::stage4;
use super::stage5::{Owner, journals};

/// Kills the command at ever later instants; after each kill one recovery leaves the old or the new commit, clean,
/// and the word can be said again.
#[test]
fn killed_at_any_instant_one_recovery_leaves_the_old_or_the_new_commit() {
    const ROUNDS: u64 = 12;
    let owner = Owner::new();
    let run = owner.waiting(&[]);
    let (id, old) = (run.run_id(), owner.head());
    let result = run.report()["result"]["commit"]
        .as_str()
        .unwrap()
        .to_owned();
    let key = owner.desk.key.to_str().unwrap().to_owned();
    let words = ["outcome", &id, "accept", "--key", &key];
    let since = Instant::now();
    let whole = owner.desk.house.cto(&["outcome", &id, "accept", "--json"]);
    assert_eq!(whole.code, Some(3), "without a key: {whole:?}");
    // As long as a command takes here that does nothing, and some more.
    let step =
        (since.elapsed() * 6).max(Duration::from_millis(240)) / u32::try_from(ROUNDS).unwrap();
    for round in 1..=ROUNDS {
        let mut child = owner.desk.house.start(&words);
        sleep(step * u32::try_from(round).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        let recovered = owner.desk.house.cto(&["recover", "--json"]);
        assert_eq!(recovered.code, Some(0), "{round}: {recovered:?}");
        let head = owner.head();
        assert!(head == old || head == result, "{round}: {head}");
        assert_eq!(owner.repo.git(&["status", "--porcelain"]), "", "{round}");
        owner.repo.git(&["fsck", "--strict"]);
        let lock = Path::new(owner.repo.path()).join(".git/index.lock");
        assert!(!lock.exists(), "{round}: the lock stays");
        if head == result {
            break;
        }
    }
    let shown = || owner.desk.house.cto(&["show", &id, "--json"]).json();
    if shown()["effective"]["standing"] != "accepted" {
        if owner.head() == result {
            // It is in the repository: nothing else can be said of it before that is sealed.
            let other = owner.cto(&["outcome", &id, "reject"]);
            assert_eq!(other.json()["error"]["code"], "not_settled", "{other:?}");
        }
        let again = owner.cto(&["outcome", &id, "accept"]);
        assert_eq!(again.code, Some(0), "{again:?}");
        owner.settlement(&again);
    }
    assert_eq!(owner.head(), result);
    assert_eq!(shown()["effective"]["standing"], "accepted");
    assert_eq!(
        owner
            .repo
            .git(&["rev-list", "--count", &format!("{old}..")]),
        "1",
        "landed once"
    );
    assert_eq!(journals(&owner), 0);
}

/// Files with secrets' names are in the repository and in its past; the engine has neither, and they stay.
#[test]
fn secrets_by_name_are_missing_from_the_copy_and_from_its_objects() {
    const SECRET: &str = "word-that-nobody-is-shown";
    let owner = Owner::new();
    for path in [".env.production", "secrets/token", "credentials/key"] {
        let place = Path::new(owner.repo.path()).join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, format!("{SECRET}\n")).unwrap();
    }
    owner.repo.commit("what nobody should commit");
    owner.repo.write("README.md", "later\n");
    owner.repo.commit("later");
    // The script does not say the word itself.
    let pattern = SECRET.replace("nobody", "nobod[y]");
    let looks = format!(
        "(git cat-file --batch-all-objects --batch; git log -p --all; cat $(find . -type f)) 2>&1 | grep -aq {pattern} && echo 'broken(' >> strings.py; true"
    );
    let honest = stage4::also(&owner.desk.house, "looks", &[&looks]);
    let run = owner.waiting(&["--script", &honest]);
    assert!(
        run.anywhere(SECRET).is_empty(),
        "{:?}",
        run.anywhere(SECRET)
    );
    // The same look where there is something to find.
    let here = looks.replace(&pattern, "slugify");
    let finds = stage4::also(&owner.desk.house, "finds", &[&here]);
    let request = owner.request(&["--script", &finds]);
    owner.desk.approve(&request);
    let found = owner.desk.run(&request);
    assert!(found.has_code("verification_failed"), "{:?}", found.codes());
    let accepted = owner.cto(&["outcome", &run.run_id(), "accept"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert_eq!(owner.repo.git(&["status", "--porcelain"]), "");
    let kept = fs::read_to_string(Path::new(owner.repo.path()).join("secrets/token"));
    assert_eq!(kept.unwrap(), format!("{SECRET}\n"));
}

/// What its owner has lying around stays as it is: a stash, a linked work tree, hooks that would say so if they ran.
#[test]
fn what_its_owner_has_lying_around_stays_as_it_is() {
    let owner = Owner::new();
    let repo = &owner.repo;
    let top = Path::new(repo.path());
    repo.write("README.md", "half done\n");
    repo.git(&["stash", "-q"]);
    let linked = owner.desk.house.root().join("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    fs::write(linked.join("README.md"), "theirs\n").unwrap();
    let ran = owner.desk.house.root().join("hook-ran");
    for hook in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-checkout",
        "post-index-change",
    ] {
        let path = top.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = owner.waiting(&[]);
    let stash = repo.git(&["rev-parse", "refs/stash"]);
    let _ = fs::remove_file(&ran);
    let accepted = owner.cto(&["outcome", &run.run_id(), "accept"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    assert!(!ran.exists(), "no hook runs");
    assert_eq!(repo.git(&["rev-parse", "refs/stash"]), stash);
    assert_eq!(
        fs::read_to_string(linked.join("README.md")).unwrap(),
        "theirs\n"
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.git(&["fsck", "--strict"]);
}
