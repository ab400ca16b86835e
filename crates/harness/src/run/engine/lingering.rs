//! An engine that stays when its work is done. Core says what must be known before it may be ended; here it is looked at, the
//! cheap before the costly, and a tree that was not in order is not walked again at once.

use std::time::{Duration, Instant};

use cto_core::engine::lingering::{Next, Standing};
use cto_core::gate::plan::Plan;
use cto_core::workspace::head::Head;

use crate::workspace::of_run::Workspace;

/// A tree is not walked again before so many times as long have passed as the last walk took, or this.
const REST: u32 = 8;
const LEAST_REST: Duration = Duration::from_millis(200);

pub struct Lingering<'a> {
    workspace: &'a Workspace,
    plan: &'a Plan,
    /// Where HEAD stood just before it started.
    before: Head,
    not_before: Option<Instant>,
}

impl<'a> Lingering<'a> {
    /// None for an engine that ends by itself, as its manifest says, and where nobody could see that something was committed.
    pub fn watch(workspace: &'a Workspace, plan: &'a Plan, before: &Head) -> Option<Self> {
        let wanted = plan.invocation.supervision.ended_when_committed && before.commit().is_some();
        wanted.then(|| Self {
            workspace,
            plan,
            before: before.clone(),
            not_before: None,
        })
    }

    /// May it be ended now?
    pub fn is_over(&mut self, said_its_result: bool, is_silent: bool) -> bool {
        let mut standing = Standing {
            said_its_result,
            is_silent,
            ..Standing::default()
        };
        loop {
            match standing.next() {
                Next::GoOn => return false,
                Next::End => return true,
                Next::LookAtHead => {
                    let now = self.workspace.head();
                    standing.head_moved = Some(now.moved_from(&self.before));
                }
                // When it is silent this is the last look.
                Next::LookAtTree if self.rests() && !is_silent => return false,
                Next::LookAtTree => {
                    let begun = Instant::now();
                    // What cannot be said while things change is no yes.
                    let clean = self.workspace.is_in_scope_by_now(self.plan);
                    standing.is_in_scope = Some(clean.unwrap_or(false));
                    let rest = (begun.elapsed() * REST).max(LEAST_REST);
                    self.not_before = Some(Instant::now() + rest);
                }
            }
        }
    }

    fn rests(&self) -> bool {
        self.not_before.is_some_and(|then| Instant::now() < then)
    }
}
