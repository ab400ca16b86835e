//! The witness: sees every start of a program and every connect in an engine's jail, and lets each
//! go on.
//!
//! A thread of the harness's answers the kernel's notices, so that no engine waits for output to be
//! written. It refuses nothing, and what it reads can change under its eyes: the layers of the jail
//! refuse, this only sees. Why here and so: `docs/decisions/0016-attempts-are-seen.md`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use cto_core::run::attempt::{self, Deed, Log};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::pushes::{Child, Pushes, Told};
use crate::sys::{self, Notice};

/// Longest word that is read of a command line, and most of them.
const MAX_WORD: usize = 4096;
const MAX_WORDS: usize = 512;
/// Of all words together.
const MAX_BYTES: usize = 256 << 10;
const PAGE: u64 = 4096;

pub struct Witness {
    thread: Option<JoinHandle<Log>>,
    stop: Arc<AtomicBool>,
}

impl Witness {
    /// `places`: directories that are the jail's own, as they are called inside.
    pub fn start(listener: OwnedFd, places: Vec<PathBuf>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("witness".into())
            .spawn(move || {
                let mut pushes = Pushes::into(places);
                let mut log = watch(listener.as_fd(), &told, &mut pushes);
                pushes.close(&mut log);
                log
            })?;
        Ok(Self {
            thread: Some(thread),
            stop,
        })
    }

    /// What was seen, once nobody is left to be seen.
    pub fn finish(mut self) -> Result<Log, String> {
        self.stop.store(true, Ordering::Relaxed);
        let log = self.thread.take().and_then(|thread| thread.join().ok());
        log.ok_or_else(|| "the witness did not come to its end".to_owned())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it saw of a run that was given up is of no use.
            let _ = thread.join();
        }
    }
}

/// Until the last watched process is gone, which hangs the listener up.
fn watch(listener: BorrowedFd<'_>, stop: &AtomicBool, pushes: &mut Pushes) -> Log {
    const LOOK_UP: Timespec = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let mut log = Log::default();
    // The first call is the harness's own start of the engine: nothing else is watched before it.
    let mut ours = true;
    // Only quicker, and only on newer kernels.
    let _ = sys::wake_in_step(listener);
    loop {
        let mut fds = [PollFd::new(&listener, PollFlags::IN)];
        match poll(&mut fds, Some(&LOOK_UP)) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return log,
            Ok(_) => {}
        }
        let ready = fds[0].revents();
        if ready.contains(PollFlags::IN) {
            // One that vanished meanwhile waits for nothing.
            if let Ok(notice) = sys::next_notice(listener) {
                if !std::mem::take(&mut ours) {
                    look(listener, &notice, &mut log, pushes);
                }
                let _ = sys::let_go_on(listener, notice.id);
            }
        } else if !ready.is_empty() || stop.load(Ordering::Relaxed) {
            return log;
        }
    }
}

