//! The loading control as the chain tells it, against contract and measured changes: every changed file
//! is there, none is called documentation that is not, and what decides is what must.

use super::{Documents, Verifier};
use crate::bundle;
use crate::checks::loading::language::{Language, Nature, nature};
use crate::checks::loading::named::Named;
use crate::checks::loading::rounds::{self, Weight};
use crate::checks::loading::{File, How, Proves, not_code};
use crate::run::event::VerificationCompleted;
use crate::run::facts::Folded;
use crate::run::loaded::{LoadingFile, LoadingRound, LoadingRun};
use crate::run::rules::Rules;
use crate::task::contract::Contract;
use crate::values::paths::TreePath;
use crate::workspace::change::{Change, ChangeKind};
use crate::workspace::tree::FileKind;

impl Verifier<'_> {
    pub(super) fn loading(
        &mut self,
        rules: Rules,
        documents: &Documents,
        folded: &Folded,
        done: &VerificationCompleted,
    ) {
        // Rules of before ask nothing of it.
        let Some(run) = done.loading.as_ref().filter(|_| rules >= Rules::Six) else {
            return;
        };
        let changes = folded.facts.diff.as_ref().map(|diff| &diff.changes);
        let wrong = match (documents.contract.valid(), changes) {
            (Some(contract), Some(changes)) => wrong(contract, changes, run),
            _ => Some("has a loading control without a contract or a change"),
        };
        if let Some(what) = wrong {
            let what = format!("verification.completed {what}");
            self.problem("judgement", bundle::EVENTS, what);
        }
    }
}

/// The first thing that cannot have been so.
fn wrong(contract: &Contract, changes: &[Change], run: &LoadingRun) -> Option<&'static str> {
    let of_change = |(file, change): (&LoadingFile, &Change)| {
        file.path == change.path
            && file.put_back == (change.kind == ChangeKind::Deleted)
            && file.tells_how_to_run == rounds::tells_how_to_run(&file.path)
    };
    if run.files.len() != changes.len() || !run.files.iter().zip(changes).all(of_change) {
        return Some("does not name the changed files in its loading control");
    }
    let hidden = contract.hidden_verification.commands.iter();
    let shown = contract.setup.iter().chain(&contract.verification_commands);
    let commands = shown.chain(hidden).map(String::as_str);
    // Build files are not in a bundle: they can only make more of the change code.
    let named = Named::by(commands, []);
    let excused = |file: &LoadingFile| {
        file.not_code.is_none() || file.not_code == not_code::not_code(&file.path, &named)
    };
    if !run.files.iter().all(excused) {
        return Some("calls a changed file documentation that is not");
    }
    let substance = not_code::substance(run.files.iter().map(|file| file.not_code));
    if run.substance != substance {
        return Some("does not say what the change is made of");
    }
    wrong_rounds(contract, run)
        .or_else(|| wrong_order(run))
        .or_else(|| wrong_choice(run, &named))
}

/// Once what fails when it is run, then once what nobody can read, each followed by its twin at most;
/// files alone come last, each once, and never the one of which all is known.
fn wrong_order(run: &LoadingRun) -> Option<&'static str> {
    let place = |round: &LoadingRound| match (round.single, round.proves) {
        (false, Proves::Loaded) => 2,
        (false, Proves::Parsed) => 4,
        (true, _) => 6,
    };
    let places = run
        .rounds
        .iter()
        .map(|round| place(round) + u8::from(round.harmless));
    let in_order = places
        .clone()
        .zip(places.skip(1))
        .all(|(one, next)| one < next || (one == 6 && next == 6));
    let mut twins = run.rounds.iter().filter(|round| round.harmless);
    let of_another = twins.any(|twin| {
        let mut deciding = run.rounds.iter().filter(|round| round.decides());
        !deciding.any(|round| round.proves == twin.proves && round.files == twin.files)
    });
    let alone = run.rounds.iter().filter(|round| round.single);
    let known = |round: &&LoadingRound| {
        let mut deciding = run.rounds.iter().filter(|round| round.decides());
        deciding.any(|decided| decided.files == round.files && decided.is_red())
    };
    let mut paths: Vec<&TreePath> = alone.clone().flat_map(|round| &round.files).collect();
    let all = paths.len();
    paths.sort();
    paths.dedup();
    (!in_order || of_another || alone.clone().any(|round| known(&round)) || paths.len() != all)
        .then_some("has rounds of a loading control that do not follow from each other")
}

