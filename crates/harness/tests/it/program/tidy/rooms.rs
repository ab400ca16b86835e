//! Which room may import which: one list per crate, lowest first. And how full a folder may be.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Source, files_below, repository, sources};

/// A room imports only rooms that stand before it.
const CORE: &[&str] = &[
    "values",
    "workspace",
    "containment",
    "task",
    "wire",
    "records",
    "run",
    "bundle",
    "engine",
    "checks",
    "gate",
    "verify",
    "proof",
    "operator",
];
const HARNESS: &[&str] = &[
    "host",
    "screen",
    "task",
    "evidence",
    "supervise",
    "bundles",
    "workspace",
    "records",
    "plan",
    "run",
    "doubles",
    "proof",
    "cli",
];
/// The crates, lowest first; `testkit` shares nothing with what it tests.
const CRATES: &[&str] = &["core", "jail", "gateway", "harness"];

const MOST_ENTRIES: usize = 15;

fn order_of(krate: &str) -> Option<&'static [&'static str]> {
    match krate {
        "core" => Some(CORE),
        "harness" => Some(HARNESS),
        _ => None,
    }
}

/// The crate of a source file, and its module path below the crate's root.
fn place(path: &str) -> Option<(&str, Vec<&str>)> {
    let (krate, inner) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut parts: Vec<&str> = inner.trim_end_matches(".rs").split('/').collect();
    if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
        parts.pop();
    }
    Some((krate, parts))
}

/// Every path that begins at the crate's root or climbs there: its first name below the root.
fn imported_rooms(source: &Source, module: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (start, levels) in path_starts(&source.product) {
        let rest = &source.product[start..];
        // `crate::` has no levels; `super::` climbs. In a nested module it climbs less far, never
        // further.
        if levels.is_none_or(|levels| levels >= module.len()) {
            found.extend(first_names(rest));
        }
    }
    found
}

/// Where paths go on behind `crate::` (no levels) or behind a row of `super::` (how many).
fn path_starts(code: &str) -> Vec<(usize, Option<usize>)> {
    let mut found = Vec::new();
    let fresh = |at: usize| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    };
    for (at, word) in code.match_indices("crate::").filter(|(at, _)| fresh(*at)) {
        found.push((at + word.len(), None));
    }
    for (at, word) in code.match_indices("super::").filter(|(at, _)| fresh(*at)) {
        let mut end = at + word.len();
        let mut levels = 1;
        while code[end..].starts_with("super::") {
            end += "super::".len();
            levels += 1;
        }
        found.push((end, Some(levels)));
    }
    found
}

