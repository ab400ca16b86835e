//! Starting a jail: the order goes in, and the report of what the kernel enforces comes out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cto_core::containment::{JailReport, Layer};

use crate::control::receive;
use crate::inside::canary;
use crate::owner::{self, jail_uid};
use crate::spec::{self, Descriptor, FromJail, Guarded, JailLimits, JailSpec, Mount, RefusedMap};
use crate::survivors::Census;
use crate::sys;
use crate::witness::Witness;

/// Longest an entry may take before it is given up.
const ENTRY_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("the jail could not be started")]
    Spawn(#[source] io::Error),
    #[error("the jail could not be entered: {step}: {error}")]
    Entry { step: String, error: String },
    #[error("{} cannot be shown to a jail as its user's: {error}", refused.dir.display())]
    Unmapped { refused: RefusedMap, error: String },
    #[error("the jail did not answer")]
    Silent(#[source] io::Error),
}

/// What to run inside, and what of the host it may see.
#[derive(Clone, Debug)]
pub struct JailPlan {
    pub mounts: Vec<Mount>,
    /// Files that look empty although what they lie in is shown.
    pub hidden: Vec<PathBuf>,
    pub limits: JailLimits,
    pub door: bool,
    /// Variables that name the door's address (`127.0.0.1:PORT`), which is known only inside: the
    /// pieces of each value, between which it is put.
    pub env_of_door: BTreeMap<OsString, Vec<OsString>>,
    /// What of a writable directory is kept as it is.
    pub guard: Option<Guarded>,
    /// All of them, but for experiments.
    pub layers: Vec<Layer>,
    /// See what it attempts.
    pub watched: bool,
    /// Its processes may trace each other: for tools that look into a program while it runs.
    pub traced: bool,
}

impl JailPlan {
    pub fn new(mounts: Vec<Mount>) -> Self {
        let layers = Layer::ALL.to_vec();
        Self {
            mounts,
            hidden: Vec::new(),
            limits: JailLimits::default(),
            door: false,
            env_of_door: BTreeMap::new(),
            guard: None,
            layers,
            watched: false,
            traced: false,
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
    /// The other side of its terminal, when it has one.
    pub terminal: Option<OwnedFd>,
    /// Who sees what is attempted inside, or why nobody does.
    pub witness: Result<Witness, String>,
}

pub struct Door {
    pub listener: TcpListener,
    pub port: u16,
}

/// What a process in a jail is given as descriptor 0, 1 or 2.
pub enum Given {
    /// Nothing to read, and nobody to write to.
    Null,
    /// An end of a pipe that nobody else has.
    Pipe(OwnedFd),
    /// A terminal of its own.
    Terminal,
}

impl Given {
    fn kind(&self) -> Descriptor {
        match self {
            Self::Null => Descriptor::Null,
            Self::Pipe(_) => Descriptor::Pipe,
            Self::Terminal => Descriptor::Terminal,
        }
    }

    /// What an entry begins with; a terminal is made on the way in.
    fn at_first(self) -> Stdio {
        match self {
            Self::Pipe(end) => Stdio::from(end),
            Self::Null | Self::Terminal => Stdio::null(),
        }
    }
}

/// A process that will enter a jail: started, and waiting for its order. Dropping it ends it.
pub struct Entry {
    child: Guard,
    control: UnixStream,
    /// Follows the order: until then the control socket is in its place.
    input: Option<OwnedFd>,
    descriptors: [Descriptor; 3],
    keys_at_once: bool,
}

impl Entry {
    /// Starts one with these descriptors. It may come before anything else is known: until the
    /// order is there it only gets ready to read it. It is in a process group of its own: a key of
    /// a terminal ends or stops the harness, and that ends or stops the jail.
    pub fn start(given: [Given; 3], keys_at_once: bool) -> Result<Self, JailError> {
        let (control, theirs) = UnixStream::pair().map_err(JailError::Spawn)?;
        let descriptors = given.each_ref().map(Given::kind);
        let [input, output, error] = given;
        let child = Command::new("/proc/self/exe")
            .arg("__jail")
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(output.at_first())
            .stderr(error.at_first())
            .process_group(0)
            .spawn()
            .map_err(JailError::Spawn)?;
        Ok(Self {
            child: Guard(Some(child)),
            control,
            input: match input {
                Given::Pipe(end) => Some(end),
                Given::Null | Given::Terminal => None,
            },
            descriptors,
            keys_at_once,
        })
    }
}

/// Gives an entry its order and waits until the jail has measured itself.
pub fn prepare(
    entry: Entry,
    plan: &JailPlan,
    program: &Path,
    args: &[OsString],
    cwd: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> Result<Ready, JailError> {
    let spec = order(&entry, plan, program, args, cwd, env);
    let writable = spec.mounts.iter().filter(|mount| mount.writable);
    let own = writable.map(|mount| mount.target.clone());
    let own: Vec<PathBuf> = own.chain([PathBuf::from("/tmp")]).collect();
    let Entry {
        mut child,
        control: ours,
        input,
        ..
    } = entry;
    ours.set_read_timeout(Some(ENTRY_LIMIT))
        .map_err(JailError::Spawn)?;
    // An entry that failed early closes the socket; its own words come with the next read.
    let sent = spec::send(&ours, &spec).and_then(|()| match &input {
        Some(end) => sys::send_descriptor(ours.as_fd(), &[0], end.as_fd()),
        None => Ok(()),
    });
    drop(input);
    let entered = await_report(&ours, sent)?;
    ours.set_read_timeout(None).map_err(JailError::Spawn)?;
    // From its first start of a program on, somebody must answer.
    let witness = match entered.listener {
        Ok(listener) => Ok(Witness::start(listener, own).map_err(JailError::Spawn)?),
        Err(reason) => Err(reason),
    };
    let child = child
        .0
        .take()
        .ok_or_else(|| JailError::Spawn(io::Error::other("no child")))?;
    Ok(Ready {
        child,
        control: ours,
        report: entered.report,
        census: entered.census,
        door: entered.door,
        terminal: entered.terminal,
        witness,
    })
}

fn order(
    entry: &Entry,
    plan: &JailPlan,
    program: &Path,
    args: &[OsString],
    cwd: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> JailSpec {
    let bytes = |text: &OsString| text.as_bytes().to_vec();
    JailSpec {
        layers: plan.layers.iter().copied().collect(),
        outside: canary::outside(),
        uid: jail_uid(),
        share: owner::share(),
        mounts: plan.mounts.clone(),
        hidden: plan.hidden.clone(),
        cwd: cwd.to_owned(),
        program: program.as_os_str().as_bytes().to_vec(),
        args: args.iter().map(bytes).collect(),
        env: env
            .iter()
            .map(|(name, value)| (bytes(name), bytes(value)))
            .collect(),
        door: plan.door,
        env_of_door: plan
            .env_of_door
            .iter()
            .map(|(name, pieces)| (bytes(name), pieces.iter().map(bytes).collect()))
            .collect(),
        descriptors: entry.descriptors,
        keys_at_once: entry.keys_at_once,
        limits: plan.limits,
        watched: plan.watched,
        traced: plan.traced,
        guard: plan.guard.clone(),
    }
}

/// What came out of a jail while it was entered.
struct Entered {
    report: JailReport,
    census: Census,
    door: Option<Door>,
    terminal: Option<OwnedFd>,
    listener: Result<OwnedFd, String>,
}

/// Reads until the report is there. `sent` tells how the order left: its error is the better one.
fn await_report(control: &UnixStream, sent: io::Result<()>) -> Result<Entered, JailError> {
    let (mut door, mut terminal) = (None, None);
    let mut listener = Err("nobody asked to see them".to_owned());
    loop {
        let (message, fd) = receive(control).map_err(|error| {
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
            FromJail::Terminal => terminal = fd,
            FromJail::Listener => {
                listener = fd.ok_or_else(|| "the listener did not arrive".to_owned())
            }
            FromJail::NoListener { reason } => listener = Err(reason),
            FromJail::Ready(report) => {
                let census = Census::new(fd, &report.pid_namespace);
                return Ok(Entered {
                    report,
                    census,
                    door,
                    terminal,
                    listener,
                });
            }
            FromJail::Failed {
                step,
                error,
                refused,
            } => {
                return Err(match refused {
                    Some(refused) => JailError::Unmapped { refused, error },
                    None => JailError::Entry { step, error },
                });
            }
            FromJail::Asked | FromJail::Stopped | FromJail::Ended { .. } => {
                return Err(JailError::Silent(io::Error::other(
                    "it ended before it began",
                )));
            }
        }
    }
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
