//! Several records at once: all of them new or all of them old, wherever it ends.
//!
//! A directory beside the engine's own is filled with what will be there, and the two change names
//! in one step of the kernel's. Until then nothing that anybody reads has changed; after it nothing
//! is left to do but to take the old directory away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::records::RecordKind;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{HISTORY, RecordStore, Written};
use crate::host::failure::Failure;
use crate::host::{self, files};

/// Deeper than any directory of records.
const DEEPEST: usize = 8;

/// Nobody else writes records of this engine while it is held.
pub struct Held {
    _lock: File,
}

/// The steps of a change, so that a test can end one anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Begin,
    Carry,
    Record,
    Sync,
    Exchange,
    Clean,
}

impl RecordStore {
    /// Waits until nobody else writes records of this engine.
    pub(super) fn held(&self) -> io::Result<Held> {
        let lock = self.lock_file("lock")?;
        lock.lock()?;
        Ok(Held { _lock: lock })
    }

    /// One dialogue at a time; none where somebody is at it. Other commands may write meanwhile.
    pub fn begin_dialogue(&self) -> io::Result<Option<Held>> {
        let lock = self.lock_file("setup")?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Held { _lock: lock })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Beside the directory, because that changes its name.
    fn lock_file(&self, word: &str) -> io::Result<File> {
        let path = self.beside(word);
        if let Some(parent) = path.parent() {
            host::make_private_dir(parent)?;
        }
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
    }

    fn beside(&self, word: &str) -> PathBuf {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        self.dir.with_file_name(format!(".{name}.{word}"))
    }

    /// Puts all of these records in their places, or none of them; what was there before is kept.
    pub fn write_together(
        &self,
        records: &[(RecordKind, Vec<u8>)],
    ) -> Result<Vec<Written>, Failure> {
        let written = self
            .held()
            .and_then(|_held| self.exchange(records, &mut |_| Ok(())));
        written.map_err(|error| {
            Failure::internal("record_unwritable", "the records could not be written")
                .at(self.dir.display().to_string())
                .because(&error)
                .so("what was on record before still is")
        })
    }

