//! What a jail is told, and what it answers: plain data over one socket.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use cto_core::containment::guard::Guard;
use cto_core::containment::mounts::{Granted, Id, stand};
use cto_core::containment::{JailReport, Layer};
use serde::{Deserialize, Serialize};

/// Everything the entry needs. Sent over the control socket, never in argv.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JailSpec {
    /// Layers to put up; all of them but for the table in the threat model.
    pub layers: BTreeSet<Layer>,
    pub outside: Outside,
    /// The uid the process gets when the harness is root.
    pub uid: u32,
    /// Where it keeps the operator's uid: what it may use of what is counted per user.
    pub share: Share,
    pub mounts: Vec<Mount>,
    /// Files that look empty although what they lie in is shown.
    pub hidden: Vec<PathBuf>,
    pub cwd: PathBuf,
    pub program: Vec<u8>,
    pub args: Vec<Vec<u8>>,
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    pub door: bool,
    /// Variables that name the door: the pieces of each, between which its address is put.
    pub env_of_door: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// Descriptors 0–2. A pipe for standard input follows this order; those of output are there.
    pub descriptors: [Descriptor; 3],
    /// The process has the keys of its terminal from the start; otherwise once it asks for them.
    pub keys_at_once: bool,
    pub limits: JailLimits,
    /// Tell the harness of programs started and connections made, and put stand-ins where none is
    /// installed.
    pub watched: bool,
    /// Its processes may trace each other.
    pub traced: bool,
    pub guard: Option<Guarded>,
}

/// What descriptor 0, 1 or 2 inside is. It is never one that anybody outside uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descriptor {
    /// The jail's own `/dev/null`.
    Null,
    /// A pipe that the harness made.
    Pipe,
    /// A terminal that is made inside; its other side is passed out.
    Terminal,
}

/// A directory whose protected places are mounts of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guarded {
    pub root: PathBuf,
    pub places: Guard,
}

/// A directory or file of the host, visible inside. Made of leave that core gave, and of nothing
/// else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Mount {
    pub source: PathBuf,
    /// What it was when leave was given: whatever else is found there is not mounted.
    pub id: Id,
    pub target: PathBuf,
    pub writable: bool,
    /// Shown as owned by the jail's uid, for a directory that is not ours to give away.
    pub mapped: bool,
    /// With this the source is never written to: what changes goes into a directory of its own.
    pub over: Option<Over>,
}

impl Mount {
    /// A place of the host under the name it was found by.
    pub fn in_place(granted: &Granted) -> Self {
        Self::at(granted, granted.target())
    }

    /// A place of the host under another name.
    pub fn at(granted: &Granted, target: impl Into<PathBuf>) -> Self {
        Self {
            source: granted.path().to_owned(),
            id: granted.id(),
            target: target.into(),
            writable: granted.writable(),
            mapped: false,
            over: None,
        }
    }

    /// As owned by the jail's uid. A file cannot be; it keeps the owner it has.
    pub fn owned(self, granted: &Granted) -> Self {
        Self {
            mapped: granted.writable() && granted.is_dir(),
            ..self
        }
    }

    /// Below an overlay.
    pub fn below(self, over: Over) -> Self {
        Self {
            writable: true,
            over: Some(over),
            ..self
        }
    }
}

/// Where the changes of an overlay go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Over {
    /// Everything that differs from the source, in the kernel's own form.
    pub upper: PathBuf,
    /// For the kernel's own use, on the same file system; every mount makes a directory of its own
    /// in it.
    pub work: PathBuf,
}

/// The host's namespaces and a process that must not be reachable, to compare with from inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outside {
    pub namespaces: Vec<(String, String)>,
    pub pid: u32,
}

/// A part of what the host counts for all processes of one user together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Share {
    pub inotify_instances: u64,
    pub inotify_watches: u64,
}

impl Share {
    /// One of how many: the operator and a few other jails keep theirs.
    pub const OF: u64 = 4;
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct JailLimits {
    pub processes: u64,
    pub open_files: u64,
    /// Private memory of one process. Not its address space: Node reserves more of that than any
    /// limit allows.
    pub data_bytes: u64,
}

impl Default for JailLimits {
    fn default() -> Self {
        Self {
            processes: 1024,
            open_files: 4096,
            data_bytes: u64::MAX,
        }
    }
}

/// A directory that cannot be shown as owned by the jail's uid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefusedMap {
    pub dir: PathBuf,
    /// Its own file system has no objection; one that is mounted below it has.
    pub is_below: bool,
}

/// From the jail to the harness.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromJail {
    /// A listening socket inside the network namespace rides along with this message.
    Door { port: u16 },
    /// The harness's side of the jail's terminal rides along with this message.
    Terminal,
    /// The listener rides along with this message.
    Listener,
    /// There is none: a sense is missing, not a layer.
    NoListener { reason: String },
    /// Inside, restricted, canaries tried; waiting for the word to go.
    Ready(JailReport),
    /// Entry failed at a step; nothing of the contract was started.
    Failed {
        step: String,
        error: String,
        refused: Option<RefusedMap>,
    },
    /// Something inside asked for keys of its terminal for the first time.
    Asked,
    /// The main process was stopped; it goes on when the harness says so.
    Stopped,
    /// The main process is gone and so is everything it left.
    Ended {
        status: ExitWord,
        ended_with_it: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitWord {
    Exited(i32),
    Signalled(i32),
}

/// From the harness to the jail, one byte each.
pub const GO: u8 = b'g';
pub const TERMINATE: u8 = b't';
/// Stop, as Ctrl-Z does; and go on after a stop.
pub const SUSPEND: u8 = b's';
pub const CONTINUE: u8 = b'c';

/// Where stand-ins of programs that are not installed lie in a watched jail.
pub const STAND_IN_DIR: &str = stand::STAND_INS_DIR;

const MAX_FRAME: usize = 16 << 20;

/// A length and a JSON document: one `write`, so frames of two writers never mix.
pub fn frame<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    let length = u32::try_from(json.len()).map_err(|_| io::Error::other("frame too large"))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

pub fn send<T: Serialize>(mut to: impl Write, value: &T) -> io::Result<()> {
    to.write_all(&frame(value)?)
}

pub fn receive<T: for<'de> Deserialize<'de>>(mut from: impl Read) -> io::Result<T> {
    let mut length = [0u8; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::other("frame too large"));
    }
    let mut json = vec![0u8; length];
    from.read_exact(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}
