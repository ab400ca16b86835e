//! Whatever is done to a tree, an overlay and a copy measure the same.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use cto_testkit::{Answer, Bundle, Repo, is_root, script, shell};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::{KINDS, made};
use crate::fixtures::people::{Person, people};

/// One thing done in a workspace.
#[derive(Clone, Debug)]
enum Op {
    Write(String, String),
    Append(String),
    Remove(String),
    Move(String, String),
    Mode(String, &'static str),
    Link(String, String),
    Hard(String, String),
    Directory(String),
    Truncate(String, u8),
    Touch(String),
    Device(String),
    Mark(String, &'static str),
    SameSize(String),
}

impl Op {
    fn line(&self) -> String {
        match self {
            Self::Write(path, text) => format!("printf '%s' '{text}' > {path}"),
            Self::Append(path) => format!("printf more >> {path}"),
            Self::Remove(path) => format!("rm -rf {path}"),
            Self::Move(from, to) => format!("mv -f {from} {to}"),
            Self::Mode(path, mode) => format!("chmod {mode} {path}"),
            Self::Link(to, path) => format!("ln -sfn {to} {path}"),
            Self::Hard(from, to) => format!("ln -f {from} {to}"),
            Self::Directory(path) => {
                format!("rm -rf {path}; mkdir -p {path}; printf in > {path}/in")
            }
            Self::Truncate(path, length) => format!("truncate -s {length} {path}"),
            Self::Touch(path) => format!("touch -d '2001-02-03 04:05:06' {path}"),
            // An overlay refuses it; where it can be made, it is a thing of its own (see the test
            // of devices).
            Self::Device(path) => format!("mknod {path} c 0 0 && rm -f {path}"),
            Self::Mark(path, name) => {
                format!(
                    "python3 -c 'import os,sys; os.setxattr(sys.argv[1], sys.argv[2], b\"y\")' {path} user.overlay.{name}"
                )
            }
            Self::SameSize(path) => format!(
                "tr 'a-y' 'b-z' < {path} > /tmp/t && touch -r {path} /tmp/r && cat /tmp/t > {path} && touch -r /tmp/r {path}"
            ),
        }
    }
}

const PLACES: [&str; 12] = [
    "a", "b", "d", "d/a", "d/b", "d/e", "d/e/c", "f", "f/g", "l", "t.log", "d/t.log",
];

fn place() -> impl Strategy<Value = String> {
    prop::sample::select(&PLACES[..]).prop_map(str::to_owned)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (place(), "[a-z]{0,6}").prop_map(|(path, text)| Op::Write(path, text)),
        2 => place().prop_map(Op::Append),
        4 => place().prop_map(Op::Remove),
        4 => (place(), place()).prop_map(|(from, to)| Op::Move(from, to)),
        3 => (place(), prop::sample::select(&["755", "644", "000", "500", "4755"][..])).prop_map(|(path, mode)| Op::Mode(path, mode)),
        2 => (place(), place()).prop_map(|(to, path)| Op::Link(to, path)),
        2 => (place(), place()).prop_map(|(from, to)| Op::Hard(from, to)),
        3 => place().prop_map(Op::Directory),
        1 => (place(), 0..20u8).prop_map(|(path, length)| Op::Truncate(path, length)),
        1 => place().prop_map(Op::Touch),
        1 => place().prop_map(Op::Device),
        2 => (place(), prop::sample::select(&["opaque", "whiteout", "redirect", "metacopy"][..])).prop_map(|(path, name)| Op::Mark(path, name)),
        2 => place().prop_map(Op::SameSize),
    ]
}

/// What a repository starts with: a path, its text, and whether it is a program or a link.
fn baseline() -> impl Strategy<Value = Vec<(String, String, u8)>> {
    let file = (
        prop::sample::select(&["a", "b", "d/a", "d/b", "d/e/c", "f/g", "l"][..]),
        "[a-z]{0,6}",
        0..3u8,
    );
    prop::collection::vec(
        file.prop_map(|(path, text, kind)| (path.to_owned(), text, kind)),
        0..8,
    )
}

/// A person's repository with these files, and one run of these lines in each kind of workspace.
fn measured(
    person: &Person,
    files: &[(String, String, u8)],
    ops: &[Op],
    number: usize,
) -> [Value; 2] {
    let root = person.at(&format!("home/{number}"));
    let repo = Repo {
        dir: root.join("repo"),
    };
    fs::create_dir_all(&repo.dir).unwrap();
    repo.git(&["init", "-q", "-b", "main"]);
    repo.write(".gitignore", "*.log\n");
    for (path, text, kind) in files {
        if fs::symlink_metadata(repo.at(path)).is_ok() {
            continue;
        }
        repo.write(path, text);
        match kind {
            1 => fs::set_permissions(repo.at(path), fs::Permissions::from_mode(0o755)).unwrap(),
            2 => {
                fs::remove_file(repo.at(path)).unwrap();
                symlink(format!("to-{text}"), repo.at(path)).unwrap();
            }
            _ => {}
        }
    }
    repo.commit("start");
    let lines: Vec<String> = ops
        .iter()
        .map(|op| shell(&format!("{} 2>/dev/null || true", op.line())))
        .collect();
    let steps = [lines, vec![shell("echo changed > certainly.txt")]].concat();
    fs::write(root.join("steps.toml"), script(&steps)).unwrap();
    let owner = person.at("home").metadata().unwrap();
    Command::new("chown")
        .arg("-Rh")
        .arg(format!("{}:{}", owner.uid(), owner.gid()))
        .arg(&root)
        .status()
        .unwrap();
    KINDS.map(|kind| one(person, &root, kind))
}

/// Every entry of a pristine copy: kind, mode, name, link text, content; of git's index, which knows
/// times, what git says.
const LOOK: &str = "find . ! -name . -printf '@ %y %m %p %l\\n' | sort; \
    find . -type f ! -path ./.git/index -exec sha256sum {} + | sort | sed 's/^/@ /'; \
    { git diff-files; git ls-files -s; git status --porcelain; } | sed 's/^/@ /'";

fn one(person: &Person, root: &Path, kind: &str) -> Value {
    let (repo, steps) = (
        root.join("repo").display().to_string(),
        root.join("steps.toml").display().to_string(),
    );
    let mut command = person.command(&[
        "try", "--repo", &repo, "--task", "x", "--script", &steps, "--json", "--allow", ".",
        "--test", LOOK,
    ]);
    command
        .env("CTO_STATE_DIR", root.join("state"))
        .env("CTO_TEST_WORKSPACE", kind)
        .current_dir(root);
    let answer = Answer::of(&command.output().unwrap());
    let bundle = Bundle::at(answer.json()["bundle"].as_str().unwrap());
    assert!(made(&bundle).starts_with(kind), "{kind}: {answer:?}");
    let seen: Vec<String> = bundle
        .text("test.log")
        .lines()
        // What fails when it is loaded holds a word drawn for that run.
        .take_while(|line| !line.starts_with("== loading control"))
        .filter(|line| line.starts_with('@'))
        .map(str::to_owned)
        .collect();
    let report = bundle.report();
    serde_json::json!({
        "diff": bundle.event("git.diff.checked"),
        "patch": bundle.text("patch.diff"),
        "blockers": report["blockers"],
        "status": report["status"],
        "pristine": seen,
    })
}

#[test]
fn whatever_is_done_both_kinds_measure_the_same() {
    let mut config = Config {
        cases: 5,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..Config::default()
    };
    if let Some(cases) = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
    {
        config.cases = cases;
    }
    for person in people() {
        let number = std::cell::Cell::new(0);
        let result = TestRunner::new(config.clone()).run(
            &(baseline(), prop::collection::vec(op(), 1..14)),
            |(files, ops)| {
                number.set(number.get() + 1);
                let [overlay, copy] = measured(&person, &files, &ops, number.get());
                prop_assert_eq!(
                    overlay,
                    copy,
                    "{}: {:?}",
                    person.name,
                    ops.iter().map(Op::line).collect::<Vec<_>>()
                );
                Ok(())
            },
        );
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Sequences that once were, or nearly were, measured differently.
#[test]
fn known_hard_sequences_are_measured_the_same() {
    let files =
        ["a", "d/a", "d/b", "d/e/c", "f/g"].map(|path| (path.to_owned(), "text".to_owned(), 0));
    let path = |text: &str| text.to_owned();
    let sequences: Vec<Vec<Op>> = vec![
        // A directory moved, and something else in its place.
        vec![
            Op::Move(path("d"), path("x")),
            Op::Directory(path("d")),
            Op::Move(path("x"), path("d/x")),
        ],
        // Two names of one file, one of them removed and made again.
        vec![
            Op::Hard(path("a"), path("b")),
            Op::Remove(path("a")),
            Op::Append(path("b")),
            Op::Hard(path("b"), path("a")),
        ],
        // Removed, and back as it was: no change at all.
        vec![
            Op::Remove(path("d/a")),
            Op::Write(path("d/a"), path("text")),
            Op::Touch(path("d/a")),
        ],
        // Every file of a directory removed, one after another.
        vec![
            Op::Remove(path("d/a")),
            Op::Remove(path("d/b")),
            Op::Remove(path("d/e/c")),
        ],
        // Forged marks and devices.
        vec![
            Op::Mark(path("d"), "opaque"),
            Op::Mark(path("a"), "whiteout"),
            Op::Mark(path("a"), "metacopy"),
            Op::Device(path("f/x")),
        ],
        vec![
            Op::Remove(path("a")),
            Op::Device(path("a")),
            Op::Mark(path("d"), "redirect"),
            Op::Append(path("d/a")),
        ],
        // What nobody but root may enter or read.
        vec![Op::Mode(path("d"), "000"), Op::Mode(path("a"), "000")],
        vec![
            Op::Append(path("d/e/c")),
            Op::Mode(path("d"), "500"),
            Op::Remove(path("f/g")),
        ],
    ];
    for person in people() {
        for (number, ops) in sequences.iter().enumerate() {
            let [overlay, copy] = measured(&person, &files, ops, number);
            assert_eq!(
                overlay,
                copy,
                "{}: {:?}",
                person.name,
                ops.iter().map(Op::line).collect::<Vec<_>>()
            );
        }
    }
    assert!(!is_root() || people().len() == 2, "root tries both ways");
}
