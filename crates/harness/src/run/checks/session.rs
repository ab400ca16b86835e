//! The checks of one run, in order: the contract's commands, hidden ones, the control, and the tests
//! of the baseline, each in a copy of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cto_core::bundle;
use cto_core::bundle::report::timings::Step;
use cto_core::bundle::report_md::describe_end;
use cto_core::checks::lacking::TAIL;
use cto_core::checks::runner_output::Heard;
use cto_core::checks::runners::kits::entry::Purpose;
use cto_core::checks::test_ids::TestIdDocument;
use cto_core::checks::test_log::Section;
use cto_core::containment::ProcessReport;
use cto_core::containment::guard::guard_hidden;
use cto_core::gate::plan::Environment;
use cto_core::run::checked::MissingModules;
use cto_core::run::event::{Check, CheckKind, ProcessEnd, VerificationCompleted};
use cto_core::run::judge;
use cto_core::run::not_counted::NotCounted;
use cto_core::run::rules::Rules;
use cto_core::task::contract::Runner;
use cto_core::values::digest::Digest;
use cto_core::workspace::environment::{Carried, refused_by_overlay};

use super::beside::UnderWay;
use super::copies::ReadyCopy;
use super::kept::Known;
use super::last_words::Recent;
use super::log::{self, TestLog};
use super::start::GreenStart;
use super::test_names::{self, Runners, Witness};
use super::touched::Rewritten;
use crate::evidence::EvidenceError;
use crate::evidence::secrets::Secrets;
use crate::run::execution::{Execution, Stop};
use crate::screen::progress::Named;
use crate::supervise;
use crate::supervise::launch::Launch;
use crate::workspace::environments::Live;
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;

/// A shell command of the contract, ready to be run.
struct ShellJob {
    launch: Launch,
    scratch: PathBuf,
}

/// A shell command of the contract, in a copy, with a home of its own. With runners it is heard
/// which tests it runs.
fn shell_job(
    execution: &Execution<'_>,
    ready: &ReadyCopy,
    command: &str,
    (runners, purpose): (&Runners, Purpose<'_>),
) -> Result<ShellJob, Stop> {
    let scratch = execution.new_scratch()?;
    test_names::lay_out(&scratch, runners, purpose).map_err(Stop::Workspace)?;
    let place = execution.place(&ready.copy, &ready.laid, &scratch)?;
    let launch = Launch::command(&place, command).map_err(Stop::Workspace)?;
    let mut launch = launch.guarded(&ready.protected);
    test_names::announce(&mut launch, &place.scratch(), runners);
    test_names::go_on(&mut launch, runners, purpose);
    Ok(ShellJob { launch, scratch })
}

pub(super) struct Session<'a> {
    pub execution: &'a Execution<'a>,
    pub workspace: &'a Workspace,
    pub measured: &'a Measured,
    pub secrets: &'a Secrets,
    pub log: TestLog<'a>,
    pub processes: Vec<ProcessReport>,
    /// What there is to be said about environments.
    pub notes: BTreeSet<String>,
    /// Commands that ran while an environment was changed by its owner.
    pub not_counted: Vec<NotCounted>,
    /// Tracked files that its processes wrote to.
    pub rewritten: Rewritten,
    /// That just happened, with what was seen before.
    pub unsettled: Option<Live>,
    /// A baseline that ran before, and the key of this run's.
    pub known: Option<Known>,
    pub key: Option<Digest>,
    /// The known one, once tests were compared with it.
    pub relied: Option<Known>,
    /// Its commands saw what the plan names, and nothing else.
    pub as_planned: bool,
    /// Which part of the run it is, where it is not the whole.
    pub part: &'static str,
    pub copies: u32,
    /// How long its steps took.
    pub times: Vec<(Step, Duration)>,
    /// When code of the change ran.
    pub of_change: Vec<(Instant, Instant)>,
    /// The baseline that ran before the engine, until it is asked for.
    pub start: Option<Box<GreenStart<'a>>>,
}

/// What became of some commands in one copy.
#[derive(Default)]
pub(super) struct Ran {
    pub checks: Vec<Check>,
    /// The end of their output, for counting.
    pub recent: Recent,
    /// The tests of each command.
    pub tests: Vec<Heard>,
    /// Which section of the log each of them is.
    pub numbers: Vec<u64>,
    missing: Vec<MissingModules>,
}

