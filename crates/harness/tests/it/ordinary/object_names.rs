//! Repositories whose objects have names of 64 digits: tried, verified and applied to like any
//! other, each git directory on the way with the same names.

use cto_testkit::{Bundle, Forged, House, Repo, script, shell, write};

use super::{KINDS, RIGHT, passed, right, tried};
use crate::fixtures::people::houses;
use crate::fixtures::project::{FIXED, UNITTEST};
use crate::{assert_bad, assert_good, house};

const LONG: &str = "sha256";

fn is_long(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// With a history, a tag, a hidden file and a submodule.
fn long(house: &House) -> Repo {
    let inner = Repo::of_format(house, "inner", LONG);
    let repo = Repo::of_format(house, "long", LONG);
    repo.write("control.txt", "fine\n");
    repo.write(".env", "PASSWORD=hidden\n");
    repo.write("gone.txt", "goes\n");
    repo.git(&["add", "-A", "-f"]);
    repo.commit("more");
    repo.git(&["tag", "-a", "-m", "one", "v1.2.0"]);
    repo.git(&["submodule", "--quiet", "add", inner.path(), "libs/inner"]);
    repo.commit("a submodule");
    house.hand_over(house.root());
    repo
}

/// Names of objects in the patch's own lines about them.
fn patch_ids(bundle: &Bundle) -> Vec<String> {
    let text = String::from_utf8_lossy(&bundle.bytes("patch.diff")).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("index "));
    lines
        .flat_map(|line| {
            let ids = line.split(' ').next().unwrap_or_default();
            ids.split("..").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn a_change_is_tried_verified_and_applied() {
    for kind in KINDS {
        for house in houses() {
            let house = house.with("CTO_TEST_WORKSPACE", kind);
            let repo = long(&house);
            let git = "test $(git rev-parse HEAD | tr -d '\\n' | wc -c) = 64 && git fsck --strict";
            let engine = format!(
                "{git} && test -z \"$(git status --porcelain)\" && test ! -s .env && \
                 echo x > x && git add x && git commit -qm x && git reset -q --hard HEAD~1 && git gc -q"
            );
            let ask = format!(
                "{git} && test \"$(git describe)\" = v1.2.0 && grep -qx wrong libs/inner/answer.txt \
                 && test \"$(git diff --cached --name-only | wc -l)\" = 4 && test -z \"$(git diff)\" \
                 && git stash -q && grep -qx wrong answer.txt && git stash pop -q --index && {RIGHT}"
            );
            let changes = "rm gone.txt; printf '\\000\\377' > new.bin; printf '#!/bin/sh\\n' > tool; chmod +x tool";
            let steps = [shell(&engine), right(), shell(changes)];
            let (answer, bundle) = tried(&house, &repo, &steps, &["--test", &ask]);
            passed(kind, &answer, &bundle);
            let (source, report) = (bundle.json("source.json"), bundle.report());
            for id in [
                &source["tree"],
                &source["source_head_before"],
                &report["result"]["tree"],
                &report["result"]["commit"],
            ] {
                assert!(id.as_str().is_some_and(is_long), "{kind}: {id}");
            }
            let ids = patch_ids(&bundle);
            assert_eq!(ids.len(), 8, "{kind}");
            assert!(ids.iter().all(|id| is_long(id)), "{kind}: {ids:?}");
            let applied = house.cto(&["apply", &bundle.run_id()]);
            assert_eq!(applied.code, Some(0), "{kind}: {applied:?}");
            repo.git(&["add", "-A", "-f"]);
            assert_eq!(
                repo.git(&["write-tree"]),
                report["result"]["tree"].as_str().unwrap(),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_break_fails_and_what_is_not_committed_is_left_out() {
    for kind in KINDS {
        let house = house().with("CTO_TEST_WORKSPACE", kind);
        let repo = long(&house);
        let broken = [write("answer.txt", "broken\n")];
        let (answer, bundle) = tried(&house, &repo, &broken, &["--test", RIGHT]);
        assert_eq!(answer.code, Some(1), "{kind}: {answer:?}");
        assert!(bundle.has_code("verification_failed"), "{kind}");
        assert_good(&bundle);
        // The owner is at work on two files, of which the change needs one.
        repo.write("src/keep.txt", "mine\n");
        repo.write("untracked.txt", "mine\n");
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", RIGHT]);
        assert_eq!(answer.code, Some(3), "{kind}: {answer:?}");
        assert_good(&bundle);
        let test = format!("grep -qx keep src/keep.txt && test ! -e untracked.txt && {RIGHT}");
        let more = ["--from-head", "--test", &test];
        let (answer, bundle) = tried(&house, &repo, &[right()], &more);
        passed(kind, &answer, &bundle);
        repo.write("answer.txt", "mine\n");
        let before = repo.bytes();
        let refused = house.cto(&["apply", &bundle.run_id()]);
        assert_eq!(refused.code, Some(3), "{kind}: {refused:?}");
        assert_eq!(repo.bytes(), before, "{kind}");
        repo.git(&["checkout", "-q", "answer.txt"]);
        let applied = house.cto(&["apply", &bundle.run_id()]);
        assert_eq!(applied.code, Some(0), "{kind}: {applied:?}");
        assert_eq!(
            repo.git(&["status", "--porcelain"]),
            " M answer.txt\n M src/keep.txt\n?? untracked.txt",
            "{kind}"
        );
    }
}

#[test]
fn another_name_in_a_bundle_is_found() {
    let house = house();
    let repo = long(&house);
    let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", RIGHT]);
    passed("tried", &answer, &bundle);
    let (ids, tree) = (
        patch_ids(&bundle),
        bundle.json("source.json")["tree"].clone(),
    );
    let tree = tree.as_str().unwrap();
    for (name, id) in [
        ("patch.diff", ids[0].as_str()),
        ("patch.diff", ids[1].as_str()),
        ("source.json", tree),
        ("events.normalized.jsonl", tree),
    ] {
        let text = String::from_utf8(bundle.bytes(name)).unwrap();
        assert!(text.contains(id), "{name}");
        for other in [id[..40].to_owned(), "0".repeat(64), format!("{id}0")] {
            let forged = Forged::copy_of(&bundle);
            forged.put(name, text.replace(id, &other).as_bytes());
            assert_bad(&forged.bundle(), &format!("{name}: {other}"));
        }
    }
}

/// The same files under names of the other kind are another repository.
#[test]
fn a_patch_goes_into_no_repository_with_other_names() {
    for (of, other) in [("sha1", LONG), (LONG, "sha1")] {
        let house = house();
        let make = |name: &str, format: &str| {
            let repo = Repo::of_format(&house, name, format);
            repo.write("control.txt", "fine\n");
            repo.commit("more");
            repo
        };
        let (repo, twin) = (make("project", of), make("twin", other));
        let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", RIGHT]);
        passed(of, &answer, &bundle);
        let before = twin.bytes();
        let run = bundle.run_id();
        let refused = house.cto(&["apply", &run, "--repo", twin.path(), "--json"]);
        assert_eq!(refused.json()["error"]["code"], "other_repository", "{of}");
        assert_eq!(twin.bytes(), before, "{of}");
    }
}

#[test]
fn line_ends_are_converted_as_anywhere() {
    let house = house();
    let repo = Repo::of_format(&house, "lines", LONG);
    repo.git(&["config", "core.autocrlf", "true"]);
    for (name, text) in [("answer.txt", "wrong\r\n"), ("control.txt", "fine\r\n")] {
        repo.write(name, text);
    }
    repo.commit("line ends");
    let (answer, bundle) = tried(&house, &repo, &[right()], &["--test", RIGHT]);
    passed("lines", &answer, &bundle);
    let applied = house.cto(&["apply", &bundle.run_id()]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(repo.read("answer.txt"), "right\r\n");
}

/// The second change need not run it again, and the bundle holds it whole.
#[test]
fn a_baseline_is_kept() {
    let house = house();
    let repo = Repo::of_format(&house, "kept", LONG);
    for (path, text) in UNITTEST.files {
        repo.write(path, text);
    }
    repo.write("app.py", FIXED);
    repo.commit("no bug");
    for (again, said) in [(false, "# One.\n"), (true, "# Two.\n")] {
        let steps = script(&[write("app.py", &format!("{FIXED}\n{said}"))]);
        let more = [
            "--test",
            "python3 -m unittest",
            "--allow",
            ".",
            "--jobs",
            "1",
        ];
        let (answer, bundle) = house.try_on(&repo, &steps, &more);
        passed(said, &answer, &bundle);
        assert_eq!(bundle.has("relied/baseline.json"), again, "{said}");
    }
}
