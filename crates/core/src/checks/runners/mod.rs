//! Test runners as data: how a command is known to use one, what it reports, what makes it red.
//!
//! - `recognise/` from the text of a command to its runners, through everything people put before them
//! - `report/` each runner's own report, read into one shape
//! - `decides.rs` what of a repository makes a command another one when it changes
//! - `named.rs` files that come in because a command or a configuration names them
//! - `kits/` what is added so that a runner must turn red, and how its report is asked for
//!
//! Nothing here touches the world: what must be read first is asked for by name. Adding a runner is a name in
//! `task/runner.rs`, a row of options, a reader and a kit (`docs/test-runners.md`).

mod decides;
pub mod kits;
mod named;
pub mod recognise;
pub mod report;

use self::kits::selection::for_control;
use self::recognise::{Look, Trail, traced};
use crate::task::contract::{Contract, Control, Label};
use crate::task::runner::{Found, Recognised, Runner};

/// What the commands of a contract use, found on its baseline. `declared`: the case or somebody's own words
/// say what the control is; then nothing is chosen. A case's author answers for what is not listened to then.
/// In a try nobody's word takes away what is seen: whoever names a patch or another runner would
/// otherwise take every test of the baseline out of the comparison, and still read that it is proven.
pub fn settle(contract: &mut Contract, declared: bool, look: &mut Look<'_>) {
    let is_try = contract.label == Label::Try;
    let said = match (&contract.verification_control, declared) {
        (Control::Runner(runner), true) if is_try => Said::Also(*runner),
        (Control::Runner(runner), true) => Said::Only(*runner),
        (Control::Patch(_), true) if is_try => Said::Nothing,
        (Control::Patch(_) | Control::None(_), true) => return,
        (_, false) => Said::Nothing,
    };
    let commands = contract.verification_commands.iter();
    let mut known: Vec<Recognised> = commands
        .map(|command| known(command, said, look).0)
        .collect();
    let first = known.iter().flat_map(Recognised::runners).next();
    let is_used = |runner| known.iter().any(|one| one.runners().contains(runner));
    match (&contract.verification_control, first) {
        (Control::Runner(said), _) if declared && (!is_try || is_used(said)) => {}
        (_, None) => return,
        // The patch makes them red, as they are written.
        (Control::Patch(_), Some(_)) => known.iter_mut().for_each(|one| one.control = None),
        (_, Some(first)) => contract.verification_control = Control::Runner(first),
    }
    contract.recognised = known;
}

/// What was said of the runner of a command.
#[derive(Clone, Copy)]
enum Said {
    Nothing,
    /// It is this one, and no other.
    Only(Runner),
    /// It is this one, beside those that are seen.
    Also(Runner),
}

/// Commands of a contract that the change made into others: they are recognised otherwise now, or a file they
/// were followed through, or the configuration of their runners, says something else. `before` and `after` are
/// the trees without and with the change of the paths in `changed`.
pub fn otherwise(
    contract: &Contract,
    changed: &[String],
    before: &mut Look<'_>,
    after: &mut Look<'_>,
) -> Vec<String> {
    let pairs = contract
        .verification_commands
        .iter()
        .zip(&contract.recognised);
    let mut altered = Vec::new();
    for (command, was) in pairs {
        let (without, mut trail) = known(command, Said::Nothing, before);
        let (with, more) = known(command, Said::Nothing, after);
        trail.extend(more);
        // A runner that comes in by the change brings its configuration with it.
        let found: Vec<Found> = was.found.iter().chain(&with.found).cloned().collect();
        if without != with || decides::altered((&trail, &found), changed, before, after) {
            altered.push(command.clone());
        }
    }
    altered
}

fn known(command: &str, said: Said, look: &mut Look<'_>) -> (Recognised, Trail) {
    let (mut known, trail) = traced(command, look);
    let runner = match said {
        Said::Nothing => None,
        Said::Only(runner) => {
            known.found.retain(|found| found.runner == runner);
            Some(runner)
        }
        Said::Also(runner) => Some(runner),
    };
    // These two hear each other's tests, and have failing ones for the same files.
    let python = |runner: Runner| matches!(runner, Runner::Unittest | Runner::Pytest);
    let stands_for = |seen: Runner, said: Runner| seen == said || python(seen) && python(said);
    let mut seen = known.found.iter().map(|found| found.runner);
    let named = runner.filter(|said| !seen.any(|seen| stands_for(seen, *said)));
    known.found.extend(named.map(Found::named));
    known.control = Some(for_control(command, &known)).filter(|control| {
        control.command != command || !control.drop.is_empty() || !control.left.is_empty()
    });
    (known, trail)
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
