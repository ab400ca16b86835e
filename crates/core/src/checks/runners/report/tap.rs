//! TAP, as ava, tap and tape write it.

use super::{Report, Unreadable};
use crate::checks::test_ids::Outcome;
use crate::task::runner::Runner;

/// One stream, while it is read.
#[derive(Default)]
struct Stream {
    report: Report,
    /// Names of the subtests around the next line, by their depth.
    around: Vec<String>,
    /// The last heading of tape: its asserts have no name of their test.
    heading: Option<String>,
    lines: u64,
    plan: Option<u64>,
    summed: bool,
    /// In a block of detail, up to `...` with the same indent.
    detail: Option<usize>,
}

/// The end is the plan, or for `tap` the sums it writes last: newer ones leave the outermost plan out.
pub(super) fn read(runner: Runner, text: &str) -> Result<Report, Unreadable> {
    let mut stream = Stream::default();
    for line in text.lines() {
        stream.line(runner, line.trim_end());
    }
    if text.lines().all(|line| !is_tap(line)) && !text.trim().is_empty() {
        return Err(Unreadable::Form);
    }
    match stream.plan {
        None if !stream.summed || stream.lines == 0 => Err(Unreadable::NoEnd),
        // ava 3 and 4 plan for tests that never ended, and then are green.
        Some(plan) if plan > stream.lines => Err(Unreadable::Contradiction(format!(
            "{plan} tests planned, {} reported",
            stream.lines
        ))),
        _ => Ok(stream.report),
    }
}

fn is_tap(line: &str) -> bool {
    line.starts_with("TAP version")
        || ["ok", "not ok", "1..", "# Subtest"]
            .iter()
            .any(|word| line.starts_with(word))
}

