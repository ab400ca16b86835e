//! Both kinds of workspace, by the same runs: an overlay of a cached checkout, and a plain copy.
//! Whatever is done in one is measured as it is in the other, for root and for an ordinary user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_testkit::{Answer, Bundle, House, Repo, files_below, is_root, script, shell, write};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::assert_good;
use crate::house;
use crate::jail::contained::{Person, people};

/// All of the workspace can be written, so that what is done there is measured and not refused.
const CONTAINED: &[&str] = &["--contain", "contained"];
const KINDS: [&str; 2] = ["overlay", "copy"];

fn house_with(kind: &str) -> House {
    house().with("CTO_TEST_WORKSPACE", kind)
}

fn try_it(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> (Answer, Bundle) {
    let file = house.script(&format!("steps-{}", house.run_dirs().len()), &script(steps));
    let mut args = vec![
        "try",
        "--repo",
        repo.path(),
        "--task",
        "Make the answer right",
        "--script",
        &file,
        "--json",
    ];
    if !more.contains(&"--allow") {
        args.extend(["--allow", "answer.txt"]);
    }
    if !more.contains(&"--test") {
        args.extend(["--test", "grep -qx right answer.txt"]);
    }
    args.extend(more);
    house.run_args(&args)
}

fn right() -> String {
    write("answer.txt", "right\n")
}

/// How the workspace was made, by the trace.
fn made(bundle: &Bundle) -> String {
    let lines = bundle.lines("trace.jsonl");
    let line = lines
        .iter()
        .find(|line| line["action"] == "workspace.prepare")
        .unwrap();
    line["detail"].as_str().unwrap_or_default().to_owned()
}

fn checkouts(house: &House) -> PathBuf {
    house.state().join("cache/checkouts")
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_second_run_starts_from_the_checkout_of_the_first_and_leaves_it_alone() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    let (answer, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("test.log")
    );
    assert_eq!(made(&bundle), "overlay, checkout made");
    assert!(
        bundle.event("plan.updated").unwrap()["summary"]
            .as_str()
            .unwrap()
            .contains("overlay")
    );
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(entries(&checkouts(&house)), [format!("{tree}-1")]);
    let before = files_below(&checkouts(&house));
    let hostile = "rm -rf src .git; echo x > src; chmod 777 .; for f in *; do echo x >> $f; chmod 600 $f; done; ln answer.txt two";
    for (steps, status) in [
        (vec![right()], "pass"),
        (vec![right(), shell(hostile)], "fail"),
    ] {
        let (_, bundle) = try_it(&house, &repo, &steps, CONTAINED);
        assert_eq!(
            (made(&bundle).as_str(), bundle.status().as_str()),
            ("overlay, checkout known", status)
        );
        assert_eq!(
            files_below(&checkouts(&house)),
            before,
            "nobody writes to a checkout"
        );
        assert_good(&bundle);
    }
    assert!(house.work_entries().is_empty());
    repo.write("src/keep.txt", "kept\n");
    repo.commit("another tree");
    let (_, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(
        (made(&bundle).as_str(), entries(&checkouts(&house)).len()),
        ("overlay, checkout made", 2)
    );
}

#[test]
fn the_size_of_a_repository_decides() {
    let house = house_with("neither");
    let repo = Repo::new(&house, "project");
    let (_, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(made(&bundle), "copy", "a few files are copied sooner");
    for number in 0..300 {
        repo.write(&format!("many/{number}.txt"), "x\n");
    }
    repo.commit("many");
    let (answer, bundle) = try_it(&house, &repo, &[right()], &[]);
    assert_eq!(
        (answer.code, made(&bundle).as_str()),
        (Some(0), "overlay, checkout made"),
        "{answer:?}"
    );
}

#[test]
fn a_torn_checkout_is_made_anew_and_a_half_made_one_never_counts() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    try_it(&house, &repo, &[right()], &[]);
    let entry = checkouts(&house).join(&entries(&checkouts(&house))[0]);
    let manifest = fs::read(entry.join("manifest")).unwrap();
    let half = checkouts(&house).join("aside-4194305-left");
    fs::create_dir(&half).unwrap();
    for torn in [manifest[..manifest.len() / 2].to_vec(), Vec::new()] {
        fs::write(entry.join("manifest"), torn).unwrap();
        let (answer, bundle) = try_it(&house, &repo, &[right()], &[]);
        assert_eq!(
            (answer.code, made(&bundle).as_str()),
            (Some(0), "overlay, checkout made"),
            "{answer:?}"
        );
        assert_eq!(
            fs::read(entry.join("manifest")).unwrap(),
            manifest,
            "the same tree gives the same manifest"
        );
    }
    assert_eq!(
        entries(&checkouts(&house)).len(),
        1,
        "what a dead process left half made is swept"
    );
}

#[test]
fn git_need_not_read_every_file_to_see_that_nothing_changed() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    // This question does not look into files: whatever the index does not know the times of is
    // taken for changed.
    let asks = shell("git diff-files --quiet && printf 'right\\n' > answer.txt");
    let (answer, bundle) = try_it(&house, &repo, &[asks], &[]);
    assert_eq!(
        answer.code,
        Some(0),
        "{answer:?} {}",
        bundle.text("backend/stderr.log")
    );
}

#[test]
fn of_two_who_make_a_checkout_at_once_one_wins_and_both_use_it() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    let file = house.script("fix", &script(&[right()]));
    let args = [
        "try",
        "--repo",
        repo.path(),
        "--task",
        "x",
        "--allow",
        "answer.txt",
        "--test",
        "true",
        "--script",
        &file,
    ];
    let children: Vec<_> = (0..3).map(|_| house.start(&args)).collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(entries(&checkouts(&house)).len(), 1);
}

