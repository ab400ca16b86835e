//! Each runner's own report, read into one shape.
//!
//! - `trees.rs` the JSON of mocha, jest and vitest, and the lines of `node --test` · `tap.rs` TAP of
//!   ava, tap and tape · `go_text.rs` what `go test -v` prints · `marks.rs` start marks,
//!   and which runs left a report
//!
//! Reading is lenient where a version words things otherwise, and strict about the end: what does not
//! say that it is complete is no report, whatever stands in it. Any bytes are accepted. A report is made
//! beside the code under test: it can turn a pass into a failure, never the other way.

mod go_text;
mod marks;
mod tap;
mod trees;

pub use self::marks::{Reported, Run, hear};

use crate::checks::test_ids::{Outcome, TestIds};
use crate::task::runner::Runner;

/// One test as its runner named it. The same name may come again: tests are counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Test {
    /// Below the root of the tree, where the report says it.
    pub file: Option<String>,
    /// With the names of the suites around it, ` > ` between them.
    pub name: String,
    pub outcome: Outcome,
}

/// A complete report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub tests: Vec<Test>,
    /// Files or packages that ran and named no test at all.
    pub without_tests: Vec<String>,
    /// Failures that are no test: a file that does not load, a hook, tests that never ended.
    pub broken: Vec<String>,
}

/// Why bytes are no report.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it is not in the form this runner writes")]
    Form,
    #[error("it has no end: the runner was stopped before it was done")]
    NoEnd,
    #[error("it contradicts itself: {0}")]
    Contradiction(String),
}

/// More than this is not kept of one report.
const MOST_TESTS: usize = 200_000;
const LONGEST_NAME: usize = 400;

/// Reads a report. `root` is the directory of the tree as the runner knew it.
pub fn read(runner: Runner, bytes: &[u8], root: &str) -> Result<Report, Unreadable> {
    let text = String::from_utf8_lossy(bytes);
    let mut report = match runner {
        Runner::Mocha => trees::mocha(&text),
        Runner::Jest | Runner::Vitest => trees::jest(&text),
        Runner::Node => trees::node(&text),
        Runner::Ava | Runner::Tap | Runner::Tape => tap::read(runner, &text),
        Runner::Go => go_text::read(&text),
        Runner::Unittest | Runner::Pytest | Runner::Cargo => Err(Unreadable::Form),
    }?;
    report.tests.truncate(MOST_TESTS);
    for test in &mut report.tests {
        test.file = test.file.take().map(|file| below(&file, root));
        test.name = cut(&test.name);
    }
    for path in report.without_tests.iter_mut().chain(&mut report.broken) {
        *path = cut(&below(path, root));
    }
    Ok(report)
}

/// A path as it lies below the root; any other as it stands.
fn below(path: &str, root: &str) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let inner = path.strip_prefix(root.trim_end_matches('/'));
    let inner = inner.and_then(|inner| inner.strip_prefix('/'));
    inner
        .filter(|_| !root.is_empty())
        .unwrap_or(path)
        .to_owned()
}

fn cut(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

impl Report {
    /// How often each test ran, by file and name.
    pub fn counted(&self) -> TestIds {
        let mut ids = TestIds::new();
        for test in &self.tests {
            let id = match &test.file {
                Some(file) => format!("{file}: {}", test.name),
                None => test.name.clone(),
            };
            ids.entry(id).or_default().add(test.outcome);
        }
        ids
    }

    /// ava puts the file before a title only when there are several files: what was one file may be the
    /// first of two.
    pub fn without_file_before_title(&self) -> Self {
        let mut plain = self.clone();
        for test in &mut plain.tests {
            if let Some((_, title)) = test.name.split_once(" › ") {
                test.name = title.to_owned();
            }
        }
        plain
    }

    fn push(&mut self, file: Option<&str>, name: String, outcome: Outcome) {
        self.tests.push(Test {
            file: file.map(str::to_owned),
            name,
            outcome,
        });
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
