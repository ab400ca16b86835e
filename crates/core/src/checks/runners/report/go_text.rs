//! What `go test -v` prints.

use std::collections::BTreeMap;

use super::{Report, Unreadable};
use crate::checks::test_ids::Outcome;

/// Tests of the package that is being printed.
#[derive(Default)]
struct Package {
    tests: Vec<(String, Outcome)>,
    /// Announced and without an outcome.
    open: Vec<String>,
    /// Its program said `PASS` or `FAIL` itself: it came to its own end.
    ended: bool,
}

/// A package whose program left before its tests is `ok` all the same; only the line `PASS` is missing.
pub(super) fn read(text: &str) -> Result<Report, Unreadable> {
    let printed = text.starts_with('{').then(|| as_printed(text));
    let text = printed.as_deref().unwrap_or(text);
    let mut report = Report::default();
    let mut package = Package::default();
    let mut packages = 0_u64;
    for line in text.lines() {
        if let Some((good, name)) = end_of_package(line) {
            packages += 1;
            std::mem::take(&mut package).close(good, name, &mut report)?;
        } else if let Some(name) = line.strip_prefix("?   \t") {
            packages += 1;
            let name = name.split('\t').next().unwrap_or(name);
            report.without_tests.push(name.to_owned());
        } else {
            package.line(line);
        }
    }
    let nothing_open = package.open.is_empty() && package.tests.is_empty();
    match (packages, nothing_open) {
        (0, true) => Err(Unreadable::Form),
        (_, false) => Err(Unreadable::NoEnd),
        (_, true) => Ok(report),
    }
}

/// `-json` holds the same text in pieces, those of several packages among each other.
fn as_printed(text: &str) -> String {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Piece {
        #[serde(default)]
        package: String,
        #[serde(default)]
        output: String,
    }
    let pieces = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Piece>(line).ok());
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    for piece in pieces {
        packages
            .entry(piece.package)
            .or_default()
            .push_str(&piece.output);
    }
    packages.into_values().collect()
}

/// `ok  \tPACKAGE\t0.01s`, `FAIL\tPACKAGE\t..`, `FAIL\tPACKAGE [build failed]`.
fn end_of_package(line: &str) -> Option<(bool, &str)> {
    let (good, rest) = match line.strip_prefix("ok  \t") {
        Some(rest) => (true, rest),
        None => (false, line.strip_prefix("FAIL\t")?),
    };
    let name = rest.split(['\t', ' ']).next()?;
    (!name.is_empty()).then_some((good, name))
}

impl Package {
    fn line(&mut self, line: &str) {
        if matches!(line, "PASS" | "FAIL") || line.ends_with("no tests to run]") {
            self.ended = true;
            return;
        }
        if let Some(name) = line.strip_prefix("=== RUN   ") {
            self.open.push(name.trim().to_owned());
            return;
        }
        // What a test printed without a line end stands before its outcome.
        for (words, outcome) in [
            ("--- PASS: ", Outcome::Passed),
            ("--- FAIL: ", Outcome::Failed),
            ("--- SKIP: ", Outcome::Skipped),
        ] {
            let Some((_, rest)) = line.rsplit_once(words) else {
                continue;
            };
            let Some((name, time)) = rest.rsplit_once(" (") else {
                continue;
            };
            // Only what was announced is a test: a program may print such a line itself.
            let known = self.open.iter().position(|open| open == name);
            if let Some(at) = known.filter(|_| time.ends_with("s)")) {
                self.open.swap_remove(at);
                self.tests.push((name.to_owned(), outcome));
                return;
            }
        }
    }

    fn close(self, good: bool, name: &str, report: &mut Report) -> Result<(), Unreadable> {
        if good && !self.ended {
            report
                .broken
                .push(format!("{name} left before its tests ended"));
        } else if good && !self.open.is_empty() {
            return Err(Unreadable::Contradiction(format!(
                "{name} is ok, and {} has no outcome",
                self.open.join(", ")
            )));
        } else if !good
            && !self
                .tests
                .iter()
                .any(|(_, outcome)| *outcome == Outcome::Failed)
        {
            report.broken.push(name.to_owned());
        }
        if good && self.ended && self.tests.is_empty() {
            report.without_tests.push(name.to_owned());
        }
        for (test, outcome) in self.tests {
            report.push(Some(name), test, outcome);
        }
        // A panic ends the program: what had begun has failed.
        for test in self.open {
            report.push(Some(name), test, Outcome::Failed);
        }
        Ok(())
    }
}
