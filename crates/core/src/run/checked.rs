//! What `verification.completed` carries: each command and how it ended, the control, the baseline.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::event::ProcessEnd;
use crate::run::loaded::LoadingRun;
use crate::run::not_counted::NotCounted;
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::paths::TreePath;
use crate::values::time::Utc;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    Visible,
    Hidden,
}

/// One verification command in the pristine copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub kind: CheckKind,
    pub command: String,
    pub end: ProcessEnd,
    pub duration_ms: u64,
    /// Programs that the last words of a red command say are not there (`checks/lacking.rs`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
}

/// The same commands where they had to fail.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ControlRun {
    Ran {
        checks: Vec<Check>,
        /// Failing tests the harness added, for runners that report a count.
        failures_added: Option<u64>,
        /// The count the runner reported. It can turn a pass into a failure, never the reverse.
        failures_reported: Option<u64>,
        /// What was heard of each command there, since rules 7.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        heard: Vec<ControlHeard>,
    },
    CouldNotRun {
        reason: String,
    },
    None {
        reason: String,
    },
}

/// One command in the must-fail control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ControlHeard {
    /// Its runner named tests.
    pub named: bool,
    /// Every runner that leaves a mark left its report as well: the kit knows them.
    pub reported: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerificationCompleted {
    /// Why nothing ran; null when something did.
    pub not_run: Option<String>,
    pub checks: Vec<Check>,
    /// Null until the commands themselves were green: a red run needs no control.
    pub control: Option<ControlRun>,
    pub log_sha256: Digest,
    /// Tree the commands ran on; equal to the measured result tree.
    pub tree: Option<Digest>,
    /// Why the pristine copy could not be made to equal the measured tree.
    pub mismatch: Option<String>,
    /// Verification files of the baseline that the engine changed, and configuration of a runner.
    pub changed_test_files: Vec<TreePath>,
    /// Changed files that take over how checks are run, and that the contract does not allow by
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runner_takeovers: Vec<TreePath>,
    /// Test files that were rewritten while the checks ran; since rules 6 code of any kind, and by setup as
    /// well, but for what checks rewrite on the baseline too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten_test_files: Vec<TreePath>,
    /// Other tracked files that were rewritten by setup or a check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten_files: Vec<TreePath>,
    /// The nonce that frames `test.log`; told only here, when nothing of the contract runs any
    /// more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_nonce: Option<String>,
    /// The commands on the untouched baseline, where a runner names its tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline_checks: Vec<Check>,
    /// The baseline of an earlier run, where these tests were compared with that: then the commands
    /// did not run on the baseline again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relied: Option<BaselineRelied>,
    /// Whether every test of the baseline ran again; absent where no runner is declared or a check
    /// was red.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsCompared>,
    /// Red commands and the same on the baseline, by the tests that failed; since rules 7.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_tests: Vec<FailedTests>,
    /// What there is to be said about the environments the commands ran with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment_notes: Vec<String>,
    /// Commands that ran while an environment was changed by its owner, and were run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_counted: Vec<NotCounted>,
    /// Commands that use other runners, or use them otherwise, because of what changed in the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recognised_otherwise: Vec<String>,
    /// Modules that red commands did not find, and that the change asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_modules: Vec<MissingModules>,
    /// The commands where the change fails when it is loaded. Null until everything else was as it must
    /// be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<LoadingRun>,
    pub blockers: Vec<Code>,
}

/// How many tests of a red command failed, and how many failed without the change. It decides nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailedTests {
    pub command: String,
    pub now: u64,
    pub before: u64,
    /// By the same names.
    pub both: u64,
}

impl FailedTests {
    /// Where the command was red before the change as well: by which tests.
    pub fn words(&self) -> String {
        let tests = |count: u64| match count {
            1 => "1 test".to_owned(),
            count => format!("{count} tests"),
        };
        match (self.both, self.now, self.before) {
            (_, 0, _) | (_, _, 0) => String::new(),
            (0, _, _) => ": by other tests".to_owned(),
            (both, now, before) if both == now && both == before => {
                format!(": the same {}", tests(both))
            }
            (both, now, _) if both == now => {
                format!(": the same {}, and others that pass now", tests(both))
            }
            (both, now, _) => format!(": {both} of these {}", tests(now)),
        }
    }
}

impl VerificationCompleted {
    /// Nothing ran yet.
    pub fn nothing(log_sha256: Digest) -> Self {
        Self {
            not_run: None,
            checks: Vec::new(),
            control: None,
            log_sha256,
            tree: None,
            mismatch: None,
            changed_test_files: Vec::new(),
            runner_takeovers: Vec::new(),
            rewritten_test_files: Vec::new(),
            rewritten_files: Vec::new(),
            log_nonce: None,
            baseline_checks: Vec::new(),
            relied: None,
            tests: None,
            failed_tests: Vec::new(),
            environment_notes: Vec::new(),
            not_counted: Vec::new(),
            recognised_otherwise: Vec::new(),
            missing_modules: Vec::new(),
            loading: None,
            blockers: Vec::new(),
        }
    }
}

/// What a red command did not find (`checks/missing_module/`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissingModules {
    pub command: String,
    pub modules: Vec<String>,
    /// The changed lists that ask for them. Up to rules 4 a list only had to have changed.
    pub lists: Vec<TreePath>,
}

/// The tests of the baseline beside those that were verified; all of them are in `test-ids.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestsCompared {
    pub ids_sha256: Digest,
    pub baseline_ids: u64,
    pub verified_ids: u64,
    /// Why there was nothing to compare with; null when there was.
    pub not_seen: Option<String>,
    pub missing_count: u64,
    /// The first tests of the baseline that did not run again, each with what became of it.
    pub missing: Vec<String>,
    /// No runner that reports was heard, neither on the baseline nor on the verified tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_heard: bool,
    /// Runs of runners that did not come to their end, where those of the baseline did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Those that did not on the baseline either, with the number of their command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished_before_too: Vec<(usize, String)>,
    /// Numbers of commands of whose known runner no test passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub none_passed: Vec<usize>,
    /// How many did not run again as the contract lets them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_count: u64,
    /// The first of those, each with what became of it and why it may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Names that are new in each run, without the parts that change: they ran again
    /// (`checks/test_ids/changing.rs`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renamed: Vec<String>,
}

/// How names of tests that are new in each run are compared, as reports state it.
pub const CHANGING_NAMES: &str = "times, addresses, numbers of six and more digits and words of eight and more hexadecimal digits do not count in a name that is not found again";

impl TestsCompared {
    /// What people are told beside the verdict: a sentence, and names from outside.
    pub fn notes(&self) -> Vec<(String, Vec<String>)> {
        let mut notes = Vec::new();
        if let Some(reason) = &self.not_seen {
            let what = "tests of the baseline not seen".to_owned();
            notes.push((what, vec![reason.clone()]));
        }
        if self.changed_count > 0 {
            let what = format!(
                "{} tests did not run again, as the contract lets them",
                self.changed_count
            );
            notes.push((what, self.changed.clone()));
        }
        if !self.renamed.is_empty() {
            let what = format!("matched by a part of their names ({CHANGING_NAMES})");
            notes.push((what, self.renamed.clone()));
        }
        notes
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The kept baseline a run relied on. It travels in the bundle: `relied/baseline.json` and
/// `relied/baseline.log`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRelied {
    /// Of everything that a baseline depends on.
    pub key: Digest,
    /// When its last command had ended.
    pub made_at: Utc,
    /// The run that made it.
    pub run_id: RunId,
    /// Of `relied/baseline.json`, which holds the digest of its log.
    pub sha256: Digest,
}
