//! `run.lock`: held while a run is live. An open-file-description lock, so it dies with its holder.
//! And the entry in `open/` by which a run is found whose holder died.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::owner::{self, EntryMark, Holds, LockMark, Marks, ReportMark};
use cto_core::values::ids::RunId;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::host::Home;
use crate::host::files;

/// Reports larger than this are not ours.
const LARGEST_REPORT: u64 = 64 << 20;

pub struct RunLock {
    _file: File,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// Someone is writing it.
    Live,
    /// Its writer is gone and no report is seen: it was never sealed, its report is gone, or the
    /// directory may not be looked into.
    Interrupted,
    Sealed,
    /// It bears no mark of ours: another program's, to be left as it is.
    Foreign,
}

impl RunLock {
    /// Takes the lock, or `None` when another process has it.
    pub fn take(dir: &Path) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(dir.join(bundle::LOCK))?;
        if !lock(&file)? {
            return Ok(None);
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let note = owner::lock_note(boot.trim(), std::process::id());
        // In one write, and never empty on the way: the note is what makes the directory ours.
        file.write_all(note.as_bytes())?;
        file.set_len(note.len() as u64)?;
        Ok(Some(Self { _file: file }))
    }
}

fn write_lock() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn lock(file: &File) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&write_lock())) {
        Ok(_) => Ok(true),
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// How a run directory stands, without changing anything in it.
pub fn liveness(dir: &Path) -> Liveness {
    // What may not be looked into bears no mark that could be seen, and is not passed over for it.
    if is_closed(dir) {
        Liveness::Interrupted
    } else if !is_ours(dir) {
        Liveness::Foreign
    } else if dir.join(bundle::REPORT).exists() {
        Liveness::Sealed
    } else if is_held(dir) {
        Liveness::Live
    } else {
        Liveness::Interrupted
    }
}

fn is_closed(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir.join(bundle::REPORT))
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Was this run sealed, and is its report gone since? Then there is nothing to close, and it is not
/// whole.
pub fn has_lost_its_report(dir: &Path) -> bool {
    // In this order: a run that is being sealed has a lock before, and its report after; one that
    // is being removed has no directory after.
    owner::was_sealed(is_attested(dir), lock_mark(dir))
        && !dir.join(bundle::REPORT).exists()
        && dir.is_dir()
}

fn is_attested(dir: &Path) -> bool {
    files::read_limited(&dir.join(bundle::ATTESTATION), LARGEST_REPORT)
        .is_ok_and(|bytes| owner::is_own_attestation(&bytes))
}

/// A lock, and an entry in `open/`, say in a few bytes whose they are.
const LONGEST_NOTE: u64 = 4096;

/// Does this directory bear a mark of ours? Asked in the order of what the answers cost.
fn is_ours(dir: &Path) -> bool {
    let mut marks = Marks {
        report: ReportMark::Missing,
        is_attested: false,
        has_own_lock: holds_own_lock(dir),
    };
    if !owner::is_ours(marks) {
        let report = files::read_limited(&dir.join(bundle::REPORT), LARGEST_REPORT).ok();
        marks.report = owner::report_mark(report.as_deref());
    }
    if !owner::is_ours(marks) {
        marks.is_attested = is_attested(dir);
    }
    owner::is_ours(marks)
}

/// Is there a lock that we wrote?
fn holds_own_lock(dir: &Path) -> bool {
    match lock_mark(dir) {
        // Looked into only where the answer hangs on it.
        LockMark::Former => owner::is_own_lock(LockMark::Former, holds(dir)),
        mark => owner::is_own_lock(mark, Holds::OtherNames),
    }
}

fn lock_mark(dir: &Path) -> LockMark {
    let lock = dir.join(bundle::LOCK);
    match files::read_limited(&lock, LONGEST_NOTE) {
        Ok(note) => owner::lock_mark(Some(&note)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => LockMark::Missing,
        Err(_) => LockMark::Other,
    }
}

/// What cannot be looked at counts as somebody else's.
fn holds(dir: &Path) -> Holds {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Holds::OtherNames;
    };
    let mut found = Holds::Nothing;
    for entry in entries {
        let Ok(entry) = entry else {
            return Holds::OtherNames;
        };
        let name = entry.file_name();
        if !name.to_str().is_some_and(owner::is_name_at_top) {
            return Holds::OtherNames;
        }
        let is_empty_lock = name == bundle::LOCK
            && entry
                .metadata()
                .is_ok_and(|meta| meta.is_file() && meta.len() == 0);
        if !is_empty_lock {
            found = Holds::OnlyOurNames;
        }
    }
    found
}

/// The entry of a run in `open/`: there while the run is open, so that it is found if it is killed.
pub struct OpenEntry {
    path: PathBuf,
    run_id: RunId,
}

impl OpenEntry {
    pub fn of(home: &Home, run_id: &RunId) -> Self {
        Self {
            path: home.open_runs().join(run_id.as_str()),
            run_id: run_id.clone(),
        }
    }

    /// Lists the run. An entry that is there already is not ours: the name of the run is new.
    pub fn make(&self) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)?;
        file.write_all(owner::entry_note(&self.run_id).as_bytes())
    }

    /// Was the run in this directory begun by us?
    pub fn is_begun_here(&self, dir: &Path) -> bool {
        owner::is_begun_here(self.mark(), lock_mark(dir), holds(dir))
    }

    /// Takes the run off the list, if it is us who put it there.
    pub fn clear(&self, dir: &Path) {
        let mark = self.mark();
        let is_run_ours =
            || std::fs::symlink_metadata(dir).is_ok_and(|it| it.is_dir()) && is_ours(dir);
        if owner::is_own_entry(mark, mark == EntryMark::Empty && is_run_ours()) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn mark(&self) -> EntryMark {
        // A link leads to what was not written here.
        match std::fs::symlink_metadata(&self.path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return EntryMark::Other,
            Err(_) => return EntryMark::Missing,
        }
        match files::read_limited(&self.path, LONGEST_NOTE) {
            Ok(note) => owner::entry_mark(Some(&note), &self.run_id),
            Err(_) => EntryMark::Other,
        }
    }
}

