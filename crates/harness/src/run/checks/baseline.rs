//! The same commands on the untouched baseline: which tests are there to run? A baseline that is known
//! is not run again, unless a test of it is missing: then a new one decides.

use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::report::timings::Step;
use cto_core::checks::known_baseline::{KeptBaseline, Made};
use cto_core::checks::runner_output::Heard;
use cto_core::checks::test_ids::baseline::on_the_baseline;
use cto_core::checks::test_ids::lost::TestFile;
use cto_core::checks::test_ids::{CommandTests, TestIdDocument};
use cto_core::checks::test_log::{Section, log_header};
use cto_core::run::checked::FailedTests;
use cto_core::run::event::{Check, ProcessEnd, TestsCompared, VerificationCompleted};
use cto_core::run::judge;
use cto_core::task::contract::{Label, Runner};
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::values::paths::TreePath;

use super::beside::{Beside, UnderWay};
use super::kept::{self, Known};
use super::session::{Ran, Session};
use super::start::GreenStart;
use crate::evidence::EvidenceError;
use crate::host;
use crate::run::execution::{Stop, random};
use crate::workspace::of_run::Contents;

/// What the commands came to on the baseline.
pub(super) struct BaselineRan {
    pub ran: Ran,
    /// Why they did not run.
    pub failed: Option<String>,
    /// From the first of them to the last.
    during: (Instant, Instant),
}

impl BaselineRan {
    fn came_to_its_end(&self) -> bool {
        let own_end = |check: &Check| matches!(check.end, ProcessEnd::Exited { .. });
        self.failed.is_none() && self.ran.checks.iter().all(own_end) && !self.has_lost_names()
    }

    /// Could a process not write down which tests it ran? Then there may be more than were named.
    fn has_lost_names(&self) -> bool {
        self.ran.tests.iter().any(|heard| heard.lost)
    }
}

impl<'a> Session<'a> {
    /// Runs the commands on the baseline. They may be red, and they have the contract's own time: a
    /// change that made its checks short must not cut the baseline short.
    pub fn baseline(&mut self) -> Result<BaselineRan, Stop> {
        let commands = self.baseline_commands();
        let what = self.visible_of(Section::Baseline, &commands);
        let since = Instant::now();
        let done = self.settled(&what, &mut Self::untouched)?;
        self.times.push((Step::Baseline, since.elapsed()));
        let during = (since, Instant::now());
        let (ran, failed) = match done {
            Ok((ready, ran)) => {
                let baseline = self.workspace.baseline();
                self.rewritten.on_the_baseline = Self::no_longer(&ready.copy, baseline);
                (ran, None)
            }
            Err(failed) => (Ran::default(), Some(failed)),
        };
        Ok(BaselineRan {
            ran,
            failed,
            during,
        })
    }

    fn baseline_commands(&self) -> Vec<String> {
        let contract = &self.execution.plan.contract;
        let commands = &contract.verification_commands;
        match self.runner() {
            Some(runner) => on_the_baseline(runner, commands, &contract.recognised),
            None => commands.clone(),
        }
    }

    /// The tests of the baseline beside those that were verified.
    pub fn compare(
        &mut self,
        runner: Runner,
        verified: Vec<Heard>,
        under_way: Option<Beside<'_, '_, BaselineRan>>,
    ) -> Result<TestIdDocument, Stop> {
        if let Some(start) = self.start.take() {
            let GreenStart { session, ran } = *start;
            return self.settle_baseline(session, ran, runner, verified);
        }
        if let Some(ids) = self.compare_with_known(&verified)? {
            return Ok(ids);
        }
        match under_way {
            Some(beside) => {
                let (session, ran) = beside.finish()?;
                if ran.came_to_its_end() {
                    return self.settle_baseline(session, ran, runner, verified);
                }
                // The change ran beside it, and may have taken all of the machine.
                drop(session);
                let mut session = self.aside("baseline-alone", self.execution)?;
                let ran = session.baseline()?;
                self.settle_baseline(session, ran, runner, verified)
            }
            None => {
                let mut session = self.aside("baseline", self.execution)?;
                let ran = session.baseline()?;
                self.settle_baseline(session, ran, runner, verified)
            }
        }
    }

    /// The comparison with a known baseline, where nothing of it is missing.
    fn compare_with_known(&mut self, verified: &[Heard]) -> Result<Option<TestIdDocument>, Stop> {
        let Some(known) = self.known.take() else {
            return Ok(None);
        };
        let ids = self.asked(known.kept.compared_with(verified.to_vec()))?;
        let contract = &self.execution.plan.contract;
        let complete = ids.is_about(&contract.verification_commands, &contract.recognised)
            && ids.commands.len() == verified.len()
            && is_complete(&self.compared(&ids));
        if complete && self.is_as_planned() {
            self.relied = Some(known);
            return Ok(Some(ids));
        }
        if !complete {
            self.log.say(&format!(
                "== tests of the baseline that {} made are missing: the baseline is run again, and that decides ==",
                known.kept.run_id
            ));
            // Whichever of the two was right, it is not kept on.
            kept::forget(self.execution.home, &known.kept.key);
        }
        Ok(None)
    }

