//! What people typed and meant otherwise: `last` in another repository, paths from a subdirectory, a scope
//! that fits nothing, patches as terminals and settings make them.

use std::fs;
use std::path::Path;

use cto_testkit::{Answer, Bundle, House, Repo};

use super::{fix, passes};
use crate::{assert_good, house};

/// A command of somebody who stands in `dir`.
fn typed(house: &House, dir: &Path, args: &[&str]) -> Answer {
    Answer::of(&house.command(args).current_dir(dir).output().unwrap())
}

#[test]
fn last_is_the_last_try_of_this_repository_where_something_changes() {
    let house = house();
    let (one, two) = (Repo::new(&house, "one"), Repo::new(&house, "two"));
    let three = Repo::new(&house, "three");
    let first = passes(&house, &one, &fix(), &[]);
    let second = passes(&house, &two, &fix(), &[]);
    // The newest is of the second; from the first, and from below it, its own is meant.
    let applied = typed(&house, &one.at("src"), &["apply", "last", "--check"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.stdout.contains(&first.run_id()), "{applied:?}");
    let applied = typed(&house, &one.dir, &["apply", "last"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(one.read("answer.txt"), "right\n");
    assert_eq!(two.read("answer.txt"), "wrong\n");
    let named = ["apply", "last", "--check", "--repo", two.path()];
    let applied = typed(&house, &one.dir, &named);
    assert!(applied.stdout.contains(&second.run_id()), "{applied:?}");
    // Elsewhere nothing is, and what there is is listed.
    for dir in [&three.dir, house.root()] {
        let before = (one.bytes(), two.bytes(), three.bytes());
        let refused = typed(&house, dir, &["apply", "last"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("no_try_here"), "{refused:?}");
        for run in [&first, &second] {
            assert!(refused.stderr.contains(&run.run_id()), "{refused:?}");
        }
        assert_eq!(before, (one.bytes(), two.bytes(), three.bytes()));
    }
    // What only shows shows the newest, and says whose it is.
    for command in ["show", "diff", "replay", "verify"] {
        let there = typed(&house, &two.dir, &[command, "last"]);
        assert!(!there.stderr.contains("another repository"), "{there:?}");
        let shown = typed(&house, &one.dir, &[command, "last"]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(
            shown
                .stderr
                .contains("the newest run is of another repository, two"),
            "{command}: {shown:?}"
        );
    }
}

#[test]
fn paths_count_from_where_one_stands() {
    let house = house();
    let repo = Repo::new(&house, "deep");
    repo.write("sub/answer.txt", "wrong\n");
    repo.write(".gitignore", "*.log\nsub/data/\n");
    repo.commit("below");
    repo.write("sub/data/table", "right\n");
    let script = house.script(
        "below",
        &cto_testkit::script(&[cto_testkit::write("sub/answer.txt", "right\n")]),
    );
    let attempt = |dir: &Path, allow: &str, input: &str| {
        let test = "cmp sub/data/table sub/answer.txt";
        let words = [
            "try", "--task", "t", "--allow", allow, "--input", input, "--test", test, "--script",
            &script, "--json",
        ];
        let answer = typed(&house, dir, &words);
        let bundle = Bundle::at(house.run_dirs().pop().unwrap());
        assert_eq!(answer.code, Some(0), "{allow} {input}: {answer:?}");
        assert_good(&bundle);
        bundle.json("contract.json")["allowed_paths"].clone()
    };
    let file = serde_json::json!(["sub/answer.txt"]);
    assert_eq!(attempt(&repo.dir, "sub/answer.txt", "sub/data"), file);
    assert_eq!(attempt(&repo.at("sub"), "answer.txt", "data"), file);
    assert_eq!(
        attempt(&repo.at("src"), "../sub/answer.txt", "../sub/data"),
        file
    );
    let all = serde_json::json!(["sub/"]);
    assert_eq!(attempt(&repo.at("sub"), ".", "./data/"), all);
    let words = [
        "try", "--task", "t", "--allow", "../../x", "--test", "true", "--script", &script,
    ];
    let out = typed(&house, &repo.at("sub"), &words);
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(
        out.stderr.contains("leads out of the repository"),
        "{out:?}"
    );
}

#[test]
fn an_allow_that_fits_nothing_is_a_warning() {
    let house = house();
    let repo = Repo::new(&house, "slip");
    let more = ["--allow", "answer.txt", "--allow", "scr", "--allow", "src"];
    let bundle = passes(&house, &repo, &fix(), &more);
    assert_good(&bundle);
    let warnings = bundle.report()["engine"]["warnings"].to_string();
    assert!(warnings.contains("--allow scr names nothing"), "{warnings}");
    assert!(!warnings.contains("--allow src"), "{warnings}");
    let quiet = passes(&house, &repo, &fix(), &["--allow", "."]);
    assert!(quiet.report()["engine"]["warnings"].is_null());
}

fn patch(house: &House, name: &str, text: &str) -> String {
    let file = house.root().join(name);
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

const PLAIN: &str = "diff --git a/answer.txt b/answer.txt\n--- a/answer.txt\n+++ b/answer.txt\n@@ -1 +1 @@\n-wrong\n+right\n";

#[test]
fn patches_are_read_as_people_have_them() {
    let house = house();
    let repo = Repo::new(&house, "patched");
    let coloured: String = PLAIN
        .lines()
        .map(|line| format!("\u{1b}[1m{line}\u{1b}[m\n"))
        .collect();
    for (name, text) in [
        ("plain.patch", PLAIN.to_owned()),
        ("noprefix.patch", PLAIN.replace("a/", "").replace("b/", "")),
        ("colours.patch", coloured),
    ] {
        let script = patch(&house, name, &text);
        let bundle = passes(&house, &repo, "", &["--script", &script]);
        assert_eq!(bundle.changed_files(), ["answer.txt"], "{name}");
        assert_eq!(bundle.report()["containment"], "strict", "{name}");
    }
    let odd = "diff --git old.txt new.txt\nrename from old.txt\nrename to new.txt\n";
    let script = patch(&house, "renamed.patch", odd);
    let refused = house
        .try_command(&repo, "", &["--script", &script])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("do not begin with a/ and b/"), "{said}");
}

#[test]
fn a_patch_out_of_scope_is_named_by_what_it_changed() {
    let house = house();
    let repo = Repo::new(&house, "outside");
    let keep = "--- a/src/keep.txt\n+++ b/src/keep.txt\n@@ -1 +1 @@\n-keep\n+kept\n";
    let new = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n";
    for (name, text, more, code) in [
        ("other", keep.to_owned(), vec![], "disallowed_file_change"),
        (
            "both",
            format!("{PLAIN}{keep}"),
            vec![],
            "disallowed_file_change",
        ),
        (
            "new",
            format!("{PLAIN}{new}"),
            vec![],
            "disallowed_file_change",
        ),
        (
            "forbidden",
            format!("{PLAIN}{keep}"),
            vec!["--allow", ".", "--forbid", "src"],
            "forbidden_path_change",
        ),
    ] {
        let script = patch(&house, name, &text);
        let more = [&["--script", script.as_str()][..], &more].concat();
        let (answer, bundle) = house.try_on(&repo, "", &more);
        assert_eq!(answer.code, Some(1), "{name}: {answer:?}");
        assert!(bundle.has_code(code), "{name}: {:?}", bundle.codes());
        assert!(
            !bundle.has_code("engine_failed"),
            "{name}: {:?}",
            bundle.codes()
        );
        assert_good(&bundle);
    }
}
