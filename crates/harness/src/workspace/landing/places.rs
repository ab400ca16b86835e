//! The paths of one landing: a room of ours beside them, where what goes in is made and what comes out is
//! kept, and the swaps between. What comes out is looked at after it came: an editor that was faster gets
//! its bytes back, in place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::landing::journal::Journal;
use cto_core::workspace::landing::recovery::{Act, PathNow, Side, half_of_a_swap};
use cto_core::workspace::tree::Entry;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{LandingError, Target};
use crate::host::files;
use crate::supervise::cancel::Cancel;
use crate::workspace::apply::place::{fill, holds, make_parent, remove_empty_parents};
use crate::workspace::on_disk;

struct OnePath {
    path: TreePath,
    old: Option<Entry>,
    new: Option<Entry>,
}

pub struct Places {
    top: PathBuf,
    git_dir: PathBuf,
    /// In the git directory, where no status shows it.
    room: PathBuf,
    /// The same, unless the work tree is on another file system.
    files: PathBuf,
    paths: Vec<OnePath>,
}

impl Places {
    pub fn of(target: &Target, journal: &Journal) -> Self {
        let git_dir = target.source.git_dir();
        let device = |dir: &Path| fs::metadata(dir).map(|meta| meta.dev()).ok();
        let room = git_dir.join(format!("cto-landing-{}", journal.id));
        let files = match device(git_dir) == device(&target.top) {
            true => room.clone(),
            false => target.top.join(format!(".cto-landing-{}", journal.id)),
        };
        let changes = journal.paths.iter();
        let paths = changes.map(|change| OnePath {
            path: change.path.clone(),
            old: change.old.as_ref().map(|held| held.entry()),
            new: change.new.as_ref().map(|held| held.entry()),
        });
        Self {
            top: target.top.clone(),
            git_dir: git_dir.to_owned(),
            room,
            files,
            paths: paths.collect(),
        }
    }

    pub fn room(&self) -> &Path {
        &self.room
    }

