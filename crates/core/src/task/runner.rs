//! Test runners that have a kit, and what a command was recognised to do with them: data of the contract,
//! found on the baseline before the engine starts (`checks/runners/recognise/` finds it).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::{Contract, Control};

/// A runner with a kit of its own.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Runner {
    Unittest,
    Pytest,
    /// With `cargo nextest`.
    Cargo,
    Node,
    Mocha,
    Jest,
    Vitest,
    Ava,
    Tap,
    Tape,
    Go,
}

impl Runner {
    pub const ALL: [Self; 11] = [
        Self::Unittest,
        Self::Pytest,
        Self::Cargo,
        Self::Node,
        Self::Mocha,
        Self::Jest,
        Self::Vitest,
        Self::Ava,
        Self::Tap,
        Self::Tape,
        Self::Go,
    ];

    /// As people write it, and as it stands in a contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unittest => "unittest",
            Self::Pytest => "pytest",
            Self::Cargo => "cargo",
            Self::Node => "node",
            Self::Mocha => "mocha",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Ava => "ava",
            Self::Tap => "tap",
            Self::Tape => "tape",
            Self::Go => "go",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// Runs inside a Python process, where its tests name themselves.
    pub fn is_python(self) -> bool {
        matches!(self, Self::Unittest | Self::Pytest)
    }

    /// Runs inside a node process, where the preload can be.
    pub fn is_javascript(self) -> bool {
        matches!(
            self,
            Self::Node
                | Self::Mocha
                | Self::Jest
                | Self::Vitest
                | Self::Ava
                | Self::Tap
                | Self::Tape
        )
    }

    /// Leaves a report of its own, read in `checks/runners/report/`.
    pub fn reports(self) -> bool {
        self.is_javascript() || self == Self::Go
    }

    /// The runner a plain command obviously uses, before anybody looked into a repository.
    pub fn of_plain(command: &str) -> Option<Self> {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["python3" | "python", "-m", "unittest", ..] => Some(Self::Unittest),
            ["pytest", ..] | ["python3" | "python", "-m", "pytest", ..] => Some(Self::Pytest),
            ["cargo", "test" | "nextest", ..] => Some(Self::Cargo),
            ["node", "--test", ..] => Some(Self::Node),
            _ => None,
        }
    }
}

impl std::fmt::Display for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Words of the command that mean one thing, and where they stand if the command itself holds them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Flag {
    pub words: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<(usize, usize)>,
}

/// How a filter by name is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compared {
    /// A part of the name.
    Part,
    /// The whole name, or a name with what lies below it.
    Whole,
    Pattern,
    /// `a and not b` of pytest, filter sets of nextest, marks.
    Expression,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NameFilter {
    pub text: String,
    pub compared: Compared,
    pub flag: Flag,
}

/// A file, directory, glob or package, and what of it: `file::Class::test`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChosenPlace {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    pub flag: Flag,
}

/// What part of the tests a command runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<ChosenPlace>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameFilter>,
    /// Left out by name or place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Flag>,
    /// `--test X`, `--lib`, `-p NAME`, `--project NAME`: whole programs or packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Flag>,
    /// Some word is known only when the command runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub computed: bool,
}

impl Selection {
    fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

/// What the words behind a runner say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    #[serde(default, skip_serializing_if = "Selection::is_all")]
    pub selection: Selection,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub early_stop: Vec<Flag>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reporters: Vec<Flag>,
    /// It lists, watches or explains instead of running tests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_nothing: bool,
}

/// A runner in a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    pub runner: Runner,
    /// The way to it: wrappers, directories, scripts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub how: Vec<String>,
    /// Where it starts, below the root of the repository; none if that is known only to a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Variables of the kit that the command sets itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub overrides: BTreeSet<String>,
    /// Its exit code may be lost: in a pipe, or before `||`, `;` or `&`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
    #[serde(flatten)]
    pub said: Said,
}

impl Found {
    /// Does the command itself set the variable by which the kit of its runner would come in?
    fn sets_the_way_in(&self) -> bool {
        let variable = match self.runner {
            Runner::Go => "GOFLAGS",
            runner if runner.is_javascript() => "NODE_OPTIONS",
            _ => return false,
        };
        self.overrides.contains(variable)
    }

