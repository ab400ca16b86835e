//! Landings that did not end: forward where the ref is new, back where it is old. What is left to do is
//! decided in core, by what is there now; the same code undoes a landing that failed.

use std::io;
use std::path::{Path, PathBuf};

use cto_core::values::ids::RunId;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::journal::{BadJournal, Deed, End, Journal, Step};
use cto_core::workspace::landing::recovery::{self, Lock, Now, Plan, Reference, Side};

use super::places::Places;
use super::{LandingError, Target, lock, making, objects, store, target};
use crate::host::{Env, Home, programs, repositories};
use crate::workspace::own_dir::OwnDir;

#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    #[error(transparent)]
    Journal(#[from] BadJournal),
    #[error("its repository is not where it was")]
    Gone,
    #[error("another git is at work there; recover again when it is done")]
    Wait,
    #[error(transparent)]
    Landing(#[from] LandingError),
    #[error("there is no git to look at it with: {0}")]
    NoGit(String),
    #[error("the journal could not be kept")]
    Store(#[from] io::Error),
}

/// One landing that was brought to its end, or could not be.
pub struct Recovered {
    /// The journal's file.
    pub journal: PathBuf,
    pub run_id: Option<RunId>,
    pub deed: Option<Deed>,
    pub result: Result<End, RecoverError>,
}

/// A landing that is done and waits for its settlement.
pub struct Ended {
    pub run_id: RunId,
    pub deed: Deed,
    pub way: Way,
    pub branch: String,
    pub commit: String,
    pub end: End,
    journal: PathBuf,
}

impl Ended {
    /// What follows from it is sealed.
    pub fn settled(self) -> io::Result<()> {
        store::remove(&self.journal)
    }
}

/// Brings every landing of this state home to its end. One that is under way is left alone, and so is one
/// that waits for its settlement.
pub fn landings(home: &Home, env: &Env) -> Vec<Recovered> {
    let all = store::all(&home.journal());
    let mut found = Vec::new();
    for (path, journal) in all {
        let journal = match journal {
            Ok(journal) => journal,
            Err(error) => {
                found.push(Recovered {
                    journal: path,
                    run_id: None,
                    deed: None,
                    result: Err(error.into()),
                });
                continue;
            }
        };
        let (run_id, deed) = (journal.run_id.clone(), journal.deed);
        if let Some(result) = one(home, env, journal, &path).transpose() {
            found.push(Recovered {
                journal: path,
                run_id: Some(run_id),
                deed: Some(deed),
                result,
            });
        }
    }
    found
}

/// What ended of a run's landings and is not settled. Recover first: what has not ended is not here.
pub fn of_run(home: &Home, run: &RunId) -> Vec<Ended> {
    let mut ended = waiting(home);
    ended.retain(|ended| ended.run_id == *run);
    ended
}

/// Is a landing of this run still to be ended? Nobody knows then what its repository holds.
pub fn is_open(home: &Home, run: &RunId) -> bool {
    let all = store::all(&home.journal()).into_iter();
    let mut known = all.filter_map(|(_, journal)| journal.ok());
    known.any(|journal| journal.run_id == *run && journal.step != Step::Ended)
}

/// Every landing that ended and whose journal waits for a settlement.
pub fn waiting(home: &Home) -> Vec<Ended> {
    let all = store::all(&home.journal()).into_iter();
    all.filter_map(|(path, journal)| {
        let journal = journal.ok()?;
        Some(Ended {
            run_id: journal.run_id,
            end: journal.end?,
            deed: journal.deed,
            way: journal.way,
            branch: journal.branch,
            commit: journal.new_commit,
            journal: path,
        })
    })
    .collect()
}

/// `None` when there was nothing to do.
fn one(
    home: &Home,
    env: &Env,
    mut journal: Journal,
    path: &Path,
) -> Result<Option<End>, RecoverError> {
    if journal.step == Step::Ended {
        if !journal.awaits_settlement {
            store::remove(path)?;
        }
        return Ok(None);
    }
    let git = programs::git(env, home).map_err(|none| RecoverError::NoGit(none.to_string()))?;
    let repository = repositories::find(home, &journal.target.path_sha256);
    let repository = repository
        .filter(|path| path.is_dir())
        .ok_or(RecoverError::Gone)?;
    let aside = OwnDir::make(home)?;
    let users_home = env.path("HOME");
    let known = (Some(journal.target.path_sha256), users_home.as_deref());
    let target = match Target::open(&git, &repository, known, &aside.path().join("ours")) {
        // Whoever lands there now ends it too.
        Err(LandingError::Busy) => return Ok(None),
        opened => opened?,
    };
    if making::whose(&target.source)? != journal.target {
        return Err(RecoverError::Gone);
    }
    let store = home.journal();
    let end = finish(&target, &mut journal, &store)?.ok_or(RecoverError::Wait)?;
    if !journal.awaits_settlement || end == End::Undone {
        store::remove(path)?;
    }
    Ok(Some(end))
}

/// Forward or back; none where another git is at work. In the end no lock of ours is left, and the journal
/// says how it ended.
pub(super) fn finish(
    target: &Target,
    journal: &mut Journal,
    store: &Path,
) -> Result<Option<End>, LandingError> {
    let source = &target.source;
    let (git_dir, objects) = (source.git_dir(), source.common_dir.join("objects"));
    let places = Places::of(target, journal);
    let merge = journal.way == Way::Merge;
    if merge && lock::holder(git_dir, journal) == Lock::Free && places.has_room() {
        places.make_room().map_err(LandingError::Write)?;
        if !lock::take(git_dir, &places, journal).map_err(LandingError::Write)? {
            return Ok(None);
        }
        return with_lock(target, journal, store, (&places, &objects), Lock::Free);
    }
    let holder = if merge {
        lock::holder(git_dir, journal)
    } else {
        Lock::Free
    };
    with_lock(target, journal, store, (&places, &objects), holder)
}

fn with_lock(
    target: &Target,
    journal: &mut Journal,
    store: &Path,
    (places, objects): (&Places, &Path),
    lock: Lock,
) -> Result<Option<End>, LandingError> {
    let git_dir = target.source.git_dir();
    if lock != Lock::Theirs && places.has_room() {
        places.mend_swaps().map_err(LandingError::Write)?;
    }
    let reference = reference(target, journal)?;
    let first = match reference {
        Reference::New | Reference::Beyond => Side::New,
        Reference::Old | Reference::Other => Side::Old,
    };
    let now = Now {
        reference,
        on_branch: target::head_branch(git_dir).as_deref() == Some(journal.branch.as_str()),
        lock,
        index: places.index_now(journal),
        paths: places.now(first),
    };
    let Plan::Do {
        paths,
        index,
        mut end,
    } = recovery::plan(journal, &now)
    else {
        return Ok(None);
    };
    places.act(&paths, first).map_err(LandingError::Write)?;
    if index == recovery::Act::Swap {
        places.swap_index().map_err(LandingError::Write)?;
    }
    lock::release(git_dir, journal).map_err(LandingError::Write)?;
    match end {
        End::Landed => objects::let_go(objects, journal),
        End::Undone => objects::take_back(objects, journal),
        End::Left => Ok(()),
    }
    .map_err(LandingError::Write)?;
    if places.has_room()
        && !places.remove_room().map_err(LandingError::Write)?
        && end == End::Undone
    {
        // Bytes that are nobody's we know: they stay where they are.
        end = End::Left;
    }
    journal.step = Step::Ended;
    journal.end = Some(end);
    store::write(store, journal).map_err(LandingError::Journal)?;
    Ok(Some(end))
}

fn reference(target: &Target, journal: &Journal) -> Result<Reference, LandingError> {
    let is = target.source.branch_now(&journal.branch)?;
    Ok(match &is {
        is if *is == journal.old_commit => Reference::Old,
        Some(is) if *is == journal.new_commit => Reference::New,
        Some(is) if target.source.leads_to(&journal.new_commit, is) => Reference::Beyond,
        _ => Reference::Other,
    })
}
