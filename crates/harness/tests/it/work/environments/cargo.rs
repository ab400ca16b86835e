//! Never stale, by real cargo over the operator's own `target`: a build that is there is used, and no
//! broken change is green because of it.

use std::process::Command;

use cto_testkit::{files_below, shell, write};

use super::live::seen_in_log;
use super::times::age;
use super::*;
use crate::fixtures::rust::with_own_rust;

const GOOD: &str = "pub fn answer() -> u32 {\n    42\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() {\n        assert_eq!(super::answer() + include!(concat!(env!(\"OUT_DIR\"), \"/parts\")), 43);\n    }\n}\n";
/// Counts the files of a directory, and names nothing that it depends on.
const BUILD: &str = "fn main() {\n    let parts = std::fs::read_dir(\"parts\").unwrap().count();\n    let out = std::env::var(\"OUT_DIR\").unwrap();\n    std::fs::write(format!(\"{out}/parts\"), parts.to_string()).unwrap();\n}\n";

fn built(house: &House, files: usize) -> Repo {
    let repo = Repo::new(house, "crate");
    for (path, text) in [
        (".gitignore", "/target/\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"warm\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        ),
        (
            "Cargo.lock",
            "version = 3\n\n[[package]]\nname = \"warm\"\nversion = \"0.1.0\"\n",
        ),
        ("src/lib.rs", GOOD),
        ("build.rs", BUILD),
        ("parts/a", "a\n"),
        ("broken.rs", &GOOD.replace("42", "41")),
    ] {
        repo.write(path, text);
    }
    // Cargo writes the lock file in its own way.
    test_by_owner(&repo);
    repo.commit("a crate");
    install(&repo, "target/extra", files);
    repo
}

fn test_by_owner(repo: &Repo) {
    let tested = Command::new("cargo")
        .args(["test", "--offline", "--lib", "-q"])
        .current_dir(&repo.dir)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(tested.status.success(), "{tested:?}");
}

const WITH: [&str; 4] = [
    "--test",
    "cargo test --offline --lib",
    "--no-input",
    "parts",
];

#[test]
fn cargo_builds_anew_what_changed() {
    for (kind, files) in [("copy", 3), ("overlay", 2_050)] {
        let house = with_own_rust(house_with(kind));
        let repo = built(&house, files);
        let broken = GOOD.replace("42", "41");
        for (what, steps, code) in [
            (
                "a comment",
                vec![write("src/lib.rs", &format!("// why\n{GOOD}"))],
                0,
            ),
            ("equal size", vec![write("src/lib.rs", &broken)], 1),
            (
                "a file that becomes a link to an old one",
                vec![shell("rm src/lib.rs && ln -s ../broken.rs src/lib.rs")],
                1,
            ),
            (
                "a deletion beside a package that was planted",
                vec![shell(
                    "rm parts/a && echo '[package]' > parts/Cargo.toml && touch parts/b",
                )],
                1,
            ),
            (
                "a deletion",
                vec![shell("rm parts/a && mkdir -p parts && touch notes")],
                1,
            ),
        ] {
            let (answer, bundle) = attempt(&house, &repo, &steps, &WITH);
            assert_eq!(
                answer.code,
                Some(code),
                "{kind}: {what}: {}",
                bundle.text("test.log")
            );
            crate::assert_good(&bundle);
        }
        // HEAD is broken and the work tree is not; its owner has just built it.
        repo.write("src/lib.rs", &broken);
        repo.commit("a bug");
        repo.write("src/lib.rs", GOOD);
        test_by_owner(&repo);
        let more = [&WITH[..], &["--from-head"]].concat();
        let (answer, bundle) = attempt(&house, &repo, &[write("notes", "n\n")], &more);
        assert_eq!(answer.code, Some(1), "{kind}: {}", bundle.text("test.log"));
        assert_eq!(bundle.codes(), ["verification_failed"], "{kind}");
    }
}

/// A small one is a copy, which can be removed whole; what is built then is built of the change.
#[test]
fn cargo_clean_removes_a_small_target_and_hides_nothing() {
    for kind in KINDS {
        let house = with_own_rust(house_with(kind));
        let repo = built(&house, 3);
        let before = files_below(&repo.at("target"));
        let clean = "cargo clean && test ! -e target";
        for (what, text, code) in [
            ("a comment", format!("// why\n{GOOD}"), 0),
            ("a break", GOOD.replace("42", "41"), 1),
        ] {
            let steps = [write("src/lib.rs", &text), shell(clean)];
            let more = [&WITH[..], &["--setup", clean]].concat();
            let (answer, bundle) = attempt(&house, &repo, &steps, &more);
            let log = bundle.text("test.log");
            assert_eq!(answer.code, Some(code), "{kind}: {what}: {answer:?} {log}");
            assert_eq!(
                environment(&bundle, "target")["carried"],
                "copied",
                "{kind}"
            );
            crate::assert_good(&bundle);
        }
        assert_eq!(
            files_below(&repo.at("target")),
            before,
            "{kind}: the owner's"
        );
    }
}

/// The change breaks a file, and the owner builds the whole one in the work tree, after the patch was
/// made and while the check runs: what was built there makes nothing green.
#[test]
fn an_owner_who_builds_meanwhile_makes_no_broken_change_green() {
    const WAIT: &str = "echo waiting-for-owner; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do \
                        test -e target/flag && break; sleep 0.2; done";
    let rebuilds = |repo: &Repo| {
        repo.write("src/lib.rs", &format!("// meanwhile\n{GOOD}"));
        test_by_owner(repo);
        repo.write("src/lib.rs", GOOD);
        age(repo, "src/lib.rs", 500);
    };
    let commits = |repo: &Repo| {
        repo.write("src/lib.rs", &format!("// meanwhile\n{GOOD}"));
        repo.commit("meanwhile");
        test_by_owner(repo);
    };
    type Way<'a> = (&'a str, &'a dyn Fn(&Repo));
    let ways: [Way<'_>; 2] = [("built", &rebuilds), ("committed", &commits)];
    for (kind, files) in [("copy", 3), ("overlay", 2_050)] {
        for log in ["backend/stdout.log", "test.log"] {
            for (what, owner) in ways {
                let house = with_own_rust(house_with(kind));
                let repo = built(&house, files);
                let broken = write("src/lib.rs", &GOOD.replace("42", "41"));
                let (steps, test) = match log {
                    "test.log" => (vec![broken], format!("{WAIT}; cargo test --offline --lib")),
                    _ => (
                        vec![broken, shell(WAIT)],
                        "cargo test --offline --lib".to_owned(),
                    ),
                };
                let more = ["--allow", ".", "--no-input", "parts", "--test", &test];
                let mut child = house.start_try(&repo, &script(&steps), &more);
                assert!(
                    seen_in_log(&house, log, "waiting-for-owner"),
                    "{kind}, {log}, {what}"
                );
                owner(&repo);
                repo.write("target/flag", "");
                let code = child.wait().unwrap().code();
                let bundle = Bundle::at(house.run_dirs().pop().unwrap());
                let text = bundle.text("test.log");
                assert_eq!(code, Some(1), "{kind}, {log}, {what}: {text}");
                assert_eq!(
                    bundle.codes(),
                    ["verification_failed"],
                    "{kind}, {log}: {text}"
                );
                crate::assert_good(&bundle);
            }
        }
    }
}
