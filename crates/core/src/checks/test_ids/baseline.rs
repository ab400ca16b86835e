//! The commands as they run on a baseline, where they name the tests that are there.
//!
//! That run decides nothing and may be red; a runner that stops at the first failure would leave the tests
//! behind it without a name, and nobody would miss them. So every early stop is left out: those in the text
//! of a command here, those in a script or in configuration by the kit that hears the runner
//! (`runners/kits/entry.rs`). What is selected stays selected. Where neither can, the command is believed less
//! (`Recognised::may_hide_tests`).

use crate::checks::runners::kits::selection::without;
use crate::task::runner::{Recognised, Runner};

/// The contract's commands on its baseline, in their order. Contracts before runners were recognised have
/// none: then only cargo goes on.
pub fn on_the_baseline(
    runner: Runner,
    commands: &[String],
    recognised: &[Recognised],
) -> Vec<String> {
    let all = commands.iter().enumerate();
    all.map(|(index, command)| one(runner, command, recognised.get(index)))
        .collect()
}

fn one(runner: Runner, command: &str, known: Option<&Recognised>) -> String {
    let found = known.map_or(&[][..], |known| known.found.as_slice());
    let stops = found.iter().flat_map(|found| &found.said.early_stop);
    let places = stops.filter_map(|flag| flag.place).collect();
    let command = without(command, places);
    match runner == Runner::Cargo || found.iter().any(|found| found.runner == Runner::Cargo) {
        true => cargo_goes_on(command),
        false => command,
    }
}

/// Cargo stops at the first program that is red.
fn cargo_goes_on(command: String) -> String {
    if command.contains("fail-fast") {
        return command;
    }
    for words in ["cargo test", "cargo nextest run"] {
        if let Some((before, after)) = command.split_once(words)
            && (after.is_empty() || after.starts_with([' ', ';', '\n', '&', '|', ')']))
        {
            return format!("{before}{words} --no-fail-fast{after}");
        }
    }
    command
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
