//! The tests a run of the checks named, and whether every test of the baseline ran again.
//!
//! An id is what the runner calls a test, without what changes by itself: the parameters of pytest,
//! the line number of a doc test. Several tests can have one id, so what is compared is how often
//! it ran. Ids can turn a pass into a failure, never the reverse. How they are read is in
//! `runner_output.rs`.
//!
//! - this file: the document, and what is missing by name; `changing.rs` names that are new in each run;
//!   `baseline.rs` the commands as they run on a baseline
//! - `lost.rs` what is missed though the baseline never named it; `whole.rs` files and programs as a whole
//! - `of_file.rs` which file a name is of; `own_text.rs` what a test file says of itself

pub mod baseline;
pub mod changing;
pub mod lost;
pub mod whole;

mod by_runner;
pub mod of_file;
pub mod own_text;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bundle::report_md::describe_end;
use crate::run::event::{Check, TestsCompared};
use crate::task::contract::Runner;
use crate::task::runner::Recognised;
use crate::task::tests_may_change::TestChange;
use crate::values::digest::Digest;
use baseline::on_the_baseline;
use lost::TestFile;
use whole::Whole;

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

/// Runs of a runner that leaves a mark when it begins and a report when it is done.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    pub began: u64,
    /// Those that did not come to their end, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Failures that are no test: a file that does not load, a package that left early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
}

impl Runs {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn came_to_their_end(&self) -> bool {
        self.began > 0 && self.unfinished.is_empty()
    }
}

/// One command of the contract, on the baseline and on the verified tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandTests {
    pub command: String,
    pub baseline: TestIds,
    pub verified: TestIds,
    #[serde(default, skip_serializing_if = "Runs::is_none")]
    pub baseline_runs: Runs,
    #[serde(default, skip_serializing_if = "Runs::is_none")]
    pub verified_runs: Runs,
    /// Files and programs on the baseline.
    #[serde(default, skip_serializing_if = "Whole::is_nothing")]
    pub baseline_whole: Whole,
    /// Files and programs on the verified tree.
    #[serde(default, skip_serializing_if = "Whole::is_nothing")]
    pub verified_whole: Whole,
}

impl CommandTests {
    /// Runs that did not come to their end where those of the baseline did, and what failed although the
    /// command was green.
    fn unfinished(&self) -> impl Iterator<Item = String> {
        let (was, is) = (&self.baseline_runs, &self.verified_runs);
        let counts = was.came_to_their_end();
        let unfinished = is.unfinished.iter().filter(move |_| counts);
        let broken = is.broken.iter().filter(|what| !was.broken.contains(what));
        let broken = broken.map(|what| format!("{what} failed, and yet the command was green"));
        let words = unfinished.cloned().chain(broken);
        words.map(|words| format!("{}: {words}", self.command))
    }

    /// Runs that did not come to their end, and those of the baseline did not either.
    fn unfinished_before_too(&self) -> impl Iterator<Item = String> {
        let counts = !self.baseline_runs.came_to_their_end();
        let unfinished = self.verified_runs.unfinished.iter();
        let unfinished = unfinished.filter(move |_| counts);
        unfinished.map(|words| format!("{}: {words}", self.command))
    }
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
    /// Test files that something is asked about. Null up to rules 5: then nothing is missed but what the
    /// baseline named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<TestFile>>,
    /// The runners that each command was recognised to use. Empty up to rules 6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<BTreeSet<Runner>>,
}

/// How many missing tests an event names.
const NAMED: usize = 10;
/// And how many that the contract lets change.
const LISTED: usize = 100;
const GREEN_ANYWAY: &str = "failed, and yet the command was green";

impl TestIdDocument {
    /// What the document means, for the event and for whoever checks it. `ids_sha256` is the file's
    /// own digest.
    pub fn compared(&self, ids_sha256: Digest, may_change: &[TestChange]) -> TestsCompared {
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
        let mut missing = Vec::new();
        let (mut changed, mut renamed) = (Vec::new(), BTreeSet::new());
        for (id, what) in self.missing(&mut renamed) {
            let allowed = may_change.iter().find(|change| change.covers(&id));
            match allowed.filter(|_| what != GREEN_ANYWAY) {
                None => missing.push(format!("{id}: {what}")),
                Some(TestChange { reason, .. }) => changed.push(match reason {
                    Some(reason) => format!("{id}: {what} ({reason})"),
                    None => format!("{id}: {what}"),
                }),
            }
        }
        let commands = self.commands.iter();
        let unfinished: Vec<String> = commands.flat_map(CommandTests::unfinished).collect();
        let too = self.commands.iter().enumerate();
        let too = too.flat_map(|(index, command)| {
            let words = command.unfinished_before_too();
            words.map(move |words| (index, words))
        });
        let passed = |command: &CommandTests| command.verified.values().any(|is| is.passed > 0);
        let none_passed = self.commands.iter().zip(&self.runners).enumerate();
        let none_passed =
            none_passed.filter(|(_, (command, runners))| !runners.is_empty() && !passed(command));
        let quiet = |command: &CommandTests| {
            let (was, is) = (&command.baseline_runs, &command.verified_runs);
            was.began == 0 && is.began == 0
        };
        TestsCompared {
            ids_sha256,
            baseline_ids,
            verified_ids: count(|command| &command.verified),
            not_seen,
            missing_count: missing.len() as u64,
            missing: missing.into_iter().take(NAMED).collect(),
            not_heard: baseline_ids == 0 && self.commands.iter().all(quiet),
            unfinished: unfinished.into_iter().take(NAMED).collect(),
            unfinished_before_too: too.take(NAMED).collect(),
            none_passed: none_passed.map(|(index, _)| index).collect(),
            changed_count: changed.len() as u64,
            changed: changed.into_iter().take(LISTED).collect(),
            renamed: renamed.into_iter().take(LISTED).collect(),
        }
    }

    /// Everything that did not run again, by name, with what became of it. Names that are new in each
    /// run are put aside.
    fn missing(&self, renamed: &mut BTreeSet<String>) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for command in &self.commands {
            let again = match &self.files {
                Some(_) => changing::matched(&command.baseline, &command.verified),
                None => BTreeMap::new(),
            };
            let gone = missing(&command.baseline, &command.verified);
            let is_again = |id: &String| again.values().any(|names| names.contains(id));
            all.extend(gone.into_iter().filter(|(id, _)| !is_again(id)));
            renamed.extend(again.into_keys());
        }
        all.extend(self.came_to_nothing());
        all
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
    pub fn is_about(&self, commands: &[String], recognised: &[Recognised]) -> bool {
        let ran = self.baseline.iter().map(|check| check.command.clone());
        let due = on_the_baseline(self.runner, commands, recognised);
        self.commands
            .iter()
            .map(|tests| &tests.command)
            .eq(commands)
            && (self.baseline_not_run.is_some() || ran.eq(due))
    }
}

/// Tests of the baseline that did not run again in a green run, each with its outcome.
fn missing(baseline: &TestIds, verified: &TestIds) -> Vec<(String, String)> {
    let each = baseline.iter().filter_map(|(id, was)| {
        let is = verified.get(id).copied().unwrap_or_default();
        Some((id.clone(), loss(*was, is)?))
    });
    each.collect()
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
    (is.failed > 0).then(|| GREEN_ANYWAY.into())
}

#[cfg(test)]
#[path = "test_ids_tests.rs"]
mod tests;