    pub fn make_room(&self) -> io::Result<()> {
        for dir in [&self.room, &self.files] {
            let mut builder = fs::DirBuilder::new();
            match builder.mode(0o700).create(dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // One that leads elsewhere is not ours.
                    if !fs::symlink_metadata(dir)?.is_dir() {
                        return Err(error);
                    }
                }
                made => made?,
            }
        }
        Ok(())
    }

    fn aside(&self, number: usize) -> PathBuf {
        self.files.join(number.to_string())
    }

    /// Every new file, beside the work tree and on the disk.
    pub fn make(&self, after: &Path) -> Result<(), LandingError> {
        for (number, one) in self.paths.iter().enumerate() {
            let Some(new) = &one.new else { continue };
            let place = on_disk::locate(&self.top, &one.path);
            let like = fs::symlink_metadata(&place)
                .ok()
                .filter(fs::Metadata::is_file);
            let from = on_disk::locate(after, &one.path);
            // A name of its own until it is whole: a torn one is nobody's, and goes with the room.
            let part = self.aside(number).with_extension("part");
            let made = fill(&part, &from, like.as_ref(), new.kind)
                .and_then(|()| fs::rename(&part, self.aside(number)));
            made.and_then(|()| match is(&self.aside(number), Some(new)) {
                true => Ok(()),
                false => Err(io::Error::other("its copy is another")),
            })
            .map_err(|source| LandingError::Place {
                path: one.path.clone(),
                source,
            })?;
        }
        File::open(&self.files)
            .and_then(|dir| dir.sync_all())
            .map_err(LandingError::Write)
    }

    pub fn all_old(&self) -> bool {
        self.paths
            .iter()
            .all(|one| self.side(one, Side::Old) == Side::Old)
    }

    /// What is not as it was.
    pub fn not_old(&self) -> Vec<TreePath> {
        let other = |one: &&OnePath| self.side(one, Side::Old) != Side::Old;
        self.paths
            .iter()
            .filter(other)
            .map(|one| one.path.clone())
            .collect()
    }

    /// Directories on the way that are links or another repository's.
    pub fn behind_links(&self) -> Vec<TreePath> {
        let behind = |one: &&OnePath| {
            way(&self.top, &on_disk::locate(&self.top, &one.path)) == Way::Elsewhere
        };
        self.paths
            .iter()
            .filter(behind)
            .map(|one| one.path.clone())
            .collect()
    }

    pub fn put_in(&self, cancel: &Cancel, passed: &dyn Fn()) -> Result<(), LandingError> {
        // What goes makes room for what comes: a file may become a directory.
        for gone in [true, false] {
            for (number, one) in self.paths.iter().enumerate() {
                if one.new.is_none() != gone {
                    continue;
                }
                if cancel.requested() {
                    return Err(LandingError::Interrupted);
                }
                let put = match self.side(one, Side::Old) {
                    Side::Old => self.swap(number, one, one.old.as_ref()),
                    _ => Err(io::Error::other("it changed a moment ago")),
                };
                put.map_err(|source| LandingError::Place {
                    path: one.path.clone(),
                    source,
                })?;
                passed();
            }
        }
        self.sync().map_err(LandingError::Write)
    }

    fn sync(&self) -> io::Result<()> {
        let mut dirs: Vec<PathBuf> = self
            .paths
            .iter()
            .filter_map(|one| {
                let place = on_disk::locate(&self.top, &one.path);
                let mut above = place.ancestors().skip(1);
                above.find(|dir| dir.is_dir()).map(Path::to_owned)
            })
            .collect();
        dirs.sort();
        dirs.dedup();
        dirs.iter().try_for_each(|dir| File::open(dir)?.sync_all())
    }

    /// Place and aside change what they hold. What comes out must be what was expected there.
    fn swap(&self, number: usize, one: &OnePath, expected: Option<&Entry>) -> io::Result<()> {
        let (place, aside) = (on_disk::locate(&self.top, &one.path), self.aside(number));
        let faster = || io::Error::other("it changed a moment ago");
        match half_of_a_swap(is_there(&place), is_there(&aside)) {
            Act::Swap => {
                swap(&place, &aside)?;
                if !is(&aside, expected) {
                    swap(&place, &aside)?;
                    return Err(faster());
                }
                Ok(())
            }
            Act::TakeOut => {
                move_new(&place, &aside)?;
                if !is(&aside, expected) {
                    move_new(&aside, &place)?;
                    return Err(faster());
                }
                remove_empty_parents(&self.top, &place);
                Ok(())
            }
            Act::PutIn => {
                if expected.is_some() {
                    return Err(faster());
                }
                make_parent(&self.top, &place)?;
                move_new(&aside, &place)
            }
            Act::Nothing | Act::Leave => Ok(()),
        }
    }

    /// What each path is now; where both sides are the same, it is the one that is asked for.
    pub fn now(&self, first: Side) -> Vec<PathNow> {
        let all = self.paths.iter().enumerate();
        all.map(|(number, one)| PathNow {
            place: self.side(one, first),
            aside: match fs::symlink_metadata(self.aside(number)) {
                Ok(_) => self.which(one, first, |entry| is(&self.aside(number), entry)),
                // Where a side is nothing, nothing is what lies aside of it.
                Err(_) => self.which(one, first, |entry| entry.is_none()),
            },
        })
        .collect()
    }

    fn side(&self, one: &OnePath, first: Side) -> Side {
        let place = on_disk::locate(&self.top, &one.path);
        match way(&self.top, &place) {
            Way::Elsewhere => Side::Other,
            Way::Nothing => self.which(one, first, |entry| entry.is_none()),
            Way::There => self.which(one, first, |entry| match entry {
                // A directory is no file: what comes finds it in its way, or empty and gone.
                None => !is_there(&place),
                Some(_) => is(&place, entry),
            }),
        }
    }

    fn which(&self, one: &OnePath, first: Side, holds: impl Fn(Option<&Entry>) -> bool) -> Side {
        let (old, new) = (holds(one.old.as_ref()), holds(one.new.as_ref()));
        match (old, new) {
            (true, true) => first,
            (true, false) => Side::Old,
            (false, true) => Side::New,
            (false, false) if holds(None) => Side::Absent,
            (false, false) => Side::Other,
        }
    }

    /// Does what a recovery decided, removals first.
    pub fn act(&self, acts: &[Act], first: Side) -> io::Result<()> {
        let takes_out = |one: &OnePath| match first {
            Side::New => one.new.is_none(),
            _ => one.old.is_none(),
        };
        for gone in [true, false] {
            let all = self.paths.iter().zip(acts).enumerate();
            for (number, (one, act)) in all.filter(|(_, (one, _))| takes_out(one) == gone) {
                if matches!(act, Act::Nothing | Act::Leave) {
                    continue;
                }
                let expected = match (act, first) {
                    (Act::PutIn, _) => None,
                    (_, Side::New) => one.old.as_ref(),
                    _ => one.new.as_ref(),
                };
                self.swap(number, one, expected)?;
            }
        }
        self.sync()
    }

    fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    fn index_aside(&self) -> PathBuf {
        self.room.join("index")
    }

    /// The new index, in the room and on the disk, with the mode of the old one.
    pub fn keep_index(&self, made: &Path) -> io::Result<Digest> {
        let aside = self.index_aside();
        let mode = fs::symlink_metadata(self.index())?.permissions().mode() & 0o777;
        let mut out = File::create_new(&aside)?;
        io::copy(&mut files::open_regular(made)?, &mut out)?;
        out.set_permissions(fs::Permissions::from_mode(mode))?;
        out.sync_all()?;
        Ok(files::scan_file(&aside, |_| {})?.sha256)
    }

    pub fn swap_index(&self) -> io::Result<()> {
        swap(&self.index(), &self.index_aside())?;
        File::open(&self.git_dir)?.sync_all()
    }

    pub fn index_now(&self, journal: &Journal) -> PathNow {
        let which = |path: PathBuf| {
            let found = files::scan_file(&path, |_| {}).map(|file| file.sha256).ok();
            match (found, &journal.index) {
                (None, _) => Side::Absent,
                (Some(found), Some(index)) if found == index.old => Side::Old,
                (Some(found), Some(index)) if Some(found) == index.new => Side::New,
                _ => Side::Other,
            }
        };
        PathNow {
            place: which(self.index()),
            aside: which(self.index_aside()),
        }
    }

    /// Where a file system knows no exchange, a kill may have come between its parts.
    pub fn mend_swaps(&self) -> io::Result<()> {
        let all = self.paths.iter().enumerate();
        let files = all.map(|(n, one)| (on_disk::locate(&self.top, &one.path), self.aside(n)));
        for (place, aside) in files.chain([(self.index(), self.index_aside())]) {
            let third = third(&aside);
            if !is_there(&third) {
                continue;
            }
            match (is_there(&place), is_there(&aside)) {
                (false, _) => move_new(&third, &place)?,
                (true, false) => move_new(&third, &aside)?,
                (true, true) => {}
            }
        }
        Ok(())
    }

    /// Nothing of ours stays: what came out is in the history, what did not go in is in the patch. What is
    /// neither is kept; says whether all is gone.
    pub fn remove_room(&self) -> io::Result<bool> {
        let known = |number: usize, one: &OnePath| {
            let aside = self.aside(number);
            !is_there(&aside) || is(&aside, one.old.as_ref()) || is(&aside, one.new.as_ref())
        };
        let strange = self
            .paths
            .iter()
            .enumerate()
            .any(|(n, one)| !known(n, one) || is_there(&third(&self.aside(n))));
        if strange {
            return Ok(false);
        }
        for dir in [&self.files, &self.room] {
            files::remove_tree(dir)?;
        }
        File::open(&self.git_dir)?.sync_all()?;
        Ok(true)
    }

    pub fn has_room(&self) -> bool {
        fs::symlink_metadata(&self.room).is_ok()
    }
}

