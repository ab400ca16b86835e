//! A name that came or went is in no list of what a tool read. What could have looked for it is made
//! again, whatever the change plants beside it.

use cto_testkit::shell;

use super::times::{age, make};
use super::*;

/// Counts a directory and takes the first of two files, and its rules name neither the directory
/// nor the first file.
const MAKEFILE: &str = "test: out/count out/found\n\tgrep -qx 2 out/count\n\tgrep -qx right out/found\n\n\
out/count: keep.txt\n\tls data | wc -l > out/count\n\n\
out/found: second/x\n\tcat first/x > out/found 2>/dev/null || cat second/x > out/found\n";

fn built(house: &House, files: usize) -> Repo {
    let repo = Repo::new(house, "names");
    let texts = [
        (".gitignore", "/out/\n"),
        ("Makefile", MAKEFILE),
        ("keep.txt", "kept\n"),
        ("data/a", "a\n"),
        ("data/b", "b\n"),
        ("first/Makefile", "x:\n"),
        ("second/Makefile", "x:\n"),
        ("second/x", "right\n"),
    ];
    for (path, text) in texts {
        repo.write(path, text);
    }
    repo.commit("names");
    for (path, _) in texts {
        age(&repo, path, 1_000);
    }
    install(&repo, "out", files);
    make(&repo);
    repo
}

#[test]
fn a_deletion_and_an_addition_are_seen_whatever_is_planted() {
    for (kind, files) in [("copy", 3), ("overlay", 2_050)] {
        let house = house_with(kind);
        let repo = built(&house, files);
        for (what, steps, code) in [
            ("a deletion", "rm data/b", 1),
            (
                "beside a package of one kind",
                "rm data/b; echo x > data/pom.xml; echo x > data/more",
                1,
            ),
            (
                "beside a package of another",
                "rm data/b; echo '[package]' > data/Cargo.toml; echo x > data/Makefile",
                1,
            ),
            (
                "below one",
                "mkdir -p data/deep; mv data/b data/deep/b; echo x > data/package.json; echo x > data/deep/setup.py; rm data/a; echo x > data/c",
                1,
            ),
            ("an addition before another", "echo wrong > first/x", 1),
            (
                "with a package of its own",
                "echo wrong > first/x; echo x > first/Cargo.toml",
                1,
            ),
            ("an addition to what is counted", "echo x > data/c", 1),
            ("a good one", "echo right > first/x", 0),
        ] {
            let more = ["--input", "out", "--test", "make -s test"];
            let (answer, bundle) = attempt(&house, &repo, &[shell(steps)], &more);
            let log = bundle.text("test.log");
            assert_eq!(answer.code, Some(code), "{kind}: {what}: {log}");
            crate::assert_good(&bundle);
        }
    }
}
