//! The tests a run of the checks named, and whether every test of the baseline ran again.
//!
//! An id is what the runner calls a test, without what changes by itself: the parameters of pytest,
//! the line number of a doc test. Several tests can have one id, so what is compared is how often
//! it ran. Ids can turn a pass into a failure, never the reverse. How they are read is in
//! `runner_output.rs`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle::report_md::describe_end;
use crate::run::event::{Check, TestsCompared};
use crate::task::contract::Runner;
use crate::values::digest::Digest;

/// The outcome of one test. `Skipped` is everything that cannot turn a run red: skipped, ignored,
/// to do, expected to fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Skipped,
    /// Failed before or after the test itself.
    Errored,
    Failed,
    Passed,
}

/// How often an id ran, by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub passed: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Tally {
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed | Outcome::Errored => self.failed += 1,
            Outcome::Skipped => self.skipped += 1,
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    fn ran(self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    fn came(self) -> u64 {
        self.ran().saturating_add(self.skipped)
    }
}

pub type TestIds = BTreeMap<String, Tally>;

/// One command of the contract, on the baseline and on the verified tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandTests {
    pub command: String,
    pub baseline: TestIds,
    pub verified: TestIds,
}

/// `test-ids.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestIdDocument {
    pub schema_version: u32,
    pub runner: Runner,
    /// Why the commands did not run on the baseline; null when they did.
    pub baseline_not_run: Option<String>,
    /// The commands on the baseline. They may be red: that is often the task.
    pub baseline: Vec<Check>,
    pub commands: Vec<CommandTests>,
}

/// How many missing tests an event names.
const NAMED: usize = 10;

impl TestIdDocument {
    /// What the document means, for the event and for whoever checks it. `ids_sha256` is the file's
    /// own digest.
    pub fn compared(&self, ids_sha256: Digest) -> TestsCompared {
        let count = |of: fn(&CommandTests) -> &TestIds| {
            self.commands
                .iter()
                .map(|command| of(command).len() as u64)
                .sum()
        };
        let baseline_ids = count(|command| &command.baseline);
        let not_seen = match (&self.baseline_not_run, baseline_ids) {
            (Some(reason), _) => Some(reason.clone()),
            (None, 0) => Some(self.nothing_named()),
            (None, _) => None,
        };
        let missing: Vec<String> = self
            .commands
            .iter()
            .flat_map(|command| missing(&command.baseline, &command.verified))
            .collect();
        TestsCompared {
            ids_sha256,
            baseline_ids,
            verified_ids: count(|command| &command.verified),
            not_seen,
            missing_count: missing.len() as u64,
            missing: missing.into_iter().take(NAMED).collect(),
        }
    }

    fn nothing_named(&self) -> String {
        let ends: Vec<String> = self
            .baseline
            .iter()
            .map(|check| describe_end(check.end))
            .collect();
        format!("the baseline's own run named no test ({})", ends.join(", "))
    }

    /// Are these the contract's commands, all of them and in order? A baseline that ran, ran all of
    /// them.
    pub fn is_about(&self, commands: &[String]) -> bool {
        let ran = self.baseline.iter().map(|check| check.command.clone());
        let due = commands
            .iter()
            .map(|command| on_the_baseline(self.runner, command));
        self.commands
            .iter()
            .map(|tests| &tests.command)
            .eq(commands)
            && (self.baseline_not_run.is_some() || ran.eq(due))
    }
}

/// The command that names the tests of a baseline. It decides nothing, and the baseline may be red:
/// cargo must not stop at the first program that is.
pub fn on_the_baseline(runner: Runner, command: &str) -> String {
    if runner != Runner::Cargo || command.contains("fail-fast") {
        return command.to_owned();
    }
    for words in ["cargo test", "cargo nextest run"] {
        if let Some((before, after)) = command.split_once(words)
            && (after.is_empty() || after.starts_with([' ', ';', '\n', '&', '|', ')']))
        {
            return format!("{before}{words} --no-fail-fast{after}");
        }
    }
    command.to_owned()
}

/// Tests of the baseline that did not run again in a green run, each with its outcome.
fn missing(baseline: &TestIds, verified: &TestIds) -> Vec<String> {
    baseline
        .iter()
        .filter_map(|(id, was)| {
            Some(format!(
                "{id}: {}",
                loss(*was, verified.get(id).copied().unwrap_or_default())?
            ))
        })
        .collect()
}

