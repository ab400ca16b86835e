//! What runs while the checks run, where there is a core for it: the must-fail control, and the
//! baseline where none is known. Each is the same in a copy of its own, and counts only if the checks
//! turn out green: until then its part of `test.log` waits in a file of its own.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Scope, ScopedJoinHandle};

use cto_core::checks::test_ids::TestIdDocument;
use cto_core::containment::Containment;
use cto_core::run::event::{ControlRun, VerificationCompleted};
use cto_core::run::loaded::LoadingRun;
use cto_core::task::contract::Control;
use signal_hook::consts::SIGTERM;

use super::baseline::BaselineRan;
use super::session::Session;
use super::touched::Rewritten;
use crate::run::execution::{Execution, Stop};
use crate::supervise::cancel::{Asker, Cancel};

/// Work that is under way. Whoever drops it has no use for its answer: it is ended.
pub(super) struct Beside<'scope, 'a, T> {
    thread: Option<ScopedJoinHandle<'scope, (Session<'a>, Result<T, Stop>)>>,
    end: Asker,
}

impl<T> Drop for Beside<'_, '_, T> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end.ask(SIGTERM);
        }
    }
}

impl<'a, T> Beside<'_, 'a, T> {
    /// Its answer, and the session that it had to itself.
    pub fn finish(mut self) -> Result<(Session<'a>, T), Stop> {
        let failed = || Stop::Workspace(std::io::Error::other("a thread of the checks failed"));
        let thread = self.thread.take().ok_or_else(failed)?;
        let (session, answer) = thread.join().map_err(|_| failed())?;
        Ok((session, answer?))
    }
}

/// Everything that was begun before its turn.
#[derive(Default)]
pub(super) struct UnderWay<'scope, 'a> {
    pub control: Option<Beside<'scope, 'a, ControlRun>>,
    pub baseline: Option<Beside<'scope, 'a, BaselineRan>>,
    /// While it is held, the baseline does not begin: code of the change is still to run.
    pub held: Option<Sender<()>>,
}

/// Whose turn it is where fewer may run than were begun: one goes on when an earlier one has ended.
struct Turns {
    free: usize,
    ends: VecDeque<Receiver<()>>,
}

impl Turns {
    /// What the next one waits for, if it has to wait.
    fn next(&mut self) -> Option<Receiver<()>> {
        if self.free == 0 {
            return self.ends.pop_front();
        }
        self.free -= 1;
        None
    }
}

impl Session<'_> {
    /// Runs everything: beside the checks what may be, in the order in which it will be asked for.
    pub fn verify(&mut self) -> Result<(VerificationCompleted, Option<TestIdDocument>), Stop> {
        let plan = self.execution.plan;
        // Without a jail a signal reaches only what waits on the run's own descriptor.
        if plan.containment == Containment::None || self.execution.jobs < 2 {
            return self.in_order(UnderWay::default());
        }
        let below = || self.execution.cancel.below().map_err(Stop::Workspace);
        let cancels = (below()?, below()?);
        let executions = (
            self.execution.with_cancel(&cancels.0),
            self.execution.with_cancel(&cancels.1),
        );
        let mut turns = Turns {
            free: self.execution.jobs - 1,
            ends: VecDeque::new(),
        };
        thread::scope(|scope| {
            let mut under_way = UnderWay::default();
            if !matches!(plan.control, Control::None(_)) {
                let job = |session: &mut Session<'_>| session.control();
                let new = self.aside("control", &executions.0)?;
                under_way.control = Some(begin(scope, new, &cancels.0, &mut turns, job)?);
            }
            // What is untouched is its own baseline; a green start was one.
            let is_there = self.execution.untouched || self.start.is_some();
            if self.runner().is_some() && self.known.is_none() && !is_there {
                let (held, change) = mpsc::channel::<()>();
                let job = move |session: &mut Session<'_>| {
                    // Let go of, whatever became of it: nothing is ever sent.
                    let _ = change.recv();
                    session.execution.stop_if_cancelled()?;
                    session.baseline()
                };
                // One that has a core from the start runs beside the checks, and is not kept anyway.
                let waits = turns.free == 0 && self.key.is_some();
                under_way.held = waits.then_some(held);
                let new = self.aside("baseline", &executions.1)?;
                under_way.baseline = Some(begin(scope, new, &cancels.1, &mut turns, job)?);
            }
            self.in_order(under_way)
        })
    }

    /// A session of its own for one part, with a log that waits.
    pub(super) fn aside<'b>(
        &self,
        part: &'static str,
        execution: &'b Execution<'b>,
    ) -> Result<Session<'b>, Stop>
    where
        Self: 'b,
    {
        let file = self.execution.work.join(format!("{part}.log"));
        Ok(Session {
            execution,
            log: self.log_aside(&file)?,
            workspace: self.workspace,
            measured: self.measured,
            secrets: self.secrets,
            known: None,
            key: None,
            relied: None,
            processes: Vec::new(),
            notes: BTreeSet::new(),
            not_counted: Vec::new(),
            rewritten: Rewritten::default(),
            unsettled: None,
            as_planned: true,
            part,
            copies: 0,
            times: Vec::new(),
            of_change: Vec::new(),
            start: None,
        })
    }

    /// Everything another session saw, as if it had been seen here.
    pub(super) fn take_over(&mut self, session: Session<'_>) {
        let before = self.log.number();
        self.log.take_over(session.log);
        self.processes.extend(session.processes);
        self.notes.extend(session.notes);
        self.times.extend(session.times);
        self.rewritten.take_over(session.rewritten);
        self.of_change.extend(session.of_change);
        let later = session.not_counted.into_iter().map(|mut lost| {
            lost.section += before;
            lost
        });
        self.not_counted.extend(later);
    }

    /// The control: the one under way where there is one.
    pub fn control_or(
        &mut self,
        under_way: Option<Beside<'_, '_, ControlRun>>,
    ) -> Result<ControlRun, Stop> {
        let Some(beside) = under_way else {
            return self.control();
        };
        let (session, run) = beside.finish()?;
        self.take_over(session);
        Ok(run)
    }
}

impl<'a> Session<'a> {
    /// The loading control while others are under way: the checks have left their core.
    pub(super) fn loading_aside(
        &self,
        done: &VerificationCompleted,
    ) -> Result<(Session<'a>, LoadingRun), Stop> {
        let mut session = self.aside("loading", self.execution)?;
        let run = session.loading(done)?;
        Ok((session, run))
    }
}

/// Begins work on a thread of its own, as soon as it is its turn.
fn begin<'scope, 'a, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut session: Session<'a>,
    cancel: &Cancel,
    turns: &mut Turns,
    job: impl FnOnce(&mut Session<'a>) -> Result<T, Stop> + Send + 'scope,
) -> Result<Beside<'scope, 'a, T>, Stop>
where
    'a: 'scope,
{
    let turn = turns.next();
    let (ended, end) = mpsc::channel::<()>();
    turns.ends.push_back(end);
    Ok(Beside {
        end: cancel.asker().map_err(Stop::Workspace)?,
        thread: Some(scope.spawn(move || {
            // An end is the other half being dropped: nothing is ever sent.
            let _ = turn.map(|turn| turn.recv());
            let begun = session.execution.stop_if_cancelled();
            let answer = begun.and_then(|()| job(&mut session));
            drop(ended);
            (session, answer)
        })),
    })
}
