//! Copies for checks, each with environments to which nobody has written, and with times by which no
//! tool takes what it made of other bytes for new. What ran while the owner of an environment
//! changed it does not count.

use std::collections::BTreeSet;

use cto_core::checks::test_log::Section;
use cto_core::containment::guard::Guard;
use cto_core::gate::plan::Environment;
use cto_core::run::not_counted::NotCounted;
use cto_core::values::paths::TreePath;

use super::session::{Commands, Ran, Session};
use crate::host::files;
use crate::host::places::Places;
use crate::run::execution::Stop;
use crate::run::spent::Spent;
use crate::task::cases::FixtureFile;
use crate::workspace::environments::{Laid, Live};
use crate::workspace::on_disk;
use crate::workspace::private_copy::PrivateCopy;
use crate::workspace::stamping;

/// A private copy with its environments, for one command and the setup that prepares it.
pub(super) struct ReadyCopy {
    pub copy: PrivateCopy,
    pub laid: Laid,
    /// It is the result, not the baseline.
    pub is_result: bool,
    /// Nothing ran in it yet.
    is_new: bool,
    /// What was put into it since it was made.
    pub edited: BTreeSet<TreePath>,
    /// What no process in it may change.
    pub protected: Guard,
    /// What the operator's own directories were when its first process was about to start.
    before: Option<Live>,
}

impl ReadyCopy {
    /// Nothing is asked of it any more, and there may be no room for another beside it. What cannot be
    /// removed goes with the run.
    pub fn give_back(self) {
        let written = [self.copy.changed_dir()].into_iter();
        for dir in written.chain(self.laid.uppers) {
            let _ = files::remove_tree(&dir);
        }
    }

    /// The same while the next commands run: there is room.
    pub fn let_go(self, spent: &Spent) {
        let written = [self.copy.changed_dir()].into_iter();
        written
            .chain(self.laid.uppers)
            .for_each(|dir| spent.take(dir));
    }

    /// Puts in the files of checks that the engine never saw.
    pub fn put_hidden(&mut self, hidden: &[FixtureFile]) -> Result<(), String> {
        let paths: Vec<TreePath> = hidden.iter().map(|file| file.path.clone()).collect();
        let put = self
            .copy
            .edit(&paths, |dir| on_disk::lay_out(dir, hidden, true));
        self.edited.extend(paths);
        put.flatten()
            .map_err(|error| format!("hidden checks cannot be put into the copy: {error}\n"))
    }
}