/// Which commands, and how they are run.
pub(super) struct Commands<'a> {
    pub section: Section,
    pub commands: &'a [String],
    pub runners: Runners,
    /// The first that is red is the last.
    pub until_red: bool,
    /// What each may take, where that is less than the contract says.
    pub wall: Option<Duration>,
}

impl<'a> Commands<'a> {
    pub fn of(section: Section, commands: &'a [String]) -> Self {
        Self {
            section,
            commands,
            runners: Runners::new(),
            until_red: false,
            wall: None,
        }
    }

    /// What one of them is listened to with.
    fn kit<'k>(&'k self, execution: &Execution<'k>, index: usize) -> (&'k Runners, Purpose<'k>) {
        let purpose = match self.section {
            Section::Control => {
                let known = execution.plan.contract.recognised.get(index);
                let control = known.and_then(|known| known.control.as_ref());
                Purpose::Control(control.map_or(&[], |control| control.drop.as_slice()))
            }
            Section::Baseline => Purpose::Baseline,
            _ => Purpose::Check,
        };
        (&self.runners, purpose)
    }

    /// The word `containment.json` has for such a process.
    fn label(&self) -> &'static str {
        match self.section {
            Section::Setup => "setup",
            Section::Check => "check",
            Section::Hidden => "hidden check",
            Section::Control => "must-fail control",
            Section::Baseline => "baseline check",
            Section::Loading => "loading control",
        }
    }

    /// What of it is shown while it runs. Setup before checks, and copies for the loading control, are
    /// many: of those nothing stays.
    fn step<'s>(&self, index: usize, command: &'s str) -> Named<'s> {
        let name = match self.section {
            Section::Setup => "setup",
            Section::Check => "check",
            Section::Hidden => "hidden",
            Section::Control => "control",
            Section::Baseline => "baseline",
            Section::Loading => "loading",
        };
        Named {
            of: Some((index + 1, self.commands.len())),
            passing: matches!(self.section, Section::Setup | Section::Loading),
            ..Named::new(name, command)
        }
    }

    /// How a command ended, in a word or two, and whether that is the end it was to have. A baseline may
    /// be red: that is often the task.
    fn ended(&self, end: ProcessEnd) -> (String, bool) {
        let must_fail = matches!(self.section, Section::Control | Section::Loading);
        match end {
            ProcessEnd::Exited { code: 0 } => ("green".into(), true),
            ProcessEnd::Exited { .. } if must_fail => ("red, as it must be".into(), true),
            ProcessEnd::Exited { .. } => ("red".into(), self.section == Section::Baseline),
            end => (describe_end(end), false),
        }
    }

    /// Only what everybody sees, on what was changed and on what it was before.
    fn may_trace(&self) -> bool {
        matches!(
            self.section,
            Section::Check | Section::Baseline | Section::Loading
        )
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
    /// Everything in its order. Some of it may be under way already.
    pub fn in_order(
        &mut self,
        mut under_way: UnderWay<'_, '_>,
    ) -> Result<(VerificationCompleted, Option<TestIdDocument>), Stop> {
        let contract = &self.execution.plan.contract;
        let mut done = self.begun()?;
        let what = self.visible(Section::Check);
        let since = Instant::now();
        let (ready, ran) = match self.settled(&what, &mut |session| session.prepared("verify"))? {
            Ok(done) => done,
            Err(mismatch) => {
                self.log.say(&mismatch);
                done.mismatch = Some(mismatch);
                return Ok((done, None));
            }
        };
        done.checks = ran.checks;
        done.missing_modules = ran.missing;
        self.times.push((Step::Checks, since.elapsed()));
        if self.execution.untouched {
            done.baseline_checks = done.checks.clone();
            if green(&done.checks) {
                let control = self.control_or(under_way.control)?;
                done.control = Some(control);
            }
            return Ok((done, None));
        }
        if !green(&done.checks) {
            // What it wrote may have filled the disk.
            ready.give_back();
            self.red(&mut done, ran.tests, under_way)?;
            return Ok((done, None));
        }
        self.rewritten.by_checks = Self::no_longer(&ready.copy, &self.measured.tree);
        ready.let_go(self.execution.spent);
        let rewrites = self.rewritten.wants_the_baseline(&self.measured.tree);
        if rewrites {
            // What is known of an earlier one does not say what it wrote to.
            self.known = None;
        }
        done.checks.extend(self.hidden()?);
        let expected =
            contract.verification_commands.len() + contract.hidden_verification.commands.len();
        if !green(&done.checks) || done.checks.len() != expected {
            return Ok((done, None));
        }
        let beside = under_way.control.is_some();
        let loaded = beside.then(|| self.loading_aside(&done)).transpose()?;
        if let Some((session, _)) = &loaded {
            self.of_change.extend_from_slice(&session.of_change);
        }
        // Only now: a baseline that ran beside code of the change would not be kept.
        drop(under_way.held.take());
        done.control = Some(self.control_or(under_way.control)?);
        let ids = match self.runner() {
            Some(runner) => Some(self.compare(runner, ran.tests, under_way.baseline)?),
            None => {
                if rewrites || self.start.is_some() {
                    done.baseline_checks = self.anyway()?;
                }
                None
            }
        };
        self.rewritten.tell(&mut done, &self.measured.tree);
        if self.is_trusted(&done, ids.as_ref()) {
            done.loading = Some(match loaded {
                Some((session, run)) => {
                    self.take_over(session);
                    run
                }
                None => self.loading(&done)?,
            });
        }
        Ok((done, ids))
    }

    /// Is what was seen so far proof? Otherwise nobody needs to know what loads the change.
    fn is_trusted(&self, done: &VerificationCompleted, ids: Option<&TestIdDocument>) -> bool {
        let so_far = VerificationCompleted {
            tests: ids.map(|ids| self.compared(ids)),
            log_nonce: Some(String::new()),
            ..done.clone()
        };
        let contract = &self.execution.plan.contract;
        judge::untrusted(Rules::NEWEST, contract, &so_far).is_none()
    }

    /// The runners that are listened to, where failing tests are the control.
    fn runners(&self) -> Runners {
        self.execution.plan.contract.runners()
    }

    pub fn runner(&self) -> Option<Runner> {
        self.execution.plan.contract.compared_runner()
    }

    /// The contract's commands, heard wherever they run: code under test must not see by that where
    /// it runs.
    pub fn visible(&self, section: Section) -> Commands<'a> {
        self.visible_of(section, &self.execution.plan.contract.verification_commands)
    }

    /// Some of them.
    pub fn visible_of<'c>(&self, section: Section, commands: &'c [String]) -> Commands<'c> {
        Commands {
            runners: self.runners(),
            ..Commands::of(section, commands)
        }
    }

    /// Runs commands in order in one copy.
    pub fn commands(&mut self, ready: &mut ReadyCopy, what: &Commands<'_>) -> Result<Ran, Stop> {
        let mut ran = Ran::default();
        for (index, command) in what.commands.iter().enumerate() {
            self.execution.stop_if_cancelled()?;
            if index > 0
                && what.section != Section::Setup
                && let Some(failed) = self.renew(ready)?
            {
                let why = format!("setup failed before this command: {failed}\n");
                ran.checks.push(self.not_run(what, command, &why)?);
                ran.numbers.push(self.log.number());
                if self.unsettled.is_some() {
                    break;
                }
                continue;
            }
            if what.section == Section::Hidden {
                let files = self.execution.case.hidden.iter();
                let files = files.map(|file| (&file.path, file.bytes.as_slice()));
                ready.protected = guard_hidden(&what.commands[..=index], files);
            }
            self.about_to_start(ready)?;
            let kit = what.kit(self.execution, index);
            let ShellJob {
                mut launch,
                scratch,
            } = shell_job(self.execution, ready, command, kit)?;
            if what.may_trace() && self.execution.plan.contract.trace {
                launch = launch.traced();
            }
            if let Some(wall) = what.wall {
                launch.limits.wall = launch.limits.wall.min(wall);
            }
            let mut heard = (!what.runners.is_empty())
                .then(|| Witness::new(&what.runners, &scratch, &launch.cwd));
            let mut section = self.begin(what.section, command)?;
            let mut step = self.execution.stage.begin(what.step(index, command));
            let mut last = Recent::of(TAIL);
            let since = Instant::now();
            let ended = supervise::run(&launch, self.execution.cancel, &mut |stream, bytes| {
                section.push(bytes, &mut |clean| step.hear(clean));
                ran.recent.push(stream, bytes);
                last.push(stream, bytes);
                if let Some(heard) = &mut heard {
                    heard.hear(stream, bytes);
                }
            })?;
            if ready.is_result {
                self.of_change.push((since, Instant::now()));
            }
            let end = (ended.end, ended.duration_ms);
            self.log.end(section, end, &mut |clean| step.hear(clean));
            self.execution.clock.ran(ended.duration_ms);
            if let Some(contained) = ended.contained {
                self.processes
                    .push(contained.report(&format!("{}: {command}", what.label())));
            }
            if ended.end == ProcessEnd::Cancelled {
                return Err(Stop::Cancelled);
            }
            let (how, as_wanted) = what.ended(ended.end);
            step.end(&how, as_wanted);
            if !ended.end.succeeded() {
                self.note_overlay(command, &ran.recent);
                if what.section == Section::Check {
                    let (of, baseline) = ((command.as_str(), ended.end), self.workspace.baseline());
                    let missing = last.missing(of, self.secrets, self.measured, baseline);
                    ran.missing.extend(missing);
                }
            }
            ran.tests
                .extend(heard.map(|heard| heard.finish(self.secrets)));
            let (kind, command) = (what.kind(), command.clone());
            ran.checks.push(Check {
                kind,
                command,
                end: ended.end,
                duration_ms: ended.duration_ms,
                lacks: last.lacking(ended.end, self.secrets),
            });
            ran.numbers.push(self.log.number());
            let red = what.until_red && !ended.end.succeeded();
            if self.has_changed(ready) || red {
                break;
            }
        }
        Ok(ran)
    }

    /// What a command could not do to an environment because of how it is shown.
    fn note_overlay(&mut self, command: &str, recent: &Recent) {
        let environments = &self.execution.plan.environments;
        let below = |found: &Environment| found.record.carried == Carried::Overlay;
        if environments.iter().any(below)
            && let Some(refused) = refused_by_overlay(&recent.text())
        {
            self.notes.insert(format!(
                "{command}: {refused}; environments below an overlay cannot be removed or renamed as a whole"
            ));
        }
    }

    /// A command that cannot be run is one whose end nobody saw.
    fn not_run(&mut self, what: &Commands<'_>, command: &str, why: &str) -> Result<Check, Stop> {
        let mut section = self.begin(what.section, command)?;
        section.push(why.as_bytes(), &mut |_| {});
        let check = Check {
            kind: what.kind(),
            command: command.to_owned(),
            end: ProcessEnd::Lost,
            duration_ms: 0,
            lacks: Vec::new(),
        };
        self.log
            .end(section, (check.end, check.duration_ms), &mut |_| {});
        Ok(check)
    }

    fn begin(&mut self, section: Section, command: &str) -> Result<log::OpenSection<'a>, Stop> {
        Ok(self
            .log
            .begin(section, command)
            .map_err(|error| EvidenceError::cannot_write(bundle::TEST_LOG, &error))?)
    }

    pub(super) fn log_aside(&self, file: &Path) -> Result<TestLog<'a>, Stop> {
        Ok(self
            .log
            .beside(file)
            .map_err(|error| EvidenceError::cannot_write(bundle::TEST_LOG, &error))?)
    }

    /// Checks the engine never saw, in a copy of their own.
    fn hidden(&mut self) -> Result<Vec<Check>, Stop> {
        let commands = &self.execution.plan.contract.hidden_verification.commands;
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let since = Instant::now();
        self.log.say("== hidden checks ==");
        let what = Commands::of(Section::Hidden, commands);
        let mut refused = false;
        let done = self.settled(&what, &mut |session| {
            let mut ready = match session.prepared("hidden")? {
                Ok(ready) => ready,
                mismatch => return Ok(mismatch),
            };
            let put = ready.put_hidden(&session.execution.case.hidden);
            refused = put.is_err();
            Ok(put.map(|()| ready))
        })?;
        self.times.push((Step::Hidden, since.elapsed()));
        match done {
            Ok((_, ran)) => Ok(ran.checks),
            Err(why) if refused => {
                let not_run = |command: &String| self.not_run(&what, command, &why);
                commands.iter().map(not_run).collect()
            }
            // The same patch applied a moment ago: treat the difference as a check that did not
            // pass.
            Err(mismatch) => {
                self.log.say(&mismatch);
                Ok(Vec::new())
            }
        }
    }
}

fn green(checks: &[Check]) -> bool {
    !checks.is_empty() && checks.iter().all(|check| check.end.succeeded())
}
