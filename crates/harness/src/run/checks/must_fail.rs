//! The must-fail control: the contract's commands in a copy where they have to be red.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use cto_core::bundle::report::timings::Step;
use cto_core::checks::control::{Count, Edit, Kit, control_kits, wants_text};
use cto_core::checks::test_log::Section;
use cto_core::run::checked::ControlHeard;
use cto_core::run::event::ControlRun;
use cto_core::task::contract::Control;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::FileKind;

use super::copies::ReadyCopy;
use super::session::Session;
use crate::run::execution::{Stop, random};
use crate::workspace::of_run::Contents;
use crate::workspace::on_disk;

/// What became of a copy in which the commands must be red.
enum Spoiled {
    /// With what was added, where tests were.
    Done(Vec<Kit>),
    /// There is nowhere to put failing tests.
    NotPlaced(String),
    Failed(String),
}

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
        let mut added = Vec::new();
        let mut not_placed = None;
        let commands = plan.contract.control_commands();
        let what = self.visible_of(Section::Control, &commands);
        let done = self.settled(&what, &mut |session| {
            let mut ready = match session.prepared("control")? {
                Ok(ready) => ready,
                mismatch => return Ok(mismatch),
            };
            session
                .log
                .say("== must-fail control: the same commands, where they must be red ==");
            Ok(match session.spoil(&mut ready)? {
                Spoiled::Done(kits) => {
                    added = kits;
                    Ok(ready)
                }
                Spoiled::NotPlaced(reason) => {
                    not_placed = Some(reason.clone());
                    Err(reason)
                }
                Spoiled::Failed(reason) => Err(reason),
            })
        })?;
        self.times.push((Step::Control, since.elapsed()));
        let ran = match done {
            Ok((ready, ran)) => {
                ready.let_go(self.execution.spent);
                ran
            }
            Err(reason) if not_placed.is_some() => return Ok(ControlRun::None { reason }),
            Err(reason) => return Ok(ControlRun::CouldNotRun { reason }),
        };
        let output = ran.recent.text();
        let counts = added.iter().map(|kit| {
            let shares = plan.contract.shares_a_command(kit.runner());
            (kit.count(&ran.tests, &output), shares)
        });
        let count = Count::sum(counts);
        let heard = ran.tests.iter().map(|heard| ControlHeard {
            named: !heard.ids.is_empty(),
            reported: heard.runs.came_to_their_end(),
        });
        Ok(ControlRun::Ran {
            heard: heard.collect(),
            checks: ran.checks,
            failures_added: count.map(|count| count.expected),
            failures_reported: count.and_then(|count| count.reported),
        })
    }

    /// Makes a copy one in which the commands must be red.
    fn spoil(&self, ready: &mut ReadyCopy) -> Result<Spoiled, Stop> {
        match &self.execution.plan.control {
            Control::Runner(_) => self.add_failing_tests(ready),
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
                Ok(match applied {
                    Ok(()) => Spoiled::Done(Vec::new()),
                    Err(error) => {
                        Spoiled::Failed(format!("the control patch does not apply: {error}"))
                    }
                })
            }
            Control::None(reason) => Ok(Spoiled::Failed(reason.clone())),
        }
    }

    /// Failing tests for every runner that is listened to.
    fn add_failing_tests(&self, ready: &mut ReadyCopy) -> Result<Spoiled, Stop> {
        let contract = &self.execution.plan.contract;
        let (nonce, present) = (random(32)?, self.present());
        let wanted = |path: &TreePath| wants_text(contract, path);
        let texts = match present.iter().any(wanted) {
            true => self.workspace.contents(Some(self.measured), &wanted)?,
            false => Contents::new(),
        };
        // A link leads to a file that has its own place; what is new in the tree is the engine's.
        let texts: BTreeMap<TreePath, String> = texts
            .into_iter()
            .filter(|(path, (kind, _))| *kind != FileKind::Symlink && present.contains(path))
            .filter_map(|(path, (_, bytes))| Some((path, String::from_utf8(bytes).ok()?)))
            .collect();
        let kits = control_kits(contract, &nonce, &present, &texts);
        let mut kits: Vec<Kit> = kits.into_iter().flatten().collect();
        if kits.is_empty() {
            let why = "no test file was found to put failing tests into";
            return Ok(Spoiled::NotPlaced(why.to_owned()));
        }
        let mut changes = self.measured.changes.iter();
        if !changes.any(|change| change.path.as_bytes().ends_with(b"conftest.py")) {
            let own = Kit::with_the_projects_own_choice;
            kits = kits.into_iter().map(own).collect();
        }
        for kit in &kits {
            if let Err(error) = add_failures(ready, kit) {
                let why = format!("failing tests cannot be added: {error}");
                return Ok(Spoiled::Failed(why));
            }
        }
        Ok(Spoiled::Done(kits))
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
