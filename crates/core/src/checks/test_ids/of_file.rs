//! Which file of a tree a runner means: by the path or module it names, or by the id of a test.

use crate::task::contract::Runner;
use crate::values::paths::TreePath;

/// The paths among `tree` that a name may stand for, if any. A runner may have been started below the
/// top, so the end of a path is enough, and several may fit.
pub fn files_of<'a>(runner: Runner, name: &str, tree: &[&'a TreePath]) -> Vec<&'a TreePath> {
    match runner {
        Runner::Pytest => by_path(name.split("::").next().unwrap_or(name), tree),
        Runner::Unittest => by_module(name, tree),
        Runner::Cargo => by_path(name.strip_prefix("unittests ").unwrap_or(name), tree),
        Runner::Go => by_package(name.split(": ").next().unwrap_or(name), tree),
        // A name without a path stands for itself.
        _ => by_path(name.split(": ").next().unwrap_or(name), tree),
    }
}

/// The directory a package of Go lies in, among those that are known: the longest that its path ends with,
/// because only a `go.mod` says what stands before it.
pub fn directory_of<'a>(package: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let fits = |dir: &&str| dir.is_empty() || ends_with_path(package.as_bytes(), dir.as_bytes());
    known.filter(fits).max_by_key(|dir| dir.len())
}

/// The files of tests of a package.
fn by_package<'a>(package: &str, tree: &[&'a TreePath]) -> Vec<&'a TreePath> {
    let tests: Vec<(String, &TreePath)> = tree
        .iter()
        .map(|path| (path.to_string(), *path))
        .filter(|(name, _)| name.ends_with("_test.go"))
        .collect();
    let dir = |name: &'_ str| name.rsplit_once('/').map_or(0, |(dir, _)| dir.len());
    let directories = || tests.iter().filter_map(|(name, _)| name.get(..dir(name)));
    let of = directory_of(package, directories());
    let of = |(name, path): &(String, &'a TreePath)| {
        (name.get(..dir(name)) == of && of.is_some()).then_some(*path)
    };
    tests.iter().filter_map(of).collect()
}

/// A path as a runner tells it: from the top, from where it was started, or from the root of the
/// file system.
fn by_path<'a>(name: &str, tree: &[&'a TreePath]) -> Vec<&'a TreePath> {
    let name = name.trim_start_matches("./").as_bytes();
    if name.starts_with(b"/") {
        let fits = |path: &&&TreePath| ends_with_path(name, path.as_bytes());
        let longest = tree
            .iter()
            .filter(fits)
            .max_by_key(|path| path.as_bytes().len());
        return longest.into_iter().copied().collect();
    }
    let fits = |path: &&TreePath| ends_with_path(path.as_bytes(), name);
    tree.iter().copied().filter(fits).collect()
}

/// The longest beginning of a dotted name that is a module.
fn by_module<'a>(name: &str, tree: &[&'a TreePath]) -> Vec<&'a TreePath> {
    let name = name.strip_suffix(".py").map_or_else(
        || name.to_owned(),
        |path| path.trim_start_matches("./").replace('/', "."),
    );
    let parts: Vec<&str> = name.split('.').collect();
    for count in (1..=parts.len()).rev() {
        let path = parts.get(..count).unwrap_or_default().join("/");
        if path.is_empty() || path.contains(char::is_whitespace) {
            continue;
        }
        for file in [format!("{path}.py"), format!("{path}/__init__.py")] {
            let found = by_path(&file, tree);
            if !found.is_empty() {
                return found;
            }
        }
    }
    Vec::new()
}

fn ends_with_path(path: &[u8], end: &[u8]) -> bool {
    !end.is_empty()
        && path
            .strip_suffix(end)
            .is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runners_are_files_of_the_tree() {
        let all = [
            "test_app.py",
            "a/test_app.py",
            "a/tests/test_more.py",
            "tests/__init__.py",
            "tests/outer.rs",
            "src/lib.rs",
            "sub/app.test.mjs",
            "app.test.mjs",
            "root_test.go",
            "more/a_test.go",
            "more/b_test.go",
            "more/b.go",
            "deep/more/c_test.go",
        ]
        .map(TreePath::new);
        let tree: Vec<&TreePath> = all.iter().collect();
        let rows: &[(Runner, &str, &[&str])] = &[
            (
                Runner::Pytest,
                "test_app.py::test_a",
                &["test_app.py", "a/test_app.py"],
            ),
            (
                Runner::Pytest,
                "a/test_app.py::A::test_a",
                &["a/test_app.py"],
            ),
            (Runner::Pytest, "app.py::x", &[]),
            (
                Runner::Mocha,
                "app.test.mjs: a > b",
                &["sub/app.test.mjs", "app.test.mjs"],
            ),
            (Runner::Mocha, "adds: twice", &[]),
            (Runner::Go, "example.com/x: TestA", &["root_test.go"]),
            (
                Runner::Go,
                "example.com/x/more",
                &["more/a_test.go", "more/b_test.go"],
            ),
            (Runner::Go, "x/deep/more: TestA/b", &["deep/more/c_test.go"]),
            (
                Runner::Unittest,
                "test_more.More.test_a",
                &["a/tests/test_more.py"],
            ),
            (
                Runner::Unittest,
                "a.tests.test_more.More.test_a",
                &["a/tests/test_more.py"],
            ),
            (
                Runner::Unittest,
                "a/tests/test_more.py",
                &["a/tests/test_more.py"],
            ),
            (
                Runner::Unittest,
                "tests.Base.test_x",
                &["tests/__init__.py"],
            ),
            (Runner::Unittest, "unknown.Base.test_x", &[]),
            (Runner::Cargo, "tests/outer.rs", &["tests/outer.rs"]),
            (Runner::Cargo, "unittests src/lib.rs", &["src/lib.rs"]),
            (Runner::Cargo, "doc tests of x", &[]),
            (
                Runner::Node,
                "/jail/w/sub/app.test.mjs",
                &["sub/app.test.mjs"],
            ),
            (
                Runner::Node,
                "app.test.mjs",
                &["sub/app.test.mjs", "app.test.mjs"],
            ),
        ];
        for (runner, name, want) in rows {
            let found: Vec<String> = files_of(*runner, name, &tree)
                .iter()
                .map(|path| path.to_string())
                .collect();
            assert_eq!(found, *want, "{name}");
        }
    }
}
