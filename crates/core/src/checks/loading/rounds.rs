//! Which changed files are made to fail together, which alone, and for how long that goes on.
//!
//! Together first, because one run decides for all. Only the weightiest files are in it: a changed
//! test, or a configuration that a runner reads, would turn every check red and say nothing about
//! the code beside it.

use super::language::{Nature, is_source_by_name, nature};
use super::named::Named;
use super::{File, Forms, Proves};
use crate::checks::names::test_files::{self, Names};
use crate::run::belief::{CommandSeen, Ended};
use crate::values::paths::TreePath;

/// How much a file says about whether the checks see the change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    Source,
    /// Templates, data, configuration of the program.
    Content,
    /// Tests, what tells a runner how to run them, and programs that a command names: loaded
    /// whatever else is.
    Tests,
    /// What was deleted, and put back: nothing should load it.
    Deleted,
}

/// One changed file that has to be seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub weight: Weight,
    pub forms: Forms,
}

/// A run of the commands where some files fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    pub proves: Proves,
    /// Which candidates.
    pub files: Vec<usize>,
}

/// What this file says, by its name and what stands in it.
pub fn weight(file: File<'_>, named: &Named, put_back: bool) -> Weight {
    let names = Names::Broad;
    if put_back {
        return Weight::Deleted;
    }
    if test_files::is_test_file(names, file.path) || test_files::is_runner_config(names, file.path)
    {
        return Weight::Tests;
    }
    match nature(file.path, file.bytes) {
        Nature::Source(_) if named.by_a_command(file.path) => Weight::Tests,
        Nature::Source(_) => Weight::Source,
        // What a command names is what it looks at, whatever it is.
        _ if named.by_a_command(file.path) => Weight::Source,
        _ => Weight::Content,
    }
}

/// Is it configuration of what runs tests, and no code? That it cannot be read says nothing about what
/// is run.
pub fn tells_how_to_run(path: &TreePath) -> bool {
    test_files::is_runner_config(Names::Broad, path) && !is_source_by_name(path)
}

/// The rounds that decide, in order: first what fails only when it is run, then what fails for
/// whoever reads it. The second is for commands the first did not turn red.
pub fn together(files: &[Candidate]) -> Vec<Round> {
    let Some(weightiest) = files.iter().map(|file| file.weight).min() else {
        return Vec::new();
    };
    let with = |proves: Proves| Round {
        proves,
        files: files
            .iter()
            .enumerate()
            .filter(|(_, file)| file.weight == weightiest)
            .filter(|(_, file)| match proves {
                Proves::Loaded => file.forms.runs.is_some(),
                Proves::Parsed => file.forms.breaks.is_some(),
            })
            .map(|(index, _)| index)
            .collect(),
    };
    [with(Proves::Loaded), with(Proves::Parsed)]
        .into_iter()
        .filter(|round| !round.files.is_empty())
        .collect()
}

/// The commands for which another round could say more: every one while none has noticed, else those
/// that nothing turned red yet.
pub fn again(commands: &[CommandSeen]) -> Vec<usize> {
    let none = !commands.iter().any(|seen| seen.loading.noticed());
    let open = |seen: &CommandSeen| {
        let green = !seen.loading.noticed();
        green && (none || !seen.control.is_red())
    };
    (0..commands.len())
        .filter(|index| commands.get(*index).is_some_and(open))
        .collect()
}

/// Is the harmless twin worth a run for this command? An end by the code of our own lines says by
/// itself that they were run, and so does a runner that tells of a process with that end.
pub fn wants_twin(ended: Ended, exit_code: Option<i32>, said: &str) -> bool {
    match ended {
        Ended::Green => false,
        Ended::AtALimit => true,
        Ended::Red => exit_code != Some(super::LOADED) && !tells_of_our_end(said),
    }
}

/// As node, go, make and npm say how a process of theirs ended.
fn tells_of_our_end(said: &str) -> bool {
    const WORDS: [&str; 5] = [
        "exitCode: ",
        "exit status ",
        "exit code ",
        "Error ",
        "code ",
    ];
    WORDS.iter().any(|word| {
        let whole = format!("{word}{}", super::LOADED);
        said.match_indices(&whole).any(|(at, _)| {
            let after = said.get(at + whole.len()..).unwrap_or_default();
            !after.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

/// The files to be tried one by one, weightiest first. Those of a round that nobody noticed are known
/// already, and so is the only one of a round that somebody did.
pub fn singly(files: &[Candidate], decided: &[(Round, bool)]) -> Vec<usize> {
    let noticed_by = |index: &usize| {
        decided
            .iter()
            .any(|(round, red)| *red && round.files.as_slice() == [*index])
    };
    let any_red = decided.iter().any(|(_, red)| *red);
    let known = |index: &usize| {
        let tried = decided.iter().any(|(round, _)| round.files.contains(index));
        noticed_by(index) || (tried && !any_red)
    };
    let mut order: Vec<usize> = (0..files.len()).filter(|index| !known(index)).collect();
    order.sort_by_key(|index| files.get(*index).map(|file| file.weight));
    order
}

/// What single files may cost where the suite takes less: a copy takes its time, too.
const AT_LEAST_MS: u64 = 3_000;

/// May another file be tried? The time of one run of the suite is what single files may cost.
pub fn goes_on(spent_ms: u64, suite_ms: u64, see_all: bool) -> bool {
    see_all || spent_ms < suite_ms.max(AT_LEAST_MS)
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
