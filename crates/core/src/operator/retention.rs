//! Which runs a person's retention rules would remove, and why every other one stays.
//!
//! Nothing that could still matter is removed: no run without a verdict, none that cannot be read,
//! none that another bundle refers to. The shell looks again before it removes what is decided
//! here.

use std::collections::BTreeMap;

use crate::operator::amounts::{Age, Size};
use crate::operator::listing::{Listed, ListedState};
use crate::values::ids::RunId;
use crate::values::time::Utc;
use crate::values::verdict::Status;

/// What a person allows to be removed. Age and size are limits, each applied; status and
/// `keep_last` narrow both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    pub older_than: Option<Age>,
    /// Of all runs together; the oldest go first.
    pub max_size: Option<Size>,
    pub status: Option<Status>,
    /// How many of the newest to keep, among those with the given status.
    pub keep_last: Option<usize>,
}

impl Policy {
    /// A policy without a single rule is a mistake, not a wish to lose everything.
    pub fn says_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One run as it was found on disk.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub listed: Listed,
    /// A directory of the runs root itself, not a link to one elsewhere.
    pub is_own_directory: bool,
    /// Sealed, but its writer still holds it.
    pub is_held: bool,
    /// Runs it names.
    pub refers_to: Vec<RunId>,
    /// What it takes on the disk.
    pub size: Size,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    Remove(Removed),
    Keep(Kept),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removed {
    /// Older than the age given.
    Age,
    /// One of the oldest while all together were too large.
    Size,
    /// No limit was given, and no other rule keeps it.
    Unkept,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    Live,
    Unsealed,
    Unreadable,
    Foreign,
    Link,
    ReferredToBy(RunId),
    OtherStatus,
    AmongTheLast,
    WithinLimits,
}

impl Removed {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Size => "size",
            Self::Unkept => "rule",
        }
    }
}

impl Kept {
    /// A reason no rule of a person can override.
    pub fn is_protection(&self) -> bool {
        !matches!(
            self,
            Self::OtherStatus | Self::AmongTheLast | Self::WithinLimits
        )
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Unsealed => "unsealed",
            Self::Unreadable => "unreadable",
            Self::Foreign => "foreign",
            Self::Link => "link",
            Self::ReferredToBy(_) => "referred_to",
            Self::OtherStatus => "other_status",
            Self::AmongTheLast => "among_the_last",
            Self::WithinLimits => "within_limits",
        }
    }
}

/// The fate of every run, in the order given.
pub fn decide_fates(runs: &[Candidate], policy: &Policy, now: Utc) -> Vec<Fate> {
    let referred_to: BTreeMap<&RunId, &RunId> = runs
        .iter()
        .flat_map(|run| {
            run.refers_to
                .iter()
                .map(|target| (target, &run.listed.run_id))
        })
        .filter(|(target, by)| target != by)
        .collect();
    let mut fates: Vec<Option<Fate>> = runs
        .iter()
        .map(|run| protection(run, policy, &referred_to).map(Fate::Keep))
        .collect();

    let mut newest_first: Vec<usize> = (0..runs.len()).collect();
    newest_first.sort_by_cached_key(|at| std::cmp::Reverse(runs[*at].listed.run_id.sort_key()));
    // A run without a verdict takes nobody's place among the last.
    let counts = |at: &usize| {
        runs[*at]
            .listed
            .summary()
            .is_some_and(|run| policy.status.is_none_or(|want| want == run.status))
    };
    for at in newest_first
        .iter()
        .copied()
        .filter(counts)
        .take(policy.keep_last.unwrap_or(0))
    {
        fates[at].get_or_insert(Fate::Keep(Kept::AmongTheLast));
    }

    let cut = policy.older_than.map(|age| age.before(now));
    let mut left: u128 = runs.iter().map(|run| u128::from(run.size.0)).sum();
    for at in newest_first.into_iter().rev() {
        if fates[at].is_some() {
            continue;
        }
        let is_old = cut.is_some_and(|cut| {
            runs[at]
                .listed
                .started()
                .is_some_and(|started| started < cut)
        });
        let is_too_much = policy.max_size.is_some_and(|max| left > u128::from(max.0));
        let removed = match (is_old, is_too_much) {
            (true, _) => Some(Removed::Age),
            (false, true) => Some(Removed::Size),
            (false, false) => (policy.older_than.is_none() && policy.max_size.is_none())
                .then_some(Removed::Unkept),
        };
        if removed.is_some() {
            left -= u128::from(runs[at].size.0);
        }
        fates[at] = Some(removed.map_or(Fate::Keep(Kept::WithinLimits), Fate::Remove));
    }
    fates
        .into_iter()
        .map(|fate| fate.unwrap_or(Fate::Keep(Kept::WithinLimits)))
        .collect()
}

/// Why no limit applies to it.
fn protection(
    run: &Candidate,
    policy: &Policy,
    referred_to: &BTreeMap<&RunId, &RunId>,
) -> Option<Kept> {
    let summary = match &run.listed.state {
        ListedState::Live => return Some(Kept::Live),
        ListedState::Unsealed => return Some(Kept::Unsealed),
        ListedState::Foreign => return Some(Kept::Foreign),
        ListedState::Unreadable(_) | ListedState::Broken(_) => return Some(Kept::Unreadable),
        ListedState::Sealed(summary) => summary,
    };
    if run.is_held {
        return Some(Kept::Live);
    }
    if !run.is_own_directory {
        return Some(Kept::Link);
    }
    if let Some(by) = referred_to.get(&run.listed.run_id) {
        return Some(Kept::ReferredToBy((*by).clone()));
    }
    policy
        .status
        .is_some_and(|status| status != summary.status)
        .then_some(Kept::OtherStatus)
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
