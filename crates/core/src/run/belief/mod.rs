//! How far a green check is believed, decided in one place from what was seen.
//!
//! Two experiments say what a green is worth: the must-fail control (can the command be red?) and
//! the loading control (is it red when the change fails to load?). `seen.rs` reads both from the event;
//! `words.rs` says the answer to people. Here lies no reading of output and no list of files: facts come in, a word goes out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::contract::Label;
use crate::task::stage::Stage;

pub mod seen;
pub mod words;

/// The three words, weakest first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Belief {
    /// Nothing ever turned it red.
    None,
    /// It can be red, but nothing shows that a failing test in it would tell of this change.
    Partly,
    /// Failing tests or a patch turned it red, and so did the change when it failed to load.
    Proven,
}

impl Belief {
    pub const ALL: [Self; 3] = [Self::None, Self::Partly, Self::Proven];

    /// Only what is proven proves a stage, or satisfies who asked for a control.
    pub fn proves_a_stage(self) -> bool {
        self == Self::Proven
    }
}

/// What the must-fail control did to one command. A command whose count of failures was too low is
/// `NotRed`: what silences one test may silence another.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ControlSeen {
    NotRun,
    NotRed,
    /// No test of the command passed where it was green: what was red in the control is not what it
    /// checks.
    OfOtherTests,
    /// The change made the command into another one: what was red is what it was before.
    OfFormerCommand,
    /// Red, but on the baseline it stopped early, and the tests behind that have no name.
    StoppedEarly,
    RedByPatch,
    RedByFailingTests,
}

impl ControlSeen {
    pub const ALL: [Self; 7] = [
        Self::NotRun,
        Self::NotRed,
        Self::OfOtherTests,
        Self::OfFormerCommand,
        Self::StoppedEarly,
        Self::RedByPatch,
        Self::RedByFailingTests,
    ];

    pub fn is_red(self) -> bool {
        matches!(self, Self::RedByPatch | Self::RedByFailingTests)
    }
}

/// What became of one command where the changed files fail to load.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LoadingSeen {
    NotTried,
    NotRed,
    /// Setup failed, or what tells how to run it could not be read: by itself it stayed green.
    OnlyAround,
    /// It came to no end there, and did where lines of the same look do nothing.
    NoEnd,
    /// Red, but a linter or a compiler alone could have done it.
    OnlyRead,
    /// Red because the changed code was run.
    Loaded,
}

impl LoadingSeen {
    pub const ALL: [Self; 6] = [
        Self::NotTried,
        Self::NotRed,
        Self::OnlyAround,
        Self::NoEnd,
        Self::OnlyRead,
        Self::Loaded,
    ];

    pub fn noticed(self) -> bool {
        matches!(
            self,
            Self::OnlyAround | Self::NoEnd | Self::OnlyRead | Self::Loaded
        )
    }

    /// The end of one command in the loading control: where the change fails to load, and where the
    /// same lines were added and do nothing, if that was tried.
    pub fn of(ended: Ended, form: FormSeen, harmless: Option<Ended>) -> Self {
        match (ended, form, harmless) {
            (Ended::Green, ..) => Self::NotRed,
            // Lines that do nothing turned it red too: it is their look, not their deed.
            (Ended::Red, FormSeen::Runs, Some(Ended::Red | Ended::AtALimit)) => Self::OnlyRead,
            (Ended::Red, FormSeen::Runs | FormSeen::BuiltByItsRunner, _) => Self::Loaded,
            (Ended::Red, FormSeen::Breaks, _) => Self::OnlyRead,
            // It waits for what cannot come; without a twin it may have been slow.
            (Ended::AtALimit, _, Some(Ended::Green)) => Self::NoEnd,
            (Ended::AtALimit, ..) => Self::NotTried,
        }
    }
}

/// How a command ended in one round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ended {
    Green,
    /// A limit ended it: that says neither yes nor no.
    AtALimit,
    Red,
}

/// By which kind of line the changed files were made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormSeen {
    /// Valid text that fails when it is run.
    Runs,
    /// Text that is not taken, in a command that builds exactly what it then runs (`cargo test`).
    BuiltByItsRunner,
    /// Text that any reader may refuse.
    Breaks,
}

/// Both experiments on one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandSeen {
    pub control: ControlSeen,
    pub loading: LoadingSeen,
}

/// Did the change hold anything that a check could load?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Substance {
    /// Code, data, templates or configuration.
    Code,
    /// Documentation, and nothing else.
    OnlyDocumentation,
    /// Nothing that is loaded: lock files, pictures, licences, lists of ignored files.
    NoCode,
}

