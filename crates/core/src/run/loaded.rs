//! What `verification.completed` says of the loading control: which changed files were made to fail
//! when they are loaded, and what each command made of it. What is done to a file is in
//! `checks/loading/`; what all of it is worth, in `belief/`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::belief::{Ended, Substance};
use crate::run::event::{Check, ProcessEnd};
use crate::values::paths::TreePath;

/// What a red command shows.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Proves {
    /// Something read the file: a compiler or a linter may have been all.
    Parsed,
    /// The file was run, or its content was used.
    Loaded,
}

/// How a file was made to fail; the report says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Valid text that ends its process.
    EndsItsProcess,
    /// Valid text that a compiler is told to refuse.
    DoesNotCompile,
    /// A line that no parser takes.
    BrokenLine,
    Emptied,
    /// It was empty: something stands in it.
    Filled,
    /// Documentation whose only example fails.
    FailingExample,
    /// A link to nothing.
    PointsNowhere,
}

/// Why a file need not be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotCode {
    Documentation,
    /// A licence, or who wrote it.
    Legal,
    LockFile,
    Picture,
    /// `.gitignore`, `.editorconfig`, `CODEOWNERS`: for git, editors and forges.
    IgnoreList,
}

/// The loading control of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoadingRun {
    /// What the change is made of.
    pub substance: Substance,
    /// Every changed file.
    pub files: Vec<LoadingFile>,
    /// In the order in which they ran.
    pub rounds: Vec<LoadingRound>,
    /// Why it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub could_not_run: Option<String>,
}

/// One changed file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoadingFile {
    pub path: TreePath,
    /// Why no check has to see it; absent where one has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_code: Option<NotCode>,
    /// How it is made to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<How>,
    /// It is configuration of what runs tests, and no code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_how_to_run: bool,
    /// The change deleted it: it was put back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put_back: bool,
}

/// Commands of the contract in a copy where some files fail.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoadingRound {
    pub proves: Proves,
    pub files: Vec<TreePath>,
    /// The files hold lines of the same look that do nothing: who is red here too is red by their look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// It tells of its files, and decides nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single: bool,
    /// The command of setup that failed here; what then ran saw files that fail only after setup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_failed: Option<String>,
    pub checks: Vec<Check>,
}

impl LoadingRound {
    /// Did anything turn red here?
    pub fn is_red(&self) -> bool {
        self.setup_failed.is_some() || self.checks.iter().any(turned_red)
    }

    /// What this command came to here, where it ran.
    pub fn ended(&self, command: &str) -> Option<Ended> {
        let ran = self.checks.iter().filter(|check| check.command == command);
        ran.map(ended).max()
    }

    /// Did a limit end anything here?
    pub fn is_at_a_limit(&self) -> bool {
        self.checks
            .iter()
            .any(|check| ended(check) == Ended::AtALimit)
    }

    /// It decides for its commands.
    pub fn decides(&self) -> bool {
        !self.harmless && !self.single
    }
}

/// Did a command turn red by itself?
pub fn turned_red(check: &Check) -> bool {
    ended(check) == Ended::Red
}

/// A limit says nothing, nor does a kill; but code that ends its own process by a trap or by giving up
/// has said no, where no shell stands between.
fn ended(check: &Check) -> Ended {
    const TRAP: i32 = 4;
    const ABORT: i32 = 6;
    match check.end {
        ProcessEnd::Exited { code: 0 }
        | ProcessEnd::Dismissed { .. }
        | ProcessEnd::Cancelled
        | ProcessEnd::Lost => Ended::Green,
        ProcessEnd::Exited { .. } => Ended::Red,
        ProcessEnd::Signalled {
            signal: TRAP | ABORT,
        } => Ended::Red,
        ProcessEnd::Signalled { .. } => Ended::Green,
        ProcessEnd::TimedOut { .. } | ProcessEnd::MemoryLimit { .. } => Ended::AtALimit,
    }
}
