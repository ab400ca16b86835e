//! The same commands on the untouched baseline: which tests are there to run? A baseline that is known
//! is not run again, unless a test of it is missing: then a new one decides.

use std::time::Instant;

use cto_core::bundle::report::timings::Step;
use cto_core::checks::known_baseline::{KeptBaseline, Made};
use cto_core::checks::test_ids::{CommandTests, TestIdDocument, TestIds, on_the_baseline};
use cto_core::checks::test_log::{Section, log_header};
use cto_core::run::event::{Check, ProcessEnd};
use cto_core::task::contract::Runner;
use cto_core::values::digest::Digest;
use cto_core::values::json;

use super::beside::Beside;
use super::kept::{self, Known};
use super::session::{Commands, Ran, Session};
use crate::evidence::EvidenceError;
use crate::host;
use crate::run::execution::{Stop, random};

/// What the commands came to on the baseline.
pub(super) struct BaselineRan {
    ran: Ran,
    /// Why they did not run.
    failed: Option<String>,
}

impl BaselineRan {
    fn came_to_its_end(&self) -> bool {
        let own_end = |check: &Check| matches!(check.end, ProcessEnd::Exited { .. });
        self.failed.is_none() && self.ran.checks.iter().all(own_end)
    }
}

impl Session<'_> {
    /// Runs the commands on the baseline. They may be red, and they have the contract's own time: a
    /// change that made its checks short must not cut the baseline short.
    pub fn baseline(&mut self) -> Result<BaselineRan, Stop> {
        let commands = self.baseline_commands();
        let what = Commands {
            section: Section::Baseline,
            commands: &commands,
            runner: self.runner(),
        };
        let since = Instant::now();
        let done = self.settled(&what, &mut Self::untouched)?;
        self.times.push((Step::Baseline, since.elapsed()));
        Ok(match done {
            Ok((_, ran)) => BaselineRan { ran, failed: None },
            Err(failed) => BaselineRan {
                ran: Ran::default(),
                failed: Some(failed),
            },
        })
    }

    fn baseline_commands(&self) -> Vec<String> {
        let commands = self.execution.plan.contract.verification_commands.iter();
        match self.runner() {
            Some(runner) => commands
                .map(|command| on_the_baseline(runner, command))
                .collect(),
            None => commands.cloned().collect(),
        }
    }

    /// The tests of the baseline beside those that were verified.
    pub fn compare(
        &mut self,
        runner: Runner,
        verified: Vec<TestIds>,
        under_way: Option<Beside<'_, '_, BaselineRan>>,
    ) -> Result<TestIdDocument, Stop> {
        if let Some(ids) = self.compare_with_known(&verified) {
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
    fn compare_with_known(&mut self, verified: &[TestIds]) -> Option<TestIdDocument> {
        let known = self.known.take()?;
        let ids = known.kept.compared_with(verified.to_vec());
        let commands = &self.execution.plan.contract.verification_commands;
        let complete = ids.is_about(commands)
            && ids.commands.len() == verified.len()
            && ids.compared(Digest::of(b"")).missing_count == 0;
        if complete && self.is_as_planned() {
            self.relied = Some(known);
            return Some(ids);
        }
        if !complete {
            self.log.say(&format!(
                "== tests of the baseline that {} made are missing: the baseline is run again, and that decides ==",
                known.kept.run_id
            ));
            // Whichever of the two was right, it is not kept on.
            kept::forget(self.execution.home, &known.kept.key);
        }
        None
    }

    fn settle_baseline(
        &mut self,
        session: Session<'_>,
        done: BaselineRan,
        runner: Runner,
        verified: Vec<TestIds>,
    ) -> Result<TestIdDocument, Stop> {
        let mut baseline = done.ran.tests.into_iter();
        let named = |(command, verified): (&String, TestIds)| CommandTests {
            command: command.clone(),
            baseline: baseline.next().unwrap_or_default().ids,
            verified,
        };
        let commands = self.execution.plan.contract.verification_commands.iter();
        let ids = TestIdDocument {
            schema_version: 1,
            runner,
            baseline_not_run: done.failed,
            commands: commands.zip(verified).map(named).collect(),
            baseline: done.ran.checks,
        };
        self.keep(&session, &ids)?;
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
        let tree = cto_core::workspace::tree::tree_digest(self.workspace.baseline());
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

    /// The same commands on the untouched baseline: do they lack a program whatever was changed?
    pub fn anyway(&mut self) -> Result<Vec<Check>, Stop> {
        let what = self.visible(Section::Baseline);
        let done = self.settled(&what, &mut Self::untouched)?;
        Ok(done.map(|(_, ran)| ran.checks).unwrap_or_default())
    }
}
