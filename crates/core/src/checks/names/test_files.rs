//! Which files are tests, which tell a runner how to run them, and which put themselves in its place.

use super::former;
use crate::run::rules::Rules;
use crate::values::paths::{PathRule, TreePath};

/// Which names count. What a bundle says of test files was found by the names of its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Names {
    /// Those of rules 1 to 4.
    Former,
    /// Those of rules 6: tests at any depth and of every runner people use.
    Broad,
    /// Also what is imported by name from beside the tests, and what a Makefile includes.
    Broader,
}

impl Names {
    pub fn of(rules: Rules) -> Self {
        match rules {
            Rules::One | Rules::Two | Rules::Three | Rules::Four | Rules::Five => Self::Former,
            Rules::Six => Self::Broad,
            Rules::Seven | Rules::Eight | Rules::Nine | Rules::Ten => Self::Broader,
        }
    }
}

/// Directories of tests, at any depth, in any case.
const TEST_DIRECTORIES: &[&[u8]] = &[b"tests", b"test", b"__tests__", b"spec"];
/// The last word of a name that says it is a test: `a.spec.ts`, `a_test.go`, `a-test.js`.
const TEST_WORDS: &[&str] = &["test", "tests", "spec", "specs", "test-d", "cy", "e2e"];
/// As the names of classes say it.
const TEST_CLASSES: &[&str] = &["Test", "Tests", "TestCase", "IT", "Spec"];
const CLASS_LANGUAGES: &[&str] = &["java", "kt", "scala", "groovy", "cs", "swift", "php"];
/// What may hold a test. `latest.md` and `spec.json` do not.
const TEST_LANGUAGES: &[&str] = &[
    "py", "pyc", "pyx", "rs", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue",
    "svelte", "go", "rb", "php", "pl", "t", "sh", "bash", "bats", "c", "cc", "cpp", "cxx", "m",
    "mm", "java", "kt", "kts", "scala", "groovy", "cs", "fs", "swift", "dart", "ex", "exs", "erl",
    "hs", "ml", "lua", "r", "jl", "clj", "cljs", "nim", "zig", "d", "coffee",
];

/// Is this a file a runner takes for tests, or that lies among them?
pub fn is_test_file(names: Names, path: &TreePath) -> bool {
    if names == Names::Former {
        return former::is_test_file(path);
    }
    let mut parts = path.as_bytes().rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    let among = parts.any(|dir| {
        TEST_DIRECTORIES
            .iter()
            .any(|test| dir.eq_ignore_ascii_case(test))
    });
    among || is_test_name(&String::from_utf8_lossy(name))
}

fn is_test_name(name: &str) -> bool {
    let Some((stem, end)) = name.rsplit_once('.') else {
        return false;
    };
    let small = end.to_ascii_lowercase();
    if !TEST_LANGUAGES.contains(&small.as_str()) {
        return false;
    }
    if matches!(small.as_str(), "t" | "bats") {
        return true;
    }
    let class = CLASS_LANGUAGES.contains(&small.as_str())
        && TEST_CLASSES
            .iter()
            .any(|word| stem.strip_suffix(word).is_some_and(|name| !name.is_empty()));
    let stem = stem.to_ascii_lowercase();
    let last = stem.rsplit(['.', '_']).next().unwrap_or_default();
    let dashed = |word: &&str| stem.ends_with(&format!("-{word}"));
    let word = TEST_WORDS.contains(&last) || ["test", "tests", "spec"].iter().any(dashed);
    let begins = stem.starts_with("test_") || stem.starts_with("test-");
    // `unittest` takes every `test*.py`.
    let python = small.starts_with("py") && stem.starts_with("test");
    class || word || begins || python
}

/// Is this the text of tests, which no honest check rewrites?
pub fn is_test_source(names: Names, path: &TreePath) -> bool {
    if names == Names::Former {
        return former::is_test_source(path);
    }
    let name = lower_name(path);
    let source = name
        .rsplit_once('.')
        .is_some_and(|(_, end)| TEST_LANGUAGES.contains(&end));
    source && (is_test_file(names, path) || name == "conftest.py")
}

