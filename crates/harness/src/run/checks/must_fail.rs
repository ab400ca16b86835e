//! The must-fail control: the contract's commands in a copy where they have to be red.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cto_core::checks::control::{self, Edit};
use cto_core::checks::test_log::Section;
use cto_core::run::event::ControlRun;
use cto_core::task::contract::{Control, Runner};
use cto_core::values::paths::TreePath;

use super::session::{Ran, Session};
use crate::run::execution::{Stop, random};
use crate::workspace::on_disk;
use crate::workspace::private_copy::PrivateCopy;

impl Session<'_> {
    /// The same commands where they must be red.
    pub fn control(&mut self) -> Result<ControlRun, Stop> {
        let plan = self.execution.plan;
        let copy = match &plan.control {
            Control::None(reason) => {
                return Ok(ControlRun::None {
                    reason: reason.clone(),
                });
            }
            Control::Runner(_) | Control::Patch(_) => match self.prepared("control")? {
                Ok(copy) => copy,
                Err(reason) => return Ok(ControlRun::CouldNotRun { reason }),
            },
        };
        self.log
            .say("== must-fail control: the same commands, where they must be red ==");
        let added = match &plan.control {
            Control::Runner(runner) => {
                let nonce = random(10)?;
                if let Err(error) = self.add_failures(&copy, *runner, &nonce) {
                    return Ok(ControlRun::CouldNotRun {
                        reason: format!("failing tests cannot be added: {error}"),
                    });
                }
                Some((*runner, nonce))
            }
            Control::Patch(patch) => {
                let file = self.execution.work.join("control.patch");
                let text = self
                    .execution
                    .case
                    .beside
                    .get(&patch.file)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                std::fs::write(&file, text).map_err(Stop::Workspace)?;
                let repo = self.workspace.repo();
                let apply = |paths: Vec<TreePath>| {
                    copy.edit(&paths, |dir| repo.apply(dir, &[&file]))
                        .map_err(Stop::Workspace)
                };
                let applied = match repo.touched(&file) {
                    Ok(paths) => apply(paths)?,
                    Err(error) => Err(error),
                };
                if let Err(error) = applied {
                    return Ok(ControlRun::CouldNotRun {
                        reason: format!("the control patch does not apply: {error}"),
                    });
                }
                None
            }
            Control::None(reason) => {
                return Ok(ControlRun::None {
                    reason: reason.clone(),
                });
            }
        };
        let Ran { checks, recent, .. } = self.commands(&copy, &self.visible(Section::Control))?;
        let output = recent.text();
        let Some((runner, nonce)) = added else {
            return Ok(ControlRun::Ran {
                checks,
                failures_added: None,
                failures_reported: None,
            });
        };
        Ok(ControlRun::Ran {
            checks,
            failures_added: Some(control::failures_expected(
                runner,
                &nonce,
                &self.present(),
                &output,
            )),
            failures_reported: control::failures_reported(runner, &output),
        })
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

    /// Adds the failing tests, named after `nonce`.
    fn add_failures(&self, copy: &PrivateCopy, runner: Runner, nonce: &str) -> io::Result<()> {
        let kit = control::control_kit(runner, nonce, &self.present());
        let path = |edit: &Edit| match edit {
            Edit::Create { path, .. } => TreePath::new(path.as_bytes()),
            Edit::Append { path, .. } => path.clone(),
        };
        let paths: Vec<TreePath> = kit.edits.iter().map(path).collect();
        copy.edit(&paths, |dir| add(dir, &kit.edits)).flatten()
    }
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
