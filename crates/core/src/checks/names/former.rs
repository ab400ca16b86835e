//! The names of rules 1 to 5, kept as they were: which files a runner takes for tests, which ones say
//! how it runs, and which put themselves between a command and its runner.

use crate::values::paths::TreePath;

/// Is this a file a runner of this project would take for tests?
pub fn is_test_file(path: &TreePath) -> bool {
    let name = file_name(path);
    is_python_test(path)
        || path.as_bytes().starts_with(b"tests/")
        || [
            &b".test.js"[..],
            b".test.mjs",
            b".test.ts",
            b"_test.go",
            b"_test.rs",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Does this file say which tests a runner takes, and how? Honest work changes it too; the report
/// names it.
pub fn is_runner_config(path: &TreePath) -> bool {
    const NAMES: [&str; 15] = [
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "noxfile.py",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "justfile",
        "package.json",
        "Cargo.toml",
        "build.rs",
        "nextest.toml",
    ];
    NAMES.iter().any(|name| file_name(path) == name.as_bytes()) || takes_over_the_runner(path)
}

/// Does this file put itself between a command and its runner, whatever the runner reads of the
/// tree? No ordinary task needs one: the contract must allow it by its own name.
pub fn takes_over_the_runner(path: &TreePath) -> bool {
    let text = format!("/{}", String::from_utf8_lossy(path.as_bytes()));
    let ends = [
        "/sitecustomize.py",
        "/usercustomize.py",
        "/unittest.py",
        "/unittest/__init__.py",
        "/pytest.py",
        "/pytest/__init__.py",
        "/_pytest/__init__.py",
        "/.cargo/config",
        "/.cargo/config.toml",
        "/.npmrc",
    ];
    ends.iter().any(|end| text.ends_with(end)) || text.contains("/node_modules/.bin/")
}

/// Is this the text of tests, which no honest check rewrites?
pub fn is_test_source(path: &TreePath) -> bool {
    let name = file_name(path);
    let source = [&b".py"[..], b".rs", b".js", b".mjs", b".cjs", b".ts"]
        .iter()
        .any(|end| name.ends_with(end));
    source && (is_test_file(path) || name == b"conftest.py")
}

pub(in crate::checks) fn is_python_test(path: &TreePath) -> bool {
    let name = file_name(path);
    name.ends_with(b".py") && (name.starts_with(b"test") || name.ends_with(b"_test.py"))
}

pub(in crate::checks) fn file_name(path: &TreePath) -> &[u8] {
    path.as_bytes()
        .rsplit(|b| *b == b'/')
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_tests_is_known() {
        for (path, want) in [
            ("test_a.py", true),
            ("tests/data.json", false),
            ("tests/it.rs", true),
            ("a.test.mjs", true),
            ("a.py", false),
            ("conftest.py", true),
        ] {
            assert_eq!(is_test_source(&TreePath::new(path)), want, "{path}");
        }
    }

    #[test]
    fn test_files_are_recognised() {
        for (path, want) in [
            ("test_a.py", true),
            ("a_test.py", true),
            ("a.py", false),
            ("tests/x.rs", true),
            ("a.test.js", true),
            ("attest.md", false),
        ] {
            assert_eq!(is_test_file(&TreePath::new(path)), want, "{path}");
        }
    }
}