const CONFIGURATION: &[&str] = &[
    // Python
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "tox.toml",
    "setup.cfg",
    "pyproject.toml",
    "noxfile.py",
    ".coveragerc",
    "hatch.toml",
    "unittest.cfg",
    // Build descriptions
    "makefile",
    "gnumakefile",
    "justfile",
    ".justfile",
    "cmakelists.txt",
    "ctestcustom.cmake",
    "ctesttestfile.cmake",
    "meson.build",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "pom.xml",
    "rakefile",
    "gemfile",
    ".rspec",
    "phpunit.xml",
    "phpunit.xml.dist",
    "composer.json",
    // Rust, Go
    "cargo.toml",
    "build.rs",
    "nextest.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.mod",
    "go.work",
    // JavaScript
    "package.json",
    ".babelrc",
    ".mocharc",
    ".taprc",
    ".nycrc",
    ".c8rc",
    ".swcrc",
    ".xo-config",
];
/// `jest.config.ts`, `.mocharc.cjs`, `babel.config.json`: a first word, and any end.
const CONFIGURED: &[&str] = &[
    "jest.config.",
    "jest.setup.",
    "jest.preset.",
    "jest-environment.",
    "vitest.config.",
    "vitest.workspace.",
    "vitest.setup.",
    "vite.config.",
    "mocha.opts",
    ".mocharc.",
    "babel.config.",
    ".babelrc.",
    "ava.config.",
    "karma.conf.",
    "playwright.config.",
    "cypress.config.",
    "wtr.config.",
    "web-test-runner.config.",
    ".taprc.",
    ".nycrc.",
    ".c8rc.",
    "tsconfig.",
];

/// Does this file say which tests a runner takes, and how? Honest work changes it too; people are
/// told.
pub fn is_runner_config(names: Names, path: &TreePath) -> bool {
    if names == Names::Former {
        return former::is_runner_config(path);
    }
    let name = lower_name(path);
    CONFIGURATION.contains(&name.as_str())
        || CONFIGURED.iter().any(|begin| name.starts_with(begin))
        || (name.starts_with("tsconfig") && name.ends_with(".json"))
        || (names == Names::Broader && is_included(&name))
        || takes_over_the_runner(names, path)
}

