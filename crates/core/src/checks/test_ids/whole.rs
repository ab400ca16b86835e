//! What was heard of test files and programs as a whole: one that runs nothing names no test, and only
//! here it is seen to have been there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a file of tests none of which came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEnd {
    /// Its runner looked at it and could not load it.
    NotLoaded,
    /// It was skipped before any test of it was known.
    Skipped,
    /// It ended well, and no test was named.
    NoTest,
}

/// By the name its runner has for it: a path, or a module of Python.
pub type FileEnds = BTreeMap<String, FileEnd>;

/// The test programs one command of cargo started.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// As cargo announces them: `tests/outer.rs`, `unittests src/lib.rs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<String>,
    /// How many of them gave no result.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub silent: u64,
    /// Those of them that are known by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_names: Vec<String>,
    /// Started, and without one test to run that was not filtered out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Files and programs of one command.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Whole {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: FileEnds,
    #[serde(default, skip_serializing_if = "Programs::is_nothing")]
    pub programs: Programs,
}

impl Programs {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Whole {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// What another runner of the same command said.
    pub fn take_over(&mut self, other: Self) {
        self.files.extend(other.files);
        if !other.programs.is_nothing() {
            self.programs = other.programs;
        }
    }
}

/// Programs of cargo, as their lines arrive. What announces them and what they say themselves come by
/// two streams, so one is told from the other by number, and by name only where the numbers agree.
#[derive(Default)]
pub struct ProgramsHeard {
    started: Vec<String>,
    begun: Vec<Begun>,
    /// In another form than lines for people.
    other_results: u64,
}

/// One `running N tests`.
struct Begun {
    has_tests: bool,
    result: Option<NothingFiltered>,
}

/// Does the result say that nothing was filtered out?
type NothingFiltered = bool;

impl ProgramsHeard {
    pub fn line(&mut self, line: &str) {
        let text = line.trim_start();
        if let Some(program) = announced(line) {
            self.started.push(program);
        } else if let Some(count) = running(text) {
            self.begun.push(Begun {
                has_tests: count > 0,
                result: None,
            });
        } else if text.starts_with("test result: ") {
            let unfiltered = text.contains("; 0 filtered out");
            match self.begun.last_mut().filter(|last| last.result.is_none()) {
                Some(last) => last.result = Some(unfiltered),
                None => self.other_results += 1,
            }
        } else if text.starts_with("<testsuites>")
            || (text.starts_with("{ \"type\": \"suite\"") && !text.contains("\"started\""))
        {
            self.other_results += 1;
        }
    }

    pub fn finish(self) -> Programs {
        let with_result = self.begun.iter().filter(|begun| begun.result.is_some());
        let results = with_result.count() as u64 + self.other_results;
        let programs = self.started.len().max(self.begun.len()) as u64;
        let one_by_one = self.started.len() == self.begun.len();
        let named = |is: fn(&Begun) -> bool| -> Vec<String> {
            let each = self.started.iter().zip(&self.begun);
            let found = each.filter(|(_, begun)| one_by_one && is(begun));
            found.map(|(name, _)| name.clone()).collect()
        };
        Programs {
            silent: programs.saturating_sub(results),
            silent_names: named(|begun| begun.result.is_none()),
            empty: named(|begun| !begun.has_tests && begun.result == Some(true)),
            started: self.started,
        }
    }
}

/// `     Running tests/outer.rs (target/debug/deps/outer-0123)`, `   Doc-tests name`.
fn announced(line: &str) -> Option<String> {
    let text = line.trim_start();
    let is_indented = line.len() > text.len();
    if let Some(name) = text.strip_prefix("Doc-tests ").filter(|_| is_indented) {
        return Some(format!("doc tests of {name}"));
    }
    let program = text.strip_prefix("Running ").filter(|_| is_indented)?;
    let (program, built) = program.split_once(" (")?;
    (built.ends_with(')') && !program.starts_with('`')).then(|| program.to_owned())
}

/// `running 3 tests`
fn running(text: &str) -> Option<u64> {
    let count = text.strip_prefix("running ")?;
    let count = count
        .strip_suffix(" tests")
        .or_else(|| count.strip_suffix(" test"))?;
    count.parse().ok()
}