impl Stream {
    fn line(&mut self, runner: Runner, line: &str) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(depth) = self.detail {
            if text == "..." && indent == depth {
                self.detail = None;
            }
            return;
        }
        if text == "---" {
            self.detail = Some(indent);
            return;
        }
        let depth = indent / 4;
        if let Some(plan) = text.strip_prefix("1..") {
            let count = plan.split(' ').next().and_then(|count| count.parse().ok());
            if depth == 0 {
                self.plan = count;
            }
            return;
        }
        if let Some(name) = text.strip_prefix("# Subtest: ") {
            self.around.truncate(depth);
            self.around.push(name.to_owned());
            return;
        }
        if let Some(comment) = text.strip_prefix("# ").filter(|_| indent == 0) {
            return self.comment(runner, comment);
        }
        if let Some((good, rest)) = point(text) {
            self.point(runner, depth, good, rest);
        }
    }

    fn comment(&mut self, runner: Runner, comment: &str) {
        let sums = comment.starts_with("{ total:") || comment.starts_with("time=");
        self.summed |= runner == Runner::Tap && sums;
        if let Some(remaining) = comment
            .split_once(" tests remaining in ")
            .or_else(|| comment.split_once(" test remaining in "))
        {
            self.report
                .broken
                .push(format!("{}: {} never ended", remaining.1, remaining.0));
        }
        if runner == Runner::Tape && self.plan.is_none() {
            self.heading = Some(
                comment
                    .trim_start_matches("TODO ")
                    .trim_start_matches("SKIP ")
                    .to_owned(),
            );
            if comment.starts_with("SKIP ") {
                let name = self.heading.clone().unwrap_or_default();
                self.report.push(None, name, Outcome::Skipped);
            }
        }
    }

    fn point(&mut self, runner: Runner, depth: usize, good: bool, rest: &str) {
        self.lines += u64::from(depth == 0);
        let number = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let rest = rest.get(number..).unwrap_or_default().trim_start();
        let rest = rest.strip_prefix("- ").unwrap_or(rest);
        let (name, directive) = directive(rest);
        let outcome = match directive {
            Some(Outcome::Skipped) => Outcome::Skipped,
            _ if good => Outcome::Passed,
            _ => Outcome::Failed,
        };
        match runner {
            Runner::Tap => self.of_tap(depth, name, rest, outcome),
            Runner::Tape => self.of_tape(name, outcome),
            // ava counts these as lines of its own, not as tests.
            _ if !good
                && (name.starts_with("No tests found in ") || name.contains(" remaining in ")) =>
            {
                self.report.broken.push(name.to_owned());
            }
            _ if !good && directive.is_none() && is_of_a_file(name) => {
                self.report.broken.push(name.to_owned());
            }
            _ => self.report.push(None, name.to_owned(), outcome),
        }
    }

    /// Asserts are words of their author, and change with them: a test of tape is its heading, and has
    /// failed if one of its asserts has.
    fn of_tape(&mut self, name: &str, outcome: Outcome) {
        if name.starts_with("test exited without ending") {
            self.report.broken.push(name.to_owned());
        }
        match (self.heading.take(), self.report.tests.last_mut()) {
            (None, Some(test)) if outcome == Outcome::Failed => test.outcome = outcome,
            (None, Some(_)) => {}
            (heading, _) => {
                let test = heading.unwrap_or_else(|| name.to_owned());
                self.report.push(None, test, outcome);
            }
        }
    }

    /// The outermost subtest of `tap` is a file; what ends a subtest is a test, and so is an assert that
    /// stands in no test.
    fn of_tap(&mut self, depth: usize, name: &str, rest: &str, outcome: Outcome) {
        let file = self
            .around
            .first()
            .cloned()
            .unwrap_or_else(|| name.to_owned());
        if depth > 0 {
            let ends = self.around.get(depth).is_some_and(|open| open == name);
            if ends || depth == 1 || outcome == Outcome::Skipped {
                let around = self
                    .around
                    .get(1..depth.min(self.around.len()))
                    .unwrap_or_default();
                let path: Vec<&str> = around.iter().map(String::as_str).chain([name]).collect();
                self.report.push(Some(&file), path.join(" > "), outcome);
            }
            return self.around.truncate(depth);
        }
        let named = self
            .report
            .tests
            .iter()
            .any(|test| test.file.as_deref() == Some(name));
        match (named, outcome) {
            (false, Outcome::Failed) => self.report.broken.push(name.to_owned()),
            (false, _) => self.report.without_tests.push(name.to_owned()),
            (true, Outcome::Failed) if !self.failed_in(name) => {
                self.report.broken.push(rest.to_owned())
            }
            (true, _) => {}
        }
        self.around.clear();
    }

    fn failed_in(&self, file: &str) -> bool {
        let mut of_file = self
            .report
            .tests
            .iter()
            .filter(|test| test.file.as_deref() == Some(file));
        of_file.any(|test| test.outcome == Outcome::Failed)
    }
}

/// `ok 1 - name` or `not ok 1 name`: good or not, and what stands behind.
fn point(text: &str) -> Option<(bool, &str)> {
    let (rest, good) = match text.strip_prefix("not ok") {
        Some(rest) => (rest, false),
        None => (text.strip_prefix("ok")?, true),
    };
    if rest.is_empty() {
        return Some((good, rest));
    }
    let rest = rest.strip_prefix(' ')?;
    rest.starts_with(|c: char| c.is_ascii_digit())
        .then_some((good, rest))
}

/// The name, and whether it is skipped or to do. ` # time=` is none of it.
fn directive(text: &str) -> (&str, Option<Outcome>) {
    let mut from = text.len();
    while let Some(at) = text.get(..from).and_then(|head| head.rfind(" # ")) {
        let words = text.get(at + 3..).unwrap_or_default();
        let upper = words.get(..4).unwrap_or_default().to_ascii_uppercase();
        let name = text.get(..at).unwrap_or_default();
        if upper == "SKIP" || upper == "TODO" {
            return (name, Some(Outcome::Skipped));
        }
        if words.starts_with("time=") {
            let (name, inner) = directive(name);
            return (name, inner);
        }
        from = at;
    }
    (text, None)
}

/// `test/x.js exited with a non-zero exit code: 1` of ava.
fn is_of_a_file(name: &str) -> bool {
    [
        " exited with a non-zero exit code",
        " exited due to ",
        "Uncaught exception in ",
        "Unhandled rejection in ",
    ]
    .iter()
    .any(|words| name.contains(words))
}