#[test]
fn an_unused_checkout_goes_when_there_are_too_many() {
    let house = house_with("overlay");
    let repo = Repo::new(&house, "project");
    try_it(&house, &repo, &[right()], &[]);
    let first = entries(&checkouts(&house)).remove(0);
    for number in 0..9 {
        fs::create_dir(checkouts(&house).join(format!("{number:040}-1"))).unwrap();
    }
    repo.write("src/keep.txt", "kept\n");
    repo.commit("another tree");
    try_it(&house, &repo, &[right()], &[]);
    let left = entries(&checkouts(&house));
    assert!(left.len() == 8 && left.contains(&first), "{left:?}");
    let doctor = house.cto(&["doctor", "--json"]);
    assert_eq!(doctor.json()["checkouts"]["count"], 8);
}

#[test]
fn a_kept_workspace_is_there_to_be_looked_into() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let steps = [
            write("answer.txt", "wrong again\n"),
            shell("rm src/keep.txt; mkdir -p new; echo x > new/file.txt"),
        ];
        let (answer, bundle) = try_it(&house, &repo, &steps, &["--keep", "--allow", "."]);
        assert_eq!(bundle.status(), "fail", "{kind}");
        let dir = PathBuf::from(
            answer.json()["workspace"]
                .as_str()
                .unwrap_or_else(|| panic!("{kind}: {answer:?}")),
        );
        assert_eq!(
            fs::read_to_string(dir.join("answer.txt")).unwrap(),
            "wrong again\n",
            "{kind}"
        );
        assert!(
            dir.join("new/file.txt").is_file() && !dir.join("src/keep.txt").exists(),
            "{kind}"
        );
        assert!(
            dir.join(".git/HEAD").is_file() && dir.join(".gitignore").is_file(),
            "{kind}"
        );
    }
}

#[test]
fn setup_works_and_is_held_to_the_same_rules() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let test = "grep -qx ready setup.log && grep -qx right answer.txt && test ! -e .git";
        let (answer, bundle) = try_it(
            &house,
            &repo,
            &[right()],
            &["--setup", "echo ready > setup.log", "--test", test],
        );
        assert_eq!(
            answer.code,
            Some(0),
            "{kind}: {answer:?} {}",
            bundle.text("test.log")
        );
        assert_eq!(bundle.report()["workspace_scratch"]["count"], 1, "{kind}");
        for litter in [
            "echo x > stray",
            "rm src/keep.txt",
            "chmod +x answer.txt",
            "rm -r src && mkdir src",
        ] {
            let (answer, bundle) = try_it(&house, &repo, &[right()], &["--setup", litter]);
            assert_eq!(
                (answer.code, bundle.codes()),
                (Some(3), vec!["toolchain_unavailable".to_owned()]),
                "{kind}: {litter}"
            );
        }
    }
}

