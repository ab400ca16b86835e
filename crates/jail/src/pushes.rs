//! Pushes by git, followed until it is seen where they go: into a directory of the jail's own, or not.
//!
//! What is not seen to go there stays what it was, an attempt. Nothing is read from configuration: it is the engine's
//! to change between our look and git's. Why so: `docs/decisions/0046-a-push-inside-the-jail.md`.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::run::attempt::{Deed, Log};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};

/// Pushes that are followed; what comes after them stays an attempt.
const MOST: usize = 64;
/// Children of all of them together that are remembered.
const MOST_CHILDREN: usize = 512;

/// A process, whatever becomes of its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Process {
    id: u32,
    /// In ticks, since the machine was started.
    began: u64,
}

impl Process {
    fn with(id: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name of the program comes before, in brackets, and may hold anything.
        let after = stat.rsplit(')').next().unwrap_or_default();
        let began = after.split_whitespace().nth(19);
        let began = began.and_then(|ticks| ticks.parse().ok());
        began
            .map(|began| Self { id, began })
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The process of a task, and the one that started it.
fn family(task: u32) -> io::Result<(u32, u32)> {
    let status = fs::read_to_string(format!("/proc/{task}/status"))?;
    let number = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok())
    };
    number("Tgid:")
        .zip(number("PPid:"))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

struct Push {
    process: Process,
    words: Vec<Vec<u8>>,
    /// A shell tries one program after the other.
    times: u64,
    /// A directory of the jail was asked to receive.
    inside: bool,
    /// Something else was asked too, or may have been.
    elsewhere: bool,
    /// The process became another program.
    over: bool,
}

/// What a call means for the pushes that are followed. It is looked at while the caller waits, and believed once it
/// is known that it still did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Nothing,
    /// The process of one starts a program, perhaps the same again.
    Itself(usize),
    /// Its child is the other side.
    Receives {
        push: usize,
        inside: bool,
    },
    /// Its child is something else, and stays that whatever it becomes.
    Helps {
        push: usize,
        child: u32,
    },
    Connects(usize),
}

/// What a child of a push begins as.
pub(crate) enum Child {
    /// How git asks a directory to receive.
    Receiver(Vec<u8>),
    /// Git as it packs what it sends, in words that it does not say to any transport.
    Packs,
    Other,
}

#[derive(Default)]
pub(crate) struct Pushes {
    /// Directories that are the jail's own, as they are called inside.
    places: Vec<PathBuf>,
    seen: Vec<Push>,
    /// Children that git started for something else: a proxy, a hook, a pager.
    helpers: Vec<Process>,
}

impl Pushes {
    pub(crate) fn into(places: Vec<PathBuf>) -> Self {
        Self {
            places,
            ..Self::default()
        }
    }

    fn of(&self, id: u32) -> Option<usize> {
        let at = (self.seen.iter()).position(|push| push.process.id == id && !push.over)?;
        let is_same = Process::with(id).is_ok_and(|process| process == self.seen[at].process);
        is_same.then_some(at)
    }

    /// A start of a program; `child` reads which one it would be for git.
    pub(crate) fn start(&self, task: u32, child: impl FnOnce() -> Child) -> Told {
        if self.seen.is_empty() {
            return Told::Nothing;
        }
        let Ok((process, parent)) = family(task) else {
            return Told::Nothing;
        };
        if let Some(push) = self.of(process) {
            return Told::Itself(push);
        }
        let Some(push) = self.of(parent) else {
            return Told::Nothing;
        };
        let known = self.helpers.iter().find(|helper| helper.id == process);
        if known.is_some_and(|known| Process::with(process).ok() == Some(*known)) {
            return Told::Nothing;
        }
        match child() {
            // A pager is started in the same words, but writes to a terminal.
            Child::Receiver(dir) => Told::Receives {
                push,
                inside: is_between_pipes(task) && self.is_inside(task, &dir),
            },
            // Whatever it is called, and whatever git was told to ask it for.
            Child::Other if stands_as_transport(task) => Told::Receives {
                push,
                inside: false,
            },
            Child::Packs | Child::Other => Told::Helps {
                push,
                child: process,
            },
        }
    }

