//! Looks at the operator's own directories before and after each process that sees them. A process counts
//! where both found the same.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::times::Time;

use super::state::{self, Again};
use super::{AllCarried, Environments, Live, One};

/// The look by which a run was planned: when it began, and the youngest time in each environment.
#[derive(Clone)]
pub struct FirstLook {
    pub since: Instant,
    pub newest: BTreeMap<TreePath, Time>,
}

/// What was found by a look that began then.
pub(super) struct Looked {
    since: Instant,
    live: Live,
}

/// A directory to be looked at, and what it was the last time.
struct Asked {
    path: TreePath,
    place: PathBuf,
    before: Option<Digest>,
}

impl Environments {
    /// What they are before a process starts: a look that is hardly past says that as well as one more. What
    /// their owner changed after it is seen when the process has ended, and then that run does not count.
    /// Of two that are about to start, one looks.
    pub fn look_before(&self) -> Live {
        /// Older than this it would make more runs not count than it saves looks.
        const HARDLY_PAST: Duration = Duration::from_secs(2);
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.carried().version;
        if let Some(Looked { since, live }) = &*looked
            && since.elapsed() < HARDLY_PAST
            && live.version == version
        {
            return live.clone();
        }
        let since = Instant::now();
        let live = self.find_out();
        *looked = Looked::of(since, &live);
        live
    }

    /// Looks at every directory of the operator's that jails see as it is.
    pub fn look(&self) -> Live {
        let since = Instant::now();
        let live = self.find_out();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        // Another one may have begun later and come to its end sooner.
        if looked.as_ref().is_none_or(|last| last.since < since) {
            *looked = Looked::of(since, &live);
        }
        live
    }

    /// Looks while nobody is kept from what is known.
    fn find_out(&self) -> Live {
        let (version, asked) = self.to_be_asked();
        let found: Vec<(Asked, Option<Again>)> = asked
            .into_iter()
            .map(|asked| {
                let again = state::look_again(&asked.place, asked.before).ok();
                (asked, again)
            })
            .collect();
        let mut carried = self.carried();
        let AllCarried { all, other, .. } = &mut *carried;
        let mut live = Live {
            version,
            ..Live::default()
        };
        for (asked, again) in found {
            let is_it = |path: &TreePath| *path == asked.path;
            let mut one = all
                .iter_mut()
                .find(|one| one.live && is_it(&one.environment.record.path));
            let state = match &again {
                Some(Again::Other(state)) => Some(state.digest),
                Some(Again::Same) => asked.before,
                None => None,
            };
            live.states.push((asked.path.clone(), state));
            if let (Some(one), Some(Again::Other(state))) = (&mut one, again) {
                *other |= one.is_other(&state);
                one.newest = state.newest;
                one.state = Some(state.digest);
                // What came since is hidden from the next jail.
                one.environment.hidden = state.hidden;
            }
            if let Some(one) = one.filter(|_| state.is_some()) {
                live.newest = live.newest.max(one.newest);
            }
        }
        live.other = *other;
        live
    }

    fn to_be_asked(&self) -> (u32, Vec<Asked>) {
        let carried = self.carried();
        let live = carried.all.iter().filter(|one| one.live);
        let asked = live.map(|one| Asked {
            path: one.environment.record.path.clone(),
            place: one.source.path().to_owned(),
            before: one.state,
        });
        (carried.version, asked.collect())
    }
}

impl Looked {
    /// What planning saw of directories that no jail has seen yet, where it looked at all of them.
    pub fn first(first: &FirstLook, all: &mut [One]) -> Option<Self> {
        let mut live = Live::default();
        for one in all.iter_mut().filter(|one| one.live) {
            let record = &one.environment.record;
            let (state, newest) = (record.state?, *first.newest.get(&record.path)?);
            (one.state, one.newest) = (Some(state), newest);
            live.states.push((record.path.clone(), Some(state)));
            live.newest = live.newest.max(newest);
        }
        let since = first.since;
        Some(Self { since, live })
    }

    /// What could not be looked at is not remembered.
    fn of(since: Instant, live: &Live) -> Option<Self> {
        let seen = live.states.iter().all(|(_, state)| state.is_some());
        seen.then(|| Self {
            since,
            live: live.clone(),
        })
    }
}