#[test]
fn a_control_patch_turns_the_copy_red_in_both() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        repo.write("dir/only.txt", "only\n");
        repo.commit("a directory with one file");
        let patch = house.root().join("scripts/control.patch");
        let moved = "diff --git a/dir/only.txt b/moved.txt\nsimilarity index 100%\nrename from dir/only.txt\nrename to moved.txt\n";
        fs::write(&patch, moved).unwrap();
        let (control, test) = (
            patch.display().to_string(),
            "test -d dir && grep -qx right answer.txt",
        );
        let (answer, bundle) = try_it(
            &house,
            &repo,
            &[right()],
            &["--control", &control, "--test", test],
        );
        assert_eq!(
            answer.code,
            Some(0),
            "{kind}: {answer:?} {}",
            bundle.text("test.log")
        );
    }
}

/// Something done to hide a change, the path it must be found at, and as what.
const TRICKS: [(&str, &str, &str); 19] = [
    (
        "echo x >> src/keep.txt; git commit -qam hidden",
        "src/keep.txt",
        "modified",
    ),
    (
        "git update-index --assume-unchanged src/keep.txt; echo x >> src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "git update-index --skip-worktree src/keep.txt; echo x >> src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "touch -r src/keep.txt s.log; echo kee2 > src/keep.txt; touch -r s.log src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "echo kee2 > src/keep.txt; touch -d '1970-01-01 00:00:01' src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    (
        "cp -p src/keep.txt c.log; echo kee2 > c.log; touch -r src/keep.txt c.log; mv c.log src/keep.txt",
        "src/keep.txt",
        "modified",
    ),
    ("chmod +x src/keep.txt", "src/keep.txt", "mode_changed"),
    (
        "ln -sf /etc/passwd src/keep.txt",
        "src/keep.txt",
        "type_changed",
    ),
    ("rm src/keep.txt", "src/keep.txt", "deleted"),
    ("rm -r src", "src/keep.txt", "deleted"),
    ("rm -r src; mkdir src", "src/keep.txt", "deleted"),
    ("rm -r src; echo x > src", "src", "added"),
    (
        "rm answer.txt; mkdir answer.txt; echo x > answer.txt/x",
        "answer.txt/x",
        "added",
    ),
    (
        "mv src/keep.txt src/kept.txt; echo x > src/keep.log",
        "src/kept.txt",
        "added",
    ),
    ("mv src else", "else/keep.txt", "added"),
    ("echo x > ANSWER.txt", "ANSWER.txt", "added"),
    (
        "echo '*.txt' > .gitignore; echo '*' > .git/info/exclude; echo x > new.txt",
        "new.txt",
        "added",
    ),
    (
        "ln src/keep.txt src/two; echo x >> src/two",
        "src/keep.txt",
        "modified",
    ),
    ("mkfifo pipe.log", "pipe.log", "unrecordable"),
];

#[test]
fn nothing_an_engine_does_hides_a_change_in_either() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        for (trick, path, change) in TRICKS {
            let (answer, bundle) = try_it(&house, &repo, &[right(), shell(trick)], CONTAINED);
            assert!(!answer.panicked(), "{answer:?}");
            let report = bundle.report();
            let changes = report["observed"]["changes"]
                .as_array()
                .unwrap_or_else(|| panic!("{kind}: {trick}: {answer:?}"));
            let found = changes
                .iter()
                .find(|found| found["path"] == path)
                .unwrap_or_else(|| panic!("{kind}: {trick}: {changes:?}"));
            assert_eq!(
                (found["kind"].as_str(), bundle.status().as_str()),
                (Some(change), "fail"),
                "{kind}: {trick}"
            );
            assert!(
                bundle.has_code("disallowed_file_change"),
                "{kind}: {trick}: {:?}",
                bundle.codes()
            );
            assert_good(&bundle);
        }
        for trick in [
            "mkdir .GIT",
            "mkdir -p src/.git",
            "mkdir in.log; git init -q in.log",
            "touch .git/index.lock",
        ] {
            let (_, bundle) = try_it(&house, &repo, &[right(), shell(trick)], CONTAINED);
            assert!(
                bundle.has_code("dirty_ending_tree") && bundle.status() == "fail",
                "{kind}: {trick}: {:?}",
                bundle.codes()
            );
        }
    }
}