    /// A connect of any kind. Git makes none itself to reach a directory.
    pub(crate) fn connect(&self, task: u32) -> Told {
        if self.seen.is_empty() {
            return Told::Nothing;
        }
        let push = family(task).ok().and_then(|(process, _)| self.of(process));
        push.map_or(Told::Nothing, Told::Connects)
    }

    /// What was told is so. `own`: the words of a push that starts.
    pub(crate) fn believe(&mut self, told: Told, task: u32, own: Option<&[Vec<u8>]>) {
        match told {
            Told::Itself(at) if own == Some(&self.seen[at].words) => {
                self.seen[at].times += 1;
                return;
            }
            Told::Itself(at) => self.seen[at].over = true,
            Told::Receives { push, inside: true } => self.seen[push].inside = true,
            Told::Receives { push, .. } | Told::Connects(push) => self.seen[push].elsewhere = true,
            Told::Helps { push, child } => match Process::with(child) {
                Ok(child) if self.helpers.len() < MOST_CHILDREN => {
                    self.helpers.retain(|helper| helper.id != child.id);
                    self.helpers.push(child);
                }
                _ => self.seen[push].elsewhere = true,
            },
            Told::Nothing => {}
        }
        let Some(words) = own.filter(|_| self.seen.len() < MOST) else {
            return;
        };
        let process = family(task).and_then(|(id, _)| Process::with(id));
        self.seen.extend(process.ok().map(|process| Push {
            process,
            words: words.to_vec(),
            times: 1,
            inside: false,
            elsewhere: false,
            over: false,
        }));
    }

    /// Those that stayed inside are no attempts.
    pub(crate) fn close(self, log: &mut Log) {
        let stayed = (self.seen.iter()).filter(|push| push.inside && !push.elsewhere);
        for push in stayed {
            let words: Vec<&[u8]> = push.words.iter().map(Vec::as_slice).collect();
            log.turned(Deed::Push, Deed::PushInside, &words, push.times);
        }
    }

    /// Does this name, as a task knows it, lead to a directory below one of the jail's own, and is the repository
    /// there? Links are followed as inside; those of `/proc` are not.
    pub(crate) fn is_inside(&self, task: u32, dir: &[u8]) -> bool {
        self.look_inside(task, dir).unwrap_or(false)
    }

    fn look_inside(&self, task: u32, dir: &[u8]) -> io::Result<bool> {
        let dir = Path::new(std::ffi::OsStr::from_bytes(dir));
        let path = match dir.is_absolute() {
            true => dir.to_owned(),
            false => fs::read_link(format!("/proc/{task}/cwd"))?.join(dir),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, format!("/proc/{task}/root"), flags, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(&root, &path, flags, Mode::empty(), resolve)?;
        // Named from the root of the jail, which is where its mounts end.
        let real = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
        let is_below = self.places.iter().any(|place| real.starts_with(place));
        // A file or link instead of the directory, or of a part all share, leads elsewhere.
        let kind = |name: &str| match statat(&found, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error),
        };
        let is_directory = |kind: Option<FileType>| kind.is_none_or(|kind| kind.is_dir());
        let mut stays = is_below;
        for name in [".git", "objects", "refs", ".git/objects", ".git/refs"] {
            stays &= is_directory(kind(name)?);
        }
        for name in ["commondir", ".git/commondir"] {
            stays &= kind(name)?.is_none();
        }
        Ok(stays)
    }
}

fn is_between_pipes(task: u32) -> bool {
    ["0", "1"]
        .iter()
        .all(|number| end_of(task, number).is_ok_and(|end| is_pipe(&end)))
}

fn end_of(task: u32, number: &str) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{task}/fd/{number}"))
}

fn is_pipe(end: &Path) -> bool {
    end.as_os_str().as_bytes().starts_with(b"pipe:[")
}

/// Git reads what the other side says from a pipe of its own. What a hook says goes where errors go, which may be a
/// pipe too. What cannot be seen may be a transport.
fn stands_as_transport(task: u32) -> bool {
    match (end_of(task, "0"), end_of(task, "1"), end_of(task, "2")) {
        (Ok(input), Ok(output), Ok(errors)) => {
            is_pipe(&input) && is_pipe(&output) && output != errors
        }
        (Ok(input), Ok(output), Err(_)) => is_pipe(&input) && is_pipe(&output),
        _ => true,
    }
}
