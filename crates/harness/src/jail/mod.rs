//! The jail: mount, pid, ipc, uts and network namespaces, a private root, Landlock, seccomp, no
//! capabilities, limits; entered by a hidden re-exec that reports what the kernel enforced.

mod canary;
mod enter;
mod guard;
mod landlock;
mod overlay;
pub mod probe;
mod root;
mod seccomp;
pub mod spec;
mod survivors;
pub(crate) mod sys;
mod witness;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cto_core::containment::{JailReport, Layer};

pub use enter::main as enter_main;
pub use spec::{ExitWord, Guarded, JailLimits, Mount, Over, STAND_IN_DIR};
use spec::{FromJail, GO, JailSpec, TERMINATE};
pub use survivors::{Census, Tally};
pub use sys::is_root;
pub use witness::Witness;

/// Longest an entry may take before it is given up.
const ENTRY_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("the jail could not be started")]
    Spawn(#[source] io::Error),
    #[error("the jail could not be entered: {step}: {error}")]
    Entry { step: String, error: String },
    #[error("the jail did not answer")]
    Silent(#[source] io::Error),
}

/// What to run inside, and what of the host it may see.
#[derive(Clone, Debug)]
pub struct JailPlan {
    pub mounts: Vec<Mount>,
    pub limits: JailLimits,
    pub door: bool,
    /// What of a writable directory is kept as it is.
    pub guard: Option<Guarded>,
    /// Pass on our own standard input.
    pub stdin: bool,
    /// All of them, but for experiments.
    pub layers: Vec<Layer>,
    /// See what it attempts.
    pub watched: bool,
}

impl JailPlan {
    pub fn new(mounts: Vec<Mount>) -> Self {
        let layers = Layer::ALL.to_vec();
        Self {
            mounts,
            limits: JailLimits::default(),
            door: false,
            guard: None,
            stdin: false,
            layers,
            watched: false,
        }
    }
}

/// A jail that is ready: restricted, measured, and waiting for the word to go.
pub struct Ready {
    pub child: Child,
    pub control: UnixStream,
    pub report: JailReport,
    pub census: Census,
    /// The listening socket inside the network namespace, when one was asked for.
    pub door: Option<Door>,
    /// Who sees what is attempted inside, or why nobody does.
    pub witness: Result<Witness, String>,
}

pub struct Door {
    pub listener: TcpListener,
    pub port: u16,
}

/// The uid a jailed process gets when the harness is root: named in no passwd, and one a thread,
/// because runs side by side share nothing, not even a count of processes. A run stays on the
/// thread it began on.
pub fn jail_uid() -> u32 {
    1_900_000_000
        + rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
            % 50_000_000
}

/// Starts a jail and waits until it has measured itself.
pub fn prepare(
    plan: &JailPlan,
    program: &Path,
    args: &[OsString],
    cwd: &Path,
    env: &BTreeMap<OsString, OsString>,
    output: (Stdio, Stdio),
) -> Result<Ready, JailError> {
    let bytes = |text: &OsString| text.as_bytes().to_vec();
    let spec = JailSpec {
        layers: plan.layers.iter().copied().collect(),
        outside: canary::outside(),
        uid: jail_uid(),
        mounts: plan.mounts.clone(),
        cwd: cwd.to_owned(),
        program: program.as_os_str().as_bytes().to_vec(),
        args: args.iter().map(bytes).collect(),
        env: env
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect(),
        door: plan.door,
        stdin: plan.stdin,
        limits: plan.limits,
        watched: plan.watched,
        guard: plan.guard.clone(),
    };
    let (ours, theirs) = UnixStream::pair().map_err(JailError::Spawn)?;
    let child = Command::new("/proc/self/exe")
        .arg("__jail")
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(output.0)
        .stderr(output.1)
        .spawn()
        .map_err(JailError::Spawn)?;
    let mut child = Guard(Some(child));
    ours.set_read_timeout(Some(ENTRY_LIMIT))
        .map_err(JailError::Spawn)?;
    // An entry that failed early closes the socket; its own words come with the next read.
    let sent = spec::send(&ours, &spec).and_then(|()| match plan.stdin {
        true => sys::send_descriptor(ours.as_fd(), &[0], io::stdin().as_fd()),
        false => Ok(()),
    });
    let mut door = None;
    let mut listener = Err("nobody asked to see them".to_owned());
    let (report, census) = loop {
        let (message, fd) = receive(&ours).map_err(|error| {
            JailError::Silent(
                sent.as_ref()
                    .err()
                    .map_or(error, |e| io::Error::new(e.kind(), e.to_string())),
            )
        })?;
        match message {
            FromJail::Door { port } => {
                door = fd.map(|fd| Door {
                    listener: TcpListener::from(fd),
                    port,
                })
            }
            FromJail::Listener => {
                listener = fd.ok_or_else(|| "the listener did not arrive".to_owned())
            }
            FromJail::NoListener { reason } => listener = Err(reason),
            FromJail::Ready(report) => {
                let census = Census::new(fd, &report.pid_namespace);
                break (report, census);
            }
            FromJail::Failed { step, error } => return Err(JailError::Entry { step, error }),
            FromJail::Ended { .. } => {
                return Err(JailError::Silent(io::Error::other(
                    "it ended before it began",
                )));
            }
        }
    };
    ours.set_read_timeout(None).map_err(JailError::Spawn)?;
    // From its first start of a program on, somebody must answer.
    let witness = match listener {
        Ok(listener) => Ok(Witness::start(listener).map_err(JailError::Spawn)?),
        Err(reason) => Err(reason),
    };
    let child = child
        .0
        .take()
        .ok_or_else(|| JailError::Spawn(io::Error::other("no child")))?;
    Ok(Ready {
        child,
        control: ours,
        report,
        census,
        door,
        witness,
    })
}

/// Ends an entry that went wrong: closing the socket ends pid 1, and the outer process is reaped.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One frame; a descriptor that rides along comes with its first bytes.
fn receive(socket: &UnixStream) -> io::Result<(FromJail, Option<OwnedFd>)> {
    let mut length = [0u8; 4];
    // A signal to the process may wake any of its threads; that is no answer.
    let (got, fd) = loop {
        match sys::receive_descriptor(socket.as_fd(), &mut length) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => break received?,
        }
    };
    match got {
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        4 => {}
        n => io::Read::read_exact(&mut &*socket, &mut length[n..])?,
    }
    let mut rest = length.to_vec();
    let mut body = vec![0u8; (u32::from_le_bytes(length) as usize).min(16 << 20)];
    io::Read::read_exact(&mut &*socket, &mut body)?;
    rest.extend(body);
    Ok((spec::receive(rest.as_slice())?, fd))
}

/// The word to go.
pub fn go(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[GO])
}

/// Asks everything inside to end; the answer is the end, or the limit after which `sever` is used.
pub fn terminate(control: &UnixStream) -> io::Result<()> {
    (&mut &*control).write_all(&[TERMINATE])
}

/// Cuts the lifeline: pid 1 exits and the kernel ends the rest.
pub fn sever(control: &UnixStream) {
    // Already closed is as good.
    let _ = control.shutdown(std::net::Shutdown::Both);
}

/// What pid 1 says at the end, if it says anything.
pub fn last_word(control: &UnixStream) -> Option<(ExitWord, u64)> {
    match receive(control).ok()? {
        (
            FromJail::Ended {
                status,
                ended_with_it,
            },
            _,
        ) => Some((status, ended_with_it)),
        _ => None,
    }
}

/// Gives a private copy to the uid that will work in it. Only root can, and only root needs to.
pub fn hand_over(dir: &Path) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let uid = jail_uid();
    let mut pending: Vec<PathBuf> = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        std::os::unix::fs::lchown(&path, Some(uid), Some(uid))?;
        if std::fs::symlink_metadata(&path)?.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                pending.push(entry?.path());
            }
        }
    }
    Ok(())
}