#[test]
fn no_device_or_mark_of_an_engines_hides_a_change() {
    let mark = |path: &str, name: &str| {
        format!(
            "python3 -c 'import os; os.setxattr(\"{path}\", \"user.overlay.{name}\", b\"y\")' 2>/dev/null"
        )
    };
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let device =
            "rm src/keep.txt; mknod src/keep.txt c 0 0; mknod new c 0 0; mknod src/more c 0 0";
        for (trick, found) in [
            (device.to_owned(), "src/keep.txt"),
            (
                format!(
                    "echo x >> src/keep.txt; {}",
                    mark("src/keep.txt", "whiteout")
                ),
                "src/keep.txt",
            ),
            (
                format!(
                    "echo x >> src/keep.txt; {}",
                    mark("src/keep.txt", "metacopy")
                ),
                "src/keep.txt",
            ),
            (
                format!(
                    "echo x > src/new; {}; {}",
                    mark("src", "opaque"),
                    mark("src", "redirect")
                ),
                "src/new",
            ),
        ] {
            let (_, bundle) = try_it(&house, &repo, &[right(), shell(&trick)], CONTAINED);
            assert!(
                bundle.has_code("disallowed_file_change"),
                "{kind}: {trick}: {:?}",
                bundle.codes()
            );
            let report = bundle.report();
            let changes = report["observed"]["changes"].as_array().unwrap();
            assert!(
                changes.iter().any(|change| change["path"] == found),
                "{kind}: {trick}: {changes:?}"
            );
            let hidden = changes
                .iter()
                .any(|change| change["path"] == "src/keep.txt")
                == (found == "src/keep.txt");
            assert!(hidden, "{kind}: {trick}: {changes:?}");
        }
    }
}

#[test]
fn scratch_is_counted_by_the_rules_of_the_baseline_and_forbidden_paths_win() {
    for kind in KINDS {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        repo.write("held/.gitignore", "*\n!.gitignore\n");
        symlink("held", repo.at("way")).unwrap();
        repo.commit("rules of a directory");
        let litter =
            "printf 12345 > note.log; echo x > held/x; rm way; mkdir way; printf 123 > way/y.log";
        let (_, bundle) = try_it(
            &house,
            &repo,
            &[right(), shell(litter)],
            &[CONTAINED, &["--allow", "answer.txt", "--allow", "way"]].concat(),
        );
        assert_eq!(
            bundle.report()["workspace_scratch"],
            serde_json::json!({"count": 3, "bytes": 10}),
            "{kind}"
        );
        let (_, bundle) = try_it(
            &house,
            &repo,
            &[right(), shell("echo x > held/x")],
            &[CONTAINED, &["--forbid", "held"]].concat(),
        );
        assert_eq!(bundle.codes(), ["forbidden_path_change"], "{kind}");
    }
}

#[test]
fn the_result_commit_is_the_harnesss_own() {
    let commits = KINDS.map(|kind| {
        let house = house_with(kind);
        let repo = Repo::new(&house, "project");
        let (_, bundle) = try_it(
            &house,
            &repo,
            &[right(), shell("git add -A; git commit -qm mine")],
            &[],
        );
        bundle.event("git.diff.checked").unwrap()["result_commit"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    assert_eq!(
        commits[0], commits[1],
        "the same whoever measured it, and whatever the engine committed"
    );
}

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

/// Every entry of a pristine copy: kind, mode, name, link text, content.
const LOOK: &str = "find . ! -name . -printf '@ %y %m %p %l\\n' | sort; find . -type f -exec sha256sum {} + | sort | sed 's/^/@ /'";

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