    /// A runner that somebody named; nothing more is known of it.
    pub fn named(runner: Runner) -> Self {
        Self {
            runner,
            how: Vec::new(),
            dir: None,
            overrides: BTreeSet::new(),
            excused: false,
            said: Said::default(),
        }
    }
}

/// What a command is known to do, in the order it does it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Recognised {
    pub found: Vec<Found>,
    /// Commands beside the runners: linters, compilers, what is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// How the must-fail control differs from the check, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ForControl>,
}

impl Recognised {
    /// Every runner that runs tests and can be heard, each once.
    pub fn runners(&self) -> BTreeSet<Runner> {
        let running = self.found.iter().filter(|found| !found.said.runs_nothing);
        let heard = running.filter(|found| !found.sets_the_way_in());
        heard.map(|found| found.runner).collect()
    }

    /// Does it start this runner's tests once, with nothing beside them, and end as they end?
    pub fn is_only(&self, runner: Runner) -> bool {
        let [only] = self.found.as_slice() else {
            return false;
        };
        let runs = only.runner == runner && !only.said.runs_nothing && !only.excused;
        runs && self.others.is_empty() && *only != Found::named(runner)
    }

    /// May it, red on the baseline, have stopped before all of its tests had a name? Only where an early
    /// stop stands elsewhere than in its text, and belongs to a runner whose kit cannot lift it.
    pub fn may_hide_tests(&self) -> bool {
        let cannot = |runner| matches!(runner, Runner::Go | Runner::Cargo);
        self.found.iter().any(|found| {
            let mut stops = found.said.early_stop.iter();
            cannot(found.runner) && stops.any(|flag| flag.place.is_none())
        })
    }
}

/// The command for the control run: where the selection looks, and without an early stop.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ForControl {
    pub command: String,
    /// Options a node runner's own words are freed of, `=` behind those with a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Early stops and selections that no way leads around: the control may be too small for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Flag>,
}

impl Contract {
    /// The runner whose tests are compared, the first where there are several: the control's own, or the one
    /// that is seen in a command where a patch is the control.
    pub fn compared_runner(&self) -> Option<Runner> {
        match self.verification_control {
            Control::Runner(runner) => Some(runner),
            Control::Patch(_) => self.recognised.iter().flat_map(Recognised::runners).next(),
            Control::None(_) => None,
        }
    }

    /// The runners whose tests are listened to.
    pub fn runners(&self) -> BTreeSet<Runner> {
        let Some(first) = self.compared_runner() else {
            return BTreeSet::new();
        };
        let found = self.recognised.iter().flat_map(Recognised::runners);
        found.chain([first]).collect()
    }

    /// Those of each command.
    pub fn runners_of_commands(&self) -> Vec<BTreeSet<Runner>> {
        let commands = self.verification_commands.iter().enumerate();
        let of = |(index, _)| self.recognised.get(index).map(Recognised::runners);
        commands
            .map(|each| of(each).unwrap_or_else(|| self.runners()))
            .collect()
    }

    /// Does some command use this runner and another one?
    pub fn shares_a_command(&self, runner: Runner) -> bool {
        let all = self.recognised.iter().map(Recognised::runners);
        let mut several = all.filter(|runners| runners.len() > 1);
        several.any(|runners| runners.contains(&runner))
    }

    /// Does some command choose tests of this runner by their names, or leave some out?
    pub fn chooses_by_name(&self, runner: Runner) -> bool {
        let found = self.recognised.iter().flat_map(|known| &known.found);
        let mut of = found.filter(|found| found.runner == runner);
        of.any(|found| {
            let selection = &found.said.selection;
            !selection.names.is_empty() || !selection.left_out.is_empty() || selection.computed
        })
    }

    /// A verification command as the must-fail control runs it.
    pub fn control_command(&self, index: usize) -> &str {
        let known = self.recognised.get(index);
        match known.and_then(|known| known.control.as_ref()) {
            Some(control) => &control.command,
            None => self
                .verification_commands
                .get(index)
                .map_or("", String::as_str),
        }
    }

    /// All of them.
    pub fn control_commands(&self) -> Vec<String> {
        let all = 0..self.verification_commands.len();
        all.map(|index| self.control_command(index).to_owned())
            .collect()
    }
}