    /// What the ids of a document come to under this contract.
    pub(super) fn compared(&self, ids: &TestIdDocument) -> TestsCompared {
        let may_change = &self.execution.plan.contract.reasons.tests_may_change;
        ids.compared(Digest::of(b""), may_change)
    }

    /// The document with the files that something is asked about, as they are now.
    fn asked(&self, ids: TestIdDocument) -> Result<TestIdDocument, Stop> {
        let (before, after) = (self.workspace.baseline(), &self.measured.tree);
        let tree: BTreeSet<&TreePath> = before.keys().chain(after.keys()).collect();
        let tree: Vec<&TreePath> = tree.into_iter().collect();
        let contract = &self.execution.plan.contract;
        let ids = TestIdDocument {
            runners: contract.runners_of_commands(),
            ..ids
        };
        let asked = ids.in_question(&tree);
        let texts = match asked.is_empty() {
            true => Contents::new(),
            false => {
                let wanted = |path: &TreePath| asked.contains(path);
                self.workspace.contents(Some(self.measured), &wanted)?
            }
        };
        let changes = self.measured.changes.iter();
        let changed: BTreeSet<&TreePath> = changes.map(|change| &change.path).collect();
        let files = asked.into_iter().map(|path| {
            let text = texts.get(path).map(|(_, text)| text.as_slice());
            let text = text.unwrap_or_default();
            let runner = ids.runner_of(path);
            let mut file = TestFile::of(runner, path.clone(), changed.contains(path), text);
            if contract.chooses_by_name(runner) {
                file.tests.clear();
            }
            file
        });
        let files = Some(files.collect());
        Ok(TestIdDocument { files, ..ids })
    }

    fn settle_baseline(
        &mut self,
        session: Session<'_>,
        done: BaselineRan,
        runner: Runner,
        verified: Vec<Heard>,
    ) -> Result<TestIdDocument, Stop> {
        if done.has_lost_names() {
            let why = "a check on the baseline could not write the name of a test";
            let error = io::Error::other(why);
            return Err(EvidenceError::cannot_write(bundle::TEST_IDS, &error).into());
        }
        let alone = !self.of_change.iter().any(|ran| overlap(*ran, done.during));
        let mut baseline = done.ran.tests.into_iter();
        let named = |(command, verified): (&String, Heard)| {
            let baseline = baseline.next().unwrap_or_default();
            CommandTests {
                command: command.clone(),
                baseline: baseline.ids,
                verified: verified.ids,
                baseline_runs: baseline.runs,
                verified_runs: verified.runs,
                baseline_whole: baseline.whole,
                verified_whole: verified.whole,
            }
        };
        let commands = self.execution.plan.contract.verification_commands.iter();
        let ids = TestIdDocument {
            schema_version: 1,
            runner,
            baseline_not_run: done.failed,
            commands: commands.zip(verified).map(named).collect(),
            baseline: done.ran.checks,
            files: None,
            runners: Vec::new(),
        };
        let ids = self.asked(ids)?;
        // Beside code of the change it may have named less for that: no other change is compared with it.
        if alone {
            self.keep(&session, &ids)?;
        }
        self.take_over(session);
        Ok(ids)
    }

    /// Nothing was otherwise than the plan, and so the key, has it.
    fn is_as_planned(&self) -> bool {
        self.as_planned
            && self.not_counted.is_empty()
            && self.workspace.environments().dropped.is_empty()
    }

    /// Keeps a baseline for runs to come, where it may be.
    fn keep(&self, session: &Session<'_>, ids: &TestIdDocument) -> Result<(), Stop> {
        let (Some(key), true) = (self.key, session.is_as_planned()) else {
            return Ok(());
        };
        let (run_id, contract_digest) = self.log.about();
        let log_nonce = random(32)?;
        let tree = self.workspace.baseline_digest();
        let head = log_header(&run_id, &contract_digest, &tree, &log_nonce);
        let aside = self.execution.work.join("baseline-kept.log");
        let log = session.log.written_again(&aside, &log_nonce, &head);
        // A disk that has no room for what is kept may have room for the evidence.
        let Ok(log) = log else { return Ok(()) };
        let made = Made {
            key,
            at: host::now(),
            run_id,
            contract_digest,
            tree,
            log_nonce,
            log_sha256: Digest::of(&log),
        };
        if let Some(baseline) = KeptBaseline::of(ids, made) {
            let document = json::pretty(&baseline).map_err(EvidenceError::Json)?;
            let known = Known {
                kept: baseline,
                document,
                log,
            };
            let _ = kept::keep(self.execution.home, &known, host::now());
        }
        Ok(())
    }

