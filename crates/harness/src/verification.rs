//! Verification where the engine never was: pristine copies, the contract's commands, hidden
//! checks, and the must-fail control. The exit code decides, never the output.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use cto_core::blocker::Code;
use cto_core::bundle;
use cto_core::containment::ProcessReport;
use cto_core::contract::{Control, Runner};
use cto_core::control::{self, Edit};
use cto_core::digest::Digest;
use cto_core::event::{Check, CheckKind, ControlRun, Event, ProcessEnd, VerificationCompleted};
use cto_core::judge;
use cto_core::scope::TreePath;
use cto_core::trace::TraceOutcome;
use cto_core::tree;

use crate::evidence::OpenBundle;
use crate::host;
use crate::measure::{Measured, Workspace};
use crate::private_copy::PrivateCopy;
use crate::run::{Execution, Stop, stop_if_cancelled, write_error};
use crate::supervise::{self, Capture, Job, Stream};
use crate::surroundings::{self, Surroundings};
use crate::workspace;

/// What reads every command of a contract, on the host as in a jail.
pub const SHELL: &str = "/bin/sh";

/// Output kept for counting failures.
const RECENT: usize = 1 << 20;

/// Writes a `test.log` that says why there is none, and the event that goes with it.
pub fn record_not_run(bundle: &mut OpenBundle, reason: &str, blockers: Vec<Code>) -> Result<(), Stop> {
    let log = format!("verification was not run: {reason}\n");
    bundle.write(bundle::TEST_LOG, log.as_bytes())?;
    let mut done = VerificationCompleted {
        not_run: Some(reason.to_owned()),
        checks: Vec::new(),
        control: None,
        log_sha256: Digest::of(log.as_bytes()),
        tree: None,
        mismatch: None,
        changed_test_files: Vec::new(),
        blockers,
    };
    if done.blockers.is_empty() {
        done.blockers = judge::verification_codes(bundle.contract.valid(), &bundle.folded().facts.reviews, &done);
    }
    bundle.emit(Event::VerificationCompleted(done))?;
    Ok(())
}

/// Runs everything the contract asks for and emits `verification.completed`.
pub fn run(bundle: &mut OpenBundle, execution: &Execution<'_>, workspace: &Workspace, measured: &Measured) -> Result<(), Stop> {
    let since = Instant::now();
    if measured.changes.is_empty() {
        return record_not_run(bundle, "nothing changed", Vec::new());
    }
    if !measured.in_scope {
        return record_not_run(bundle, "the change is out of scope", Vec::new());
    }
    if !measured.can_be_applied {
        return record_not_run(bundle, "the patch is too large to be applied", Vec::new());
    }
    let secrets = bundle.secrets.clone();
    let file = bundle.create(bundle::TEST_LOG)?;
    let mut session = Session {
        execution,
        workspace,
        measured,
        log: Capture::new(bundle::TEST_LOG, file, execution.plan.limits.output_bytes, &secrets),
        processes: Vec::new(),
    };
    let mut done = session.verify()?;
    let Session { log, processes, .. } = session;
    let captured = log.finish(&mut |_| {});
    processes.into_iter().for_each(|process| bundle.contained(process));
    if let Some(error) = &captured.error {
        return Err(write_error(bundle::TEST_LOG, error).into());
    }
    // The log may have been capped: the chain names the file as it is.
    done.log_sha256 = crate::files::scan_file(&bundle.dir().join(bundle::TEST_LOG), |_| {})
        .map_err(|error| write_error(bundle::TEST_LOG, &error))?
        .sha256;
    done.blockers = judge::verification_codes(Some(&execution.plan.contract), &bundle.folded().facts.reviews, &done);
    if done.checks.iter().any(|check| matches!(check.end, ProcessEnd::TimedOut { .. })) {
        bundle.write(bundle::TIMEOUT_NOTE, b"a verification command reached a time limit and was ended\n")?;
    }
    let ends = done.checks.iter().map(|check| format!("{}: {}", check.command, cto_core::report_md::describe(check.end)));
    let ends = done.mismatch.clone().unwrap_or_else(|| ends.collect::<Vec<_>>().join("; "));
    bundle.emit(Event::VerificationCompleted(done))?;
    bundle.trace("verification.run", TraceOutcome::Ok, since, Some(ends))?;
    Ok(())
}

/// Runs the contract's setup commands in a copy, in the same kind of jail.
pub fn set_up(bundle: &mut OpenBundle, execution: &Execution<'_>, copy: &PrivateCopy, name: &str) -> Result<(), Stop> {
    for (index, command) in execution.plan.contract.setup.iter().enumerate() {
        stop_if_cancelled(execution)?;
        let name = format!("{name}-{}", index + 1);
        let since = Instant::now();
        let mut output = Vec::new();
        let ended = supervise::run(&shell_job(execution, copy, command)?, execution.cancel, &mut |_, bytes| {
            output.extend_from_slice(bytes);
            let excess = output.len().saturating_sub(RECENT);
            output.drain(..excess);
        })?;
        let (clean, _) = bundle.secrets.redact(&output);
        bundle.write(&format!("backend/{name}.log"), &clean)?;
        if let Some(contained) = ended.contained {
            bundle.contained(contained.report(&format!("setup: {command}")));
        }
        bundle.trace("setup.run", TraceOutcome::Ok, since, Some(cto_core::report_md::describe(ended.end)))?;
        if !ended.end.succeeded() {
            let how = cto_core::report_md::describe(ended.end);
            let detail = format!("setup failed ({how}): {command}; see backend/{name}.log");
            return Err(Stop::LateGate { gate: "setup", code: Code::ToolchainUnavailable, detail });
        }
    }
    Ok(())
}