fn look(listener: BorrowedFd<'_>, notice: &Notice, log: &mut Log, pushes: &mut Pushes) {
    let memory = Memory(notice.pid);
    let [a, b, c, _, e, f] = notice.args;
    let started = match notice.call {
        libc::SYS_execve => Some((a, b)),
        libc::SYS_execveat => Some((b, c)),
        _ => None,
    };
    let seen = match notice.call {
        libc::SYS_connect => connection(&memory, a, b, c),
        libc::SYS_sendto => connection(&memory, a, e, f),
        libc::SYS_sendmsg | libc::SYS_sendmmsg => message(&memory, a, b),
        _ => match started {
            Some((path, argv)) => command(&memory, path, argv, pushes),
            None => Ok(Seen::Nothing),
        },
    };
    let told = match started {
        Some((path, argv)) => pushes.start(memory.0, || child(&memory, path, argv)),
        None => pushes.connect(memory.0),
    };
    if matches!(seen, Ok(Seen::Nothing)) && told == Told::Nothing {
        return;
    }
    // Only while it waits is the number still its own, and what was read its own words.
    if !sys::still_waits(listener, notice.id) {
        return;
    }
    let own = match &seen {
        Ok(Seen::OwnPush(words)) => Some(words.as_slice()),
        _ => None,
    };
    pushes.believe(told, memory.0, own);
    let mut saw = |deed, words: &[Vec<u8>]| {
        log.saw(deed, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    };
    match seen {
        Ok(Seen::Nothing) => {}
        Ok(Seen::OwnPush(words)) => saw(Deed::Push, &words),
        Ok(Seen::Deed(deed, words)) => saw(deed, &words),
        // Also where there seems to be nothing to read: some memory is open to nobody but its owner
        // and the kernel.
        Ok(Seen::TooLong) | Err(_) => log.missed(),
    }
}

/// What a program would be for a push that starts it.
fn child(memory: &Memory, path: u64, argv: u64) -> Child {
    const WORDS: usize = 5;
    let read = || -> io::Result<(Vec<u8>, Vec<Vec<u8>>)> {
        let words = memory.pointers(argv, WORDS)?.into_iter();
        let words: io::Result<Vec<Vec<u8>>> = words.map(|at| memory.text(at)).collect();
        Ok((memory.text(path)?, words?))
    };
    let Ok((path, words)) = read() else {
        return Child::Other;
    };
    let given: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    // To a transport git says a host, then a quoted path or a number.
    let packs = matches!(
        given.get(1..),
        Some([
            b"pack-objects",
            b"--all-progress-implied",
            b"--revs",
            b"--stdout"
        ])
    );
    match attempt::local_transport(&path, &given) {
        Some(dir) => Child::Receiver(dir.to_vec()),
        None if packs => Child::Packs,
        None => Child::Other,
    }
}

enum Seen {
    Nothing,
    Deed(Deed, Vec<Vec<u8>>),
    /// A push of git's own, of which its child will tell where it goes.
    OwnPush(Vec<Vec<u8>>),
    /// A command of the table with more words than are read.
    TooLong,
}

fn command(memory: &Memory, path: u64, argv: u64, pushes: &Pushes) -> io::Result<Seen> {
    let path = memory.text(path)?;
    let first = match argv {
        0 => Vec::new(),
        argv => memory
            .pointers(argv, 1)?
            .first()
            .map_or(Ok(Vec::new()), |at| memory.text(*at))?,
    };
    if !attempt::is_worth_reading(&path, &first) {
        return Ok(Seen::Nothing);
    }
    let pointers = if argv == 0 {
        Vec::new()
    } else {
        memory.pointers(argv, MAX_WORDS)?
    };
    let mut words = Vec::new();
    let mut bytes = 0;
    for at in &pointers {
        if bytes > MAX_BYTES {
            break;
        }
        words.push(memory.text(*at)?);
        bytes += words.last().map_or(0, Vec::len);
    }
    // Before its `exec` a process still has the words of the program that starts another.
    let caller = words_of(memory.0).unwrap_or_default();
    let given: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let caller: Vec<&[u8]> = caller.split(|b| *b == 0).take(MAX_WORDS).collect();
    match attempt::of_command(&path, &given, &caller) {
        Some(Deed::Push) if attempt::is_own_push(&path, &given) => Ok(Seen::OwnPush(words)),
        Some(Deed::Push) => {
            let dir = attempt::received_in(&path, &given);
            let inside = dir.is_some_and(|dir| pushes.is_inside(memory.0, dir));
            let deed = if inside { Deed::PushInside } else { Deed::Push };
            Ok(Seen::Deed(deed, words))
        }
        Some(deed) => Ok(Seen::Deed(deed, words)),
        None if bytes > MAX_BYTES || pointers.len() >= MAX_WORDS => Ok(Seen::TooLong),
        None => Ok(Seen::Nothing),
    }
}

/// The words a process was started with; it can make them as long as it likes.
fn words_of(task: u32) -> io::Result<Vec<u8>> {
    let mut words = Vec::new();
    File::open(format!("/proc/{task}/cmdline"))?
        .take(MAX_BYTES as u64)
        .read_to_end(&mut words)?;
    Ok(words)
}

/// A connect, or a send that connects on the way.
fn connection(memory: &Memory, socket: u64, address: u64, length: u64) -> io::Result<Seen> {
    const LARGEST: u64 = 28;
    if address == 0 {
        return Ok(Seen::Nothing);
    }
    let bytes = memory.bytes(address, length.min(LARGEST) as usize)?;
    let Some(to) = attempt::of_address(&bytes) else {
        return Ok(Seen::Nothing);
    };
    let (deed, kind) = match is_stream(memory.0, socket)? {
        Some(true) => (Deed::Connect, "stream"),
        Some(false) => (Deed::Datagram, "datagram"),
        None => return Ok(Seen::Nothing),
    };
    let words = ["connect", kind, to.class, &format!("port {}", to.port)]
        .map(|word| word.as_bytes().to_vec());
    Ok(Seen::Deed(deed, words.to_vec()))
}

/// The head of a `msghdr`: where the address is, and how long it is.
fn message(memory: &Memory, socket: u64, header: u64) -> io::Result<Seen> {
    let bytes = memory.bytes(header, 12)?;
    let (Some(address), Some(length)) = (
        bytes.first_chunk::<8>(),
        bytes.get(8..).and_then(|rest| rest.first_chunk::<4>()),
    ) else {
        return Ok(Seen::Nothing);
    };
    connection(
        memory,
        socket,
        u64::from_ne_bytes(*address),
        u32::from_ne_bytes(*length).into(),
    )
}

/// None for a descriptor that is not there: the kernel will say so too.
fn is_stream(task: u32, socket: u64) -> io::Result<Option<bool>> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    // A descriptor can be had of a process, and the notice may be of one of its threads.
    let status = std::fs::read_to_string(format!("/proc/{task}/status"))?;
    let process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .and_then(|id| id.trim().parse::<i32>().ok());
    let pidfd = pidfd_open(
        process.and_then(Pid::from_raw).ok_or_else(gone)?,
        PidfdFlags::empty(),
    )?;
    match pidfd_getfd(pidfd, socket as i32, PidfdGetfdFlags::empty()) {
        Ok(socket) => Ok(Some(
            rustix::net::sockopt::socket_type(socket)? != rustix::net::SocketType::DGRAM,
        )),
        Err(rustix::io::Errno::BADF) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The memory of a task, read in pieces that end where a page does.
pub(crate) struct Memory(pub(crate) u32);

impl Memory {
    fn piece(&self, address: u64, most: usize) -> io::Result<Vec<u8>> {
        let to_page_end = (PAGE - address % PAGE) as usize;
        let mut piece = vec![0u8; most.min(to_page_end)];
        let got = match sys::read_memory(self.0, address, &mut piece) {
            // Memory that may be written and not read: the kernel reads it in a call all the same.
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                self.by_force(address, &mut piece)?
            }
            got => got?,
        };
        piece.truncate(got);
        Ok(piece)
    }

    fn by_force(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        File::open(format!("/proc/{}/mem", self.0))?.read_at(into, address)
    }

    fn bytes(&self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(length);
        while out.len() < length {
            let piece = self.piece(address.wrapping_add(out.len() as u64), length - out.len())?;
            if piece.is_empty() {
                break;
            }
            out.extend(piece);
        }
        Ok(out)
    }

    /// Up to the end of the text, or as much as is read of any.
    pub(crate) fn text(&self, address: u64) -> io::Result<Vec<u8>> {
        const FIRST: usize = 256;
        let mut out = Vec::new();
        while out.len() < MAX_WORD {
            let most = if out.is_empty() {
                FIRST
            } else {
                MAX_WORD - out.len()
            };
            let piece = self.piece(address.wrapping_add(out.len() as u64), most)?;
            match piece.iter().position(|b| *b == 0) {
                Some(end) => {
                    out.extend_from_slice(&piece[..end]);
                    break;
                }
                None if piece.is_empty() => break,
                None => out.extend(piece),
            }
        }
        Ok(out)
    }

    /// Up to the null pointer that ends a list, or to `most` of them.
    fn pointers(&self, address: u64, most: usize) -> io::Result<Vec<u64>> {
        let mut out = Vec::new();
        while out.len() < most {
            // A list need not be followed by anything that can be read: piece by piece, to its end.
            let wanted = (most - out.len()).min(32) * 8;
            let at = address.wrapping_add(out.len() as u64 * 8);
            let to_page_end = ((PAGE - at % PAGE) as usize).max(8);
            let bytes = self.bytes(at, wanted.min(to_page_end))?;
            let before = out.len();
            for pointer in bytes
                .chunks_exact(8)
                .filter_map(|chunk| chunk.first_chunk())
                .map(|chunk| u64::from_ne_bytes(*chunk))
            {
                if pointer == 0 {
                    return Ok(out);
                }
                out.push(pointer);
            }
            if out.len() == before {
                break;
            }
        }
        Ok(out)
    }
}