    /// A check is red: what was it before the change? Only somebody's own tests are asked; the untouched
    /// copy of a case is known to whoever wrote it.
    pub fn red(
        &mut self,
        done: &mut VerificationCompleted,
        verified: Vec<Heard>,
        under_way: UnderWay<'_, '_>,
    ) -> Result<(), Stop> {
        let UnderWay {
            control,
            baseline,
            held,
        } = under_way;
        drop(control);
        drop(held);
        if self.start.is_none() && done.checks.iter().any(judge::may_lack_a_program) {
            drop(baseline);
            done.baseline_checks = self.anyway()?;
            return Ok(());
        }
        let timed_out = |check: &Check| matches!(check.end, ProcessEnd::TimedOut { .. });
        let red = |check: &Check| !check.end.succeeded() && !timed_out(check);
        let own = self.execution.plan.contract.label == Label::Try;
        if !own || !done.checks.iter().any(red) {
            return Ok(());
        }
        let known = self.known.take();
        if self.start.is_none() && known.is_some() && self.is_as_planned() {
            self.relied = known;
            return Ok(());
        }
        let asked = match (self.start.take(), baseline) {
            (Some(start), _) => Ok((start.session, start.ran)),
            (None, Some(beside)) => beside.finish(),
            (None, None) => self.baseline_alone(),
        };
        let (session, ran) = match asked {
            Ok(asked) => asked,
            Err(Stop::Cancelled) => return Err(Stop::Cancelled),
            // The check is red whatever it was before.
            Err(stop) => {
                let note = format!("what the tests were before the change is not known: {stop}");
                self.notes.insert(note);
                return Ok(());
            }
        };
        if !ran.came_to_its_end() {
            return Ok(());
        }
        let commands = &self.execution.plan.contract.verification_commands;
        let tests = commands.iter().zip(&verified).zip(&ran.ran.tests);
        done.failed_tests = tests
            .filter_map(|((command, now), before)| failed_tests(command, now, before))
            .collect();
        match self.runner() {
            Some(runner) => {
                let ids = self.settle_baseline(session, ran, runner, verified)?;
                done.baseline_checks = ids.baseline;
            }
            None => {
                self.take_over(session);
                done.baseline_checks = ran.ran.checks;
            }
        }
        Ok(())
    }

    fn baseline_alone(&self) -> Result<(Session<'a>, BaselineRan), Stop> {
        let mut session = self.aside("baseline", self.execution)?;
        let ran = session.baseline()?;
        Ok((session, ran))
    }

    /// The same commands on the untouched baseline: do they lack a program whatever was changed?
    pub fn anyway(&mut self) -> Result<Vec<Check>, Stop> {
        if let Some(start) = self.start.take() {
            let GreenStart { session, ran } = *start;
            self.take_over(session);
            return Ok(ran.ran.checks);
        }
        let what = self.visible(Section::Baseline);
        let done = self.settled(&what, &mut Self::untouched)?;
        let Ok((ready, ran)) = done else {
            return Ok(Vec::new());
        };
        let baseline = self.workspace.baseline();
        self.rewritten.on_the_baseline = Self::no_longer(&ready.copy, baseline);
        Ok(ran.checks)
    }
}

/// Which tests of a command failed, now and before; nothing of one that named none that failed.
fn failed_tests(command: &str, now: &Heard, before: &Heard) -> Option<FailedTests> {
    let failed = |heard: &Heard| -> BTreeSet<String> {
        let ids = heard.ids.iter().filter(|(_, tally)| tally.failed > 0);
        ids.map(|(id, _)| id.clone()).collect()
    };
    let (now, before) = (failed(now), failed(before));
    (!now.is_empty()).then(|| FailedTests {
        command: command.to_owned(),
        now: now.len() as u64,
        before: before.len() as u64,
        both: now.intersection(&before).count() as u64,
    })
}

/// Nothing of the baseline is missing, and every run came to its end.
fn is_complete(compared: &TestsCompared) -> bool {
    compared.missing_count == 0 && compared.unfinished.is_empty()
}

/// Did two things happen at a time?
fn overlap(one: (Instant, Instant), other: (Instant, Instant)) -> bool {
    one.0 < other.1 && other.0 < one.1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_what_happens_at_a_time_overlaps() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let one = (at(2), at(4));
        for (other, want) in [
            ((at(0), at(2)), false),
            ((at(4), at(6)), false),
            ((at(0), at(3)), true),
            ((at(3), at(6)), true),
            ((at(0), at(6)), true),
            ((at(3), at(3)), true),
        ] {
            assert_eq!(overlap(one, other), want, "{other:?}");
            assert_eq!(overlap(other, one), want, "{other:?}");
        }
    }
}