/// By its name, something a Makefile includes.
fn is_included(name: &str) -> bool {
    [".mk", ".make", ".mak"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Modules of Python's own library that `unittest` and `pytest` import when they start.
const IMPORTED_BY_RUNNERS: &[&str] = &[
    "__future__",
    "argparse",
    "array",
    "ast",
    "asyncio",
    "base64",
    "bdb",
    "binascii",
    "bisect",
    "bz2",
    "calendar",
    "cmd",
    "code",
    "codeop",
    "collections",
    "concurrent",
    "configparser",
    "contextlib",
    "contextvars",
    "copy",
    "copyreg",
    "csv",
    "ctypes",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "dis",
    "doctest",
    "email",
    "enum",
    "faulthandler",
    "fcntl",
    "fnmatch",
    "functools",
    "gc",
    "getpass",
    "gettext",
    "glob",
    "heapq",
    "importlib",
    "inspect",
    "io",
    "ipaddress",
    "itertools",
    "json",
    "keyword",
    "linecache",
    "locale",
    "logging",
    "lzma",
    "math",
    "numbers",
    "opcode",
    "operator",
    "os",
    "pathlib",
    "pdb",
    "pickle",
    "pkgutil",
    "platform",
    "posixpath",
    "pprint",
    "queue",
    "random",
    "re",
    "reprlib",
    "runpy",
    "select",
    "selectors",
    "shlex",
    "shutil",
    "signal",
    "site",
    "socket",
    "ssl",
    "stat",
    "string",
    "struct",
    "subprocess",
    "sys",
    "sysconfig",
    "tempfile",
    "textwrap",
    "threading",
    "time",
    "timeit",
    "token",
    "tokenize",
    "tomllib",
    "trace",
    "traceback",
    "types",
    "typing",
    "unicodedata",
    "unittest",
    "urllib",
    "uuid",
    "warnings",
    "weakref",
    "xml",
    "zipfile",
    "zipimport",
    "zlib",
    // Not of the library, and never a task's own.
    "pytest",
    "_pytest",
    "sitecustomize",
    "usercustomize",
];
/// Packages whose programs are runners of tests.
const RUNNERS: &[&str] = &[
    "mocha",
    "jest",
    "jest-cli",
    "jest-circus",
    "jest-runner",
    "vitest",
    "@vitest",
    "@jest",
    "ava",
    "tap",
    "@tapjs",
    "tape",
    "jasmine",
    "jasmine-core",
    "c8",
    "nyc",
    "tsx",
    "ts-node",
    "uvu",
    "expect",
    "chai",
];
const TAKEOVERS: &[&str] = &[
    "/.cargo/config",
    "/.cargo/config.toml",
    "/.npmrc",
    "/.yarnrc",
    "/.yarnrc.yml",
    "/.pnpmfile.cjs",
    "/pnpmfile.js",
    "/.bundle/config",
];

/// Does this file put itself between a command and its runner, whatever the runner reads of the
/// tree? No ordinary task needs one: the contract must allow it by its own name.
pub fn takes_over_the_runner(names: Names, path: &TreePath) -> bool {
    if former::takes_over_the_runner(path) {
        return true;
    }
    if names == Names::Former {
        return false;
    }
    let text = format!("/{}", String::from_utf8_lossy(path.as_bytes())).to_ascii_lowercase();
    let plugin = |dir: &str| text.ends_with(&format!("{dir}/entry_points.txt"));
    TAKEOVERS.iter().any(|end| text.ends_with(end))
        || text.contains("/.yarn/releases/")
        || text.contains("/.yarn/plugins/")
        || [".pyc", ".pyo", ".pth"]
            .iter()
            .any(|end| text.ends_with(end))
        || plugin(".egg-info")
        || plugin(".dist-info")
        || of_a_runner(&text)
        // An installed package is nobody's work: a new one hides another from whoever imports it.
        || (names == Names::Broader && text.contains("/node_modules/"))
        || hides_a_module(&text)
}

/// A file of an installed runner, or of a package it brings.
fn of_a_runner(text: &str) -> bool {
    text.match_indices("/node_modules/").any(|(at, found)| {
        let rest = text.get(at + found.len()..).unwrap_or_default();
        let package = rest.split('/').next().unwrap_or_default();
        RUNNERS.contains(&package)
    })
}

/// A module that is found before the one of Python's own library that a runner imports: in a
/// directory where imports begin. Deeper down it belongs to a package and hides nothing.
fn hides_a_module(text: &str) -> bool {
    let Some((dir, name)) = text.rsplit_once('/') else {
        return false;
    };
    let (dir, module) = match name.split_once('.') {
        Some(("__init__", end)) if is_module(end) => match dir.rsplit_once('/') {
            Some((above, package)) => (above, package),
            None => return false,
        },
        Some((module, end)) if is_module(end) => (dir, module),
        _ => return false,
    };
    let last = dir.rsplit('/').next().unwrap_or_default();
    let begins = dir.is_empty()
        || matches!(dir, "/src" | "/lib" | "/python")
        || TEST_DIRECTORIES.contains(&last.as_bytes());
    begins && IMPORTED_BY_RUNNERS.contains(&module)
}

/// Ends of what Python imports; an extension may name its version: `x.cpython-311-x86_64.so`.
fn is_module(end: &str) -> bool {
    matches!(end, "py" | "pyc" | "pyd" | "pyw") || end.ends_with("so")
}

/// Changed paths that take over the runner and that no rule names: a directory or a pattern is not
/// a name.
pub fn runner_takeovers<'a>(
    names: Names,
    changed: impl IntoIterator<Item = &'a TreePath>,
    allowed: &[PathRule],
) -> Vec<TreePath> {
    let named = |path: &TreePath| {
        allowed
            .iter()
            .any(|rule| rule.as_str().as_bytes() == path.as_bytes())
    };
    changed
        .into_iter()
        .filter(|path| takes_over_the_runner(names, path) && !named(path))
        .cloned()
        .collect()
}

pub(super) fn lower_name(path: &TreePath) -> String {
    let name = path.as_bytes().rsplit(|byte| *byte == b'/').next();
    String::from_utf8_lossy(name.unwrap_or_default()).to_ascii_lowercase()
}

#[cfg(test)]
#[path = "test_files_tests.rs"]
mod tests;
