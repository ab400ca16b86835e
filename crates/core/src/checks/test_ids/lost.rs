//! Tests that cannot be missed by their names, because the baseline never named them: files that came to
//! nothing, programs without a result, tests newly skipped. The baseline of "implement X" does not
//! load, so its own run says only which files it looked at.
//!
//! Held against a change is only what it can have brought about: a file that it left alone and that
//! does not leave tests out by its own words.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::of_file::files_of;
use super::own_text;
use super::whole::FileEnd;
use super::{CommandTests, TestIdDocument, loss};
use crate::task::contract::Runner;
use crate::values::paths::TreePath;

/// A test file that something is asked about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestFile {
    pub path: TreePath,
    /// The change touched it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// Its text holds tests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_tests: bool,
    /// Its text leaves tests out, or expects them to fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_out: bool,
    /// It is a test program with a `main` of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_harness: bool,
    /// Tests of Go that its text names, where nothing chooses among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

impl TestFile {
    pub fn of(runner: Runner, path: TreePath, changed: bool, text: &[u8]) -> Self {
        Self {
            changed,
            holds_tests: own_text::holds_tests(runner, text),
            leaves_out: own_text::leaves_out(runner, text),
            own_harness: runner == Runner::Cargo && own_text::has_own_harness(text),
            tests: match runner {
                Runner::Go => own_text::tests_of_go(&path, text),
                _ => Vec::new(),
            },
            path,
        }
    }
}

/// What is asked about a name that a runner or a command has for a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Ask {
    /// A single test is skipped, and was not.
    SkippedTest,
    SkippedFile,
    /// A file ended well and named no test.
    NoTest,
    /// Did any test of it pass? The baseline looked at it and could not load it, or a command names it.
    Unheard,
    /// A program that had nothing to run.
    Empty,
    /// A program that may have given no result.
    Silent,
}

