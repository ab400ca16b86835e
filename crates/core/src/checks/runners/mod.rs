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
use crate::task::contract::{Contract, Control};
use crate::task::runner::{Found, Recognised, Runner};

/// What the commands of a contract use, found on its baseline. `declared`: the case or somebody's own words
/// say what the control is; then nothing is chosen, and other runners are not listened to.
pub fn settle(contract: &mut Contract, declared: bool, look: &mut Look<'_>) {
    let only = match contract.verification_control {
        Control::Runner(runner) if declared => Some(runner),
        Control::Patch(_) | Control::None(_) if declared => return,
        _ => None,
    };
    let commands = contract.verification_commands.iter();
    let known: Vec<Recognised> = commands
        .map(|command| known(command, only, look).0)
        .collect();
    let mut runners = known.iter().flat_map(Recognised::runners);
    match (only, runners.next()) {
        (None, None) => return,
        (None, Some(first)) => contract.verification_control = Control::Runner(first),
        (Some(_), _) => {}
    }
    contract.recognised = known;
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
        let (without, mut trail) = known(command, None, before);
        let (with, more) = known(command, None, after);
        trail.extend(more);
        // A runner that comes in by the change brings its configuration with it.
        let found: Vec<Found> = was.found.iter().chain(&with.found).cloned().collect();
        if without != with || decides::altered((&trail, &found), changed, before, after) {
            altered.push(command.clone());
        }
    }
    altered
}

fn known(command: &str, only: Option<Runner>, look: &mut Look<'_>) -> (Recognised, Trail) {
    let (mut known, trail) = traced(command, look);
    if let Some(only) = only {
        known.found.retain(|found| found.runner == only);
        if known.found.is_empty() {
            known.found.push(Found::named(only));
        }
    }
    known.control = Some(for_control(command, &known)).filter(|control| {
        control.command != command || !control.drop.is_empty() || !control.left.is_empty()
    });
    (known, trail)
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