/// What people said ahead, and where they said it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// The contract's `{none = reason}` or `--accept-unproven`.
    pub unproven: bool,
    /// `--unchecked`.
    pub unchecked: bool,
    /// `--require-control`: less than proven is not enough.
    pub proven_required: bool,
    pub stage: Stage,
    pub label: Label,
}

impl Accepted {
    /// From stage 4 on nobody may do without a control.
    fn unproven(self) -> bool {
        self.unproven && self.stage < Stage::Four
    }

    /// Only a try, which proves no stage, may leave its change unchecked.
    fn unchecked(self) -> bool {
        self.unchecked && self.label == Label::Try && self.stage < Stage::Four
    }
}

/// Why a green run does not pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Doubt {
    /// `change_not_checked`: no command noticed that the change fails to load.
    NotChecked,
    /// `verification_unproven`: of some command nothing shows that it can be red.
    Unproven,
}

/// What the checks of one run are worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Believed {
    pub run: Belief,
    /// In the order of the commands.
    pub commands: Vec<Belief>,
    pub doubts: Vec<Doubt>,
}

/// The belief in one green command. More evidence never makes it less.
pub fn of_command(seen: CommandSeen, substance: Substance) -> Belief {
    if substance != Substance::Code {
        // There was nothing to load: a green suite says only that nothing else broke.
        return Belief::Partly;
    }
    let can_be_red = seen.control >= ControlSeen::OfFormerCommand;
    match (can_be_red, seen.loading) {
        (true, LoadingSeen::Loaded) if seen.control.is_red() => Belief::Proven,
        // It can be red, but nothing shows that its tests, rather than a linter or a compiler
        // beside them, see this change; or the change made it another command; or tests may be gone unseen.
        (true, _) => Belief::Partly,
        (false, LoadingSeen::NoEnd | LoadingSeen::OnlyRead | LoadingSeen::Loaded) => Belief::Partly,
        // What setup does not take says nothing about a command that never was red.
        (false, LoadingSeen::NotTried | LoadingSeen::NotRed | LoadingSeen::OnlyAround) => {
            Belief::None
        }
    }
}

/// The belief in a run whose commands were all green: a command that nothing turns red makes it
/// `none`, one that is proven makes it `proven`, since a linter beside a proven suite takes
/// nothing from it.
pub fn of_run(commands: &[Belief]) -> Belief {
    match (commands.iter().min(), commands.iter().max()) {
        (Some(Belief::Partly | Belief::Proven), Some(most)) => *most,
        _ => Belief::None,
    }
}

/// What a run whose commands were all green is worth, and whether it may pass. `unseen_code` says that
/// some changed code, tried alone, was noticed by nobody: what loads the rest does not answer for it.
pub fn believe(
    commands: &[CommandSeen],
    substance: Substance,
    unseen_code: bool,
    accepted: Accepted,
) -> Believed {
    let each: Vec<Belief> = commands
        .iter()
        .map(|seen| of_command(*seen, substance))
        .collect();
    let run = match (of_run(&each), unseen_code) {
        (Belief::Proven, true) => Belief::Partly,
        (run, _) => run,
    };
    let mut doubts = Vec::new();
    // Who says that nothing has to load the change has said why no command without a control can
    // be red here.
    let by_nothing = |seen: &CommandSeen| {
        of_command(*seen, substance) != Belief::None
            || (seen.control == ControlSeen::NotRun && !seen.loading.noticed())
    };
    let excused = accepted.unproven() || (accepted.unchecked() && commands.iter().all(by_nothing));
    // From stage 4 on an engine works on what somebody approved: less than proven is too little.
    let too_little = match accepted.proven_required || accepted.stage >= Stage::Four {
        true => !run.proves_a_stage(),
        false => run == Belief::None && !excused,
    };
    let noticed = commands.iter().any(|seen| seen.loading.noticed());
    // Who accepts that nothing ever turned any command red has accepted that nobody knows what loads the
    // change; but not, in a try, that it was seen to be loaded by none.
    let nothing = each.iter().all(|belief| *belief == Belief::None) && accepted.unproven();
    let unknown = commands
        .iter()
        .all(|seen| seen.loading == LoadingSeen::NotTried);
    let nothing = nothing && (accepted.label != Label::Try || unknown);
    let excused = nothing || accepted.unchecked();
    if substance == Substance::Code && !noticed && !excused {
        doubts.push(Doubt::NotChecked);
    }
    if too_little {
        doubts.push(Doubt::Unproven);
    }
    Believed {
        run,
        commands: each,
        doubts,
    }
}

#[cfg(test)]
#[path = "belief_tests.rs"]
mod tests;
