use proptest::prelude::*;

use super::*;
use crate::values::digest::Digest;
use crate::workspace::tree::{Entry, FileKind};

fn tree(paths: &[&str]) -> Tree {
    let entry = Entry {
        kind: FileKind::Regular,
        bytes: 0,
        sha256: Digest::of(b""),
    };
    paths
        .iter()
        .map(|path| (TreePath::new(*path), entry))
        .collect()
}

fn rules(texts: &[&str]) -> Vec<PathRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn strict(paths: &[&str], allowed: &[&str], forbidden: &[&str]) -> Decision {
    decide_guard(
        Containment::Strict,
        &tree(paths),
        &rules(allowed),
        &rules(forbidden),
        &[],
    )
}

fn names(paths: &[TreePath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

const REPO: [&str; 8] = [
    "Cargo.toml",
    "docs/a.md",
    "docs/b.md",
    "src/a.rs",
    "src/b.rs",
    "src/deep/c.rs",
    "src-old/x",
    "tests/t.rs",
];

#[test]
fn siblings_of_an_allowed_file_are_closed_and_its_directories_stay() {
    let found = strict(&REPO, &["src/a.rs"], &[]);
    assert_eq!(found.policy, Containment::Strict);
    assert_eq!(names(&found.guard.open), ["src"]);
    assert_eq!(
        names(&found.guard.read_only),
        [
            "Cargo.toml",
            "docs",
            "src-old",
            "src/b.rs",
            "src/deep",
            "tests"
        ]
    );
}

#[test]
fn a_whole_subtree_needs_no_mount_but_what_is_forbidden_in_it() {
    let free = strict(&REPO, &["src/"], &[]);
    assert_eq!(
        (
            names(&free.guard.open).len(),
            names(&free.guard.read_only).len()
        ),
        (0, 4)
    );
    let held = strict(&REPO, &["src/"], &["src/deep/"]);
    assert_eq!(names(&held.guard.open), ["src"]);
    assert!(names(&held.guard.read_only).contains(&"src/deep".to_owned()));
    // A rule that could reach into it, where nothing of that name exists, costs nothing.
    assert_eq!(
        names(&strict(&REPO, &["src/"], &["src/*.pem"]).guard.open),
        Vec::<String>::new()
    );
    let file = strict(&REPO, &["src/"], &["src/b.rs"]);
    assert!(names(&file.guard.read_only).contains(&"src/b.rs".to_owned()));
}

#[test]
fn a_name_that_is_not_there_yet_keeps_its_directory_open() {
    let found = strict(&REPO, &["src/deep/new/"], &[]);
    assert_eq!(names(&found.guard.open), ["src", "src/deep"]);
    assert!(names(&found.guard.read_only).contains(&"src/deep/c.rs".to_owned()));
    let star = strict(&REPO, &["*/c.rs"], &[]);
    assert_eq!(names(&star.guard.open), ["docs", "src", "src-old", "tests"]);
}

#[test]
fn beyond_the_cap_it_is_contained_and_says_why() {
    let many: Vec<String> = (0..=MOUNT_CAP).map(|n| format!("f{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let over = strict(&many, &["f0"], &[]);
    assert_eq!(
        over.policy,
        Containment::Strict,
        "{} siblings fit",
        over.guard.mounts()
    );
    let many = [many, vec!["one-more"]].concat();
    let over = strict(&many, &["f0"], &[]);
    assert_eq!(
        (over.policy, over.guard.mounts()),
        (Containment::Contained, 0)
    );
    assert_eq!(
        over.fallback.as_deref(),
        Some("strict would need 4097 mounts, at most 4096 are made")
    );
}

#[test]
fn contained_masks_and_closes_nothing() {
    let found = decide_guard(
        Containment::Contained,
        &tree(&[".mcp.json", "a"]),
        &rules(&["a"]),
        &[],
        &[],
    );
    assert_eq!(
        (found.policy, found.fallback),
        (Containment::Contained, None)
    );
    assert_eq!(
        (names(&found.guard.masked), found.guard.mounts()),
        (vec![".mcp.json".to_owned()], 1)
    );
}

#[test]
fn directories_around_a_masked_place_stay_where_they_are() {
    let paths = ["a/b/.env", "a/b/x", "a/c/y", ".mcp.json"];
    for asked in [Containment::Strict, Containment::Contained] {
        let everything = rules(&["*", "*/"]);
        let found = decide_guard(asked, &tree(&paths), &everything, &[], &[]);
        assert_eq!(names(&found.guard.open), ["a", "a/b"], "{asked:?}");
        assert_eq!(names(&found.guard.masked), [".mcp.json", "a/b/.env"]);
        assert_eq!((found.policy, found.guard.read_only.len()), (asked, 0));
    }
    // What cannot be changed cannot be renamed either.
    let closed = strict(&paths, &["z"], &[]).guard;
    assert_eq!(
        (names(&closed.open).len(), names(&closed.read_only)),
        (0, vec![".mcp.json".to_owned(), "a".to_owned()])
    );
}

#[test]
fn beyond_the_cap_what_is_masked_stays_masked() {
    let many: Vec<String> = (0..=MOUNT_CAP).map(|n| format!("d{n}/.env")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let over = strict(&many, &["*", "*/"], &[]);
    assert_eq!(over.policy, Containment::Contained);
    assert_eq!(over.guard.masked.len(), many.len());
    assert_eq!(over.guard.open.len(), many.len());
    assert!(over.fallback.is_some());
}

#[test]
fn an_input_that_tells_secrets_is_named_as_shown() {
    let inputs = rules(&[".env", "node_modules/", "sub/.pi/", "secrets"]);
    let found = decide_guard(
        Containment::Strict,
        &tree(&["a"]),
        &rules(&["a"]),
        &[],
        &inputs,
    );
    assert_eq!(names(&found.guard.shown), [".env", "sub/.pi", "secrets"]);
}

/// Is a path, or a directory around it, covered by a read-only mount?
fn closed(guard: &Guard, path: &str) -> bool {
    guard.read_only.iter().any(|held| {
        let held = held.to_string();
        path == held || path.starts_with(&format!("{held}/"))
    })
}

proptest! {
    /// The property itself: what exists is closed exactly when it may not change, and every
    /// directory on the way to a closed path is closed, or held in place, or the workspace.
    #[test]
    fn closed_exactly_when_not_allowed(
        paths in proptest::collection::btree_set("[ab]{1,2}(/[ab][ab.]?){0,3}", 1..25),
        allowed in proptest::collection::vec("[ab*]{1,2}(/[ab*]{1,2}){0,2}/?", 1..4),
        forbidden in proptest::collection::vec("[ab*]{1,2}(/[ab*]{1,2}){0,2}/?", 0..3),
    ) {
        // A file is no directory of another path.
        let is_dir = |path: &str| paths.iter().any(|other| other.starts_with(&format!("{path}/")));
        let paths: Vec<&str> = paths.iter().map(String::as_str).filter(|path| !is_dir(path)).collect();
        let texts = |list: &[String]| list.iter().filter_map(|text| text.parse().ok()).collect::<Vec<PathRule>>();
        let (allowed, forbidden) = (texts(&allowed), texts(&forbidden));
        let guard = decide_guard(Containment::Strict, &tree(&paths), &allowed, &forbidden, &[]).guard;
        for path in &paths {
            let allowed = path_standing(&TreePath::new(*path), &allowed, &forbidden) == PathStanding::Allowed;
            prop_assert_eq!(closed(&guard, path), !allowed, "{}: {:?}", path, guard);
            let mut dir = *path;
            while let Some((parent, _)) = dir.rsplit_once('/').filter(|_| !allowed) {
                let held = guard.open.contains(&TreePath::new(parent)) || closed(&guard, parent);
                prop_assert!(held, "{} can be moved away: {:?}", parent, guard);
                dir = parent;
            }
        }
        let mut sorted = guard.open.clone();
        sorted.sort();
        prop_assert_eq!(sorted, guard.open, "parents come before children");
    }
}

/// What a hidden command may take away, and what nobody may change.
#[test]
fn hidden_files_are_read_only_but_for_whoever_takes_them_away() {
    let files = [
        ("plain.sh", "exit 0"),
        ("own.py", "import os\nos.remove(__file__)\n"),
        ("own.cjs", "fs.rmSync(__filename);"),
        ("own.sh", "rm -- \"$0\"\n"),
        ("sub/deep/data.txt", "rm plain.sh"),
    ]
    .map(|(path, text)| (TreePath::new(path), text));
    let closed = |commands: &[&str]| -> Vec<String> {
        let commands: Vec<String> = commands.iter().map(|it| (*it).to_owned()).collect();
        let files = files.iter().map(|(path, text)| (path, text.as_bytes()));
        let guard = guard_hidden(&commands, files);
        assert_eq!(guard.open, ["sub", "sub/deep"].map(TreePath::new));
        guard.read_only.iter().map(ToString::to_string).collect()
    };
    let all = [
        "plain.sh",
        "own.py",
        "own.cjs",
        "own.sh",
        "sub/deep/data.txt",
    ];
    for (commands, taken) in [
        (&["sh plain.sh"][..], &[][..]),
        (
            &["check=$(cat plain.sh) && rm plain.sh && eval \"$check\""],
            &["plain.sh"],
        ),
        (&["rm -f ./plain.sh; true"], &["plain.sh"]),
        (&["sh plain.sh; rm other"], &[]),
        (&["cat plain.sh; rm plain.sh.old"], &[]),
        (&["python3 -I own.py"], &["own.py"]),
        (&["node ./own.cjs", "true"], &["own.cjs"]),
        (&["sh own.sh", "python3 own.py"], &["own.py", "own.sh"]),
        // It does so only where it is started.
        (&["sh plain.sh own"], &[]),
    ] {
        let want: Vec<&str> = (all.into_iter())
            .filter(|path| !taken.contains(path))
            .collect();
        assert_eq!(closed(commands), want, "{commands:?}");
    }
}
