//! What was seen of each command and of each changed file, from the event alone: the judge, the
//! report and every verifier ask here.

use super::words::{FileSeen, FilesSeen};
use super::{
    Accepted, Believed, CommandSeen, ControlSeen, FormSeen, LoadingSeen, Substance, believe,
};
use crate::run::event::{ControlRun, VerificationCompleted};
use crate::run::loaded::{How, LoadingFile, LoadingRound, LoadingRun, Proves};
use crate::task::contract::{Contract, Control, Recognised, Runner};
use crate::task::program::is_plain_runner;
use crate::values::paths::TreePath;

/// What a red command shows, beside what it ran: a runner that builds exactly what it then runs
/// cannot have left out what it built. Examples and benches are built by `cargo test`, and not run.
fn form_seen(round: &LoadingRound, runs_what_it_builds: bool) -> FormSeen {
    let not_run = |path: &TreePath| {
        let mut parts = path.as_bytes().split(|byte| *byte == b'/');
        parts.any(|part| part == b"examples" || part == b"benches")
    };
    let runs_it = runs_what_it_builds && !round.files.iter().all(not_run);
    match (round.proves, runs_it) {
        (Proves::Loaded, _) => FormSeen::Runs,
        (Proves::Parsed, true) => FormSeen::BuiltByItsRunner,
        (Proves::Parsed, false) => FormSeen::Breaks,
    }
}

/// Does a command start cargo's tests, and nothing beside them? By what it was recognised to do, else by
/// its plain words.
pub fn runs_what_it_builds(contract: &Contract, index: usize) -> bool {
    let command = contract.verification_commands.get(index);
    match contract.recognised.get(index) {
        Some(known) => known.is_only(Runner::Cargo),
        None => {
            runner(contract) == Some(Runner::Cargo) && command.is_some_and(|c| is_plain_runner(c))
        }
    }
}

/// Both experiments on every command that the contract shows, in its order. What is absent was not
/// tried.
pub fn commands(contract: &Contract, done: &VerificationCompleted) -> Vec<CommandSeen> {
    let all = contract.verification_commands.iter().enumerate();
    all.map(|(index, command)| {
        let loading = done.loading.as_ref().map_or(LoadingSeen::NotTried, |run| {
            run.seen(command, runs_what_it_builds(contract, index))
        });
        let control = match control(contract, done, index) {
            red if red.is_red() && done.recognised_otherwise.contains(command) => {
                ControlSeen::OfFormerCommand
            }
            red if red.is_red() && stopped_early(contract, done, index) => {
                ControlSeen::StoppedEarly
            }
            seen => seen,
        };
        CommandSeen { control, loading }
    })
    .collect()
}

/// Was a command red on the baseline, with an early stop that nothing could lift? A baseline that was relied
/// on was green.
fn stopped_early(contract: &Contract, done: &VerificationCompleted, index: usize) -> bool {
    let known = contract.recognised.get(index);
    let ran = done.baseline_checks.get(index);
    known.is_some_and(Recognised::may_hide_tests) && ran.is_some_and(|check| !check.end.succeeded())
}

/// What a run whose commands were all green is worth.
pub fn of_run(contract: &Contract, done: &VerificationCompleted) -> Believed {
    let accepted = Accepted {
        unproven: contract.reasons.accept_unproven.is_some(),
        unchecked: contract.reasons.unchecked.is_some(),
        proven_required: contract.reasons.require_control,
        stage: contract.lane.stage,
        label: contract.label,
    };
    let shown = contract.verification_commands.len();
    let run = done.loading.as_ref();
    let unseen_code = run.is_some_and(|run| run.has_unseen_code(shown));
    let commands = commands(contract, done);
    believe(&commands, substance(done), unseen_code, accepted)
}

/// Until it was looked at, a change is code.
pub fn substance(done: &VerificationCompleted) -> Substance {
    let run = done.loading.as_ref();
    run.map_or(Substance::Code, |run| run.substance)
}

fn runner(contract: &Contract) -> Option<Runner> {
    match contract.verification_control {
        Control::Runner(runner) => Some(runner),
        Control::Patch(_) | Control::None(_) => None,
    }
}