/// Every round ran commands of the contract on files that one has to see; the first ran all of them.
fn wrong_rounds(contract: &Contract, run: &LoadingRun) -> Option<&'static str> {
    let commands = &contract.verification_commands;
    let changed = |path: &TreePath| run.files.iter().any(|file| file.path == *path);
    for (index, round) in run.rounds.iter().enumerate() {
        let whole = || {
            let ran = round.checks.iter().map(|check| &check.command);
            round.setup_failed.is_some() || ran.eq(commands.iter())
        };
        if round.files.is_empty()
            || !round.files.iter().all(changed)
            || (round.single && round.files.len() != 1)
        {
            return Some("has a loading control on files that did not change");
        }
        let known = |command: &String| commands.contains(command);
        if !round.checks.iter().all(|check| known(&check.command)) || (index == 0 && !whole()) {
            return Some("has a loading control that did not run the contract's commands");
        }
        let told = |setup: &String| contract.setup.contains(setup);
        if !round.setup_failed.iter().all(told) {
            return Some("has a loading control whose setup is not the contract's");
        }
    }
    None
}

/// Which form of the file its kind has: one that fails when it is run, or only one that nobody can read.
fn has_form(file: &LoadingFile, proves: Proves) -> bool {
    match (file.how, proves) {
        (Some(How::EndsItsProcess), _) => true,
        (Some(How::DoesNotCompile | How::BrokenLine | How::PointsNowhere), Proves::Parsed) => true,
        (Some(How::Emptied | How::Filled | How::FailingExample), Proves::Loaded) => true,
        (Some(How::Emptied), Proves::Parsed) => nature(&file.path, b"x\n") == Nature::OtherText,
        _ => false,
    }
}

/// Does its name say that it cannot be made to fail in this way? Content is not in a bundle, and may
/// say more.
fn cannot_be(file: &LoadingFile) -> bool {
    let by_name = nature(&file.path, b"x\n");
    let never_run = match by_name {
        Nature::Configuration => true,
        Nature::Source(language) => matches!(
            language,
            Language::Rust | Language::Header | Language::Directive | Language::Other
        ),
        Nature::Template | Nature::Data | Nature::Prose | Nature::OtherText => false,
    };
    never_run && file.how == Some(How::EndsItsProcess)
}

/// What decides is the weightiest of the change, all of it, in a form its language has.
fn wrong_choice(run: &LoadingRun, named: &Named) -> Option<&'static str> {
    let due = || run.files.iter().filter(|file| file.not_code.is_none());
    let of = |path: &TreePath| run.files.iter().find(|file| file.path == *path);
    let proven = |round: &LoadingRound| {
        let mut files = round.files.iter().map(of);
        files.all(|file| file.is_some_and(|file| has_form(file, round.proves)))
    };
    if due().any(cannot_be) || !run.rounds.iter().all(proven) {
        return Some("proves by its loading control what a file of its kind cannot");
    }
    // What stands in it is not in a bundle: of code, its name and how it was made to fail are enough.
    let by_name = |file: &LoadingFile| {
        let made = matches!(file.how, Some(How::EndsItsProcess | How::DoesNotCompile));
        let bytes: &[u8] = match made {
            true => b"#!/bin/sh\n<?php\n",
            false => b"x\n",
        };
        let of_name = File {
            path: &file.path,
            kind: FileKind::Regular,
            bytes,
        };
        rounds::weight(of_name, named, file.put_back)
    };
    // Only code is made to fail like this; tests are none, nor is what was deleted.
    let is_code = |file: &&LoadingFile| {
        let made = matches!(file.how, Some(How::EndsItsProcess | How::DoesNotCompile));
        made && by_name(file) < Weight::Tests
    };
    let code: Vec<&LoadingFile> = due().filter(is_code).collect();
    let mut deciding = run.rounds.iter().filter(|round| round.decides());
    let first = deciding.clone().next();
    let left_out = |round: &LoadingRound| {
        let tried = code.iter().filter(|file| has_form(file, round.proves));
        tried
            .into_iter()
            .any(|file| !round.files.contains(&file.path))
    };
    if first.is_some_and(left_out) {
        return Some("leaves changed code out of what decides in its loading control");
    }
    let lighter = |path: &TreePath| match of(path).map(by_name) {
        Some(Weight::Source) => false,
        Some(Weight::Content) => nature(path, b"x\n") != Nature::OtherText,
        Some(Weight::Tests | Weight::Deleted) | None => true,
    };
    let decided_by_less = deciding.any(|round| round.files.iter().any(lighter));
    (!code.is_empty() && decided_by_less)
        .then_some("lets something else than changed code decide in its loading control")
}

#[cfg(test)]
mod tests;
