//! The room that writes to a person's repository: one commit, with the branch that is checked out and the
//! work tree (`Way::Merge`), or as a new ref and nothing else (`Way::Branch`). Killed at any instant and
//! recovered once, a repository has its old or its new HEAD and is clean, and no byte of its owner's is lost.
//!
//! How it is called:
//! 1. `prepare(&order)` looks, refuses, and makes the commit aside. Nothing of the repository changes. The
//!    commit follows from the order alone, so its name can be told long before it lands.
//! 2. `Ready::land(&cancel)` writes the journal, takes the index lock, looks again, and lands. Whatever fails
//!    on the way is undone by the code that recovers; `LandingError::Moved` means that the repository was
//!    another when the lock was ours. `land(&order, &cancel)` is both, and tries again then.
//! 3. `Landed::settled()` drops the journal: after what follows from the landing is sealed, or at once where
//!    nothing does. An order that says `awaits_settlement` leaves it to `recover::landings` to say, after a
//!    crash, that a landing is done and waits for its settlement (`recover::of_run`, `Ended::settled`).
//!
//! To take a commit back the order's change is `Change::Undo`, and its run that of the landing.
//! `recover::landings` is for `cto recover` and the start of `run` and `outcome`.
//!
//! - this file: the way in; `target.rs` what is looked at; `making.rs` commit and files, aside
//! - `store.rs` journals; `lock.rs` the index lock; `places.rs` what is put in place; `objects.rs` the pack
//! - `recover.rs` forward or back
//!
//! Imports apply, git and on_disk of this room. Imported by cli and by who settles.

mod lock;
mod making;
mod objects;
mod places;
pub mod recover;
pub mod result;
mod store;
mod target;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::paths::TreePath;
use cto_core::values::time::Utc;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::journal::{Deed, End, Journal, Step};
use cto_core::workspace::landing::message::{BadMessage, Who};
use cto_core::workspace::landing::refusal::Refusal;

use crate::host::programs::Program;
use crate::host::{self, Home};
use crate::supervise::cancel::Cancel;
use crate::workspace::apply::ApplyError;
use crate::workspace::git::{GitError, SourceError, SourceRepo, TreeEntry};

use places::Places;

/// What is to land, and where.
pub struct Order<'a> {
    pub git: &'a Program,
    /// Whose store keeps the journal.
    pub home: &'a Home,
    pub repository: &'a Path,
    /// Of the path of the repository, where no other will do.
    pub only: Option<Digest>,
    /// The home of whoever asks, whose git has settings there.
    pub users_home: Option<&'a Path>,
    pub way: Way,
    pub change: Change<'a>,
    /// `Branch`: the name of the new one. `Merge`: the only one that may move, where there is only one.
    pub branch: Option<&'a str>,
    /// The only commit that it may stand on, where there is only one.
    pub head: Option<&'a str>,
    pub clean: Clean,
    pub run: &'a RunId,
    /// The request that was approved, where an approval was needed.
    pub approval: Option<&'a str>,
    /// Title and text of the commit; the trailers are added.
    pub words: &'a str,
    pub author: Who,
    pub committer: Who,
    pub when: Utc,
    pub awaits_settlement: bool,
    /// A private directory of ours.
    pub aside: &'a Path,
}

pub enum Change<'a> {
    /// A verified patch, in the bytes that were verified, and the tree that its run started from.
    Patch {
        tree: &'a str,
        bytes: &'a [u8],
        paths: BTreeSet<TreePath>,
    },
    /// Back to what was before this commit.
    Undo { commit: &'a str },
}

/// What must be as HEAD has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clean {
    /// The paths that change. Other work of the owner's stays as it is.
    Paths,
    /// Everything.
    Everything,
}

