//! Reads the ids of tests from the output of a test runner. Any bytes are accepted.
//!
//! Python names its tests in a file of their own (`test_names.py` of the harness writes it); cargo is
//! read from its output; what other runners report is read in `runners/report/`. Reading is lenient where output is noisy: an honest run
//! would fail for each test that is not recognised.

use std::collections::BTreeMap;

use crate::checks::test_ids::whole::{FileEnd, FileEnds, ProgramsHeard, Whole};
use crate::checks::test_ids::{Outcome, Runs, TestIds};
use crate::task::contract::Runner;

/// Longer names are cut; longer lines are not read as a runner's.
const MAX_ID: usize = 400;
const MAX_LINE: usize = 64 << 10;
/// Ids kept of one run.
const MAX_IDS: usize = 100_000;

/// Which stream a piece of output came from: a line of one must not begin in the middle of the
/// other's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Voice {
    Stdout,
    Stderr,
}

/// Reads the output of one command as it arrives.
pub struct RunnerOutput {
    runner: Runner,
    out: Lines,
    err: Lines,
    found: Found,
}

/// What one command was heard to run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    pub ids: TestIds,
    /// How many of the failed ones of an id never came to the test itself.
    pub errored: BTreeMap<String, u64>,
    /// Names of some could not be written where they are heard.
    pub lost: bool,
    /// Runs of runners that leave a mark and a report.
    pub runs: Runs,
    /// Files and programs as a whole.
    pub whole: Whole,
}

/// Ids so far.
#[derive(Default)]
struct Found {
    counted: TestIds,
    /// Tests that are unique by their full name: the best of several outcomes counts, so that a
    /// repeated run of a flaky test is one test.
    distinct: BTreeMap<String, Outcome>,
    files: FileEnds,
    programs: ProgramsHeard,
}

/// One stream, cut into lines, and what the lines before mean for the next.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    too_long: bool,
    /// A test of cargo that was announced and whose outcome has not come yet.
    pending: Option<String>,
}

impl RunnerOutput {
    pub fn new(runner: Runner) -> Self {
        Self {
            runner,
            out: Lines::default(),
            err: Lines::default(),
            found: Found::default(),
        }
    }

    pub fn feed(&mut self, voice: Voice, bytes: &[u8]) {
        let lines = match voice {
            Voice::Stdout => &mut self.out,
            Voice::Stderr => &mut self.err,
        };
        for byte in bytes {
            match byte {
                b'\n' => lines.end_line(self.runner, &mut self.found),
                _ if lines.line.len() < MAX_LINE => lines.line.push(*byte),
                _ => lines.too_long = true,
            }
        }
    }

    /// All that was heard; `witness` is what a Python process wrote beside its output.
    pub fn finish(mut self, witness: &[u8]) -> Heard {
        for lines in [&mut self.out, &mut self.err] {
            lines.end_line(self.runner, &mut self.found);
            lines.settle(&mut self.found);
        }
        if self.runner.is_python() {
            witness
                .split(|b| *b == b'\n')
                .for_each(|line| self.found.witness(line));
        }
        let Found {
            mut counted,
            distinct,
            files,
            programs,
        } = self.found;
        let mut errored = BTreeMap::new();
        for (name, outcome) in distinct {
            let name = without_parameters(&name);
            counted.entry(name.to_owned()).or_default().add(outcome);
            if outcome == Outcome::Errored {
                *errored.entry(name.to_owned()).or_default() += 1;
            }
        }
        Heard {
            ids: counted,
            errored,
            lost: false,
            runs: Runs::default(),
            whole: Whole {
                files,
                programs: programs.finish(),
            },
        }
    }
}

impl Found {
    fn count(&mut self, name: &str, outcome: Outcome) {
        if self.counted.len() < MAX_IDS || self.counted.contains_key(name) {
            self.counted.entry(cut(name)).or_default().add(outcome);
        }
    }

    fn distinct(&mut self, name: &str, outcome: Outcome) {
        if self.distinct.len() < MAX_IDS {
            let best = self.distinct.entry(cut(name)).or_insert(outcome);
            *best = (*best).max(outcome);
        }
    }

    fn file(&mut self, name: &str, end: FileEnd) {
        if self.files.len() < MAX_IDS {
            self.files.insert(cut(name), end);
        }
    }

