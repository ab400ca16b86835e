//! Verification where the engine never was: pristine copies, the contract's commands, hidden
//! checks, the must-fail control, and the same commands on the baseline. The exit code decides,
//! never the output.

mod test_names;

mod log;
mod must_fail;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cto_core::bundle;
use cto_core::checks::control;
use cto_core::checks::test_ids::{CommandTests, TestIdDocument, TestIds, on_the_baseline};
use cto_core::checks::test_log::Section;
use cto_core::containment::ProcessReport;
use cto_core::run::event::{Check, CheckKind, Event, ProcessEnd, VerificationCompleted};
use cto_core::run::judge;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::contract::{Control, Runner};
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{self, FileKind};

use crate::evidence::secrets::Secrets;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::host;
use crate::run::engine::surroundings::{self, Surroundings};
use crate::run::execution::{Execution, Stop};
use crate::supervise::{self, Job, Limits, Stream};
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;
use crate::workspace::on_disk;
use crate::workspace::private_copy::PrivateCopy;

use log::TestLog;
use test_names::Witness;

/// Output kept for counting failures.
const RECENT: usize = 1 << 20;

/// Writes a `test.log` that says why there is none, and the event that goes with it.
pub fn record_not_run(
    bundle: &mut OpenBundle,
    reason: &str,
    blockers: Vec<Code>,
) -> Result<(), Stop> {
    let log = format!("verification was not run: {reason}\n");
    bundle.write(bundle::TEST_LOG, log.as_bytes())?;
    let mut done = VerificationCompleted {
        not_run: Some(reason.to_owned()),
        blockers,
        ..VerificationCompleted::nothing(Digest::of(log.as_bytes()))
    };
    if done.blockers.is_empty() {
        done.blockers = judge::verification_codes(
            bundle.contract.valid(),
            &bundle.folded().facts.reviews,
            &done,
        );
    }
    bundle.emit(Event::VerificationCompleted(done))?;
    Ok(())
}

/// Runs everything the contract asks for and emits `verification.completed`.
pub fn run(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    workspace: &Workspace,
    measured: &Measured,
) -> Result<(), Stop> {
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
    // Drawn when the engine has ended, and told when the last check has.
    let nonce = random(32)?;
    let contract = &execution.plan.contract;
    let (visible, hidden) = (
        contract.verification_commands.len(),
        contract.hidden_verification.commands.len(),
    );
    let expected = 4 * contract.setup.len() + 3 * visible + hidden;
    let mut log = TestLog::new(
        file,
        &secrets,
        nonce,
        execution.plan.limits.output_bytes,
        expected,
    );
    log.head(
        &bundle.identity.run_id,
        &bundle.sealed_contract.contract_digest,
        &tree::digest(&measured.tree),
    );
    let mut session = Session {
        execution,
        workspace,
        measured,
        secrets: &secrets,
        log,
        processes: Vec::new(),
    };
    let (mut done, ids) = session.verify()?;
    let Session { log, processes, .. } = session;
    let (nonce, error) = log.close();
    done.log_nonce = Some(nonce);
    processes
        .into_iter()
        .for_each(|process| bundle.contained(process));
    if let Some(error) = &error {
        return Err(EvidenceError::cannot_write(bundle::TEST_LOG, error).into());
    }
    if let Some(ids) = ids {
        let bytes = json::pretty(&ids).map_err(EvidenceError::Json)?;
        bundle.write(bundle::TEST_IDS, &bytes)?;
        done.tests = Some(ids.compared(Digest::of(&bytes)));
        done.baseline_checks = ids.baseline;
    }
    conclude(bundle, execution, done, since)
}

fn conclude(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    mut done: VerificationCompleted,
    since: Instant,
) -> Result<(), Stop> {
    // Output may have been capped: the chain names the file as it is.
    done.log_sha256 = crate::host::files::scan_file(&bundle.dir().join(bundle::TEST_LOG), |_| {})
        .map_err(|error| EvidenceError::cannot_write(bundle::TEST_LOG, &error))?
        .sha256;
    done.blockers = judge::verification_codes(
        Some(&execution.plan.contract),
        &bundle.folded().facts.reviews,
        &done,
    );
    if done
        .checks
        .iter()
        .any(|check| matches!(check.end, ProcessEnd::TimedOut { .. }))
    {
        bundle.write(
            bundle::TIMEOUT_NOTE,
            b"a verification command reached a time limit and was ended\n",
        )?;
    }
    let ends = done.checks.iter().map(|check| {
        format!(
            "{}: {}",
            check.command,
            cto_core::bundle::report_md::describe(check.end)
        )
    });
    let ends = done
        .mismatch
        .clone()
        .unwrap_or_else(|| ends.collect::<Vec<_>>().join("; "));
    bundle.emit(Event::VerificationCompleted(done))?;
    bundle.trace("verification.run", TraceOutcome::Ok, since, Some(ends))?;
    Ok(())
}

