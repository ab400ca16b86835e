//! The must-fail control: what to add to a verified tree so that an honest runner turns red.
//!
//! The failing tests go into files of their own *and* into the test files of the baseline, and use
//! several kinds of test and assertion, so that ending the process, patching one assertion or
//! silencing one module each leave a trace. Code under test can in the end lie to an in-process
//! runner; hidden checks are the stronger form.
//!
//! Nothing in them is a fixed word: files, tests, classes and values are named by chance, in an order by
//! chance, so that code under test has nothing to look for.
//!
//! - this file: a kit, and where tests of Python go; `python.rs` those tests, as data; `cargo.rs` those of cargo
//! - `reading.rs` did the added tests fail? Runners that report have their kits in `runners/kits/`

mod cargo;
mod python;
mod reading;

pub use reading::Count;

use std::collections::BTreeMap;

use crate::checks::names::former::{file_name, is_python_test};
use crate::checks::runners::kits::control::{ReportedKit, TestFile, may_hold_tests, reported_kit};
use crate::checks::runners::kits::words::Words;
use crate::task::contract::{Contract, Runner};
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
    pub edits: Vec<Edit>,
    /// Where tests of Python were added.
    places: Vec<Place>,
    /// The place of each of them, by its name.
    names: BTreeMap<String, usize>,
    /// Failing tests in each edited place, for runners that only count.
    each: u64,
    /// Of a runner that reports.
    reported: Option<ReportedKit>,
}

impl Kit {
    fn of(runner: Runner, mut kit: ReportedKit) -> Self {
        Self {
            runner,
            edits: std::mem::take(&mut kit.edits),
            places: Vec::new(),
            names: BTreeMap::new(),
            each: 0,
            reported: Some(kit),
        }
    }

    pub fn runner(&self) -> Runner {
        self.runner
    }

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

/// What to add for every runner of a contract. `nonce` keeps the names unguessable for the code under
/// test; `texts` are those of the files in which a runner that reports may have tests. None for a runner of
/// which no test file was found.
pub fn control_kits(
    contract: &Contract,
    nonce: &str,
    baseline: &[TreePath],
    texts: &BTreeMap<TreePath, String>,
) -> Vec<Option<Kit>> {
    let kit = |runner: Runner| {
        if runner.reports() {
            let files = texts.iter();
            let files = files.filter(|(path, _)| may_hold_tests(runner, path, contract));
            let named: Vec<(String, &str)> = files
                .map(|(path, text)| (path.to_string(), text.as_str()))
                .collect();
            let files: Vec<TestFile<'_>> = named
                .iter()
                .map(|(path, text)| TestFile { path, text })
                .collect();
            return reported_kit(runner, nonce, &files).map(|kit| Kit::of(runner, kit));
        }
        let commands = contract.control_commands();
        Some(control_kit(runner, nonce, baseline, &commands))
    };
    contract.runners().into_iter().map(kit).collect()
}

/// May this file have tests of a runner that reports?
pub fn wants_text(contract: &Contract, path: &TreePath) -> bool {
    let runners = contract.runners();
    let mut reporting = runners.into_iter().filter(|runner| runner.reports());
    reporting.any(|runner| may_hold_tests(runner, path, contract))
}

/// What to add for a runner that is only listened to.
fn control_kit(runner: Runner, nonce: &str, baseline: &[TreePath], commands: &[String]) -> Kit {
    let (edits, places, each) = match runner {
        Runner::Unittest | Runner::Pytest => {
            let (edits, places) = python_edits(runner, nonce, baseline, commands);
            (edits, places, 0)
        }
        _ => {
            let edits = cargo::edits(nonce, baseline, commands);
            (edits, Vec::new(), cargo::FAILURES.len() as u64)
        }
    };
    let places_of = places.iter().enumerate();
    let names = places_of
        .flat_map(|(at, place)| place.tests.iter().map(move |test| (test.name.clone(), at)))
        .collect();
    Kit {
        runner,
        edits,
        places,
        names,
        each,
        reported: None,
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
    for directory in own_directories(runner, baseline, &named) {
        let mut words = Words::new(nonce, &directory);
        let path = format!("{directory}test_{}.py", words.word());
        let (text, tests) = python::tests(runner, Share::Whole, &mut words);
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
    let first = Words::new(nonce, "first").below(PARTS);
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
        let (added, tests) = python::tests(runner, share, &mut Words::new(nonce, &text));
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

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