fn control(contract: &Contract, done: &VerificationCompleted, index: usize) -> ControlSeen {
    let Some(ControlRun::Ran {
        checks,
        failures_added,
        failures_reported,
        heard,
    }) = &done.control
    else {
        return ControlSeen::NotRun;
    };
    // What silences one failing test may silence another.
    let all_counted = failures_added
        .is_none_or(|added| failures_reported.is_some_and(|reported| reported >= added));
    let code = checks.get(index).and_then(|check| check.end.exit_code());
    match (&contract.verification_control, code) {
        (Control::None(_), _) => ControlSeen::NotRun,
        (_, None | Some(0)) => ControlSeen::NotRed,
        _ if !all_counted => ControlSeen::NotRed,
        (Control::Patch(_), Some(_)) => ControlSeen::RedByPatch,
        // Its selection was taken off for the control, and selects nothing.
        (Control::Runner(_), Some(_))
            if heard.get(index).is_some_and(|heard| heard.named)
                && (done.tests.as_ref())
                    .is_some_and(|tests| tests.none_passed.contains(&index)) =>
        {
            ControlSeen::OfOtherTests
        }
        (Control::Runner(_), Some(_)) => ControlSeen::RedByFailingTests,
    }
}

impl LoadingRun {
    /// What became of one command, by the rounds that decide.
    pub fn seen(&self, command: &str, runs_what_it_builds: bool) -> LoadingSeen {
        let of_round = |round: &LoadingRound| {
            let prepared = round.setup_failed.is_none();
            let Some(ended) = round.ended(command) else {
                return match prepared {
                    true => LoadingSeen::NotTried,
                    false => LoadingSeen::OnlyAround,
                };
            };
            let twin = self.twin(round).and_then(|twin| twin.ended(command));
            let tells_how = |path: &TreePath| {
                let mut files = self.files.iter();
                files.any(|file| file.path == *path && file.tells_how_to_run)
            };
            let starts_it = round.files.iter().all(tells_how);
            match LoadingSeen::of(ended, form_seen(round, runs_what_it_builds), twin) {
                LoadingSeen::NotTried | LoadingSeen::NotRed if !prepared => LoadingSeen::OnlyAround,
                // `make` that cannot read its Makefile says nothing about what the rules there do.
                LoadingSeen::OnlyRead if starts_it => LoadingSeen::OnlyAround,
                seen => seen,
            }
        };
        let deciding = self.rounds.iter().filter(|round| round.decides());
        deciding
            .map(of_round)
            .max()
            .unwrap_or(LoadingSeen::NotTried)
    }

    fn twin(&self, of: &LoadingRound) -> Option<&LoadingRound> {
        let same = |round: &&LoadingRound| round.harmless && round.files == of.files;
        self.rounds.iter().find(same)
    }

    /// What the checks made of every changed file that one has to see. That nobody notices what was
    /// deleted is as it should be, where anything else changed.
    pub fn files_seen(&self, commands: usize) -> FilesSeen {
        let due = || self.files.iter().filter(|file| file.not_code.is_none());
        let stays = due().any(|file| !file.put_back);
        let counted = due().filter(|file| !(stays && file.put_back));
        FilesSeen::of(counted.map(|file| (&file.path, self.file_seen(&file.path, commands))))
    }

    /// Was changed code tried alone that nobody noticed?
    fn has_unseen_code(&self, commands: usize) -> bool {
        let is_code = |file: &&LoadingFile| {
            let made = matches!(file.how, Some(How::EndsItsProcess | How::DoesNotCompile));
            made && file.not_code.is_none() && !file.put_back
        };
        let mut code = self.files.iter().filter(is_code);
        code.any(|file| self.file_seen(&file.path, commands) == FileSeen::NotNoticed)
    }

    pub fn file_seen(&self, path: &TreePath, commands: usize) -> FileSeen {
        let with = |round: &&LoadingRound| round.files.contains(path);
        if let Some(alone) = self.rounds.iter().filter(with).find(|round| round.single) {
            let whole = alone.checks.len() >= commands && !alone.is_at_a_limit();
            return match (alone.is_red(), whole) {
                (true, _) => FileSeen::Noticed,
                (false, true) => FileSeen::NotNoticed,
                (false, false) => FileSeen::NotTried,
            };
        }
        let deciding = || self.rounds.iter().filter(|round| round.decides());
        let is_only = |round: &LoadingRound| round.files.as_slice() == std::slice::from_ref(path);
        let waited = |round: &LoadingRound| {
            let twin = self.twin(round);
            round.is_at_a_limit() && twin.is_some_and(|twin| !twin.is_at_a_limit())
        };
        let noticed = |round: &LoadingRound| round.is_red() || waited(round);
        if deciding().any(|round| is_only(round) && noticed(round)) {
            return FileSeen::Noticed;
        }
        let tried = deciding().any(|round| round.files.contains(path));
        match tried && !deciding().any(|round| round.is_red() || round.is_at_a_limit()) {
            true => FileSeen::NotNoticed,
            false => FileSeen::NotTried,
        }
    }
}

#[cfg(test)]
#[path = "seen_tests.rs"]
mod tests;
