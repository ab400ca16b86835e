//! A log that an engine writes in its workspace, followed as it grows. Whatever lies there is the engine's: only
//! regular files are opened, no link is followed on the way, nothing waits, and what is read has a bound.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::engine::manifest::EventLog as Wanted;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};

/// So much of all logs together is read; a sparse file has no end that anybody waits for.
const MAX_BYTES: u64 = 128 << 20;
/// So much at once, so that nothing else waits for long.
const AT_ONCE: u64 = 8 << 20;
/// Logs that are followed; an honest engine writes one.
const MAX_LOGS: usize = 4;
/// Names that are looked at.
const MAX_NAMES: usize = 1024;

/// What is to be told of the logs beside their lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oddity {
    NotAFile,
    TooMany,
    TooLong,
    Shrunk,
}

impl Oddity {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NotAFile => "what lies where its event log belongs is no file, and is not read",
            Self::TooMany => "it writes more than one event log",
            Self::TooLong => "its event log is longer than is read of one",
            Self::Shrunk => "its event log became shorter; what came before stays said",
        }
    }
}

pub struct Follower {
    root: PathBuf,
    /// Below the root, each a plain name.
    dir: Vec<String>,
    begins: String,
    ends: String,
    logs: Vec<(Vec<u8>, File)>,
    refused: Vec<Vec<u8>>,
    read: u64,
    told: Vec<Oddity>,
    untold: Vec<Oddity>,
    buffer: Vec<u8>,
}

impl Follower {
    /// `root`: where everything lies that the engine changes. `dir`: with the attempt's own name in it.
    pub fn new(root: &Path, wanted: &Wanted, dir: &str) -> Self {
        Self {
            root: root.to_owned(),
            dir: dir.split('/').map(str::to_owned).collect(),
            begins: wanted.begins.clone(),
            ends: wanted.ends.clone(),
            logs: Vec::new(),
            refused: Vec::new(),
            read: 0,
            told: Vec::new(),
            untold: Vec::new(),
            buffer: vec![0; 64 << 10],
        }
    }

    /// Reads what is new; says whether anything was. What cannot be read is not there, or is told of once.
    pub fn look(&mut self, hear: &mut dyn FnMut(&[u8])) -> bool {
        self.find();
        let mut moved = false;
        for at in 0..self.logs.len() {
            moved |= self.read_on(at, hear);
        }
        moved
    }

    /// Once nothing writes there any more: all that is left of them.
    pub fn finish(&mut self, hear: &mut dyn FnMut(&[u8])) -> bool {
        let mut moved = false;
        while self.look(hear) {
            moved = true;
        }
        moved
    }

    /// What there is to tell, each once.
    pub fn oddities(&mut self) -> Vec<Oddity> {
        std::mem::take(&mut self.untold)
    }

    fn odd(&mut self, what: Oddity) {
        if !self.told.contains(&what) {
            self.told.push(what);
            self.untold.push(what);
        }
    }

