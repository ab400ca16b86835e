//! A baseline that ran before. By what it is known again, which one may be kept, and what a later run
//! may take from it: one decision each, here.
//!
//! A kept baseline saves time and decides nothing against anybody: where a test of it is missing, the
//! baseline is run anew, and that run decides.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::runner_output::Heard;
use crate::checks::test_ids::whole::Whole;
use crate::checks::test_ids::{CommandTests, Runs, TestIdDocument, TestIds};
use crate::checks::test_log::{self, FoundLog, LogReader, Section};
use crate::containment::Containment;
use crate::run::event::{BaselineRelied, Check, ProcessEnd, Toolchain};
use crate::task::contract::{Limits, Runner};
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json::{self, JsonError};
use crate::values::paths::TreePath;
use crate::values::time::Utc;
use crate::workspace::environment::EnvironmentUse;

/// A week.
pub const KEPT_MILLIS: i64 = 7 * 24 * 3600 * 1000;
const SCHEMA_VERSION: u32 = 1;

/// Everything a run of the contract's commands on the untouched tree depends on. Whatever is not the
/// same makes another baseline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BaselineParts {
    /// This program.
    pub binary: Digest,
    /// The kernel, the user, and what the system's own directories hold.
    pub host: Digest,
    /// Bytes, names and kinds of all files.
    pub tree: Digest,
    /// As git names that tree, submodules included, and what copies are told of its history.
    pub git: Vec<String>,
    pub setup: Vec<String>,
    /// As they run on a baseline.
    pub commands: Vec<String>,
    pub runner: Runner,
    /// What the harness adds to hear the runner.
    pub kit: Digest,
    /// With the state of each.
    pub environments: Vec<EnvironmentUse>,
    /// What is shown read-only in the copy, with its state.
    pub inputs: BTreeMap<String, Digest>,
    pub toolchains: Vec<Toolchain>,
    /// Where programs are looked for, and what is offered there.
    pub search: Vec<String>,
    /// Places of the host that its processes are shown, and where, with what can be seen of each.
    pub shown: BTreeMap<String, Digest>,
    pub variables: BTreeMap<String, String>,
    pub limits: Limits,
    pub containment: Containment,
    /// What of the tree is hidden from some processes.
    pub masked: Vec<TreePath>,
    pub trace: bool,
    /// How copies are made.
    pub workspace: String,
    /// Where a copy stands in a jail.
    pub stand: String,
}

impl BaselineParts {
    /// The name of such a baseline.
    pub fn key(&self) -> Result<Digest, JsonError> {
        Ok(Digest::tagged("cto-baseline/1\n", &json::canonical(self)?))
    }
}

/// The tests one command named on the baseline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandBaseline {
    pub command: String,
    pub tests: TestIds,
    #[serde(default, skip_serializing_if = "Runs::is_none")]
    pub runs: Runs,
    /// What was heard of files and programs as a whole.
    #[serde(default, skip_serializing_if = "Whole::is_nothing")]
    pub whole: Whole,
}

/// `relied/baseline.json`: a baseline as the run that made it saw it. Its output is in
/// `relied/baseline.log`, framed as `test.log` is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeptBaseline {
    pub schema_version: u32,
    /// Of everything it depends on.
    pub key: Digest,
    pub made_at: Utc,
    /// The run that made it, and the contract of that run.
    pub run_id: RunId,
    pub contract_digest: Digest,
    /// The tree the commands ran on.
    pub tree: Digest,
    pub runner: Runner,
    /// The commands as they ran on it, green.
    pub checks: Vec<Check>,
    pub commands: Vec<CommandBaseline>,
    /// The nonce that frames its log, drawn when all of it had ended.
    pub log_nonce: String,
    pub log_sha256: Digest,
}

/// What a kept baseline says of itself beside what its commands came to.
#[derive(Clone, Debug)]
pub struct Made {
    pub key: Digest,
    pub at: Utc,
    pub run_id: RunId,
    pub contract_digest: Digest,
    pub tree: Digest,
    pub log_nonce: String,
    pub log_sha256: Digest,
}

/// May what a baseline came to be kept? Only where every command was green and tests were named: a red
/// one may have stopped at its first failure, and so named fewer tests than there are.
pub fn may_be_kept(ids: &TestIdDocument) -> bool {
    ids.baseline_not_run.is_none()
        && are_green(&ids.baseline)
        && ids.commands.len() == ids.baseline.len()
        && ids
            .commands
            .iter()
            .any(|command| !command.baseline.is_empty())
        && ids
            .commands
            .iter()
            .all(|command| command.baseline_runs.unfinished.is_empty())
}

fn are_green(checks: &[Check]) -> bool {
    let green = |check: &Check| matches!(check.end, ProcessEnd::Exited { code: 0 });
    !checks.is_empty() && checks.iter().all(green)
}

