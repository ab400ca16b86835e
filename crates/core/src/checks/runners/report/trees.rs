//! JSON reports: of mocha, of jest and vitest (one shape), and the lines of `node --test` that the kit's own
//! reporter writes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Report, Unreadable};
use crate::checks::test_ids::Outcome;

#[derive(Deserialize)]
struct Mocha {
    stats: MochaStats,
    tests: Vec<MochaTest>,
    #[serde(default)]
    pending: Vec<MochaTest>,
    failures: Vec<MochaTest>,
    passes: Vec<MochaTest>,
}

#[derive(Deserialize)]
struct MochaStats {
    passes: usize,
    failures: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MochaTest {
    full_title: String,
    file: Option<String>,
}

/// `json` of mocha. A hook that failed stands among the failures and is no test.
pub(super) fn mocha(text: &str) -> Result<Report, Unreadable> {
    let read: Mocha = serde_json::from_str(&well_formed(text)).map_err(unreadable)?;
    if (read.stats.passes, read.stats.failures) != (read.passes.len(), read.failures.len()) {
        return Err(Unreadable::Contradiction("its counts and its tests".into()));
    }
    let mut report = Report::default();
    let mut failed: Vec<&MochaTest> = Vec::new();
    let titles: BTreeSet<&str> = { read.tests.iter() }
        .map(|test| test.full_title.as_str())
        .collect();
    for test in &read.failures {
        if titles.contains(test.full_title.as_str()) {
            failed.push(test);
        } else {
            report.broken.push(test.full_title.clone());
        }
    }
    let outcomes = [
        (read.passes.iter().collect::<Vec<_>>(), Outcome::Passed),
        (failed, Outcome::Failed),
        (read.pending.iter().collect(), Outcome::Skipped),
    ];
    for (tests, outcome) in outcomes {
        for test in tests {
            report.push(test.file.as_deref(), test.full_title.clone(), outcome);
        }
    }
    Ok(report)
}

/// A name in JavaScript may hold half of a pair of surrogates, written as `\ud83d`: no text of ours can.
fn well_formed(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut good, mut from, mut at) = (String::new(), 0, 0);
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += next;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                good.push_str(text.get(from..at).unwrap_or_default());
                good.push_str("\\ufffd");
                from = at + 6;
                6
            }
            _ => {
                1 + text
                    .get(at + 1..)
                    .and_then(|rest| rest.chars().next())
                    .map_or(0, char::len_utf8)
            }
        };
    }
    good.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(good)
}

/// Of text that ends too early, or is something else altogether.
fn unreadable(error: serde_json::Error) -> Unreadable {
    if error.is_eof() {
        Unreadable::NoEnd
    } else {
        Unreadable::Form
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Jest {
    num_total_tests: usize,
    #[serde(default)]
    was_interrupted: bool,
    test_results: Vec<JestFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestFile {
    name: String,
    status: String,
    assertion_results: Vec<JestTest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestTest {
    #[serde(default)]
    ancestor_titles: Vec<String>,
    title: String,
    status: String,
}

/// `json` of jest and of vitest.
pub(super) fn jest(text: &str) -> Result<Report, Unreadable> {
    let read: Jest = serde_json::from_str(&well_formed(text)).map_err(unreadable)?;
    if read.was_interrupted {
        return Err(Unreadable::NoEnd);
    }
    let mut report = Report::default();
    for file in &read.test_results {
        for test in &file.assertion_results {
            let outcome = match test.status.as_str() {
                "passed" => Outcome::Passed,
                "failed" => Outcome::Failed,
                _ => Outcome::Skipped,
            };
            let name = test.ancestor_titles.iter().chain([&test.title]);
            let name: Vec<&str> = name.map(String::as_str).collect();
            report.push(Some(&file.name), name.join(" > "), outcome);
        }
        let failed = file
            .assertion_results
            .iter()
            .any(|test| test.status == "failed");
        if file.status == "failed" && !failed {
            report.broken.push(file.name.clone());
        } else if file.assertion_results.is_empty() {
            report.without_tests.push(file.name.clone());
        }
    }
    if report.tests.len() < read.num_total_tests {
        return Err(Unreadable::Contradiction("its counts and its tests".into()));
    }
    Ok(report)
}

#[derive(Deserialize)]
struct NodeLine {
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    end: bool,
}

/// One JSON value a line, the last `{"end":true}`.
pub(super) fn node(text: &str) -> Result<Report, Unreadable> {
    let mut report = Report::default();
    let mut ended = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let read: NodeLine = serde_json::from_str(&well_formed(line)).map_err(unreadable)?;
        if std::mem::replace(&mut ended, read.end) {
            return Err(Unreadable::Form);
        }
        if read.end || read.kind.as_deref() == Some("suite") {
            continue;
        }
        // A file that named no test, or could not be loaded, is reported by its own path.
        let own_path = matches!((&read.file, read.names.as_slice()), (Some(file), [name]) if file == name || file.ends_with(&format!("/{name}")));
        match (own_path, read.outcome.as_str()) {
            (true, "failed") => report.broken.extend(read.file),
            (true, _) => report.without_tests.extend(read.file),
            (false, outcome) => {
                let outcome = match outcome {
                    "passed" => Outcome::Passed,
                    "failed" => Outcome::Failed,
                    _ => Outcome::Skipped,
                };
                report.push(read.file.as_deref(), read.names.join(" > "), outcome);
            }
        }
    }
    if ended {
        Ok(report)
    } else {
        Err(Unreadable::NoEnd)
    }
}
