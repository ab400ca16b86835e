//! Belief in words: for the verdict line, the report and its Markdown, so that none says more than
//! another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Belief, CommandSeen, ControlSeen, LoadingSeen, Substance};
use crate::values::paths::TreePath;

impl Belief {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partly => "partly",
            Self::Proven => "proven",
        }
    }

    /// As it stands in a line that a tired person reads.
    pub fn loud(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Partly => "partly",
            Self::Proven => "proven",
        }
    }
}

/// What is known of one changed file that can be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSeen {
    /// A check turned red when this file failed to load.
    Noticed,
    /// Every check stayed green.
    NotNoticed,
    NotTried,
}

/// The changed files that can be loaded, and what the checks made of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FilesSeen {
    pub noticed: u64,
    pub not_noticed: Vec<TreePath>,
    pub not_tried: Vec<TreePath>,
}

impl FilesSeen {
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a TreePath, FileSeen)>) -> Self {
        let mut all = Self::default();
        for (path, seen) in files {
            match seen {
                FileSeen::Noticed => all.noticed += 1,
                FileSeen::NotNoticed => all.not_noticed.push(path.clone()),
                FileSeen::NotTried => all.not_tried.push(path.clone()),
            }
        }
        all
    }

    pub fn count(&self) -> u64 {
        self.noticed + (self.not_noticed.len() + self.not_tried.len()) as u64
    }

    /// "seen by the checks: 3 of 4 files", with what was not tried beside it: a file nobody tried
    /// is not a file nobody noticed.
    pub fn line(&self) -> String {
        let all = self.count();
        let files = if all == 1 { "file" } else { "files" };
        let line = format!("seen by the checks: {} of {all} {files}", self.noticed);
        match self.not_tried.len() {
            0 => line,
            more => format!("{line}, {more} not tried"),
        }
    }
}

/// The clause of the verdict line. What the checks saw has a line of its own.
pub fn verdict_clause(run: Belief, substance: Substance) -> String {
    let word = run.loud();
    match substance {
        Substance::OnlyDocumentation => format!("checks {word} (documentation only)"),
        Substance::NoCode => format!("checks {word} (no code changed)"),
        Substance::Code => format!("checks {word}"),
    }
}

/// Why a command is believed as far as it is; one clause, in the report and its Markdown.
pub fn because(seen: CommandSeen, substance: Substance) -> String {
    let control = match seen.control {
        ControlSeen::RedByFailingTests => "failing tests turned it red",
        ControlSeen::RedByPatch => "the control patch turned it red",
        ControlSeen::OfOtherTests => {
            "no test of it passed, and its must-fail control was red for tests that it does not choose"
        }
        ControlSeen::NotRed => "the must-fail control did not turn it red",
        ControlSeen::OfFormerCommand => {
            "the change altered what this command does, or the configuration of its runner, and its must-fail control was that of the former command"
        }
        ControlSeen::StoppedEarly => {
            "its must-fail control was red, but it stops at the first failure, so not all tests of the baseline are known"
        }
        ControlSeen::NotRun => "it has no must-fail control",
    };
    let loading = match (substance, seen.loading) {
        (Substance::OnlyDocumentation, _) => "only documentation changed",
        (Substance::NoCode, _) => "no code changed",
        (Substance::Code, LoadingSeen::Loaded) => {
            "it is red where the change fails when it is loaded"
        }
        (Substance::Code, LoadingSeen::OnlyRead) => {
            "it is red where the change cannot be read, as a compiler or linter is; nothing shows that its tests load it"
        }
        (Substance::Code, LoadingSeen::NoEnd) => {
            "it comes to no end where the change fails when it is loaded"
        }
        (Substance::Code, LoadingSeen::OnlyAround) => {
            "what prepares or starts it fails where the change cannot be loaded; by itself it was never red"
        }
        (Substance::Code, LoadingSeen::NotRed) => {
            "it stays green where the change fails when it is loaded"
        }
        (Substance::Code, LoadingSeen::NotTried) => "whether it loads the change was not tried",
    };
    format!("{control}; {loading}")
}

/// What a green run is worth, as one sentence of the report. It never claims more than was seen.
pub fn sentence(run: Belief, substance: Substance, files: &FilesSeen) -> &'static str {
    let all = files.not_noticed.is_empty() && files.not_tried.is_empty();
    match (run, substance) {
        (Belief::Proven, _) if all => {
            "The checks pass where the engine never was, fail where they must, and load what was changed."
        }
        (Belief::Proven, _) => {
            "The checks pass where the engine never was, fail where they must, and load some of what was changed."
        }
        (Belief::Partly, Substance::OnlyDocumentation) => {
            "The checks pass where the engine never was; only documentation changed, which they do not load."
        }
        (Belief::Partly, Substance::NoCode) => {
            "The checks pass where the engine never was; no code changed that they could load."
        }
        (Belief::Partly, Substance::Code) => {
            "The checks pass where the engine never was and can be red, but not all of what proves a pass was seen; each command says what."
        }
        (Belief::None, _) => {
            "The checks pass where the engine never was; nothing shows that they could have failed."
        }
    }
}

/// The lines of the Markdown report below the commands. `quote` makes a path harmless there.
pub fn markdown(files: &FilesSeen, quote: impl Fn(&str) -> String) -> String {
    let named = |what: &str, paths: &[TreePath]| match paths {
        [] => String::new(),
        paths => {
            let list: Vec<String> = paths.iter().map(|path| quote(&path.to_string())).collect();
            format!("- {what}: {}\n", list.join(", "))
        }
    };
    format!(
        "- {}\n{}{}",
        files.line(),
        named("**no check noticed**", &files.not_noticed),
        named("not tried", &files.not_tried)
    )
}