#[derive(Debug, thiserror::Error)]
pub enum LandingError {
    #[error(transparent)]
    Repository(#[from] SourceError),
    #[error("its path leads to {} now", .0.display())]
    Elsewhere(PathBuf),
    #[error("another cto is at work here")]
    Busy,
    /// Never empty.
    #[error("{}", said(.0))]
    Refused(Vec<Refusal>),
    #[error("the commit this change was made on is not in this repository")]
    OtherRepository(#[source] GitError),
    #[error("later commits changed these paths: {0}")]
    Changed(String),
    #[error("HEAD has this change already")]
    Nothing,
    #[error("the change does not apply to HEAD")]
    Patch(#[source] GitError),
    #[error(transparent)]
    Words(#[from] BadMessage),
    #[error("the name of the branch is none that cto gives: {0}")]
    Name(String),
    #[error("the branch {0} stands for another one (a symbolic ref)")]
    Symbolic(String),
    #[error("git could not be asked")]
    Git(#[from] GitError),
    #[error("a private copy could not be made")]
    Aside(#[source] io::Error),
    #[error("the journal could not be written")]
    Journal(#[source] io::Error),
    #[error("the repository became another while it was looked at")]
    Moved,
    #[error("it was interrupted")]
    Interrupted,
    #[error("{path} could not be put in place")]
    Place { path: TreePath, source: io::Error },
    #[error("the repository could not be written to")]
    Write(#[source] io::Error),
    /// What was begun could not be undone: a recovery later may.
    #[error("what was begun could not be undone yet ({undoing}); `cto recover` tries again")]
    Stuck {
        undoing: String,
        source: Box<LandingError>,
    },
}

impl From<ApplyError> for LandingError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Repository(error) => Self::Repository(error),
            ApplyError::Aside(error) => Self::Aside(error),
            ApplyError::Patch(error) => Self::Patch(error),
            other => Self::Aside(io::Error::other(other)),
        }
    }
}

fn said(refusals: &[Refusal]) -> String {
    let lines: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// A repository that is held: whatever becomes of its path, this one is changed, and no other cto does.
pub(crate) struct Target {
    pub source: SourceRepo,
    /// Its top as it is held open.
    pub top: PathBuf,
    _held: File,
}

impl Target {
    fn open(
        git: &Program,
        repository: &Path,
        (only, users_home): (Option<Digest>, Option<&Path>),
        ours: &Path,
    ) -> Result<Self, LandingError> {
        host::make_private_dir(ours).map_err(LandingError::Aside)?;
        let source = SourceRepo::open(git, repository, ours, users_home)?;
        let held = File::open(&source.top).map_err(LandingError::Write)?;
        let top = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let path = fs::read_link(&top).map_err(LandingError::Write)?;
        let is_it = |only: Digest| Digest::of(path.as_os_str().as_bytes()) == only;
        if path != source.top || !only.is_none_or(is_it) {
            return Err(LandingError::Elsewhere(path));
        }
        match rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LandingError::Busy),
            Err(error) => Err(LandingError::Write(error.into())),
            Ok(()) => Ok(Self {
                source,
                top,
                _held: held,
            }),
        }
    }
}

/// One commit that would land as things are.
pub struct Ready {
    pub commit: String,
    pub tree: String,
    pub parent: String,
    /// The whole name of the ref that moves.
    pub branch: String,
    /// It landed before: nothing is left to do.
    pub is_landed: bool,
    pub top: PathBuf,
    target: Target,
    journal: Journal,
    store: PathBuf,
    aside: PathBuf,
    pack: Option<PathBuf>,
    committer: Who,
    stamp: Vec<u8>,
    /// A path of the work tree may be another by now.
    touched: bool,
}

/// One that landed. Its journal is there until it is settled.
#[derive(Debug)]
pub struct Landed {
    pub commit: String,
    pub tree: String,
    pub parent: String,
    pub branch: String,
    pub top: PathBuf,
    pub paths: Vec<TreePath>,
    journal: Option<PathBuf>,
}

impl Landed {
    /// What follows from it is sealed, or nothing does.
    pub fn settled(self) -> io::Result<()> {
        self.journal.map_or(Ok(()), |path| store::remove(&path))
    }
}

/// Looks, refuses, and makes the commit aside. Only reads the repository.
pub fn prepare(order: &Order<'_>) -> Result<Ready, LandingError> {
    let name = host::random_name(12)
        .map_err(|failure| LandingError::Aside(io::Error::other(failure.what)))?;
    let aside = order.aside.join(name);
    host::make_private_dir(&aside).map_err(LandingError::Aside)?;
    let held = (order.only, order.users_home);
    let target = Target::open(order.git, order.repository, held, &aside.join("ours"))?;
    making::ready(order, target, aside)
}

/// Both steps, once more where the repository became another in between.
pub fn land(order: &Order<'_>, cancel: &Cancel) -> Result<Landed, LandingError> {
    const TRIES: usize = 3;
    let mut tries = 0;
    loop {
        tries += 1;
        match prepare(order)?.land(cancel) {
            Err(LandingError::Moved) if tries < TRIES => {}
            ended => return ended,
        }
    }
}

impl Ready {
    pub fn paths(&self) -> Vec<TreePath> {
        let changes = self.journal.paths.iter();
        changes.map(|change| change.path.clone()).collect()
    }

    /// What is landed: a change, or one that is taken back.
    pub fn deed(&self) -> Deed {
        self.journal.deed
    }

    pub fn land(mut self, cancel: &Cancel) -> Result<Landed, LandingError> {
        if self.is_landed {
            return Ok(self.landed(None));
        }
        let journal = store::write(&self.store, &self.journal).map_err(LandingError::Journal)?;
        passed("journal");
        let Err(error) = self.steps(cancel) else {
            return Ok(self.landed(Some(journal)));
        };
        if !self.touched && self.is_not_there() {
            // Nothing of the owner's was changed: what is ours goes.
            self.abandon().map_err(LandingError::Write)?;
            store::remove(&journal).map_err(LandingError::Journal)?;
            return Err(error);
        }
        // By the code that recovers, so that both always do the same.
        match recover::finish(&self.target, &mut self.journal, &self.store) {
            Ok(Some(End::Landed)) => Ok(self.landed(Some(journal))),
            Ok(Some(End::Undone)) => {
                store::remove(&journal).map_err(LandingError::Journal)?;
                Err(error)
            }
            Ok(Some(End::Left)) => Err(stuck("some of it is another's by now", error)),
            Ok(None) => Err(stuck("another git is at work", error)),
            Err(why) => Err(stuck(&why.to_string(), error)),
        }
    }

    fn is_not_there(&self) -> bool {
        let now = self.target.source.branch_now(&self.journal.branch);
        now.is_ok_and(|now| now.as_deref() != Some(self.journal.new_commit.as_str()))
    }

    fn abandon(&self) -> io::Result<()> {
        let places = Places::of(&self.target, &self.journal);
        lock::release(self.target.source.git_dir(), &self.journal)?;
        objects::take_back(
            &self.target.source.common_dir.join("objects"),
            &self.journal,
        )?;
        places.remove_room().map(drop)
    }

    fn landed(self, journal: Option<PathBuf>) -> Landed {
        Landed {
            paths: self.paths(),
            commit: self.commit,
            tree: self.tree,
            parent: self.parent,
            branch: self.branch,
            top: self.top,
            journal,
        }
    }

    fn steps(&mut self, cancel: &Cancel) -> Result<(), LandingError> {
        match self.journal.way {
            Way::Branch => self.new_ref(),
            Way::Merge => self.with_work_tree(cancel),
        }
    }

    fn new_ref(&mut self) -> Result<(), LandingError> {
        let places = Places::of(&self.target, &self.journal);
        places.make_room().map_err(LandingError::Write)?;
        self.import(&places)?;
        self.move_branch()?;
        self.ended(&places)
    }

    fn with_work_tree(&mut self, cancel: &Cancel) -> Result<(), LandingError> {
        let places = Places::of(&self.target, &self.journal);
        places.make_room().map_err(LandingError::Write)?;
        passed("room");
        let git_dir = self.target.source.git_dir().to_owned();
        if !lock::take(&git_dir, &places, &self.journal).map_err(LandingError::Write)? {
            return Err(LandingError::Moved);
        }
        passed("lock");
        // Nobody's git changes anything from here on; editors may, and their files are looked at again.
        let paths = self.paths();
        if target::stamp(&self.target, &paths) != self.stamp || !places.all_old() {
            return Err(LandingError::Moved);
        }
        self.import(&places)?;
        places.make(&self.aside.join("after"))?;
        passed("made");
        self.touched = true;
        places.put_in(cancel, &|| passed("one path"))?;
        passed("paths");
        self.install_index(&places)?;
        passed("index");
        self.move_branch()?;
        passed("ref");
        lock::release(&git_dir, &self.journal).map_err(LandingError::Write)?;
        passed("unlocked");
        self.ended(&places)
    }

    fn import(&self, places: &Places) -> Result<(), LandingError> {
        if let Some(pack) = &self.pack {
            let objects = self.target.source.common_dir.join("objects");
            objects::put(pack, &objects, places.room(), &self.journal)
                .map_err(LandingError::Write)?;
        }
        passed("objects");
        Ok(())
    }

    fn install_index(&mut self, places: &Places) -> Result<(), LandingError> {
        let changes: Vec<(TreePath, Option<TreeEntry>)> = self
            .journal
            .paths
            .iter()
            .map(|change| {
                let entry = change.new.as_ref().map(|held| TreeEntry {
                    mode: held.mode.clone(),
                    id: held.blob.clone(),
                });
                (change.path.clone(), entry)
            })
            .collect();
        let entries: Vec<(&TreePath, Option<&TreeEntry>)> = changes
            .iter()
            .map(|(path, entry)| (path, entry.as_ref()))
            .collect();
        let made = self.target.source.make_index(&entries)?;
        let digest = places.keep_index(&made).map_err(LandingError::Write)?;
        if let Some(index) = &mut self.journal.index {
            index.new = Some(digest);
        }
        self.journal.step = Step::Installing;
        store::write(&self.store, &self.journal).map_err(LandingError::Journal)?;
        passed("new index");
        places.swap_index().map_err(LandingError::Write)
    }

    fn move_branch(&self) -> Result<(), LandingError> {
        let word = match self.journal.deed {
            Deed::Landing => "land",
            Deed::Revert => "revert",
        };
        let reason = format!("cto: {word} {}", self.journal.run_id);
        let commits = (
            self.journal.new_commit.as_str(),
            self.journal.old_commit.as_deref(),
        );
        let source = &self.target.source;
        Ok(source.move_branch(&self.journal.branch, commits, (&self.committer, &reason))?)
    }

    /// It is where it should be: nothing of ours stays but the journal.
    fn ended(&mut self, places: &Places) -> Result<(), LandingError> {
        let objects = self.target.source.common_dir.join("objects");
        objects::let_go(&objects, &self.journal).map_err(LandingError::Write)?;
        places.remove_room().map_err(LandingError::Write)?;
        passed("room gone");
        self.journal.step = Step::Ended;
        self.journal.end = Some(End::Landed);
        store::write(&self.store, &self.journal).map_err(LandingError::Journal)?;
        passed("ended");
        Ok(())
    }
}

fn stuck(undoing: &str, error: LandingError) -> LandingError {
    LandingError::Stuck {
        undoing: undoing.to_owned(),
        source: Box::new(error),
    }
}

/// Tests end the process here.
#[cfg(not(test))]
fn passed(_: &'static str) {}
#[cfg(test)]
use tests::passed;

#[cfg(test)]
mod tests;
