//! Bundles that are exchanged while a command looks at them: what is used is what was verified.

use std::fs;
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
