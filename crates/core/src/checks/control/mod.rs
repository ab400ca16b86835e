//! The must-fail control: what to add to a verified tree so that an honest runner turns red.
//!
//! The failing tests go into files of their own *and* into the test files of the baseline, and use
//! several kinds of test and assertion, so that ending the process, patching one assertion or
//! silencing one module each leave a trace. Code under test can in the end lie to an in-process
//! runner; hidden checks are the stronger form.
//!
//! - this file: a kit, and those of cargo and node; `python.rs` the failing tests of Python, as data
//! - `reading.rs` was what was added red?

mod python;
mod reading;

pub use reading::Count;

use crate::checks::test_files::{file_name, is_python_test};
use crate::task::contract::Runner;
use crate::values::paths::TreePath;
use python::{Share, Test};

/// One edit of the control copy; the verified copy is never touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    Create { path: String, text: String },
    Append { path: TreePath, text: String },
}

/// What is added for one run of the control.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kit {
    runner: Runner,
    nonce: String,
    pub edits: Vec<Edit>,
    /// Where tests of Python were added; their names hold the number of the place.
    places: Vec<Place>,
    /// Failing tests in each edited place, for runners that only count.
    each: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    tests: Vec<Test>,
    /// A file of our own at the top of the tree.
    is_own: bool,
    /// A runner that finds that one finds this too.
    is_beside: bool,
}

/// Test files that get every kind of failing test. Of more than these each gets a part, and every
/// kind comes in two or more: a failure takes its time, and the control need not take much longer
/// than the check.
const WHOLE: usize = 4;
/// The most parts, so that no file has next to nothing.
const PARTS: usize = 16;
/// Directories that get a file of their own.
const DIRECTORIES: usize = 8;

/// What to add for a runner and its commands. `nonce` keeps the names unguessable for the code under
/// test.
pub fn control_kit(runner: Runner, nonce: &str, baseline: &[TreePath], commands: &[String]) -> Kit {
    let (edits, places, each) = match runner {
        Runner::Unittest | Runner::Pytest => {
            let (edits, places) = python_edits(runner, nonce, baseline, commands);
            (edits, places, 0)
        }
        Runner::Cargo => (cargo_edits(nonce, baseline, commands), Vec::new(), 2),
        Runner::Node => {
            let path = format!("cto_control_{nonce}.test.mjs");
            let text = NODE_FAILURES.to_owned();
            (vec![Edit::Create { path, text }], Vec::new(), 3)
        }
    };
    Kit {
        runner,
        nonce: nonce.to_owned(),
        edits,
        places,
        each,
    }
}

/// Files of our own where pytest looks, and something in every test file.
fn python_edits(
    runner: Runner,
    nonce: &str,
    baseline: &[TreePath],
    commands: &[String],
) -> (Vec<Edit>, Vec<Place>) {
    let (mut edits, mut places) = (Vec::new(), Vec::new());
    let name = |number: usize| format!("test_cto_control_{nonce}_{number}.py");
    for (number, directory) in own_directories(runner, baseline).into_iter().enumerate() {
        let (text, tests) = python::tests(runner, nonce, number, Share::Whole);
        let path = format!("{directory}{}", name(number));
        edits.push(Edit::Create { path, text });
        places.push(Place {
            tests,
            is_own: directory.is_empty(),
            is_beside: false,
        });
    }
    let files: Vec<&TreePath> = baseline
        .iter()
        .filter(|path| is_python_test(path))
        .collect();
    // By chance, so that nobody knows which file has which.
    let first = nonce.bytes().map(usize::from).sum::<usize>();
    for (index, path) in files.iter().enumerate() {
        let text = path.to_string();
        let is_named = commands.iter().any(|command| command.contains(&text));
        let share = match runner {
            Runner::Pytest if files.len() > WHOLE && !is_named => Share::Part {
                number: first + index,
                of: (files.len() / 2).min(PARTS),
            },
            _ => Share::Whole,
        };
        let (text, tests) = python::tests(runner, nonce, places.len(), share);
        edits.push(Edit::Append {
            path: (*path).clone(),
            text: format!("\n\n{text}"),
        });
        places.push(Place {
            tests,
            is_own: false,
            is_beside: !path.as_bytes().contains(&b'/') && finds(runner, path),
        });
    }
    (edits, places)
}

/// Would a runner find this file by itself, unless it is told otherwise?
fn finds(runner: Runner, path: &TreePath) -> bool {
    let name = file_name(path);
    match runner {
        Runner::Pytest => name.starts_with(b"test_") || name.ends_with(b"_test.py"),
        _ => name.starts_with(b"test"),
    }
}

/// The top, and for pytest, which is often told where its tests are, the uppermost directories of
/// them.
fn own_directories(runner: Runner, baseline: &[TreePath]) -> Vec<String> {
    let mut found = vec![String::new()];
    if runner == Runner::Pytest {
        let tests = baseline.iter().filter(|path| is_python_test(path));
        let mut below: Vec<String> = tests
            .filter(|path| finds(runner, path))
            .map(|path| path.to_string())
            .filter_map(|path| Some(path[..=path.rfind('/')?].to_owned()))
            .collect();
        below.sort_by_key(|directory| (directory.matches('/').count(), directory.clone()));
        below.dedup();
        found.extend(below.into_iter().take(DIRECTORIES));
    }
    found
}

const NODE_FAILURES: &str = "import test from 'node:test';
import assert from 'node:assert';

test('cto control equal', () => assert.strictEqual(1, 2));
test('cto control deep', () => assert.deepStrictEqual(['a'], ['b']));
test('cto control throw', () => { throw new Error('must fail'); });
";

const RUST_FAILURES: &str = "#[test]
fn cto_control_equal() {
    assert_eq!(1, 2);
}

#[test]
fn cto_control_panic() {
    panic!(\"must fail\");
}
";

/// In every package, as a test of its own and inside the crate, and in every test program that a
/// command names: `--lib`, `--test NAME` and a workspace each run only a part of them.
fn cargo_edits(nonce: &str, baseline: &[TreePath], commands: &[String]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let named = test_programs(commands);
    for path in baseline {
        let text = String::from_utf8_lossy(path.as_bytes()).into_owned();
        if let Some(package) = text
            .strip_suffix("Cargo.toml")
            .filter(|dir| dir.is_empty() || dir.ends_with('/'))
        {
            edits.push(Edit::Create {
                path: format!("{package}tests/cto_control_{nonce}.rs"),
                text: RUST_FAILURES.into(),
            });
        }
        let is_named = named.iter().any(|name| is_at(&text, name));
        if is_named || IN_CRATE.iter().any(|name| is_at(&text, name)) {
            let inside = format!("\n#[cfg(test)]\nmod cto_control_{nonce} {{\n{RUST_FAILURES}}}\n");
            edits.push(Edit::Append {
                path: path.clone(),
                text: inside,
            });
        }
    }
    edits
}

/// The files of test programs that commands choose by `--test NAME`.
fn test_programs(commands: &[String]) -> Vec<String> {
    let mut files = Vec::new();
    for command in commands {
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            let name = match word.strip_prefix("--test") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            let name = name.map(|name| name.trim_matches(['\'', '"']));
            files.extend(name.map(|name| format!("tests/{name}.rs")));
        }
    }
    files
}

/// Where failing tests are put into a crate itself.
const IN_CRATE: [&str; 2] = ["src/lib.rs", "src/main.rs"];

/// Is this the file, in the tree's own top or in any package?
fn is_at(path: &str, name: &str) -> bool {
    path.strip_suffix(name)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