    pub(super) fn exchange(
        &self,
        records: &[(RecordKind, Vec<u8>)],
        reached: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> io::Result<Vec<Written>> {
        self.recover()?;
        let next = self.beside("next");
        let made = self.fill(&next, records, reached);
        let written = match made {
            Ok(written) => written,
            Err(error) => {
                // Litter at most, and the next change takes it away.
                let _ = files::remove_tree(&next);
                return Err(error);
            }
        };
        reached(Step::Exchange)?;
        if let Err(error) = self.swap(&next) {
            let _ = files::remove_tree(&next);
            return Err(error);
        }
        if let Some(parent) = self.dir.parent() {
            File::open(parent)?.sync_all()?;
        }
        reached(Step::Clean)?;
        let _ = files::remove_tree(&next);
        Ok(written)
    }

    /// What a change that was killed left: litter, and on a file system that cannot exchange two
    /// names perhaps the old directory under another name.
    pub(super) fn recover(&self) -> io::Result<()> {
        let before = self.beside("before");
        if before.symlink_metadata().is_ok() {
            match files::rename_new(&before, &self.dir)? {
                true => {}
                false => files::remove_tree(&before)?,
            }
        }
        files::remove_tree(&self.beside("next"))
    }

    fn fill(
        &self,
        next: &Path,
        records: &[(RecordKind, Vec<u8>)],
        reached: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> io::Result<Vec<Written>> {
        reached(Step::Begin)?;
        host::make_private_dir(&next.join(HISTORY))?;
        reached(Step::Carry)?;
        carry(&self.dir, next, DEEPEST)?;
        let mut written = Vec::new();
        for (kind, bytes) in records {
            reached(Step::Record)?;
            let path = next.join(format!("{}.json", kind.as_str()));
            let previous = match path.symlink_metadata() {
                Ok(_) => {
                    let kept = self.next_of_history(*kind)?;
                    fs::rename(&path, next.join(HISTORY).join(&kept))?;
                    Some(self.dir.join(HISTORY).join(kept))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            written.push(Written {
                path: self.path(*kind),
                previous,
            });
        }
        reached(Step::Sync)?;
        File::open(next.join(HISTORY))?.sync_all()?;
        File::open(next)?.sync_all()?;
        Ok(written)
    }

    fn swap(&self, next: &Path) -> io::Result<()> {
        if files::rename_new(next, &self.dir)? {
            return Ok(());
        }
        match renameat_with(CWD, next, CWD, &self.dir, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                // Not one step here; between the two there are no records, which admits nothing,
                // and the next change puts the old ones back.
                fs::rename(&self.dir, self.beside("before"))?;
                fs::rename(next, &self.dir)?;
                let _ = files::remove_tree(&self.beside("before"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The same files under new names: nothing is copied, and what was believed stays what it was.
fn carry(from: &Path, to: &Path, deepest: usize) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true if deepest == 0 => return Err(io::Error::other("directories lie too deep")),
            true => {
                host::make_private_dir(&target)?;
                carry(&entry.path(), &target, deepest - 1)?;
            }
            false => fs::hard_link(entry.path(), target)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Home;

    const KINDS: [RecordKind; 4] = [
        RecordKind::Decision,
        RecordKind::Model,
        RecordKind::Executable,
        RecordKind::Source,
    ];

    fn set(text: &str) -> Vec<(RecordKind, Vec<u8>)> {
        KINDS.map(|kind| (kind, text.as_bytes().to_vec())).to_vec()
    }

    fn store(dir: &Path) -> RecordStore {
        let home = Home {
            root: dir.join("state"),
            runs: dir.join("runs"),
        };
        RecordStore::of(&home, &"pi".parse().unwrap())
    }

    /// What each record says, and none where it is not there.
    fn said(store: &RecordStore) -> Vec<Option<String>> {
        KINDS
            .map(|kind| fs::read_to_string(store.path(kind)).ok())
            .to_vec()
    }

    fn all(text: Option<&str>) -> Vec<Option<String>> {
        vec![text.map(str::to_owned); KINDS.len()]
    }

    #[test]
    fn all_are_written_and_those_before_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let dialogue = store.begin_dialogue().unwrap().unwrap();
        assert!(store.begin_dialogue().unwrap().is_none(), "one at a time");
        store.write_together(&set("one")).unwrap();
        fs::write(store.dir.join("gate.json"), "own").unwrap();
        let written = store.write_together(&set("two")).unwrap();
        assert_eq!(said(&store), all(Some("two")));
        for written in written {
            let previous = written.previous.unwrap();
            assert_eq!(fs::read_to_string(previous).unwrap(), "one");
        }
        let own = fs::read_to_string(store.dir.join("gate.json")).unwrap();
        assert_eq!(own, "own", "what is not written stays");
        drop(dialogue);
        assert!(store.begin_dialogue().unwrap().is_some());
        let one = store.write(RecordKind::Model, b"three").unwrap();
        assert_eq!(fs::read_to_string(one.previous.unwrap()).unwrap(), "two");
        store
            .write_together(&[(RecordKind::Model, b"four".to_vec())])
            .unwrap();
        let kept: Vec<String> = store
            .history(RecordKind::Model)
            .unwrap()
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        assert_eq!(kept, ["one", "two", "three"]);
        assert_eq!(said(&store)[0].as_deref(), Some("two"));
    }

    #[test]
    fn wherever_it_ends_all_are_old_or_all_are_new() {
        // With and without records before; ended by an error, and by a kill that cleans nothing.
        for before in [None, Some("old")] {
            let mut ends = 0;
            for end in 0.. {
                let dir = tempfile::tempdir().unwrap();
                let store = store(dir.path());
                if let Some(text) = before {
                    store.exchange(&set(text), &mut |_| Ok(())).unwrap();
                } else {
                    store.held().unwrap();
                }
                let mut steps = 0;
                let mut last = Step::Begin;
                let done = store.exchange(&set("new"), &mut |step| {
                    last = step;
                    steps += 1;
                    match steps > end {
                        true => Err(io::Error::from(ErrorKind::StorageFull)),
                        false => Ok(()),
                    }
                });
                let want = match (last, &done) {
                    (Step::Clean, _) | (_, Ok(_)) => Some("new"),
                    _ => before,
                };
                assert_eq!(said(&store), all(want), "{before:?} ended at {last:?}");
                ends += 1;
                store.exchange(&set("after"), &mut |_| Ok(())).unwrap();
                assert_eq!(said(&store), all(Some("after")));
                let names: Vec<String> = fs::read_dir(dir.path().join("state/records"))
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                    .filter(|name| name != ".pi.lock")
                    .collect();
                assert_eq!(names, ["pi"], "nothing is left over");
                if done.is_ok() {
                    break;
                }
            }
            assert_eq!(ends, 4 + KINDS.len() + 2, "every step was an end");
        }
    }

    #[test]
    fn old_records_that_a_killed_change_put_aside_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        store.exchange(&set("old"), &mut |_| Ok(())).unwrap();
        fs::rename(&store.dir, store.beside("before")).unwrap();
        store.recover().unwrap();
        assert_eq!(said(&store), all(Some("old")));
    }

    #[test]
    fn a_full_disk_leaves_the_old_records() {
        use std::process::Command;
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(dir.path())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            return;
        }
        let store = store(dir.path());
        store.exchange(&set("old"), &mut |_| Ok(())).unwrap();
        let large = "x".repeat(24 << 10);
        let full = store.exchange(&set(&large), &mut |_| Ok(()));
        let after = said(&store);
        let _ = Command::new("umount").arg("-l").arg(dir.path()).status();
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(after, all(Some("old")));
    }
}