impl TestIdDocument {
    /// Files whose text has to be known to say what is lost.
    pub fn in_question<'a>(&self, tree: &[&'a TreePath]) -> BTreeSet<&'a TreePath> {
        let questions = self.questions();
        let mut found = BTreeSet::new();
        for (name, _) in questions.iter() {
            found.extend(self.files_of(name, tree));
        }
        let leaves_out = [Ask::SkippedTest, Ask::SkippedFile, Ask::Unheard];
        if questions.iter().any(|(_, ask)| leaves_out.contains(ask)) {
            let beside = |path: &&&TreePath| own_text::is_beside_tests(self.runner_of(path), path);
            found.extend(tree.iter().filter(beside).copied());
        }
        found
    }

    /// What came to nothing, each with what became of it, by the name people know it by.
    pub(super) fn came_to_nothing(&self) -> Vec<(String, String)> {
        let Some(files) = &self.files else {
            return Vec::new();
        };
        let mut lost: BTreeMap<String, String> = BTreeMap::new();
        for (name, ask) in self.questions() {
            let found = self.answer(files, &name, ask);
            let of_go = (ask == Ask::Unheard).then(|| self.not_there(files, &name));
            for (name, what) in found.into_iter().chain(of_go.into_iter().flatten()) {
                lost.entry(name).or_insert_with(|| what.to_owned());
            }
        }
        lost.into_iter().chain(self.without_result(files)).collect()
    }

    fn questions(&self) -> Vec<(String, Ask)> {
        let mut all = BTreeSet::new();
        for (index, command) in self.commands.iter().enumerate() {
            // Runners that report do so since rules 7; what others say of single tests is not asked.
            let python = self.runners_of(index);
            let python = python.iter().any(|runner| runner.is_python());
            let names_tests = python || command.verified_runs.began > 0;
            let newly = newly_skipped(command).map(|id| (id.clone(), Ask::SkippedTest));
            all.extend(newly.filter(|_| names_tests));
            let before = &command.baseline_whole;
            for (name, end) in &command.verified_whole.files {
                let ask = match end {
                    FileEnd::Skipped => Ask::SkippedFile,
                    FileEnd::NoTest => Ask::NoTest,
                    FileEnd::NotLoaded => continue,
                };
                if before.files.get(name) != Some(end) {
                    all.insert((name.clone(), ask));
                }
            }
            let programs = &command.verified_whole.programs;
            let empty = programs.empty.iter();
            let empty = empty.filter(|name| !before.programs.empty.contains(name));
            all.extend(empty.map(|name| (name.clone(), Ask::Empty)));
            if programs.silent > before.programs.silent {
                let started = programs.started.iter();
                all.extend(started.map(|name| (name.clone(), Ask::Silent)));
            }
            if names_tests {
                let not_loaded = before.files.iter();
                let not_loaded = not_loaded.filter(|(_, end)| **end == FileEnd::NotLoaded);
                all.extend(not_loaded.map(|(name, _)| (name.clone(), Ask::Unheard)));
            }
            if python {
                all.extend(self.named(index).map(|name| (name, Ask::Unheard)));
            }
        }
        all.into_iter().collect()
    }

    /// Files that a command names and its red baseline never came to.
    fn named(&self, index: usize) -> impl Iterator<Item = String> + '_ {
        let command = self.commands.get(index);
        let green = self
            .baseline
            .get(index)
            .is_some_and(|ran| ran.end.succeeded());
        let command = command.filter(|command| !green && !chooses_by_name(&command.command));
        let words = command.into_iter().flat_map(|command| {
            let signs = |c: char| c.is_whitespace() || ";&|()\"'".contains(c);
            let words = command.command.split(signs);
            words.filter(|word| !word.is_empty() && !word.starts_with('-'))
        });
        let pytest = self.runners_of(index).contains(&Runner::Pytest);
        let is_file = move |word: &&str| match pytest {
            true => word
                .split("::")
                .next()
                .is_some_and(|file| file.ends_with(".py")),
            false => true,
        };
        words.filter(is_file).map(str::to_owned)
    }

    fn answer(&self, files: &[TestFile], name: &str, ask: Ask) -> Option<(String, &'static str)> {
        let paths: Vec<&TreePath> = files.iter().map(|file| &file.path).collect();
        let meant = self.files_of(name, &paths);
        let of = |path: &&TreePath| files.iter().find(|file| file.path == **path);
        let meant: Vec<&TestFile> = meant.iter().filter_map(of).collect();
        let first = meant.first()?;
        let every = |is: fn(&TestFile) -> bool| meant.iter().all(|file| !file.changed && is(file));
        let beside = |file: &TestFile| {
            let may = own_text::is_beside_tests(self.runner_of(&file.path), &file.path);
            may && !file.changed && file.leaves_out
        };
        let excused = || files.iter().any(beside);
        let path = first.path.to_string();
        match ask {
            Ask::SkippedTest => (every(|file| !file.leaves_out) && !excused())
                .then(|| (name.to_owned(), "skipped, and nothing in its file says so")),
            Ask::SkippedFile => (every(|file| !file.leaves_out) && !excused())
                .then_some((path, "skipped as a whole, and nothing in it says so")),
            Ask::NoTest => every(|file| file.holds_tests).then_some((path, "ran no test")),
            Ask::Empty => {
                every(|file| file.holds_tests && !file.leaves_out).then_some((path, "ran no test"))
            }
            Ask::Unheard => (every(|file| file.holds_tests && !file.leaves_out)
                && !excused()
                && self.is_heard()
                && !self.passed_in(name, &meant))
            .then_some((path, "no test of it passed")),
            Ask::Silent => None,
        }
    }

    /// Was any test named at all? A runner that cannot be heard is said not to be, in `not_seen`.
    fn is_heard(&self) -> bool {
        let heard = |command: &CommandTests| {
            !command.verified.is_empty() || !command.verified_whole.files.is_empty()
        };
        self.commands.iter().any(heard)
    }

    fn passed_in(&self, name: &str, meant: &[&TestFile]) -> bool {
        let paths: Vec<&TreePath> = meant.iter().map(|file| &file.path).collect();
        let ids = self.commands.iter().flat_map(|command| &command.verified);
        let mut passed = ids.filter(|(_, tally)| tally.passed > 0);
        // Of a package nothing but its path is known, and that is the same in both.
        let go = paths.iter().any(|path| self.runner_of(path) == Runner::Go);
        passed.any(|(id, _)| match go {
            true => id
                .split_once(": ")
                .is_some_and(|(package, _)| package == name),
            false => !self.files_of(id, &paths).is_empty(),
        })
    }

    /// Tests of Go in a package that the baseline could not build, which did not come: their names are
    /// in their text.
    fn not_there(&self, files: &[TestFile], package: &str) -> Vec<(String, &'static str)> {
        let paths: Vec<&TreePath> = files.iter().map(|file| &file.path).collect();
        let meant = self.files_of(package, &paths);
        let counts =
            |file: &&TestFile| meant.contains(&&file.path) && !file.changed && !file.leaves_out;
        let tests = files.iter().filter(counts).flat_map(|file| &file.tests);
        let ids = tests.map(|test| format!("{package}: {test}"));
        let came = |id: &String| {
            let mut commands = self.commands.iter();
            commands.any(|command| command.verified.contains_key(id))
        };
        ids.filter(|id| self.is_heard() && !came(id))
            .map(|id| (id, "not there"))
            .collect()
    }

    /// Programs of cargo that were started and ended well without a result.
    fn without_result(&self, files: &[TestFile]) -> Vec<(String, String)> {
        let paths: Vec<&TreePath> = files.iter().map(|file| &file.path).collect();
        let mut lost = Vec::new();
        for command in &self.commands {
            let (was, is) = (
                &command.baseline_whole.programs,
                &command.verified_whole.programs,
            );
            let by_itself = |name: &&String| {
                let meant = files_of(Runner::Cargo, name, &paths);
                let own = |path: &&TreePath| {
                    let mut of = files.iter().filter(|file| file.path == **path);
                    of.any(|file| file.own_harness)
                };
                !name.starts_with("unittests ") && !meant.is_empty() && meant.iter().all(own)
            };
            let excused = is.started.iter().filter(by_itself).count() as u64;
            if is.silent <= was.silent.max(excused) {
                continue;
            }
            let in_doubt = match is.silent_names.as_slice() {
                [] => &is.started,
                _ => &is.silent_names,
            };
            let named: Vec<&str> = in_doubt
                .iter()
                .filter(|name| !by_itself(name))
                .map(String::as_str)
                .collect();
            let (name, what) = match (is.silent_names.is_empty(), named.as_slice()) {
                (false, names) => (names.join(", "), "ended without a result".to_owned()),
                (true, []) => (
                    command.command.clone(),
                    format!("{} test programs ended without a result", is.silent),
                ),
                (true, names) => (
                    names.join(", "),
                    format!("{} of them ended without a result", is.silent),
                ),
            };
            lost.push((name, what));
        }
        lost
    }
}