fn random(length: usize) -> Result<String, Stop> {
    host::random_name(length).map_err(|failure| Stop::Finding(failure.what, Code::Interrupted))
}

/// Runs the contract's setup commands in a copy, in the same kind of jail.
pub fn set_up(
    bundle: &mut OpenBundle,
    execution: &Execution<'_>,
    copy: &PrivateCopy,
    name: &str,
) -> Result<(), Stop> {
    for (index, command) in execution.plan.contract.setup.iter().enumerate() {
        execution.stop_if_cancelled()?;
        let name = format!("{name}-{}", index + 1);
        let since = Instant::now();
        let mut output = Vec::new();
        let ended = supervise::run(
            &shell_job(execution, copy, command, None)?.job,
            execution.cancel,
            &mut |_, bytes| {
                output.extend_from_slice(bytes);
                let excess = output.len().saturating_sub(RECENT);
                output.drain(..excess);
            },
        )?;
        let (clean, _) = bundle.secrets.redact(&output);
        bundle.write(&format!("backend/{name}.log"), &clean)?;
        if let Some(contained) = ended.contained {
            bundle.contained(contained.report(&format!("setup: {command}")));
        }
        bundle.trace(
            "setup.run",
            TraceOutcome::Ok,
            since,
            Some(cto_core::bundle::report_md::describe(ended.end)),
        )?;
        if !ended.end.succeeded() {
            let how = cto_core::bundle::report_md::describe(ended.end);
            let detail = format!("setup failed ({how}): {command}; see backend/{name}.log");
            return Err(Stop::LateGate {
                gate: "setup",
                code: Code::ToolchainUnavailable,
                detail,
            });
        }
    }
    Ok(())
}

/// A shell command of the contract, ready to be run.
struct ShellJob {
    job: Job,
    scratch: PathBuf,
}

/// A shell command of the contract, in a copy, with a home of its own. With a runner it is heard
/// which tests it runs.
fn shell_job(
    execution: &Execution<'_>,
    copy: &PrivateCopy,
    command: &str,
    runner: Option<Runner>,
) -> Result<ShellJob, Stop> {
    let scratch = execution.work.join(format!("scratch-{}", random(8)?));
    if let Some(runner) = runner {
        test_names::lay_out(&scratch, runner).map_err(Stop::Workspace)?;
    }
    let around = Surroundings::new(execution, copy, &scratch).map_err(Stop::Workspace)?;
    let args = vec!["-c".into(), OsString::from(command)];
    let mut job = around.job(
        Path::new(host::SHELL),
        args,
        surroundings::verification_limits(execution.plan),
    );
    // The home is empty; this says that nothing put there counts either.
    job.env.insert("PYTHONNOUSERSITE".into(), "1".into());
    if let Some(runner) = runner {
        test_names::announce(&mut job, &around.scratch(), runner);
    }
    Ok(ShellJob { job, scratch })
}

/// The end of what was printed, each stream apart: a line of one must not begin in the middle of
/// the other's.
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
        format!(
            "{}\n{}",
            String::from_utf8_lossy(&self.stdout),
            String::from_utf8_lossy(&self.stderr)
        )
    }
}

struct Session<'a> {
    execution: &'a Execution<'a>,
    workspace: &'a Workspace,
    measured: &'a Measured,
    secrets: &'a Secrets,
    log: TestLog<'a>,
    processes: Vec<ProcessReport>,
}

/// What became of some commands in one copy.
#[derive(Default)]
struct Ran {
    checks: Vec<Check>,
    /// The end of their output, for counting.
    recent: Recent,
    /// The tests of each command.
    tests: Vec<TestIds>,
}

/// Which commands, and how they are run.
struct Commands<'a> {
    section: Section,
    commands: &'a [String],
    runner: Option<Runner>,
    /// Less time than the contract gives.
    wall: Option<Duration>,
}

impl<'a> Commands<'a> {
    fn of(section: Section, commands: &'a [String]) -> Self {
        Self {
            section,
            commands,
            runner: None,
            wall: None,
        }
    }

    /// The word `containment.json` has for such a process.
    fn label(&self) -> &'static str {
        match self.section {
            Section::Setup => "setup",
            Section::Check => "check",
            Section::Hidden => "hidden check",
            Section::Control => "must-fail control",
            Section::Baseline => "baseline check",
        }
    }

    fn kind(&self) -> CheckKind {
        if self.section == Section::Hidden {
            CheckKind::Hidden
        } else {
            CheckKind::Visible
        }
    }
}