impl KeptBaseline {
    /// The baseline of a comparison, where it may be kept.
    pub fn of(ids: &TestIdDocument, made: Made) -> Option<Self> {
        may_be_kept(ids).then(|| Self {
            schema_version: SCHEMA_VERSION,
            key: made.key,
            made_at: made.at,
            run_id: made.run_id,
            contract_digest: made.contract_digest,
            tree: made.tree,
            runner: ids.runner,
            checks: ids.baseline.clone(),
            commands: ids
                .commands
                .iter()
                .map(|command| CommandBaseline {
                    command: command.command.clone(),
                    tests: command.baseline.clone(),
                    runs: command.baseline_runs.clone(),
                    whole: command.baseline_whole.clone(),
                })
                .collect(),
            log_nonce: made.log_nonce,
            log_sha256: made.log_sha256,
        })
    }

    /// Is this the baseline with that key, not yet too old? One dated later than now does not count.
    pub fn is_known(&self, key: &Digest, now: Utc) -> bool {
        self.key == *key && self.is_fresh(now) && self.is_whole()
    }

    fn is_fresh(&self, at: Utc) -> bool {
        let age = at.as_millis().saturating_sub(self.made_at.as_millis());
        (0..=KEPT_MILLIS).contains(&age)
    }

    /// Is it one that may have been kept at all?
    fn is_whole(&self) -> bool {
        self.schema_version == SCHEMA_VERSION
            && are_green(&self.checks)
            && self.commands.len() == self.checks.len()
            && self.commands.iter().any(|named| !named.tests.is_empty())
    }

    /// The comparison with what the verified tree named, command by command.
    pub fn compared_with(&self, verified: Vec<Heard>) -> TestIdDocument {
        let mut verified = verified.into_iter();
        TestIdDocument {
            schema_version: 1,
            runner: self.runner,
            baseline_not_run: None,
            baseline: self.checks.clone(),
            commands: self
                .commands
                .iter()
                .map(|named| {
                    let verified = verified.next().unwrap_or_default();
                    CommandTests {
                        command: named.command.clone(),
                        baseline: named.tests.clone(),
                        verified: verified.ids,
                        baseline_runs: named.runs.clone(),
                        verified_runs: verified.runs,
                        baseline_whole: named.whole.clone(),
                        verified_whole: verified.whole,
                    }
                })
                .collect(),
            files: None,
            runners: Vec::new(),
        }
    }

    /// How a run's own chain names it; `sha256` is of the document's bytes.
    pub fn relied(&self, sha256: Digest) -> BaselineRelied {
        BaselineRelied {
            key: self.key,
            made_at: self.made_at,
            run_id: self.run_id.clone(),
            sha256,
        }
    }

    /// Why this is not a baseline that a run could have relied on; `begun` and `ended` are the run's.
    pub fn unusable(&self, of: &Relying<'_>) -> Option<&'static str> {
        // It was found somewhere between the beginning and the end of the run.
        let known = self.made_at <= of.ended
            && of
                .begun
                .as_millis()
                .saturating_sub(self.made_at.as_millis())
                <= KEPT_MILLIS;
        if !known {
            Some("was made later, or more than a week before the run")
        } else if !self.is_whole() {
            Some("is no green baseline that named tests")
        } else if self.run_id == *of.run_id {
            Some("was made by the run that relied on it")
        } else if Some(&self.tree) != of.tree {
            Some("is of another tree")
        } else if Some(self.runner) != of.runner {
            Some("is of another runner")
        } else {
            None
        }
    }

    /// Why a log is not the one in which this baseline was seen to run.
    pub fn log_contradiction(&self, log: &[u8]) -> Option<&'static str> {
        if Digest::of(log) != self.log_sha256 {
            return Some("is not the log that the baseline names");
        }
        let mut reader = LogReader::default();
        reader.feed(log);
        let found: FoundLog = reader.finish();
        let ran = self.checks.iter().map(|check| (Section::Baseline, check));
        test_log::frames_contradiction(&found, &self.log_head(), &self.log_nonce, ran, &[])
    }

    /// The first lines of its log.
    pub fn log_head(&self) -> String {
        test_log::log_header(
            &self.run_id,
            &self.contract_digest,
            &self.tree,
            &self.log_nonce,
        )
    }
}

/// The run that relies on a baseline, as contract and report have it.
#[derive(Clone, Copy, Debug)]
pub struct Relying<'a> {
    pub run_id: &'a RunId,
    pub begun: Utc,
    pub ended: Utc,
    pub tree: Option<&'a Digest>,
    pub runner: Option<Runner>,
}

#[cfg(test)]
#[path = "known_baseline_tests.rs"]
mod tests;