/// Where the directories above a place lead.
#[derive(PartialEq, Eq)]
enum Way {
    There,
    /// One is missing, or is a file.
    Nothing,
    /// One is a link, or the top of another repository.
    Elsewhere,
}

fn way(top: &Path, place: &Path) -> Way {
    let Ok(below) = place.strip_prefix(top) else {
        return Way::Elsewhere;
    };
    let mut dir = top.to_owned();
    let parts: Vec<_> = below.components().collect();
    for part in &parts[..parts.len().saturating_sub(1)] {
        dir.push(part);
        match fs::symlink_metadata(&dir) {
            Ok(meta) if meta.is_symlink() => return Way::Elsewhere,
            Ok(meta) if meta.is_dir() => {
                if fs::symlink_metadata(dir.join(".git")).is_ok() {
                    return Way::Elsewhere;
                }
            }
            Ok(_) => return Way::Nothing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Way::Nothing,
            Err(_) => return Way::Elsewhere,
        }
    }
    Way::There
}

/// A file, a link or something stranger; no directory.
fn is_there(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok_and(|meta| !meta.is_dir())
}

fn is(place: &Path, entry: Option<&Entry>) -> bool {
    match (fs::symlink_metadata(place), entry) {
        (Ok(found), Some(entry)) => holds(place, &found, entry),
        (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn third(aside: &Path) -> PathBuf {
    aside.with_extension("third")
}

fn is_unknown_here(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

fn swap(place: &Path, aside: &Path) -> io::Result<()> {
    match renameat_with(CWD, place, CWD, aside, RenameFlags::EXCHANGE) {
        Err(error) if is_unknown_here(error) => {
            let third = third(aside);
            fs::rename(place, &third)?;
            fs::rename(aside, place)?;
            fs::rename(&third, aside)
        }
        swapped => Ok(swapped?),
    }
}

/// Never over anything.
fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unknown_here(error) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        moved => Ok(moved?),
    }
}
