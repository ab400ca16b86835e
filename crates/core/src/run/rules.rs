//! The number of the rules a run is judged by.
//!
//! A bundle that was good stays good: whoever changes what the judge decides from the same facts
//! adds a number here, and the judge asks for it. Chains name their number in `run.started`; a
//! chain that names none was written before there were numbers and is judged by rules 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number as a chain names it. Any number can be read; not every number is known here.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RulesNumber(pub u32);

impl Default for RulesNumber {
    fn default() -> Self {
        Rules::One.number()
    }
}

/// Rules this program can judge by, oldest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rules {
    One,
    /// Judges facts as rules 1 do, and asks more of the bundle around them: every gate, every jail,
    /// the whole page and the end of the run are what contract, chain and report make them
    /// (`verify/whole.rs`).
    Two,
    /// A command that ends with 126 or 127 on the untouched copy as well lacks a program: nothing is
    /// said about the change.
    Three,
    /// The same of a command that ends otherwise, where its last words name a program that is not
    /// there, and those of the untouched copy name it too. And of one that did not find a module,
    /// where a list of dependencies changed: the environment is the one from before.
    /// Tests may have been compared with a baseline that an earlier run made, where it is in the bundle
    /// whole and no test was lost (`verify/relied.rs`).
    Four,
    /// A module that was not found blocks only where the patch adds its name to a list of
    /// dependencies (`checks/missing_module/`), and only a try in a jail relies on an earlier baseline.
    /// What the contract binds of programs is what the plan shows.
    Five,
    /// A green command counts as far as it is believed (`run/belief/`): something must have turned it
    /// red, and some command must have noticed where the change fails when it is loaded. Tests and what
    /// takes over a runner are known by the names people use (`checks/names/`).
    Six,
    /// A runner that reports (`checks/runners/`) and that nobody could hear, or whose failing tests found
    /// no place, is believed less and accuses nobody.
    /// What an owner does in the repository of a contained try is a note (`run/judge/source.rs`).
    /// A patch may be judged again without an engine (`bundle/again.rs`).
    Seven,
    /// One cause, one blocker: what a failed wire or a spent budget explains of how the engine ended is not
    /// raised a second time (`run/judge/engine.rs`).
    /// The run of `fake` that stage 2 compares with may be of before; it is of the same task, containment and
    /// harness (`verify/links/compared.rs`).
    Eight,
    /// The last review of an engine decides: a revision that satisfied the reviewer is no rejection. What an engine
    /// tells of its failure has a cause (`failed_by`): the wire, its own protocol or its own reviewer, each with a
    /// blocker of its own and no second one. Sentences of an engine's failure name it.
    Nine,
    /// What a failed wire or a spent budget explains is also a limit of time after a green patch: an engine that asks again
    /// until its time is up has one cause, however far its work had come.
    Ten,
}

impl Rules {
    pub const ALL: &[Self] = &[
        Self::One,
        Self::Two,
        Self::Three,
        Self::Four,
        Self::Five,
        Self::Six,
        Self::Seven,
        Self::Eight,
        Self::Nine,
        Self::Ten,
    ];
    /// The only rules a new run is sealed with.
    pub const NEWEST: Self = Self::Ten;

    pub fn number(self) -> RulesNumber {
        RulesNumber(match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
            Self::Five => 5,
            Self::Six => 6,
            Self::Seven => 7,
            Self::Eight => 8,
            Self::Nine => 9,
            Self::Ten => 10,
        })
    }

    /// The rules with this number, if this program knows them.
    pub fn of(number: RulesNumber) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|rules| rules.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_up_and_the_newest_is_the_last() {
        for (index, rules) in Rules::ALL.iter().enumerate() {
            assert_eq!(rules.number(), RulesNumber(index as u32 + 1));
            assert_eq!(Rules::of(rules.number()), Some(*rules));
        }
        assert_eq!(Rules::ALL.last(), Some(&Rules::NEWEST));
        assert_eq!(Rules::of(RulesNumber(0)), None);
        assert_eq!(Rules::of(RulesNumber(Rules::ALL.len() as u32 + 1)), None);
        assert_eq!(
            Rules::of(RulesNumber::default()),
            Some(Rules::One),
            "a chain without a number"
        );
    }
}
