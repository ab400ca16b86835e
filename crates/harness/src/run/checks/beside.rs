//! The must-fail control while the checks run, where there is a core for it. It is the same control
//! in a copy of its own, and it counts only if the checks turn out green: until then its part of
//! `test.log` waits in a file of its own.

use std::collections::BTreeSet;
use std::thread::{self, Scope, ScopedJoinHandle};

use cto_core::bundle;
use cto_core::checks::test_ids::TestIdDocument;
use cto_core::containment::Containment;
use cto_core::run::event::{ControlRun, VerificationCompleted};
use cto_core::task::contract::Control;
use signal_hook::consts::SIGTERM;

use super::session::Session;
use crate::evidence::EvidenceError;
use crate::run::execution::{Execution, Stop};
use crate::supervise::cancel::{Asker, Cancel};

/// Where the log of a control that is under way waits, in the run's work directory.
const LOG: &str = "control.log";

/// A control that is under way. Whoever drops it has no use for its answer: it is ended.
pub(super) struct Beside<'scope, 'a> {
    thread: Option<ScopedJoinHandle<'scope, (Session<'a>, Result<ControlRun, Stop>)>>,
    end: Asker,
}

impl Drop for Beside<'_, '_> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end.ask(SIGTERM);
        }
    }
}

impl Session<'_> {
    /// Runs everything: the control beside the checks if two may run at a time.
    pub fn verify(&mut self) -> Result<(VerificationCompleted, Option<TestIdDocument>), Stop> {
        let plan = self.execution.plan;
        // Without a jail a signal reaches only what waits on the run's own descriptor.
        let alone = matches!(plan.control, Control::None(_))
            || plan.containment == Containment::None
            || self.execution.jobs < 2;
        if alone {
            return self.in_order(None);
        }
        let cancel = self.execution.cancel.below().map_err(Stop::Workspace)?;
        let execution = self.execution.with_cancel(&cancel);
        thread::scope(|scope| {
            let beside = self.begin_control(scope, &execution, &cancel)?;
            self.in_order(Some(beside))
        })
    }

    fn begin_control<'scope, 'a>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        execution: &'a Execution<'a>,
        cancel: &Cancel,
    ) -> Result<Beside<'scope, 'a>, Stop>
    where
        Self: 'a,
        'a: 'scope,
    {
        let file = self.execution.work.join(LOG);
        let log = self
            .log
            .beside(&file)
            .map_err(|error| EvidenceError::cannot_write(bundle::TEST_LOG, &error))?;
        let mut session = Session {
            execution,
            workspace: self.workspace,
            measured: self.measured,
            secrets: self.secrets,
            log,
            processes: Vec::new(),
            notes: BTreeSet::new(),
            not_counted: Vec::new(),
            unsettled: None,
            copies: 0,
        };
        Ok(Beside {
            end: cancel.asker().map_err(Stop::Workspace)?,
            thread: Some(scope.spawn(move || {
                let run = session.control();
                (session, run)
            })),
        })
    }

    /// The control: the one under way where there is one.
    pub fn control_or(&mut self, mut beside: Option<Beside<'_, '_>>) -> Result<ControlRun, Stop> {
        let Some(thread) = beside.as_mut().and_then(|beside| beside.thread.take()) else {
            return self.control();
        };
        let (session, run) = thread
            .join()
            .map_err(|_| Stop::Workspace(std::io::Error::other("the control's thread failed")))?;
        let run = run?;
        let before = self.log.number();
        self.log.take_over(session.log);
        self.processes.extend(session.processes);
        self.notes.extend(session.notes);
        let later = session.not_counted.into_iter().map(|mut lost| {
            lost.section += before;
            lost
        });
        self.not_counted.extend(later);
        Ok(run)
    }
}