/// The first name of a path, or those of a group in braces.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let mut depth = 1;
    let mut names = vec![name(group)];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(name(&group[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// What a file imports and may not.
fn upward_imports(source: &Source) -> Vec<String> {
    let Some((krate, module)) = place(&source.path).filter(|_| !source.is_test()) else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    for (at, above) in CRATES.iter().enumerate() {
        let own = CRATES.iter().position(|name| *name == krate);
        let named = source.product.contains(&format!("cto_{above}::"));
        if named && own.is_some_and(|own| at > own) {
            wrong.push(format!("{krate} imports the crate {above}"));
        }
    }
    let (Some(order), Some(room)) = (order_of(krate), module.first()) else {
        return wrong;
    };
    let Some(own) = order.iter().position(|name| name == room) else {
        wrong.push(format!("the room {room} stands in no order"));
        return wrong;
    };
    for other in imported_rooms(source, &module) {
        if order
            .iter()
            .position(|name| *name == other)
            .is_some_and(|at| at > own)
        {
            wrong.push(format!("{room} imports {other}, which is above it"));
        }
    }
    wrong
}

/// Folders with too many entries, of all files given by their paths.
fn full_folders(paths: &[String]) -> Vec<String> {
    let mut entries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in paths {
        let parts: Vec<&str> = path.split('/').collect();
        for depth in 1..parts.len() {
            let folder = parts[..depth].join("/");
            entries
                .entry(folder)
                .or_default()
                .insert(parts[depth].to_owned());
        }
    }
    let counted = |folder: &str| {
        let inside = |part: &str| {
            folder.starts_with("crates/")
                && (folder.contains(&format!("/{part}/")) || folder.ends_with(&format!("/{part}")))
        };
        // Recordings and golden bundles are data, as many as there are.
        (inside("src") || inside("tests/it")) && !folder.contains("recorded")
    };
    entries
        .into_iter()
        .filter(|(folder, inner)| counted(folder) && inner.len() > MOST_ENTRIES)
        .map(|(folder, inner)| format!("{folder} has {} entries", inner.len()))
        .collect()
}

#[test]
fn rooms_import_only_rooms_below_them() {
    let wrong: Vec<String> = sources()
        .iter()
        .flat_map(|s| {
            upward_imports(s)
                .into_iter()
                .map(|what| format!("{}: {what}", s.path))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_room_of_the_order_exists() {
    for (krate, order) in [("core", CORE), ("harness", HARNESS)] {
        for room in order {
            let dir = repository().join(format!("crates/{krate}/src/{room}/mod.rs"));
            assert!(dir.is_file(), "{} is not there", dir.display());
        }
    }
}

#[test]
fn an_upward_import_is_noticed() {
    for (path, text, wrong) in [
        ("crates/core/src/task/a.rs", "use crate::run::x;", 1),
        ("crates/core/src/run/a.rs", "use crate::task::x;", 0),
        (
            "crates/core/src/task/a.rs",
            "use crate::{values::x, run::{y, z}, gate};",
            2,
        ),
        (
            "crates/core/src/task/a.rs",
            "fn f() { crate::run::judge(); }",
            1,
        ),
        ("crates/core/src/task/a.rs", "use super::super::run::x;", 1),
        ("crates/core/src/task/mod.rs", "use super::run::x;", 1),
        ("crates/core/src/task/a.rs", "use super::run;", 0),
        (
            "crates/core/src/task/a.rs",
            "// crate::run::x\nconst A: &str = \"crate::run\";",
            0,
        ),
        (
            "crates/core/src/task/a.rs",
            "#[cfg(test)]\nmod tests { use crate::run::x; }",
            0,
        ),
        (
            "crates/core/src/task/a.rs",
            "#[cfg(test)]\nmod tests {}\nuse crate::run::x;",
            1,
        ),
        ("crates/core/src/task/a_tests.rs", "use crate::run::x;", 0),
        ("crates/core/src/attic/a.rs", "use std::x;", 1),
        ("crates/core/src/task/a.rs", "use cto_harness::x;", 1),
        ("crates/jail/src/a.rs", "use cto_gateway::x;", 1),
        ("crates/gateway/src/a.rs", "use cto_core::x;", 0),
        ("crates/harness/src/host/a.rs", "use crate::screen::x;", 1),
        ("crates/harness/src/cli/work/a.rs", "use crate::run::x;", 0),
    ] {
        let found = upward_imports(&Source::new(path, text));
        assert_eq!(found.len(), wrong, "{path}: {text}: {found:?}");
    }
}

#[test]
fn no_folder_has_more_than_fifteen_entries() {
    let root = repository();
    let relative =
        |path: std::path::PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    let paths: Vec<String> = files_below(&root.join("crates"))
        .into_iter()
        .map(relative)
        .collect();
    assert_eq!(full_folders(&paths), Vec::<String>::new());
    let sixteen = |folder: &str| {
        (0..16)
            .map(|n| format!("{folder}/{n}.rs"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        full_folders(&sixteen("crates/core/src/run")),
        ["crates/core/src/run has 16 entries"]
    );
    assert_eq!(
        full_folders(&sixteen("crates/harness/tests/it/work")).len(),
        1
    );
    assert!(full_folders(&sixteen("crates/harness/tests/golden")).is_empty());
    assert!(full_folders(&sixteen("crates/core/src/run")[1..]).is_empty());
}
