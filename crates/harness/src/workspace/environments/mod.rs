//! Environments of the operator's work tree in private copies: found, looked at, and laid out anew
//! for every process that is not to see what another one wrote.
//!
//! - this file: the environments of one run, laid out for one jail; `at_home.rs` which are not
//!   laid out in a copy that differs from the work tree
//! - `find.rs` which there are; `state.rs` one look at one, `looks.rs` at all, before and after each
//!   process; `copying.rs` copies with their times
//! - `homes.rs` what tools keep in the home; `probe.rs` can a jail have this directory below an
//!   overlay?

mod at_home;
pub mod copying;
pub mod find;
pub mod homes;
mod looks;
pub mod probe;
pub mod state;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cto_core::containment::mounts::Granted;
use cto_core::gate::plan::Environment;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::Carried;
use cto_core::workspace::times::Time;
use cto_core::workspace::times::at_home::AtHome;
use cto_jail::{Mount, Over};

use crate::host;
use crate::host::places::Places;
use crate::workspace::environments::homes::{Built, LaidHomes, Part};
pub use crate::workspace::environments::looks::FirstLook;
use crate::workspace::environments::looks::Looked;
use crate::workspace::environments::state::State;
use crate::workspace::on_disk::{Apart, locate};
use crate::workspace::private_copy::PrivateCopy;

/// The environments that are carried in one run.
#[derive(Default)]
pub struct Environments {
    carried: Mutex<AllCarried>,
    /// The last look at all of them.
    looked: Mutex<Option<Looked>>,
    /// What tools keep in the home, which lies in no copy.
    homes: Vec<Part>,
    /// The run's directory below `work/`.
    work: PathBuf,
    laid: AtomicU32,
    /// Their places; those that were let go of on the way are no part of the engine's tree either.
    apart: Apart,
    /// What the plan says is carried and is not, and why.
    pub dropped: Vec<String>,
}

/// Checks of one run may be under way at the same time: what one finds out is so for all.
#[derive(Default)]
struct AllCarried {
    all: Vec<One>,
    /// Another number whenever what jails are shown becomes something else.
    version: u32,
    /// Something that tools judge by times is not what it was when the run was planned: its owner
    /// may have made it of files that no copy has.
    other: bool,
}

struct One {
    environment: Environment,
    source: Granted,
    /// Where the run has its own copy of it, from which every other copy is made.
    own: Option<PathBuf>,
    /// It is the operator's own directory that jails see, and not a copy.
    live: bool,
    gone: bool,
    /// The youngest time in it.
    newest: Time,
    /// What the last look at it found, where it is live.
    state: Option<Digest>,
}

/// What live environments were when a process was about to start, and the youngest time in them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Live {
    version: u32,
    pub states: Vec<(TreePath, Option<Digest>)>,
    pub newest: Time,
    /// Not all that is judged by times is what it was when the run was planned.
    pub other: bool,
}

/// How one jail gets the environments: mounts, beside what was put into its private copy.
#[derive(Default)]
pub struct Laid {
    version: u32,
    mounts: Vec<(TreePath, Granted, Option<Over>)>,
    hidden: Vec<PathBuf>,
    /// Uppers of this jail alone.
    pub uppers: Vec<PathBuf>,
    copied: Vec<TreePath>,
    homes: LaidHomes,
    /// What stayed at home for this copy, and why.
    pub notes: Vec<String>,
}