impl<'a> Session<'a> {
    fn verify(&mut self) -> Result<(VerificationCompleted, Option<TestIdDocument>), Stop> {
        let contract = &self.execution.plan.contract;
        let mut done = self.begun();
        let copy = match self.prepared("verify")? {
            Ok(copy) => copy,
            Err(mismatch) => {
                self.log.say(&mismatch);
                done.mismatch = Some(mismatch);
                return Ok((done, None));
            }
        };
        let ran = self.commands(&copy, &self.visible(Section::Check))?;
        done.checks = ran.checks;
        if !green(&done.checks) {
            return Ok((done, None));
        }
        let took = Duration::from_millis(done.checks.iter().map(|check| check.duration_ms).sum());
        done.rewritten_test_files = self.rewritten(&copy);
        done.checks.extend(self.hidden()?);
        let expected =
            contract.verification_commands.len() + contract.hidden_verification.commands.len();
        if !green(&done.checks) || done.checks.len() != expected {
            return Ok((done, None));
        }
        done.control = Some(self.control()?);
        let ids = match self.runner() {
            Some(runner) => Some(self.baseline(runner, ran.tests, took)?),
            None => None,
        };
        Ok((done, ids))
    }

    /// What is known before anything ran.
    fn begun(&self) -> VerificationCompleted {
        let baseline = self.workspace.baseline();
        let changed = || self.measured.changes.iter().map(|change| &change.path);
        let is_named = |path: &&TreePath| {
            control::is_runner_config(path)
                || (baseline.contains_key(*path) && control::is_test_file(path))
        };
        VerificationCompleted {
            tree: Some(tree::digest(&self.measured.tree)),
            changed_test_files: changed().filter(is_named).cloned().collect(),
            runner_takeovers: control::takeovers(
                changed(),
                &self.execution.plan.contract.allowed_paths,
            ),
            ..VerificationCompleted::nothing(Digest::of(b""))
        }
    }

    fn runner(&self) -> Option<Runner> {
        match self.execution.plan.control {
            Control::Runner(runner) => Some(runner),
            Control::Patch(_) | Control::None(_) => None,
        }
    }

