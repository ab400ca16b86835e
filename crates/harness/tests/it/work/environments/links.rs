//! A link that leads elsewhere gives old files a new name: no tool takes what it made of others for
//! new. Proven with make, which asks for the times of what is behind links, as compilers do.

use std::fs;
use std::os::unix::fs::symlink;

use cto_testkit::shell;

use super::times::{age, make};
use super::*;

/// Green where every file that is read says `right`.
const MAKEFILE: &str = "test: out/result\n\tgrep -qx right out/result\n\t! grep -q wrong out/result\n\n\
out/result: imp.txt plain.txt linked/x real/x\n\tcat imp.txt plain.txt linked/x real/x > out/result\n";

fn built(house: &House, files: usize) -> Repo {
    let repo = Repo::new(house, "linked");
    let texts = [
        (".gitignore", "/out/\n"),
        ("Makefile", MAKEFILE),
        ("good.txt", "right\n"),
        ("better.txt", "right\n"),
        ("bad.txt", "wrong\n"),
        ("plain.txt", "right\n"),
        ("v1/x", "right\n"),
        ("v2/x", "wrong\n"),
        ("real/x", "right\n"),
    ];
    for (path, text) in texts {
        repo.write(path, text);
    }
    for (path, to) in [
        ("imp.txt", "good.txt"),
        ("hop.txt", "bad.txt"),
        ("linked", "v1"),
    ] {
        symlink(to, repo.at(path)).unwrap();
    }
    repo.commit("links");
    for (path, _) in texts {
        age(&repo, path, 1_000);
    }
    install(&repo, "out", files);
    repo.write("out/old.txt", "wrong\n");
    age(&repo, "out/old.txt", 1_000);
    make(&repo);
    repo
}

const WITH: [&str; 4] = ["--input", "out", "--test", "make -s test"];
const WAYS: [(&str, usize); 2] = [("copy", 3), ("overlay", 2_050)];

#[test]
fn no_link_makes_a_broken_change_green() {
    for (kind, files) in WAYS {
        let house = house_with(kind);
        let repo = built(&house, files);
        for (what, steps, code) in [
            ("to another file", "ln -sfn bad.txt imp.txt", 1),
            (
                "in place of a file",
                "rm plain.txt; ln -s bad.txt plain.txt",
                1,
            ),
            ("to another directory", "ln -sfn v2 linked", 1),
            ("in place of a directory", "rm -r real; ln -s v2 real", 1),
            ("over another link", "ln -sfn hop.txt imp.txt", 1),
            (
                "over a new one",
                "ln -s bad.txt new.txt; ln -sfn v1/../new.txt imp.txt",
                1,
            ),
            ("to what is good", "ln -sfn better.txt imp.txt", 0),
        ] {
            let (answer, bundle) = attempt(&house, &repo, &[shell(steps)], &WITH);
            let log = bundle.text("test.log");
            assert_eq!(answer.code, Some(code), "{kind}: {what}: {log}");
            crate::assert_good(&bundle);
        }
    }
}

#[test]
fn a_link_to_times_that_are_not_ours_leaves_what_is_judged_by_times_at_home() {
    for (kind, files) in WAYS {
        let house = house_with(kind);
        let repo = built(&house, files);
        for (what, to) in [
            ("into an environment", "out/old.txt"),
            ("by another way", "v1/../out/old.txt"),
            ("out of the repository", "/etc/passwd"),
            ("upward", "../linked/bad.txt"),
        ] {
            let steps = [shell(&format!("ln -sfn {to} imp.txt"))];
            let (answer, bundle) = attempt(&house, &repo, &steps, &WITH);
            let log = bundle.text("test.log");
            assert_eq!(answer.code, Some(1), "{kind}: {what}: {log}");
            let notes = bundle.report()["environment_notes"].to_string();
            assert!(notes.contains("out/ is not there: imp.txt"), "{notes}");
            crate::assert_good(&bundle);
        }
    }
}

#[test]
fn a_link_of_a_commit_that_is_not_checked_out_is_not_taken_for_the_one_that_is() {
    for (kind, files) in WAYS {
        let house = house_with(kind);
        let repo = built(&house, files);
        let lead = |to: &str| {
            fs::remove_file(repo.at("imp.txt")).unwrap();
            symlink(to, repo.at("imp.txt")).unwrap();
        };
        lead("bad.txt");
        repo.commit("a bug");
        lead("good.txt");
        make(&repo);
        let more = [&WITH[..], &["--from-head"]].concat();
        let steps = [shell("echo more >> better.txt")];
        let (answer, bundle) = attempt(&house, &repo, &steps, &more);
        let log = bundle.text("test.log");
        assert_eq!(answer.code, Some(1), "{kind}: {log}");
    }
}