/// Ids that are skipped more often than on the baseline, but for those that are missed anyway.
fn newly_skipped(command: &CommandTests) -> impl Iterator<Item = &String> {
    let newly = command.verified.iter().filter(|(id, is)| {
        let was = command.baseline.get(*id).copied();
        let more = is.skipped > was.unwrap_or_default().skipped;
        more && was.is_none_or(|was| loss(was, **is).is_none())
    });
    newly.map(|(id, _)| id)
}

/// Does a command choose tests by what they are called or marked as? Then a file may come to nothing.
fn chooses_by_name(command: &str) -> bool {
    let chooses = |word: &str| {
        let word = word.trim_start_matches(['"', '\'']);
        word.starts_with("-k")
            || (word.starts_with("-m") && word != "-m")
            || [
                "--deselect",
                "--ignore",
                "--lf",
                "--last-failed",
                "--sw",
                "--stepwise",
            ]
            .iter()
            .any(|flag| word.starts_with(flag))
    };
    let mut before = "";
    command.split_whitespace().any(|word| {
        // An `-m` before a runner is Python's own.
        let marks = word == "-m" && !before.contains("python") && !before.starts_with('-');
        before = word;
        chooses(word) || marks
    })
}

#[cfg(test)]
#[path = "lost_tests.rs"]
mod tests;
