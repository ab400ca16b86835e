//! Bundles that are exchanged while a command looks at them: what is used is what was verified.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cto_testkit::{Answer, Bundle, House, ORACLE, Repo};

use crate::house;

/// Tries of one race. One reading wins each of them; two readings lose some.
const TRIES: usize = 12;

fn tried(house: &House, name: &str) -> (Repo, Bundle) {
    let repo = Repo::new(house, name);
    let (answer, bundle) = house.try_on(&repo, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (repo, bundle)
}

/// A file of a bundle that is now this and now that, for as long as `look` takes.
fn swapping<T>(dir: &Path, name: &str, other: &[u8], look: impl FnOnce() -> T) -> T {
    let place = dir.join(name);
    let (ours, theirs): (Vec<u8>, &[u8]) = (fs::read(&place).unwrap(), other);
    let aside: PathBuf = dir.with_extension("aside");
    let done = AtomicBool::new(false);
    let put = |bytes: &[u8]| {
        fs::write(&aside, bytes).unwrap();
        fs::rename(&aside, &place).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    };
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                put(theirs);
                put(&ours);
            }
        });
        let seen = look();
        done.store(true, Ordering::Relaxed);
        seen
    });
    put(&ours);
    seen
}

/// Out of scope, and in no bundle of ours.
const EVIL: &str = "diff --git a/.github/workflows/x.yml b/.github/workflows/x.yml\n\
    new file mode 100644\n--- /dev/null\n+++ b/.github/workflows/x.yml\n@@ -0,0 +1 @@\n+evil\n";

#[test]
fn apply_uses_the_bytes_it_verified() {
    let house = house();
    let (repo, bundle) = tried(&house, "project");
    let in_scope = bundle.text("patch.diff").replace("+right", "+evil");
    for evil in [EVIL, &in_scope] {
        for _ in 0..TRIES {
            let answer: Answer = swapping(&bundle.dir, "patch.diff", evil.as_bytes(), || {
                house.cto(&["apply", &bundle.run_id(), "--json"])
            });
            let text = repo.read("answer.txt");
            assert!(!repo.at(".github").exists(), "{answer:?}");
            assert_ne!(text, "evil\n", "{answer:?}");
            match answer.code {
                Some(0) => assert_eq!(text, "right\n", "{answer:?}"),
                Some(3) => assert_eq!(
                    answer.json()["error"]["code"],
                    "not_a_verified_pass",
                    "{answer:?}"
                ),
                _ => panic!("{answer:?}"),
            }
            repo.git(&["checkout", "-q", "."]);
        }
    }
}

/// The repository a patch belongs to is named by the bundle too.
#[test]
fn apply_goes_where_the_verified_bundle_says() {
    let house = house();
    let (repo, bundle) = tried(&house, "project");
    let other = Repo::new(&house, "other");
    let before = other.bytes();
    let theirs = bundle.text("source.json").replace(
        &repo
            .path()
            .rsplit('/')
            .next()
            .map(|n| format!("/{n}"))
            .unwrap(),
        "/other",
    );
    for _ in 0..TRIES {
        let answer = swapping(&bundle.dir, "source.json", theirs.as_bytes(), || {
            house.cto(&["apply", &bundle.run_id(), "--json"])
        });
        assert!(matches!(answer.code, Some(0 | 3)), "{answer:?}");
        assert_eq!(other.bytes(), before, "{answer:?}");
        repo.git(&["checkout", "-q", "."]);
    }
}

#[test]
fn diff_prints_the_bytes_it_verified() {
    let house = house();
    let (_, bundle) = tried(&house, "project");
    let ours = bundle.text("patch.diff");
    for _ in 0..TRIES {
        let answer = swapping(&bundle.dir, "patch.diff", EVIL.as_bytes(), || {
            house.cto(&["diff", &bundle.run_id(), "--raw"])
        });
        match answer.code {
            Some(0) => assert_eq!(answer.stdout, ours),
            _ => assert_eq!(answer.stdout, "", "{answer:?}"),
        }
    }
}

/// The same commits somewhere else, and a patch that was made for the first.
fn with_twin(house: &House) -> (Repo, Repo, Bundle) {
    let (repo, bundle) = tried(house, "project");
    let twin = Repo {
        dir: house.root().join("twin"),
    };
    repo.git(&["clone", "-q", repo.path(), twin.path()]);
    (repo, twin, bundle)
}

/// Whatever lies at its path now is not the repository that was copied.
#[test]
fn a_path_that_leads_elsewhere_now_is_refused() {
    for way in ["a link", "a link on the way", "by name"] {
        let house = house();
        let (repo, twin, bundle) = with_twin(&house);
        let before = twin.bytes();
        let away = house.root().join("away");
        match way {
            "by name" => {}
            _ => {
                fs::rename(&repo.dir, &away).unwrap();
                symlink(&twin.dir, &repo.dir).unwrap();
            }
        }
        if way == "a link on the way" {
            let between = house.root().join("between");
            symlink(&twin.dir, &between).unwrap();
            fs::remove_file(&repo.dir).unwrap();
            symlink(&between, &repo.dir).unwrap();
        }
        let run = bundle.run_id();
        if way == "by name" {
            // Whoever names another one means it.
            let named = house.cto(&["apply", &run, "--repo", twin.path()]);
            assert_eq!(named.code, Some(0), "{named:?}");
            assert_eq!(twin.read("answer.txt"), "right\n");
            continue;
        }
        let refused = house.cto(&["apply", &run, "--json"]);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], "other_repository", "{way}: {refused:?}");
        assert!(error.to_string().contains("twin"), "{way}: {error}");
        assert_eq!(twin.bytes(), before, "{way}");
        fs::remove_file(&repo.dir).unwrap();
        fs::rename(&away, &repo.dir).unwrap();
        let applied = house.cto(&["apply", &run]);
        assert_eq!(applied.code, Some(0), "{way}: {applied:?}");
    }
}

/// A path that is exchanged all the time: the other repository never gets a byte.
#[test]
fn the_repository_that_was_looked_at_is_the_one_that_is_changed() {
    let house = house();
    let (repo, twin, bundle) = with_twin(&house);
    let (away, run) = (house.root().join("away"), bundle.run_id());
    let work = || fs::read_to_string(twin.at("answer.txt")).unwrap();
    let mut ends = Vec::new();
    for _ in 0..TRIES {
        let done = AtomicBool::new(false);
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    fs::rename(&repo.dir, &away).unwrap();
                    symlink(&twin.dir, &repo.dir).unwrap();
                    std::thread::sleep(Duration::from_millis(3));
                    fs::remove_file(&repo.dir).unwrap();
                    fs::rename(&away, &repo.dir).unwrap();
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
            let answer = house.cto(&["apply", &run, "--json"]);
            done.store(true, Ordering::Relaxed);
            answer
        });
        assert_eq!(work(), "wrong\n", "{answer:?}");
        ends.push(answer.code);
        repo.git(&["checkout", "-q", "."]);
    }
    assert!(
        ends.iter().all(|code| matches!(code, Some(0 | 3))),
        "{ends:?}"
    );
}