/// A shell command of the contract, in a copy, with a home of its own.
fn shell_job(execution: &Execution<'_>, copy: &PrivateCopy, command: &str) -> Result<Job, Stop> {
    let scratch = execution
        .work
        .join(format!("scratch-{}", host::random_name(8).map_err(|failure| Stop::Finding(failure.what, Code::Interrupted))?));
    let around = Surroundings::new(execution, copy, &scratch).map_err(Stop::Workspace)?;
    let args = vec!["-c".into(), OsString::from(command)];
    Ok(around.job(Path::new(SHELL), args, surroundings::verification_limits(execution.plan)))
}

/// The end of what was printed, each stream apart: a line of one must not begin in the middle of the other's.
#[derive(Default)]
struct Recent {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Recent {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(RECENT);
        kept.drain(..excess);
    }

    fn text(&self) -> String {
        format!("{}\n{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }
}

struct Session<'a> {
    execution: &'a Execution<'a>,
    workspace: &'a Workspace,
    measured: &'a Measured,
    log: Capture<'a>,
    processes: Vec<ProcessReport>,
}

impl Session<'_> {
    fn verify(&mut self) -> Result<VerificationCompleted, Stop> {
        let contract = &self.execution.plan.contract;
        let changed_test_files: Vec<TreePath> = self
            .measured
            .changes
            .iter()
            .map(|change| change.path.clone())
            .filter(|path| self.workspace.baseline().contains_key(path) && control::is_test_file(path))
            .collect();
        let mut done = VerificationCompleted {
            not_run: None,
            checks: Vec::new(),
            control: None,
            log_sha256: Digest::of(b""),
            tree: Some(tree::digest(&self.measured.tree)),
            mismatch: None,
            changed_test_files,
            blockers: Vec::new(),
        };
        let copy = match self.prepared("verify")? {
            Ok(copy) => copy,
            Err(mismatch) => {
                self.say(&format!("{mismatch}\n"));
                done.mismatch = Some(mismatch);
                return Ok(done);
            }
        };
        self.say(&format!("tree {}\n", tree::digest(&self.measured.tree)));
        done.checks = self.commands(&copy, "check", CheckKind::Visible, &contract.verification_commands)?.0;
        if !green(&done.checks) {
            return Ok(done);
        }
        done.checks.extend(self.hidden()?);
        if green(&done.checks) {
            done.control = Some(self.control()?);
        }
        Ok(done)
    }