    /// `passed`, `failed`, `errored` or `skipped`, a tab, and the id; `unloaded` or `left`, a tab, and a
    /// file.
    fn witness(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.get(..MAX_LINE).unwrap_or(line));
        let Some((word, id)) = text.split_once('\t') else {
            return;
        };
        let outcome = match word {
            "passed" => Outcome::Passed,
            "failed" => Outcome::Failed,
            "errored" => Outcome::Errored,
            "skipped" => Outcome::Skipped,
            "unloaded" => return self.file(id, FileEnd::NotLoaded),
            "left" => return self.file(id, FileEnd::Skipped),
            _ => return,
        };
        // What stands for a module that could not be loaded goes away when it can be.
        if let Some(module) = id.strip_prefix("unittest.loader.") {
            if let Some(module) = module.strip_prefix("_FailedTest.") {
                self.file(module, FileEnd::NotLoaded);
            } else if let Some(module) = module.strip_prefix("ModuleSkipped.") {
                self.file(module, FileEnd::Skipped);
            }
        } else if !id.is_empty() {
            self.distinct(id, outcome);
        }
    }
}

impl Lines {
    fn end_line(&mut self, runner: Runner, found: &mut Found) {
        let bytes = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end_matches('\r');
        if runner == Runner::Cargo {
            self.cargo(line, found);
        }
    }

    /// A test that was announced and then drowned in its own output has run.
    fn settle(&mut self, found: &mut Found) {
        if let Some(name) = self.pending.take() {
            found.count(&name, Outcome::Passed);
        }
    }

    fn cargo(&mut self, line: &str, found: &mut Found) {
        found.programs.line(line);
        if let Some((name, outcome)) = nextest(line) {
            return found.distinct(&name, outcome);
        }
        if let Some(name) = self.pending.take() {
            match libtest_outcome(line) {
                Some(outcome) => return found.count(&name, outcome),
                None => self.pending = Some(name),
            }
        }
        if line.starts_with("test result: ") {
            return self.settle(found);
        }
        let Some((name, rest)) = announced(line) else {
            return;
        };
        self.settle(found);
        match libtest_outcome(rest) {
            Some(outcome) => found.count(&name, outcome),
            None => self.pending = Some(name),
        }
    }
}

/// `test NAME ... REST`; what a test printed without a line end may stand before it.
fn announced(line: &str) -> Option<(String, &str)> {
    let at = if line.starts_with("test ") {
        0
    } else {
        line.find("test ").filter(|_| line.ends_with(" ... ok"))?
    };
    let (name, rest) = line.get(at + "test ".len()..)?.split_once(" ... ")?;
    let name = name.trim();
    (!name.is_empty()).then(|| (without_line(name), rest))
}

fn libtest_outcome(rest: &str) -> Option<Outcome> {
    match rest.trim() {
        "ok" => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed),
        text if text == "ignored" || text.starts_with("ignored,") => Some(Outcome::Skipped),
        text if text.starts_with("ok (")
            || text.starts_with("bench:")
            || text.starts_with("ok <") =>
        {
            Some(Outcome::Passed)
        }
        text if text.starts_with("FAILED (") || text.starts_with("FAILED <") => {
            Some(Outcome::Failed)
        }
        _ => None,
    }
}

/// `PASS [   0.012s] (1/9) program name::of::test`
fn nextest(line: &str) -> Option<(String, Outcome)> {
    let line = line.trim_start();
    let outcome = match line.split_whitespace().next()? {
        "PASS" | "FLAKY" | "LEAK" => Outcome::Passed,
        "FAIL" | "ABORT" | "SIGABRT" | "SIGSEGV" | "TIMEOUT" => Outcome::Failed,
        "SKIP" => Outcome::Skipped,
        _ => return None,
    };
    let (_, rest) = line.split_once('[')?;
    let (time, rest) = rest.split_once(']')?;
    let is_time = time
        .trim()
        .trim_end_matches('s')
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.');
    let rest = rest.trim();
    let rest = match rest.strip_prefix('(') {
        Some(count) => count.split_once(')')?.1.trim(),
        None => rest,
    };
    (is_time && rest.contains(' ')).then(|| (rest.to_owned(), outcome))
}

/// A doc test is named by its line, which moves with every edit above it.
fn without_line(name: &str) -> String {
    let Some((head, tail)) = name.split_once(" (line ") else {
        return name.to_owned();
    };
    match tail.split_once(')') {
        Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{head}{rest}")
        }
        _ => name.to_owned(),
    }
}

/// Parameters may be objects, times or numbers by chance: such tests are counted, not named.
fn without_parameters(name: &str) -> &str {
    match name.find('[') {
        Some(at) if name.ends_with(']') => name.get(..at).unwrap_or(name),
        _ => name,
    }
}

fn cut(name: &str) -> String {
    name.chars().take(MAX_ID).collect()
}

#[cfg(test)]
#[path = "runner_output_tests.rs"]
mod tests;
