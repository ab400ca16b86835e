//! Every way in which a copy can differ from the work tree, and what becomes young by it.

use super::*;
use crate::values::digest::Digest;

fn entry(text: &str) -> Entry {
    // `-> x` is a link.
    let kind = match text.starts_with("->") {
        true => FileKind::Symlink,
        false => FileKind::Regular,
    };
    Entry {
        kind,
        bytes: text.len() as u64,
        sha256: Digest::of(text.as_bytes()),
    }
}

fn tree(files: &[(&str, &str)]) -> Tree {
    let file = |(path, text): &(&str, &str)| (TreePath::new(*path), entry(text));
    files.iter().map(file).collect()
}

const START: [(&str, &str); 7] = [
    ("Cargo.toml", "w"),
    ("link", "-> one"),
    ("one/Cargo.toml", "1"),
    ("one/src/lib.rs", "a"),
    ("one/src/gone.rs", "b"),
    ("two/Cargo.toml", "2"),
    ("two/src/lib.rs", "c"),
];

/// A work tree that is the start; every time is told apart.
fn work() -> WorkTree {
    let start = tree(&START);
    let mut known = WorkTree {
        same: start.keys().cloned().zip((1..).map(|n| (n, 0))).collect(),
        ..WorkTree::default()
    };
    for (dir, names) in [
        ("", vec!["Cargo.toml", "link", "one", "two"]),
        ("one", vec!["Cargo.toml", "src"]),
        ("one/src", vec!["lib.rs", "gone.rs"]),
        ("two", vec!["Cargo.toml", "src"]),
        ("two/src", vec!["lib.rs"]),
    ] {
        let names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let time = (1000, i64::try_from(dir.len()).unwrap());
        let seen = Directory { time, names };
        known.dirs.insert(TreePath::new(dir), seen);
    }
    known
}

/// The start, with these put there and those taken away.
fn changed(put: &[(&str, &str)], taken: &[&str]) -> Tree {
    let mut copy = tree(&START);
    for path in taken {
        assert!(copy.remove(&TreePath::new(*path)).is_some(), "{path}");
    }
    copy.extend(tree(put));
    copy
}

fn of(copy: &Tree, reach: Reach) -> Stamps {
    stamps(&work(), &tree(&START), copy, &BTreeSet::new(), reach)
}

fn renewed(stamps: &Stamps) -> Vec<String> {
    stamps.renewed.iter().map(ToString::to_string).collect()
}

fn young_dirs(stamps: &Stamps) -> Vec<String> {
    let young = stamps.dirs.iter().filter(|(_, time)| time.is_none());
    young
        .map(|(dir, _)| String::from_utf8_lossy(dir.as_bytes()).into_owned())
        .collect()
}

const REACHES: [Reach; 3] = [Reach::Nothing, Reach::Packages, Reach::Everything];

fn assert_all_young(found: &Stamps, copy: &Tree, what: &str) {
    assert_eq!(found.renewed.len(), copy.len(), "{what}: {found:?}");
    assert!(found.dirs.values().all(Option::is_none), "{what}");
}

#[test]
fn what_is_as_in_the_work_tree_keeps_its_time() {
    for reach in REACHES {
        let found = of(&tree(&START), reach);
        assert!(found.renewed.is_empty(), "{found:?}");
        assert_eq!(young_dirs(&found), Vec::<String>::new());
        assert_eq!(found.dirs[&TreePath::new("one/src")], Some((1000, 7)));
    }
}

#[test]
fn a_change_of_equal_size_is_young_and_nothing_else_is() {
    for reach in REACHES {
        let found = of(&changed(&[("one/src/lib.rs", "A")], &[]), reach);
        assert_eq!(renewed(&found), ["one/src/lib.rs"]);
        assert_eq!(young_dirs(&found), Vec::<String>::new());
    }
}

#[test]
fn a_name_that_came_or_went_renews_its_package_and_the_own_files_of_those_above() {
    let new = ("one/src/new/x.rs", "x");
    for (what, copy, want) in [
        (
            "a deletion",
            changed(&[], &["one/src/gone.rs"]),
            vec!["Cargo.toml", "link", "one/Cargo.toml", "one/src/lib.rs"],
        ),
        (
            "an addition",
            changed(&[new], &[]),
            vec![
                "Cargo.toml",
                "link",
                "one/Cargo.toml",
                "one/src/gone.rs",
                "one/src/lib.rs",
                "one/src/new/x.rs",
            ],
        ),
        (
            "both, by a package that the change plants",
            changed(
                &[("one/src/Cargo.toml", "p"), ("one/src/pom.xml", "p")],
                &["one/src/gone.rs"],
            ),
            vec![
                "Cargo.toml",
                "link",
                "one/Cargo.toml",
                "one/src/Cargo.toml",
                "one/src/lib.rs",
                "one/src/pom.xml",
            ],
        ),
        (
            "a package that the change takes away",
            changed(&[], &["one/Cargo.toml"]),
            vec!["Cargo.toml", "link", "one/src/gone.rs", "one/src/lib.rs"],
        ),
    ] {
        let found = of(&copy, Reach::Packages);
        assert_eq!(renewed(&found), want, "{what}");
        assert!(found.dirs[&TreePath::new("one/src")].is_none(), "{what}");
        assert!(found.dirs[&TreePath::new("two/src")].is_some(), "{what}");
        assert_all_young(&of(&copy, Reach::Everything), &copy, what);
    }
    // Beside the packages: whichever of them looked there.
    let copy = changed(&[("data/x", "x")], &[]);
    assert_all_young(&of(&copy, Reach::Packages), &copy, "beside");
    let copy = changed(&[new], &["one/src/gone.rs"]);
    assert_eq!(renewed(&of(&copy, Reach::Nothing)), ["one/src/new/x.rs"]);
    assert_eq!(
        young_dirs(&of(&copy, Reach::Nothing)),
        ["one/src", "one/src/new"]
    );
}