    /// A pristine copy with the patch, and then the contract's setup, in the same kind of jail.
    fn prepared(&mut self, name: &str) -> Result<Result<PrivateCopy, String>, Stop> {
        let copy = match self.workspace.pristine(name, self.measured)? {
            Ok(copy) => copy,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        let setup = &self.execution.plan.contract.setup;
        let (done, _) = self.commands(&copy, "setup", CheckKind::Visible, setup)?;
        Ok(match done.iter().find(|check| !check.end.succeeded()) {
            None => Ok(copy),
            Some(failed) => Err(format!("setup failed in the pristine copy: {}", failed.command)),
        })
    }

    fn say(&mut self, text: &str) {
        self.log.push(text.as_bytes(), &mut |_| {});
    }

    /// Runs commands in order in one copy; the output of the last is returned for counting.
    fn commands(
        &mut self,
        copy: &PrivateCopy,
        label: &str,
        kind: CheckKind,
        commands: &[String],
    ) -> Result<(Vec<Check>, Recent), Stop> {
        let mut checks = Vec::new();
        let mut recent = Recent::default();
        for command in commands {
            stop_if_cancelled(self.execution)?;
            self.say(&format!("\n$ {command}\n"));
            let job = shell_job(self.execution, copy, command)?;
            let log = &mut self.log;
            let ended = supervise::run(&job, self.execution.cancel, &mut |stream, bytes| {
                log.push(bytes, &mut |_| {});
                recent.push(stream, bytes);
            })?;
            self.say(&format!("[cto: {}, {} ms]\n", cto_core::report_md::describe(ended.end), ended.duration_ms));
            if ended.end == ProcessEnd::Cancelled {
                return Err(Stop::Cancelled);
            }
            if let Some(contained) = ended.contained {
                self.processes.push(contained.report(&format!("{label}: {command}")));
            }
            checks.push(Check { kind, command: command.clone(), end: ended.end, duration_ms: ended.duration_ms });
        }
        Ok((checks, recent))
    }

    /// Checks the engine never saw, in a copy of their own.
    fn hidden(&mut self) -> Result<Vec<Check>, Stop> {
        let commands = &self.execution.plan.contract.hidden_verification.commands;
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        self.say("\n== hidden checks ==\n");
        let copy = match self.prepared("hidden")? {
            Ok(copy) => copy,
            // The same patch applied a moment ago: treat the difference as a check that did not pass.
            Err(mismatch) => {
                self.say(&format!("{mismatch}\n"));
                return Ok(Vec::new());
            }
        };
        let hidden = &self.execution.case.hidden;
        let paths: Vec<TreePath> = hidden.iter().map(|file| file.path.clone()).collect();
        if let Err(error) = copy.edit(&paths, |dir| workspace::lay_out(dir, hidden, true)).flatten() {
            self.say(&format!("hidden checks cannot be put into the copy: {error}\n"));
            let refused = |command: &String| Check {
                kind: CheckKind::Hidden,
                command: command.clone(),
                end: ProcessEnd::Lost,
                duration_ms: 0,
            };
            return Ok(commands.iter().map(refused).collect());
        }
        Ok(self.commands(&copy, "hidden check", CheckKind::Hidden, commands)?.0)
    }

    /// The same commands where they must be red.
    fn control(&mut self) -> Result<ControlRun, Stop> {
        let plan = self.execution.plan;
        let copy = match &plan.control {
            Control::None(reason) => return Ok(ControlRun::None { reason: reason.clone() }),
            Control::Runner(_) | Control::Patch(_) => match self.prepared("control")? {
                Ok(copy) => copy,
                Err(reason) => return Ok(ControlRun::CouldNotRun { reason }),
            },
        };
        self.say("\n== must-fail control: the same commands, where they must be red ==\n");
        let added = match &plan.control {
            Control::Runner(runner) => {
                let nonce = host::random_name(10).map_err(|failure| Stop::Finding(failure.what, Code::Interrupted))?;
                if let Err(error) = self.add_failures(&copy, *runner, &nonce) {
                    return Ok(ControlRun::CouldNotRun { reason: format!("failing tests cannot be added: {error}") });
                }
                Some((*runner, nonce))
            }
            Control::Patch(patch) => {
                let file = self.execution.work.join("control.patch");
                let text = self.execution.case.beside.get(&patch.file).map(Vec::as_slice).unwrap_or_default();
                std::fs::write(&file, text).map_err(Stop::Workspace)?;
                let repo = self.workspace.repo();
                let apply = |paths: Vec<TreePath>| copy.edit(&paths, |dir| repo.apply(dir, &[&file])).map_err(Stop::Workspace);
                let applied = match repo.touched(&file) {
                    Ok(paths) => apply(paths)?,
                    Err(error) => Err(error),
                };
                if let Err(error) = applied {
                    return Ok(ControlRun::CouldNotRun { reason: format!("the control patch does not apply: {error}") });
                }
                None
            }
            Control::None(reason) => return Ok(ControlRun::None { reason: reason.clone() }),
        };
        let (checks, recent) =
            self.commands(&copy, "must-fail control", CheckKind::Visible, &plan.contract.verification_commands)?;
        let output = recent.text();
        let Some((runner, nonce)) = added else {
            return Ok(ControlRun::Ran { checks, failures_added: None, failures_reported: None });
        };
        Ok(ControlRun::Ran {
            checks,
            failures_added: Some(control::failures_expected(runner, &nonce, &self.present(), &output)),
            failures_reported: control::failures_reported(runner, &output),
        })
    }

    /// Files of the baseline that are still there.
    fn present(&self) -> Vec<TreePath> {
        self.workspace.baseline().keys().filter(|path| self.measured.tree.contains_key(*path)).cloned().collect()
    }

    /// Adds the failing tests, named after `nonce`.
    fn add_failures(&self, copy: &PrivateCopy, runner: Runner, nonce: &str) -> io::Result<()> {
        let kit = control::kit(runner, nonce, &self.present());
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
                workspace::make_parent(copy, &place)?;
                OpenOptions::new().write(true).create_new(true).open(place)?.write_all(text.as_bytes())?;
            }
            Edit::Append { path, text } => {
                let place = workspace::locate(copy, path);
                workspace::make_parent(copy, &place)?;
                let no_link = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
                let mut file = OpenOptions::new().append(true).custom_flags(no_link.bits() as i32).open(place)?;
                file.write_all(text.as_bytes())?;
            }
        }
    }
    Ok(())
}

fn green(checks: &[Check]) -> bool {
    !checks.is_empty() && checks.iter().all(|check| check.end.succeeded())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_whatever_came_between() {
        let mut recent = Recent::default();
        for (stream, text) in [(Stream::Stdout, "test one ... "), (Stream::Stderr, "Running two\n"), (Stream::Stdout, "FAILED\n")]
        {
            recent.push(stream, text.as_bytes());
        }
        assert_eq!(
            recent.text().lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
            ["test one ... FAILED", "Running two"]
        );
        recent.push(Stream::Stdout, &vec![b'x'; RECENT + 9]);
        assert_eq!(recent.stdout.len(), RECENT);
    }
}
