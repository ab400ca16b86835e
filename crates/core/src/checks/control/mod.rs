//! The must-fail control: what to add to a verified tree so that an honest runner turns red.
//!
//! The failing tests go into files of their own *and* into the test files of the baseline, and use
//! several kinds of test and assertion, so that ending the process, patching one assertion or
//! silencing one module each leave a trace. Code under test can in the end lie to an in-process
//! runner; hidden checks are the stronger form.
//!
//! - this file: a kit, and those of cargo and node; `python.rs` the failing tests of Python, as data
//! - `reading.rs` did the added tests fail?

mod python;
mod reading;

pub use reading::Count;

use crate::checks::names::former::{file_name, is_python_test};
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

impl Kit {
    /// For a change that has no part in which tests run: what was left out, the project leaves out.
    #[must_use]
    pub fn with_the_projects_own_choice(mut self) -> Self {
        for place in &mut self.places {
            place.may_be_left_out = true;
        }
        self
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Place {
    /// The file, in the tree.
    path: String,
    tests: Vec<Test>,
    /// A file of our own at the top of the tree.
    is_own: bool,
    /// A runner that finds that one finds this too.
    is_beside: bool,
    /// Ours may be left out of it where others run: a command chooses single tests of it, or it is
    /// not where pytest looks for tests, and something else of it was run.
    may_be_left_out: bool,
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
    let named = named_directories(commands);
    let name = |number: usize| format!("test_cto_control_{nonce}_{number}.py");
    let own = own_directories(runner, baseline, &named);
    for (number, directory) in own.into_iter().enumerate() {
        let (text, tests) = python::tests(runner, nonce, number, Share::Whole);
        let path = format!("{directory}{}", name(number));
        places.push(Place {
            path: path.clone(),
            tests,
            is_own: directory.is_empty(),
            is_beside: false,
            may_be_left_out: true,
        });
        edits.push(Edit::Create { path, text });
    }
    let files: Vec<&TreePath> = baseline
        .iter()
        .filter(|path| is_python_test(path))
        .collect();
    // Files below a directory that a command names share the kit among themselves: others may not
    // run at all.
    let below = |path: &TreePath| is_below(&path.to_string(), &named);
    let chosen = files.iter().filter(|path| below(path)).count();
    let (mut among_chosen, mut among_all) = (0, 0);
    // By chance, so that nobody knows which file has which.
    let first = nonce.bytes().map(usize::from).sum::<usize>();
    for path in &files {
        let text = path.to_string();
        let is_named = commands.iter().any(|command| command.contains(&text));
        let (index, count) = match below(path) {
            true => (&mut among_chosen, chosen),
            false => (&mut among_all, files.len()),
        };
        let share = match runner {
            Runner::Pytest if count > WHOLE && !is_named => Share::Part {
                number: first + *index,
                of: (count / 2).min(PARTS),
            },
            _ => Share::Whole,
        };
        *index += 1;
        let single = format!("{}::", String::from_utf8_lossy(file_name(path)));
        let (added, tests) = python::tests(runner, nonce, places.len(), share);
        edits.push(Edit::Append {
            path: (*path).clone(),
            text: format!("\n\n{added}"),
        });
        places.push(Place {
            path: text,
            tests,
            is_own: false,
            is_beside: !path.as_bytes().contains(&b'/') && finds(runner, path),
            may_be_left_out: !finds(runner, path)
                || chooses_by_name(commands)
                || commands.iter().any(|command| command.contains(&single)),
        });
    }
    (edits, places)
}

/// Does a command choose tests by what they are called or marked as?
fn chooses_by_name(commands: &[String]) -> bool {
    commands.iter().any(|command| {
        let mut words = command.split_whitespace();
        // An `-m` before it is Python's own.
        words.any(|word| word.ends_with("pytest") || word.ends_with("py.test"))
            && words.any(|word| {
                let word = word.trim_start_matches(['"', '\'']);
                ["-k", "-m"].iter().any(|flag| word.starts_with(flag))
                    || ["--deselect", "--lf", "--last-failed", "--sw", "--stepwise"]
                        .iter()
                        .any(|flag| word.starts_with(flag))
            })
    })
}

/// Words of commands that may be directories, as they stand in a tree. The top is none: it says
/// nothing.
fn named_directories(commands: &[String]) -> Vec<String> {
    const LEFT_OUT: [&str; 3] = ["--ignore", "--ignore-glob", "--deselect"];
    let mut found = Vec::new();
    for command in commands {
        let signs = |c: char| c.is_whitespace() || ";&|()\"'".contains(c);
        let mut before = "";
        for word in command.split(signs).filter(|word| !word.is_empty()) {
            let dir = word.trim_start_matches("./").trim_end_matches('/');
            if !matches!(dir, "" | ".") && !word.starts_with('-') && !LEFT_OUT.contains(&before) {
                found.push(format!("{dir}/"));
            }
            before = word;
        }
    }
    found
}

fn is_below(path: &str, directories: &[String]) -> bool {
    directories.iter().any(|dir| path.starts_with(dir))
}

/// Would a runner find this file by itself, unless it is told otherwise?
fn finds(runner: Runner, path: &TreePath) -> bool {
    let name = file_name(path);
    match runner {
        Runner::Pytest => name.starts_with(b"test_") || name.ends_with(b"_test.py"),
        _ => name.starts_with(b"test"),
    }
}

/// The top, and for pytest, which is often told where its tests are, directories of them: those that
/// a command names, and then the uppermost.
fn own_directories(runner: Runner, baseline: &[TreePath], named: &[String]) -> Vec<String> {
    let mut found = vec![String::new()];
    if runner == Runner::Pytest {
        let tests = baseline.iter().filter(|path| is_python_test(path));
        let mut below: Vec<String> = tests
            .filter(|path| finds(runner, path))
            .map(|path| path.to_string())
            .filter_map(|path| Some(path[..=path.rfind('/')?].to_owned()))
            .collect();
        let order = |dir: &String| (!is_below(dir, named), dir.matches('/').count(), dir.clone());
        below.sort_by_cached_key(order);
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
        let is_named = named.iter().any(|name| is_program(&text, name));
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

/// The names of test programs that commands choose by `--test NAME`.
fn test_programs(commands: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for command in commands {
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            let name = match word.strip_prefix("--test") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            names.extend(name.map(|name| name.trim_matches(['\'', '"']).to_owned()));
        }
    }
    names
}

/// Is this the file of such a program, in any package? Cargo knows two layouts, and names may be
/// patterns.
fn is_program(path: &str, name: &str) -> bool {
    path.match_indices("tests/").any(|(at, tests)| {
        let (before, file) = (&path[..at], &path[at + tests.len()..]);
        let program = file
            .strip_suffix("/main.rs")
            .or_else(|| file.strip_suffix(".rs"));
        (before.is_empty() || before.ends_with('/'))
            && program.is_some_and(|program| !program.contains('/') && fits(name, program))
    })
}

/// Does a pattern with `*` and `?` fit a name?
fn fits(pattern: &str, name: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => name.is_empty(),
        Some('*') => {
            let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            let rest = letters.as_str();
            starts.into_iter().any(|at| fits(rest, &name[at..]))
        }
        Some(wanted) => {
            let mut others = name.chars();
            let other = others.next();
            (other == Some(wanted) || (wanted == '?' && other.is_some()))
                && fits(letters.as_str(), others.as_str())
        }
    }
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