    fn read_on(&mut self, at: usize, hear: &mut dyn FnMut(&[u8])) -> bool {
        let (mut taken, mut moved) = (0, false);
        loop {
            if self.read >= MAX_BYTES {
                self.odd(Oddity::TooLong);
                return false;
            }
            let (_, log) = &mut self.logs[at];
            let shrunk = position(log)
                .zip(log.metadata().ok())
                .is_some_and(|(at, meta)| meta.len() < at);
            let count = match log.read(&mut self.buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if shrunk {
                self.odd(Oddity::Shrunk);
            }
            if count == 0 || taken >= AT_ONCE {
                return moved;
            }
            moved = true;
            self.read += count as u64;
            taken += count as u64;
            hear(&self.buffer[..count]);
        }
    }

    /// Opens logs that were not there before.
    fn find(&mut self) {
        let Ok(dir) = self.open_dir() else { return };
        let Ok(names) = Dir::read_from(&dir) else {
            return;
        };
        let mut found: Vec<Vec<u8>> = Vec::new();
        for entry in names.take(MAX_NAMES).flatten() {
            let name = entry.file_name().to_bytes().to_vec();
            let fits = name.len() >= self.begins.len() + self.ends.len()
                && name.starts_with(self.begins.as_bytes())
                && name.ends_with(self.ends.as_bytes());
            let known =
                self.logs.iter().any(|(log, _)| *log == name) || self.refused.contains(&name);
            if fits && !known {
                found.push(name);
            }
        }
        found.sort();
        for name in found {
            if self.logs.len() == MAX_LOGS || self.refused.len() == MAX_LOGS {
                self.odd(Oddity::TooMany);
                return;
            }
            match open_file(&dir, &name) {
                Ok(Some(log)) => self.logs.push((name, log)),
                Ok(None) => {
                    self.refused.push(name);
                    self.odd(Oddity::NotAFile);
                }
                // Gone again.
                Err(_) => {}
            }
            if self.logs.len() > 1 {
                self.odd(Oddity::TooMany);
            }
        }
    }

    fn open_dir(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let mut dir = openat(CWD, &self.root, flags, Mode::empty())?;
        for name in &self.dir {
            dir = openat(&dir, name.as_str(), flags, Mode::empty())?;
        }
        Ok(dir)
    }
}

fn position(log: &mut File) -> Option<u64> {
    io::Seek::stream_position(log).ok()
}

/// The file of this name, or none where there is something else. A pipe is not waited for, a link not followed.
fn open_file(dir: &OwnedFd, name: &[u8]) -> io::Result<Option<File>> {
    let name = std::ffi::OsStr::from_bytes(name);
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO | rustix::io::Errno::ACCESS) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    Ok((kind == FileType::RegularFile).then(|| File::from(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn place() -> (tempfile::TempDir, Follower) {
        let dir = tempfile::tempdir().unwrap();
        let wanted = Wanted {
            dir: String::new(),
            begins: "run-".into(),
            ends: ".jsonl".into(),
            artifact: "x.jsonl".into(),
        };
        let follower = Follower::new(dir.path(), &wanted, ".case/a/events");
        (dir, follower)
    }

    fn heard(follower: &mut Follower) -> Vec<u8> {
        let mut all = Vec::new();
        follower.finish(&mut |bytes| all.extend_from_slice(bytes));
        all
    }

    #[test]
    fn it_is_read_as_it_grows_and_nothing_twice() {
        let (dir, mut follower) = place();
        assert!(heard(&mut follower).is_empty());
        let events = dir.path().join(".case/a/events");
        fs::create_dir_all(&events).unwrap();
        fs::write(events.join("other.jsonl"), "no\n").unwrap();
        let mut log = File::create(events.join("run-1.jsonl")).unwrap();
        log.write_all(b"one\n").unwrap();
        assert_eq!(heard(&mut follower), b"one\n");
        log.write_all(b"two\n").unwrap();
        assert_eq!(heard(&mut follower), b"two\n");
        assert!(follower.oddities().is_empty());
        fs::write(events.join("run-2.jsonl"), "three\n").unwrap();
        assert_eq!(heard(&mut follower), b"three\n");
        assert_eq!(follower.oddities(), [Oddity::TooMany]);
        log.set_len(0).unwrap();
        assert!(heard(&mut follower).is_empty());
        assert_eq!(follower.oddities(), [Oddity::Shrunk]);
    }

    #[test]
    fn what_is_no_file_is_told_once_and_never_waited_for() {
        let (dir, mut follower) = place();
        let events = dir.path().join(".case/a/events");
        fs::create_dir_all(events.join("run-dir.jsonl")).unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "secret\n").unwrap();
        std::os::unix::fs::symlink(&secret, events.join("run-link.jsonl")).unwrap();
        let pipe = events.join("run-pipe.jsonl");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(heard(&mut follower).is_empty());
        assert_eq!(follower.oddities(), [Oddity::NotAFile]);
        assert!(follower.oddities().is_empty());
    }

    #[test]
    fn a_link_on_the_way_leads_nowhere() {
        let (dir, mut follower) = place();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir_all(elsewhere.path().join("a/events")).unwrap();
        fs::write(elsewhere.path().join("a/events/run-1.jsonl"), "x\n").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(".case")).unwrap();
        assert!(heard(&mut follower).is_empty());
    }

    #[test]
    fn a_file_without_an_end_is_read_to_the_bound() {
        let (dir, mut follower) = place();
        let events = dir.path().join(".case/a/events");
        fs::create_dir_all(&events).unwrap();
        let log = File::create(events.join("run-1.jsonl")).unwrap();
        log.set_len(1 << 40).unwrap();
        let mut bytes = 0;
        follower.finish(&mut |piece| bytes += piece.len() as u64);
        assert!(
            (MAX_BYTES..MAX_BYTES + (1 << 20)).contains(&bytes),
            "{bytes}"
        );
        assert_eq!(follower.oddities(), [Oddity::TooLong]);
    }
}