impl Environments {
    /// Takes a copy of what is small, so that every jail of the run starts from the same.
    /// What is large is what planning saw a moment ago, as `first` has it.
    pub fn prepare(
        found: &[Environment],
        first: Option<&FirstLook>,
        work: &Path,
    ) -> io::Result<Self> {
        let (mut carried, mut dropped) = (Vec::new(), Vec::new());
        let is_carried = |found: &&Environment| found.record.is_carried();
        let of_copy = |found: &&Environment| found.in_home.is_none();
        for environment in found.iter().filter(is_carried).filter(of_copy) {
            let Some(source) = environment.source.clone() else {
                continue;
            };
            // A file has no half that could be put above it.
            let copied = environment.record.carried == Carried::Copied || !source.is_dir();
            let own = match copied {
                true => own_copy(environment, &source, work, carried.len()),
                false => None,
            };
            let newest = own.as_ref().map_or((0, 0), |(_, newest)| *newest);
            let own = own.map(|(own, _)| own);
            if copied && own.is_none() {
                let name = environment.record.name();
                dropped.push(format!(
                    "{name} changed while it was copied, so it is not there"
                ));
                continue;
            }
            carried.push(One {
                environment: environment.clone(),
                source,
                live: own.is_none(),
                gone: false,
                newest,
                own,
                state: None,
            });
        }
        let looked = first.and_then(|first| Looked::first(first, &mut carried));
        let place = |one: &One| (one.environment.record.path.clone(), one.source.is_dir());
        Ok(Self {
            apart: carried.iter().map(place).collect(),
            carried: Mutex::new(AllCarried {
                all: carried,
                ..AllCarried::default()
            }),
            looked: Mutex::new(looked),
            homes: found.iter().filter_map(Part::of).collect(),
            work: work.to_owned(),
            laid: AtomicU32::new(0),
            dropped,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.carried().all.is_empty() && self.homes.is_empty()
    }

    fn carried(&self) -> MutexGuard<'_, AllCarried> {
        // Nothing is half done when it is let go of.
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of a private copy is no part of its tree.
    pub fn places(&self) -> &Apart {
        &self.apart
    }

    /// The youngest time in what tools judge by times.
    pub fn newest_judged(&self) -> Time {
        let carried = self.carried();
        let judged = |one: &&One| one.environment.record.kind.is_judged_by_times();
        let newest = carried.all.iter().filter(judged).map(|one| one.newest);
        newest.max().unwrap_or_default()
    }

    /// Lets go of what a tool judges by times and has some that are still to come, after the last
    /// look: there everything old would be taken for new. Says what.
    pub fn leave_out_young(&self, now: Time) -> Vec<String> {
        let mut carried = self.carried();
        let mut notes = Vec::new();
        carried.all.retain(|one| {
            let record = &one.environment.record;
            let young = record.kind.is_judged_by_times() && one.newest > now;
            if young {
                let name = record.name();
                notes.push(format!(
                    "{name} has files that are younger than now, so it is not there"
                ));
            }
            !young
        });
        carried.version += u32::from(!notes.is_empty());
        notes
    }

    /// Somebody changes what jails see: from now on they see copies that nobody changes, or
    /// nothing. Says which of them changed since `before`, and what became of each.
    pub fn settle(&self, before: &Live, places: &Places) -> Vec<String> {
        let now = self.look();
        let mut notes = Vec::new();
        let mut carried = self.carried();
        carried.version += 1;
        let AllCarried { all, other, .. } = &mut *carried;
        let all = all.iter_mut().enumerate();
        for (number, one) in all.filter(|(_, one)| one.live) {
            let path = &one.environment.record.path;
            let was = before.states.iter().find(|(of, _)| of == path);
            let changed = was != now.states.iter().find(|(of, _)| of == path);
            let own = one.own_copy(&self.work, number);
            *other |= own.as_ref().is_some_and(|(_, state)| one.is_other(state));
            let made = own.and_then(|(own, _)| places.made(&own, false).ok());
            let name = one.environment.record.name();
            let becomes = if made.is_some() {
                "a copy of it"
            } else {
                "nothing"
            };
            if changed {
                notes.push(format!(
                    "{name} changed while a command ran, so that run does not count; it was run again with {becomes}"
                ));
            }
            one.live = false;
            match made {
                Some(made) => one.source = made,
                None => one.gone = true,
            }
        }
        carried.all.retain(|one| !one.gone);
        notes
    }

    /// Lays every environment out for one jail, as nobody has written to it. Where the copy has
    /// something else in its place, or its directory is gone, there is none.
    fn lay(&self, copy: &PrivateCopy, at_home: &AtHome, built: &Built) -> io::Result<Laid> {
        let number = self.laid.fetch_add(1, Ordering::Relaxed);
        let dir = self.work.join(format!("environments-{number}"));
        let carried = self.carried();
        let mut homes = LaidHomes::lay(&self.homes, built, &dir)?;
        let mut laid = Laid {
            version: carried.version,
            notes: std::mem::take(&mut homes.notes),
            homes,
            ..Laid::default()
        };
        for (index, one) in carried.all.iter().enumerate() {
            let record = &one.environment.record;
            if let Some(why) = at_home.why(record.kind) {
                laid.notes
                    .push(format!("{} is not there: {why}", record.name()));
                continue;
            }
            let path = &record.path;
            let put = copy.edit(std::slice::from_ref(path), |top| match &one.own {
                Some(own) => put(top, path, |place| {
                    copying::copy_tree(own, place, &BTreeSet::new())
                }),
                None => put(top, path, |place| fs::create_dir(place)),
            });
            match (put?, &one.own) {
                (Ok(false), _) => {}
                (Ok(true), Some(_)) => laid.copied.push(path.clone()),
                (Ok(true), None) => laid.show(one, &dir.join(index.to_string()))?,
                (Err(error), _) => return Err(error),
            }
        }
        Ok(laid)
    }

    /// Was this laid out of what was looked at, and is that still what jails are shown?
    pub fn are_still(&self, laid: &Laid, live: &Live) -> bool {
        laid.version == live.version && live.version == self.carried().version
    }

    /// The same once more for the next jail in the same copy.
    fn lay_again(
        &self,
        copy: &PrivateCopy,
        before: &Laid,
        at_home: &AtHome,
        built: &Built,
    ) -> io::Result<Laid> {
        let places = before.copied.iter();
        let places: Vec<TreePath> = places
            .chain(before.mounts.iter().map(|(path, ..)| path))
            .cloned()
            .collect();
        copy.edit(&places, |top| {
            for path in places.iter().filter(|path| is_reached(top, path)) {
                let place = locate(top, path);
                match fs::symlink_metadata(&place) {
                    Ok(meta) if meta.is_dir() => crate::host::files::remove_tree(&place)?,
                    Ok(_) => fs::remove_file(&place)?,
                    Err(_) => {}
                }
            }
            io::Result::Ok(())
        })??;
        self.lay(copy, at_home, built)
    }
}

/// The run's own copy, where the original held still while it was made, and is still what the plan
/// names.
fn own_copy(
    environment: &Environment,
    source: &Granted,
    work: &Path,
    number: usize,
) -> Option<(PathBuf, Time)> {
    let state = environment.record.state;
    let (own, found) = still_copy(source, work, number)?;
    (Some(found.digest) == state).then_some((own, found.newest))
}

/// A copy of one moment, without what is hidden, and the state of the original then.
fn still_copy(source: &Granted, work: &Path, number: usize) -> Option<(PathBuf, State)> {
    const TRIES: u32 = 3;
    for attempt in 0..TRIES {
        let own = work.join(format!("environment-{number}-{attempt}"));
        let before = state::look(source.path()).ok()?;
        let hidden: BTreeSet<&TreePath> = before.hidden.iter().collect();
        let made = copying::copy_tree(source.path(), &own, &hidden);
        let still = state::look(source.path()).is_ok_and(|now| now.digest == before.digest);
        if made.is_ok() && still {
            return Some((own, before));
        }
        // What is half made is in nobody's way.
        let _ = crate::host::files::remove_tree(&own);
    }
    None
}

impl One {
    /// Tools judge it by times, and it is not what it was when the run was planned.
    fn is_other(&self, state: &State) -> bool {
        let record = &self.environment.record;
        record.kind.is_judged_by_times() && record.state != Some(state.digest)
    }

    /// A copy of a directory that somebody changes, where it is not too large for one, and its
    /// state then.
    fn own_copy(&self, work: &Path, number: usize) -> Option<(PathBuf, State)> {
        const MOST: u64 = 4 << 30;
        let small = self.environment.record.bytes <= MOST;
        let work = work.join("settled");
        host::make_private_dir(&work).ok().filter(|()| small)?;
        still_copy(&self.source, &work, number)
    }
}

/// Puts something into a copy where nothing is and a directory waits for it; says whether it did.
fn put(
    top: &Path,
    path: &TreePath,
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<bool> {
    let place = locate(top, path);
    match fs::symlink_metadata(&place) {
        Err(_) if is_reached(top, path) => make(&place).map(|()| true),
        _ => Ok(false),
    }
}

/// Is every step to a path a directory? The copy may hold what an engine made: no link is followed.
fn is_reached(top: &Path, path: &TreePath) -> bool {
    let relative = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
    let mut way = top.to_owned();
    let mut steps = relative.parent().unwrap_or(Path::new("")).components();
    steps.all(|part| {
        way.push(part);
        fs::symlink_metadata(&way).is_ok_and(|meta| meta.is_dir())
    })
}

impl Laid {
    fn show(&mut self, one: &One, dir: &Path) -> io::Result<()> {
        let environment = &one.environment;
        let path = environment.record.path.clone();
        let over = match environment.record.carried {
            Carried::Overlay => {
                let over = fresh_upper(environment, &one.source, dir)?;
                self.uppers.push(over.upper.clone());
                Some(over)
            }
            Carried::ReadOnly | Carried::Copied | Carried::Not => {
                let below = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
                let hidden = environment.hidden.iter();
                self.hidden.extend(
                    hidden.map(|file| below.join(std::ffi::OsStr::from_bytes(file.as_bytes()))),
                );
                None
            }
        };
        self.mounts.push((path, one.source.clone(), over));
        Ok(())
    }

    /// The mounts of one jail whose private copy stands at `inside`.
    pub fn mounts(&self, inside: &Path, places: &Places) -> io::Result<Vec<Mount>> {
        let mount = |(path, source, over): &(TreePath, Granted, Option<Over>)| {
            let mount = Mount::at(source, locate(inside, path));
            match over {
                Some(over) => mount.below(over.clone()),
                None => mount,
            }
        };
        let mut mounts: Vec<Mount> = self.mounts.iter().map(mount).collect();
        mounts.extend(self.homes.mounts(places)?);
        Ok(mounts)
    }

    /// Every place that was filled.
    pub fn places(&self) -> BTreeSet<TreePath> {
        let mounts = self.mounts.iter().map(|(path, ..)| path);
        mounts.chain(&self.copied).cloned().collect()
    }

    /// Files that look empty there, where nothing can be put above them.
    pub fn hidden(&self, inside: &Path) -> Vec<PathBuf> {
        self.hidden.iter().map(|path| inside.join(path)).collect()
    }

    /// Gives what is this jail's own to the uid that will work in it.
    pub fn hand_over(&self) -> io::Result<()> {
        let mut uppers = self.uppers.iter();
        uppers.try_for_each(|upper| cto_jail::hand_over(upper))?;
        self.homes.hand_over()
    }
}

/// An upper half in which nothing is but empty files over what no jail is shown. It looks like the
/// directory it will lie over.
fn fresh_upper(environment: &Environment, source: &Granted, dir: &Path) -> io::Result<Over> {
    let over = Over {
        upper: dir.join("upper"),
        work: dir.join("work"),
    };
    host::make_private_dir(&over.work)?;
    host::make_private_dir(&over.upper)?;
    let mut made: BTreeSet<PathBuf> = BTreeSet::from([PathBuf::new()]);
    for hidden in &environment.hidden {
        let path = Path::new(std::ffi::OsStr::from_bytes(hidden.as_bytes()));
        // Its owner may have taken it away since.
        if fs::symlink_metadata(source.path().join(path)).is_err() {
            continue;
        }
        for above in path
            .ancestors()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            if made.insert(above.to_owned()) {
                fs::create_dir(over.upper.join(above))?;
            }
        }
        let empty = over.upper.join(path);
        fs::File::create_new(&empty)?;
        fs::set_permissions(&empty, fs::Permissions::from_mode(0o644))?;
    }
    for below in made.iter().rev() {
        let meta = fs::symlink_metadata(source.path().join(below))?;
        let place = over.upper.join(below);
        let mode = (meta.mode() & 0o777) | 0o700;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
        copying::set_times(&place, &meta)?;
    }
    Ok(over)
}

#[cfg(test)]
#[path = "environments_tests.rs"]
mod tests;