#[test]
fn a_link_that_is_not_the_same_renews_all() {
    for (what, copy) in [
        ("elsewhere", changed(&[("link", "-> two")], &[])),
        ("new", changed(&[("two/src/l.rs", "-> x")], &[])),
        ("gone", changed(&[], &["link"])),
        (
            "a file became one",
            changed(&[("two/src/lib.rs", "-> x")], &[]),
        ),
        ("one became a file", changed(&[("link", "x")], &[])),
        (
            "a directory became one",
            changed(
                &[("one/src", "-> ../two")],
                &["one/src/lib.rs", "one/src/gone.rs"],
            ),
        ),
    ] {
        for reach in [Reach::Packages, Reach::Everything] {
            assert_all_young(&of(&copy, reach), &copy, what);
        }
        assert!(of(&copy, Reach::Nothing).renewed.len() < 2, "{what}");
    }
    // HEAD has another link than the work tree, in which everything was made.
    let (start, mut dirty) = (tree(&START), work());
    dirty.same.remove(&TreePath::new("link"));
    let found = stamps(&dirty, &start, &start, &BTreeSet::new(), Reach::Packages);
    assert_all_young(&found, &start, "left out");
}

#[test]
fn what_the_work_tree_has_otherwise_is_young() {
    let start = tree(&START);
    let with = |work: &WorkTree| stamps(work, &start, &start, &BTreeSet::new(), Reach::Packages);
    let mut dirty = work();
    dirty.same.remove(&TreePath::new("two/src/lib.rs"));
    assert_eq!(renewed(&with(&dirty)), ["two/src/lib.rs"]);
    // It is not there at all: for what was made there, the copy has a new name.
    let mut less = dirty.clone();
    let src = less.dirs.get_mut(&TreePath::new("two/src")).unwrap();
    src.names.clear();
    assert_eq!(
        renewed(&with(&less)),
        ["Cargo.toml", "link", "two/Cargo.toml", "two/src/lib.rs"]
    );
    // And what is there and not in the copy is gone.
    dirty.left_out.insert(TreePath::new("one/src/extra.rs"));
    let src = dirty.dirs.get_mut(&TreePath::new("one/src")).unwrap();
    src.names.insert(b"extra.rs".to_vec());
    let found = with(&dirty);
    assert_eq!(
        renewed(&found),
        [
            "Cargo.toml",
            "link",
            "one/Cargo.toml",
            "one/src/gone.rs",
            "one/src/lib.rs",
            "two/src/lib.rs"
        ]
    );
    assert_eq!(young_dirs(&found), ["one", "one/src"]);
    for reach in REACHES {
        let nothing = stamps(
            &WorkTree::default(),
            &start,
            &start,
            &BTreeSet::new(),
            reach,
        );
        assert_all_young(&nothing, &start, "nothing known, nothing old");
    }
}

#[test]
fn an_environment_is_an_entry_of_its_directory() {
    let (start, mut with) = (tree(&START), work());
    let top = with.dirs.get_mut(&TreePath::new("")).unwrap();
    top.names.insert(b"target".to_vec());
    let young = |beside: &[&str]| {
        let beside = beside.iter().map(|path| TreePath::new(*path)).collect();
        young_dirs(&stamps(&with, &start, &start, &beside, Reach::Everything))
    };
    assert_eq!(young(&["target"]), Vec::<String>::new());
    assert_eq!(young(&[]), [""]);
}

#[test]
fn who_judges_by_times_decides_how_far_it_is_felt() {
    use EnvironmentKind as K;
    for (kinds, want) in [
        (vec![], Reach::Nothing),
        (vec![K::PythonVenv, K::EggInfo], Reach::Nothing),
        (vec![K::PythonVenv, K::CargoTarget], Reach::Packages),
        (vec![K::Named, K::CargoTarget], Reach::Everything),
    ] {
        assert_eq!(Reach::of(kinds.clone()), want, "{kinds:?}");
    }
}
