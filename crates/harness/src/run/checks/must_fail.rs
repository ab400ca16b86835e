//! The must-fail control: the contract's commands in a copy where they have to be red.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use cto_core::bundle::report::timings::Step;
use cto_core::checks::control::{Edit, Kit, control_kit};
use cto_core::checks::test_log::Section;
use cto_core::run::event::ControlRun;
use cto_core::task::contract::Control;
use cto_core::values::paths::TreePath;

use super::copies::ReadyCopy;
use super::session::Session;
use crate::run::execution::{Stop, random};
use crate::workspace::on_disk;

impl Session<'_> {
    /// The same commands where they must be red.
    pub fn control(&mut self) -> Result<ControlRun, Stop> {
        let plan = self.execution.plan;
        if let Control::None(reason) = &plan.control {
            return Ok(ControlRun::None {
                reason: reason.clone(),
            });
        }
        let since = Instant::now();
        let mut added = None;
        let what = self.visible(Section::Control);
        let done = self.settled(&what, &mut |session| {
            let mut ready = match session.prepared("control")? {
                Ok(ready) => ready,
                mismatch => return Ok(mismatch),
            };
            session
                .log
                .say("== must-fail control: the same commands, where they must be red ==");
            Ok(match session.spoil(&mut ready)? {
                Ok(kit) => {
                    added = kit;
                    Ok(ready)
                }
                Err(reason) => Err(reason),
            })
        })?;
        self.times.push((Step::Control, since.elapsed()));
        let ran = match done {
            Ok((_, ran)) => ran,
            Err(reason) => return Ok(ControlRun::CouldNotRun { reason }),
        };
        let count = added.map(|kit| kit.count(&ran.tests, &ran.recent.text()));
        Ok(ControlRun::Ran {
            checks: ran.checks,
            failures_added: count.map(|count| count.expected),
            failures_reported: count.and_then(|count| count.reported),
        })
    }

    /// Makes a copy one in which the commands must be red; what was added, where tests were.
    fn spoil(&self, ready: &mut ReadyCopy) -> Result<Result<Option<Kit>, String>, Stop> {
        match &self.execution.plan.control {
            Control::Runner(runner) => {
                let nonce = random(10)?;
                let commands = &self.execution.plan.contract.verification_commands;
                let mut kit = control_kit(*runner, &nonce, &self.present(), commands);
                let mut changes = self.measured.changes.iter();
                if !changes.any(|change| change.path.as_bytes().ends_with(b"conftest.py")) {
                    kit = kit.with_the_projects_own_choice();
                }
                Ok(match add_failures(ready, &kit) {
                    Ok(()) => Ok(Some(kit)),
                    Err(error) => Err(format!("failing tests cannot be added: {error}")),
                })
            }
            Control::Patch(patch) => {
                let file = self.execution.work.join("control.patch");
                let beside = &self.execution.case.beside;
                let text = beside.get(&patch.file).map(Vec::as_slice);
                std::fs::write(&file, text.unwrap_or_default()).map_err(Stop::Workspace)?;
                let repo = self.workspace.repo();
                let applied = match repo.touched(&file) {
                    Ok(paths) => {
                        let applied = ready.copy.edit(&paths, |dir| repo.apply(dir, &[&file]));
                        ready.edited.extend(paths);
                        applied.map_err(Stop::Workspace)?
                    }
                    Err(error) => Err(error),
                };
                Ok(applied
                    .map(|()| None)
                    .map_err(|error| format!("the control patch does not apply: {error}")))
            }
            Control::None(reason) => Ok(Err(reason.clone())),
        }
    }

    /// Files of the baseline that are still there.
    fn present(&self) -> Vec<TreePath> {
        self.workspace
            .baseline()
            .keys()
            .filter(|path| self.measured.tree.contains_key(*path))
            .cloned()
            .collect()
    }
}

fn add_failures(ready: &mut ReadyCopy, kit: &Kit) -> io::Result<()> {
    let path = |edit: &Edit| match edit {
        Edit::Create { path, .. } => TreePath::new(path.as_bytes()),
        Edit::Append { path, .. } => path.clone(),
    };
    let paths: Vec<TreePath> = kit.edits.iter().map(path).collect();
    let added = ready.copy.edit(&paths, |dir| add(dir, &kit.edits));
    ready.edited.extend(paths);
    added.flatten()
}

/// The copy holds what the engine made: no link in it is followed.
fn add(copy: &Path, edits: &[Edit]) -> io::Result<()> {
    for edit in edits {
        match edit {
            Edit::Create { path, text } => {
                let place = copy.join(path);
                on_disk::make_parent(copy, &place)?;
                OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(place)?
                    .write_all(text.as_bytes())?;
            }
            Edit::Append { path, text } => {
                let place = on_disk::locate(copy, path);
                on_disk::make_parent(copy, &place)?;
                let no_link = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
                let mut file = OpenOptions::new()
                    .append(true)
                    .custom_flags(no_link.bits() as i32)
                    .open(place)?;
                file.write_all(text.as_bytes())?;
            }
        }
    }
    Ok(())
}