    /// The contract's commands, heard wherever they run: code under test must not see by that where
    /// it runs.
    fn visible(&self, section: Section) -> Commands<'a> {
        let commands = &self.execution.plan.contract.verification_commands;
        Commands {
            section,
            commands,
            runner: self.runner(),
            wall: None,
        }
    }

    /// A pristine copy with the patch, and then the contract's setup, in the same kind of jail.
    fn prepared(&mut self, name: &str) -> Result<Result<PrivateCopy, String>, Stop> {
        let copy = match self.workspace.pristine(name, self.measured)? {
            Ok(copy) => copy,
            Err(mismatch) => return Ok(Err(mismatch)),
        };
        let setup = &self.execution.plan.contract.setup;
        let done = self.commands(&copy, &Commands::of(Section::Setup, setup))?;
        Ok(
            match done.checks.iter().find(|check| !check.end.succeeded()) {
                None => Ok(copy),
                Some(failed) => Err(format!(
                    "setup failed in the pristine copy: {}",
                    failed.command
                )),
            },
        )
    }

    /// Runs commands in order in one copy.
    fn commands(&mut self, copy: &PrivateCopy, what: &Commands<'_>) -> Result<Ran, Stop> {
        let mut ran = Ran::default();
        for command in what.commands {
            self.execution.stop_if_cancelled()?;
            let ShellJob { mut job, scratch } =
                shell_job(self.execution, copy, command, what.runner)?;
            job.limits = Limits {
                wall: what
                    .wall
                    .map_or(job.limits.wall, |wall| wall.min(job.limits.wall)),
                ..job.limits
            };
            let mut heard = what.runner.map(|runner| Witness::new(runner, &scratch));
            let mut section = self.begin(what.section, command)?;
            let ended = supervise::run(&job, self.execution.cancel, &mut |stream, bytes| {
                section.push(bytes);
                ran.recent.push(stream, bytes);
                if let Some(heard) = &mut heard {
                    heard.hear(stream, bytes);
                }
            })?;
            self.log.end(section, ended.end, ended.duration_ms);
            if ended.end == ProcessEnd::Cancelled {
                return Err(Stop::Cancelled);
            }
            if let Some(contained) = ended.contained {
                self.processes
                    .push(contained.report(&format!("{}: {command}", what.label())));
            }
            ran.tests
                .extend(heard.map(|heard| heard.finish(self.secrets)));
            let (kind, command) = (what.kind(), command.clone());
            ran.checks.push(Check {
                kind,
                command,
                end: ended.end,
                duration_ms: ended.duration_ms,
            });
        }
        Ok(ran)
    }

    fn begin(&mut self, section: Section, command: &str) -> Result<log::OpenSection<'a>, Stop> {
        Ok(self
            .log
            .begin(section, command)
            .map_err(|error| EvidenceError::cannot_write(bundle::TEST_LOG, &error))?)
    }

    /// Test files of the result that are not as they were when the checks began.
    fn rewritten(&self, copy: &PrivateCopy) -> Vec<TreePath> {
        let is_text = |(path, entry): &(&TreePath, &tree::Entry)| {
            entry.kind != FileKind::Symlink && control::is_test_source(path)
        };
        copy.no_longer(self.measured.tree.iter().filter(is_text))
    }

    /// The same commands on the untouched baseline: which tests are there to run? They may be red,
    /// and they get little more time than the verified tree took, since a baseline may hang.
    fn baseline(
        &mut self,
        runner: Runner,
        verified: Vec<TestIds>,
        took: Duration,
    ) -> Result<TestIdDocument, Stop> {
        let contract = &self.execution.plan.contract;
        let copy = self.workspace.untouched("baseline")?;
        let setup = self.commands(&copy, &Commands::of(Section::Setup, &contract.setup))?;
        let failed = setup.checks.iter().find(|check| !check.end.succeeded());
        let ran = match failed {
            Some(_) => Ran::default(),
            None => {
                let wall = Some(took * 4 + Duration::from_secs(30));
                let commands: Vec<String> = contract
                    .verification_commands
                    .iter()
                    .map(|command| on_the_baseline(runner, command))
                    .collect();
                let what = Commands {
                    section: Section::Baseline,
                    commands: &commands,
                    runner: Some(runner),
                    wall,
                };
                self.commands(&copy, &what)?
            }
        };
        let mut baseline = ran.tests.into_iter();
        let commands =
            contract
                .verification_commands
                .iter()
                .zip(verified)
                .map(|(command, verified)| CommandTests {
                    command: command.clone(),
                    baseline: baseline.next().unwrap_or_default(),
                    verified,
                });
        Ok(TestIdDocument {
            schema_version: 1,
            runner,
            baseline_not_run: failed
                .map(|check| format!("setup failed on the baseline: {}", check.command)),
            commands: commands.collect(),
            baseline: ran.checks,
        })
    }

    /// Checks the engine never saw, in a copy of their own.
    fn hidden(&mut self) -> Result<Vec<Check>, Stop> {
        let commands = &self.execution.plan.contract.hidden_verification.commands;
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        self.log.say("== hidden checks ==");
        let copy = match self.prepared("hidden")? {
            Ok(copy) => copy,
            // The same patch applied a moment ago: treat the difference as a check that did not
            // pass.
            Err(mismatch) => {
                self.log.say(&mismatch);
                return Ok(Vec::new());
            }
        };
        let hidden = &self.execution.case.hidden;
        let paths: Vec<TreePath> = hidden.iter().map(|file| file.path.clone()).collect();
        if let Err(error) = copy
            .edit(&paths, |dir| on_disk::lay_out(dir, hidden, true))
            .flatten()
        {
            let why = format!("hidden checks cannot be put into the copy: {error}\n");
            let mut refused = Vec::new();
            for command in commands {
                let mut section = self.begin(Section::Hidden, command)?;
                section.push(why.as_bytes());
                let check = Check {
                    kind: CheckKind::Hidden,
                    command: command.clone(),
                    end: ProcessEnd::Lost,
                    duration_ms: 0,
                };
                self.log.end(section, check.end, check.duration_ms);
                refused.push(check);
            }
            return Ok(refused);
        }
        Ok(self
            .commands(&copy, &Commands::of(Section::Hidden, commands))?
            .checks)
    }
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
        for (stream, text) in [
            (Stream::Stdout, "test one ... "),
            (Stream::Stderr, "Running two\n"),
            (Stream::Stdout, "FAILED\n"),
        ] {
            recent.push(stream, text.as_bytes());
        }
        assert_eq!(
            recent
                .text()
                .lines()
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>(),
            ["test one ... FAILED", "Running two"]
        );
        recent.push(Stream::Stdout, &vec![b'x'; RECENT + 9]);
        assert_eq!(recent.stdout.len(), RECENT);
    }
}