fn loss(was: Tally, is: Tally) -> Option<String> {
    if is.came() == 0 {
        return Some("not there".into());
    }
    if is.ran() < was.ran() {
        let how = if is.skipped > was.skipped {
            "skipped"
        } else {
            "not run"
        };
        return Some(if was.ran() == 1 {
            how.into()
        } else {
            format!("{} of {} ran", is.ran(), was.ran())
        });
    }
    if is.came() < was.came() {
        return Some(format!("{} of {} are there", is.came(), was.came()));
    }
    (is.failed > 0).then(|| "failed, and yet the command was green".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::{CheckKind, ProcessEnd};

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn what_may_become_of_a_test() {
        for (was, is, want) in [
            (tally(1, 0, 0), tally(1, 0, 0), None),
            (tally(0, 1, 0), tally(1, 0, 0), None),
            (tally(0, 0, 1), tally(0, 0, 1), None),
            (tally(0, 0, 1), tally(1, 0, 0), None),
            (tally(2, 1, 0), tally(4, 0, 1), None),
            (tally(1, 0, 0), tally(0, 0, 0), Some("not there")),
            (tally(0, 0, 1), tally(0, 0, 0), Some("not there")),
            (tally(0, 1, 0), tally(0, 0, 1), Some("skipped")),
            (tally(2, 1, 0), tally(2, 0, 0), Some("2 of 3 ran")),
            (tally(1, 0, 1), tally(1, 0, 0), Some("1 of 2 are there")),
            (
                tally(0, 1, 0),
                tally(0, 1, 0),
                Some("failed, and yet the command was green"),
            ),
        ] {
            assert_eq!(loss(was, is).as_deref(), want, "{was:?} {is:?}");
        }
    }

    fn document(baseline: &[&str], verified: &[&str]) -> TestIdDocument {
        let ids = |names: &[&str]| {
            names
                .iter()
                .map(|name| ((*name).to_owned(), tally(1, 0, 0)))
                .collect()
        };
        let end = ProcessEnd::Exited { code: 1 };
        TestIdDocument {
            schema_version: 1,
            runner: Runner::Cargo,
            baseline_not_run: None,
            baseline: vec![Check {
                kind: CheckKind::Visible,
                command: "cargo test --no-fail-fast".into(),
                end,
                duration_ms: 1,
                lacks: Vec::new(),
            }],
            commands: vec![CommandTests {
                command: "cargo test".into(),
                baseline: ids(baseline),
                verified: ids(verified),
            }],
        }
    }

    #[test]
    fn the_first_missing_are_named_and_all_are_counted() {
        let many: Vec<String> = (0..12).map(|n| format!("t{n:02}")).collect();
        let names: Vec<&str> = many.iter().map(String::as_str).collect();
        let found = document(&names, &["t00", "new"]).compared(Digest::of(b""));
        assert_eq!(
            (found.baseline_ids, found.verified_ids, found.missing_count),
            (12, 2, 11)
        );
        assert_eq!(found.missing.len(), 10);
        assert_eq!(found.missing[0], "t01: not there");
        assert_eq!(found.not_seen, None);
    }

    #[test]
    fn a_red_program_of_the_baseline_hides_no_other() {
        for (runner, command, want) in [
            (Runner::Cargo, "cargo test", "cargo test --no-fail-fast"),
            (
                Runner::Cargo,
                "cd a && cargo test --offline -- -q",
                "cd a && cargo test --no-fail-fast --offline -- -q",
            ),
            (
                Runner::Cargo,
                "cargo nextest run -p x",
                "cargo nextest run --no-fail-fast -p x",
            ),
            (
                Runner::Cargo,
                "cargo test --no-fail-fast",
                "cargo test --no-fail-fast",
            ),
            (Runner::Cargo, "cargo tests", "cargo tests"),
            (Runner::Cargo, "make test", "make test"),
            (Runner::Node, "cargo test", "cargo test"),
        ] {
            assert_eq!(on_the_baseline(runner, command), want, "{command}");
        }
        assert!(document(&["a"], &["a"]).is_about(&["cargo test".to_owned()]));
    }

    #[test]
    fn a_baseline_that_names_nothing_is_said_to() {
        let found = document(&[], &["a"]).compared(Digest::of(b""));
        assert_eq!(
            found.not_seen.as_deref(),
            Some("the baseline's own run named no test (exit code 1)")
        );
        assert_eq!(found.missing_count, 0);
        let mut broken = document(&[], &["a"]);
        broken.baseline_not_run = Some("setup failed".into());
        broken.baseline.clear();
        assert_eq!(
            broken.compared(Digest::of(b"")).not_seen.as_deref(),
            Some("setup failed")
        );
        assert!(
            broken.is_about(&["cargo test".to_owned()]) && !broken.is_about(&["true".to_owned()])
        );
        let mut other = document(&["a"], &["a"]);
        other.baseline.clear();
        assert!(
            !other.is_about(&["cargo test".to_owned()]),
            "a baseline that ran, ran the commands"
        );
    }
}