/// How a copy for some commands is made, or why there is none.
pub(super) type MakeCopy<'m, 'a> =
    dyn FnMut(&mut Session<'a>) -> Result<Result<ReadyCopy, String>, Stop> + 'm;

impl<'a> Session<'a> {
    /// A pristine copy with the patch, and then the contract's setup, in the same kind of jail.
    pub fn prepared(&mut self, name: &str) -> Result<Result<ReadyCopy, String>, Stop> {
        if self.execution.untouched {
            return self.untouched();
        }
        let name = self.new_name(name);
        let copy = match self.workspace.pristine(&name, self.measured)? {
            Ok(copy) => copy,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        let mut ready = self.furnished(copy, true)?;
        Ok(match self.set_up(&mut ready)? {
            None => {
                if !self.execution.plan.contract.setup.is_empty() {
                    let written = Self::no_longer(&ready.copy, &self.measured.tree);
                    self.rewritten.by_setup.extend(written);
                }
                Ok(ready)
            }
            Some(failed) => Err(format!("setup failed in the pristine copy: {failed}")),
        })
    }

    /// A copy with environments to which nobody has written.
    pub(super) fn furnished(&self, copy: PrivateCopy, is_result: bool) -> Result<ReadyCopy, Stop> {
        let laid = self
            .workspace
            .lay(&copy, is_result.then_some(self.measured))
            .map_err(Stop::Workspace)?;
        Ok(ReadyCopy {
            copy,
            laid,
            is_result,
            is_new: true,
            edited: BTreeSet::new(),
            protected: Guard::default(),
            before: None,
        })
    }

    pub(super) fn new_name(&mut self, name: &str) -> String {
        self.copies += 1;
        format!("{name}-{}{}", self.part, self.copies)
    }

    /// Makes a copy and runs commands in it. Where the owner of an environment changed it meanwhile,
    /// nothing of that counts: all of it is done again with copies that nobody changes.
    pub fn settled(
        &mut self,
        what: &Commands<'_>,
        make: &mut MakeCopy<'_, 'a>,
    ) -> Result<Result<(ReadyCopy, Ran), String>, Stop> {
        loop {
            self.unsettled = None;
            let done = match make(self)? {
                Ok(ready) if self.unsettled.is_some() => Ok((ready, Ran::default())),
                Ok(mut ready) => {
                    let ran = self.commands(&mut ready, what)?;
                    Ok((ready, ran))
                }
                Err(why) => Err(why),
            };
            let Some(before) = self.unsettled.take() else {
                return Ok(done);
            };
            self.as_planned = false;
            if let Ok((_, ran)) = done {
                let ran = ran.checks.into_iter().zip(ran.numbers);
                self.not_counted
                    .extend(ran.map(|(check, section)| NotCounted { section, check }));
            }
            let places = Places::of(self.execution.env, self.execution.home);
            let notes = self.workspace.environments().settle(&before, &places);
            for note in &notes {
                self.log.say(note);
            }
            self.notes.extend(notes);
        }
    }

    /// Before the first process in a copy: what the operator's directories are, and then the times.
    /// Whatever their owner makes later is seen when the process has ended.
    pub(super) fn about_to_start(&mut self, ready: &mut ReadyCopy) -> Result<(), Stop> {
        if ready.before.is_some() {
            return Ok(());
        }
        let environments = self.workspace.environments();
        let measured = ready.is_result.then_some(self.measured);
        // Once more where another check found out since that an owner changes them.
        let live = loop {
            let live = environments.look_before();
            let young = environments.leave_out_young(stamping::now());
            self.as_planned &= young.is_empty() && self.is_planned(&live);
            self.notes.extend(young);
            if environments.are_still(&ready.laid, &live) {
                break live;
            }
            let laid = self.workspace.lay_again(&ready.copy, &ready.laid, measured);
            ready.laid = laid.map_err(Stop::Workspace)?;
        };
        self.as_planned &= ready.laid.notes.is_empty();
        self.notes.extend(ready.laid.notes.iter().cloned());
        let mut seen = live.clone();
        let judged = stamping::end_of_second(environments.newest_judged());
        seen.newest = seen.newest.max(judged);
        self.workspace.give_git(&ready.copy, measured)?;
        self.workspace
            .stamp(&ready.copy, &ready.laid, measured, &ready.edited, &seen)
            .map_err(Stop::Workspace)?;
        if let Some(measured) = measured.filter(|_| ready.is_new) {
            self.workspace.tell_git(&ready.copy, measured)?;
        }
        (ready.before, ready.is_new) = (Some(live), false);
        Ok(())
    }

    /// Is every directory of the operator's what the plan says it is?
    fn is_planned(&self, live: &Live) -> bool {
        let planned = &self.execution.plan.environments;
        live.states.iter().all(|(path, state)| {
            let is_it = |found: &Environment| found.record.path == *path;
            let found = planned.iter().find(|found| is_it(found));
            state.is_some() && found.is_some_and(|found| found.record.state == *state)
        })
    }

    /// Did an owner change what the processes of this copy saw?
    pub(super) fn has_changed(&mut self, ready: &ReadyCopy) -> bool {
        let before = ready.before.as_ref().filter(|live| !live.states.is_empty());
        // What could not be looked at is like nothing, not even like itself.
        let unseen = |live: &Live| live.states.iter().any(|(_, state)| state.is_none());
        let changed = before
            .filter(|before| unseen(before) || self.workspace.environments().look() != **before);
        self.unsettled = changed.cloned();
        self.unsettled.is_some()
    }

    /// Runs the contract's setup; the command that failed, if one did.
    pub(super) fn set_up(&mut self, ready: &mut ReadyCopy) -> Result<Option<String>, Stop> {
        let setup = &self.execution.plan.contract.setup;
        let done = self.commands(ready, &Commands::of(Section::Setup, setup))?;
        let failed = done.checks.into_iter().find(|check| !check.end.succeeded());
        Ok(failed.map(|check| check.command))
    }

    /// The next command of a set does not see what the one before wrote into environments or did with
    /// git; setup prepares them once more.
    pub(super) fn renew(&mut self, ready: &mut ReadyCopy) -> Result<Option<String>, Stop> {
        let environments = self.workspace.environments();
        if environments.is_empty() {
            // What setup did with git is not done again.
            if self.execution.plan.contract.setup.is_empty() {
                let measured = ready.is_result.then_some(self.measured);
                self.workspace.give_git(&ready.copy, measured)?;
            }
            return Ok(None);
        }
        let measured = ready.is_result.then_some(self.measured);
        ready.laid = self
            .workspace
            .lay_again(&ready.copy, &ready.laid, measured)
            .map_err(Stop::Workspace)?;
        ready.before = None;
        self.set_up(ready)
    }

    /// The baseline alone, and then the contract's setup.
    pub(super) fn untouched(&mut self) -> Result<Result<ReadyCopy, String>, Stop> {
        let name = self.new_name("baseline");
        let mut ready = self.furnished(self.workspace.untouched(&name)?, false)?;
        Ok(match self.set_up(&mut ready)? {
            None => Ok(ready),
            Some(failed) => Err(format!("setup failed on the baseline: {failed}")),
        })
    }
}