/// Takes a new run and lists it, in this order: a recovery beside us closes whatever is listed and not held. Until
/// the lock names us the directory bears no mark of ours, and from then on it is held.
pub fn hold_and_list(
    home: &Home,
    dir: &Path,
    run_id: &RunId,
) -> io::Result<Option<(RunLock, OpenEntry)>> {
    let Some(lock) = RunLock::take(dir)? else {
        return Ok(None);
    };
    let entry = OpenEntry::of(home, run_id);
    entry.make()?;
    Ok(Some((lock, entry)))
}

/// Has a writer of this run not let go of it yet?
pub fn is_held(dir: &Path) -> bool {
    File::open(dir.join(bundle::LOCK)).is_ok_and(|file| is_locked(&file))
}

fn is_locked(file: &File) -> bool {
    let mut probe = write_lock();
    match fcntl(file, FcntlArg::F_OFD_GETLK(&mut probe)) {
        Ok(_) => probe.l_type != libc::F_UNLCK as i16,
        // Unknown is treated as live: a reader must never call a running run interrupted.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_is_live_and_free_is_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(liveness(dir.path()), Liveness::Foreign);
        let lock = RunLock::take(dir.path()).unwrap().unwrap();
        assert_eq!(liveness(dir.path()), Liveness::Live);
        assert!(RunLock::take(dir.path()).unwrap().is_none());
        drop(lock);
        assert_eq!(liveness(dir.path()), Liveness::Interrupted);
        std::fs::write(dir.path().join(bundle::REPORT), "{}").unwrap();
        assert_eq!(liveness(dir.path()), Liveness::Sealed);
    }

    fn home_with(run_id: &RunId) -> (tempfile::TempDir, Home, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let home = Home {
            root: place.path().to_owned(),
            runs: place.path().join("runs"),
        };
        let dir = home.runs.join(run_id.as_str());
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::create_dir_all(home.open_runs()).unwrap();
        (place, home, dir)
    }

    #[test]
    fn a_run_that_cannot_be_listed_was_held_before() {
        let run_id: RunId = "20260101T000000Z-quick-aaaaaaaa".parse().unwrap();
        let (_place, home, dir) = home_with(&run_id);
        std::fs::write(home.open_runs().join(run_id.as_str()), "theirs\n").unwrap();
        assert!(hold_and_list(&home, &dir, &run_id).is_err());
        assert_eq!(lock_mark(&dir), LockMark::Ours);
    }

    /// Beside a recovery that looks again and again, no run is lost to it.
    #[test]
    fn what_is_listed_is_held() {
        const RUNS: usize = 300;
        let run = |number: usize| -> RunId {
            let id = format!("20260101T000000Z-quick-{number:08}");
            id.parse().unwrap()
        };
        let (_place, home, _) = home_with(&run(0));
        let ready = std::sync::Barrier::new(2);
        let over = std::sync::atomic::AtomicBool::new(false);
        let mut held = Vec::new();
        std::thread::scope(|scope| {
            let recovery = scope.spawn(|| {
                ready.wait();
                let mut taken = Vec::new();
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let names = std::fs::read_dir(home.open_runs()).unwrap().flatten();
                    for run_id in names.filter_map(|it| it.file_name().to_str()?.parse().ok()) {
                        let dir = home.runs.join(RunId::as_str(&run_id));
                        let begun = OpenEntry::of(&home, &run_id).is_begun_here(&dir);
                        taken.extend(begun.then(|| RunLock::take(&dir).unwrap()).flatten());
                    }
                }
                taken.len()
            });
            ready.wait();
            for run_id in (0..RUNS).map(run) {
                let dir = home.runs.join(run_id.as_str());
                std::fs::create_dir_all(&dir).unwrap();
                held.push(hold_and_list(&home, &dir, &run_id).unwrap());
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(recovery.join().unwrap(), 0, "taken by a recovery");
        });
        assert!(held.iter().all(Option::is_some));
    }

    #[test]
    fn a_lock_is_never_taken_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let theirs = dir.path().join("theirs");
        std::fs::write(&theirs, "precious").unwrap();
        std::os::unix::fs::symlink(&theirs, dir.path().join(bundle::LOCK)).unwrap();
        assert!(RunLock::take(dir.path()).is_err());
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "precious");
    }
}
