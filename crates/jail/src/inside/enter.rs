//! Entering the jail: a hidden, single-threaded re-exec of this binary. The order of steps is the
//! design (`docs/decisions/0002-jail-entry.md`); each step names itself when it fails.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use cto_core::containment::Layer;
use cto_core::containment::ordinary::HOST_NAME;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::inside::first::First;
use crate::inside::root::build_root;
use crate::inside::{canary, descriptors, landlock, seccomp};
use crate::spec::{self, Descriptor, FromJail, GO, JailSpec, RefusedMap, Share};
use crate::sys;

/// A step of the entry that failed.
pub struct Failed {
    pub step: String,
    pub error: io::Error,
    /// The reason, where it is the file system of a directory.
    pub refused: Option<RefusedMap>,
}

pub type Step<T> = Result<T, Failed>;

pub trait Named<T> {
    fn step(self, name: impl Into<String>) -> Step<T>;
}

impl<T> Named<T> for io::Result<T> {
    fn step(self, name: impl Into<String>) -> Step<T> {
        self.map_err(|error| Failed {
            step: name.into(),
            error,
            refused: None,
        })
    }
}

pub const FAILED: i32 = 125;

/// Too small for any file; and where the host hands core dumps to a program of its own, which no
/// other limit keeps from being started, the kernel takes this one as a no.
const NO_CORE: u64 = 1;

/// `cto __jail`: never returns.
pub fn main() -> ! {
    let Ok(control) = sys::take_stdin() else {
        sys::exit_now(FAILED)
    };
    let control = File::from(control);
    match enter(&control) {
        Ok(code) => sys::exit_now(code),
        Err(failed) => give_up(&control, failed),
    }
}

fn give_up(control: &File, failed: Failed) -> ! {
    // Nobody to tell is no reason to go on.
    let _ = spec::send(
        control,
        &FromJail::Failed {
            step: failed.step,
            error: failed.error.to_string(),
            refused: failed.refused,
        },
    );
    sys::exit_now(FAILED)
}

fn enter(control: &File) -> Step<i32> {
    let spec: JailSpec = spec::receive(control).step("read the order")?;
    if spec.descriptors[0] == Descriptor::Pipe {
        let (_, input) =
            sys::receive_descriptor(control.as_fd(), &mut [0u8]).step("receive standard input")?;
        input
            .map_or(Ok(()), |input| sys::become_descriptor(input.as_fd(), 0))
            .step("take standard input")?;
    }
    // Nothing the harness had open goes any further.
    sys::close_on_exec_from(3).step("close descriptors")?;
    let root = sys::is_root();
    let (uid, gid) = sys::effective_ids();
    let flags = [
        (Layer::MountNamespace, libc::CLONE_NEWNS),
        (Layer::PidNamespace, libc::CLONE_NEWPID),
        (Layer::IpcNamespace, libc::CLONE_NEWIPC),
        (Layer::UtsNamespace, libc::CLONE_NEWUTS),
    ];
    let wanted = flags
        .iter()
        .filter(|(layer, _)| spec.layers.contains(layer))
        .fold(0, |all, (_, flag)| all | flag);
    let network = spec.layers.contains(&Layer::NetworkNamespace);
    let user = if root || !(network || wanted != 0) {
        0
    } else {
        libc::CLONE_NEWUSER
    };
    // Before the pid namespace: afterwards /proc would speak of other processes by these numbers.
    let maps = owner_maps(&spec, root)?;
    sys::unshare(wanted | user).step("unshare namespaces")?;
    if user != 0 {
        fs::write("/proc/self/setgroups", "deny").step("deny setgroups")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).step("map the uid")?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).step("map the gid")?;
    }
    // A network takes the kernel about as long as a root takes pid 1: they are made side by side.
    let (to_first, from_outer) = UnixStream::pair().step("make a network")?;
    match sys::fork().step("fork the first process")? {
        sys::Forked::Child => {
            drop(to_first);
            match first_process(control, &spec, root, &maps, &from_outer) {
                Ok(never) => match never {},
                Err(failed) => give_up(control, failed),
            }
        }
        sys::Forked::Parent(first) => {
            drop(from_outer);
            sys::let_go_of_descriptors().step("let go of descriptors")?;
            if network {
                let made = sys::new_network().step("make a network")?;
                sys::send_descriptor(to_first.as_fd(), &[0], made.as_fd())
                    .step("pass the network on")?;
            }
            end_with_harness(control, first).step("watch the first process")?;
            Ok(wait_for(first))
        }
    }
}

/// Waits for the end of pid 1 or of the lifeline. Whoever shares a uid with pid 1 can hinder it
/// (limits, priorities); nobody inside can name this process, so this one has the last word.
fn end_with_harness(control: &File, first: i32) -> io::Result<()> {
    let ended = sys::process_watch(first)?;
    loop {
        let mut fds = [
            PollFd::new(&ended, PollFlags::IN),
            PollFd::new(control, PollFlags::empty()),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if fds[0].revents().is_empty() && fds[1].revents().is_empty() => continue,
            Ok(_) if !fds[0].revents().is_empty() => return Ok(()),
            // Not reaped yet, so the number is still its own; its end is the end of the namespace.
            Ok(_) | Err(_) => return sys::kill_child(first),
        }
    }
}

/// The outer process only waits; what happened is told over the control socket.
fn wait_for(first: i32) -> i32 {
    loop {
        match sys::reap(true) {
            sys::Reaped::Exited(pid, code) if pid == first => return code,
            sys::Reaped::Signalled(pid, signal) if pid == first => return 128 + signal,
            // Those that only held a map.
            sys::Reaped::Exited(..)
            | sys::Reaped::Signalled(..)
            | sys::Reaped::Stopped(..)
            | sys::Reaped::NoneYet => {}
            sys::Reaped::NoChildren => return FAILED,
        }
    }
}

/// For each mount that is to be shown under the jail's uid, the map that does it.
fn owner_maps(spec: &JailSpec, root: bool) -> Step<Vec<Option<OwnedFd>>> {
    let map = |mount: &spec::Mount| {
        let shown_as_owner = mount.mapped || mount.over.is_some();
        if !(root && shown_as_owner && spec.layers.contains(&Layer::UnprivilegedUid)) {
            return Ok(None);
        }
        let meta = fs::metadata(&mount.source).step("look at the workspace")?;
        sys::owner_map((meta.uid(), meta.gid()), spec.uid)
            .step("map the workspace's owner")
            .map(Some)
    };
    spec.mounts.iter().map(map).collect()
}

pub enum Never {}

/// Pid 1: builds the world, drops everything, starts the engine, reaps, and ends all with itself.
fn first_process(
    control: &File,
    spec: &JailSpec,
    root: bool,
    maps: &[Option<OwnedFd>],
    outer: &UnixStream,
) -> Step<Never> {
    if spec.layers.contains(&Layer::MountNamespace) {
        sys::mount(
            "none",
            Path::new("/"),
            "",
            libc::MS_REC | libc::MS_PRIVATE,
            "",
        )
        .step("make mounts private")?;
        if spec.layers.contains(&Layer::PrivateRoot) {
            build_root(spec, root, maps)?;
        }
    }
    if spec.layers.contains(&Layer::UtsNamespace) {
        sys::set_host_name(HOST_NAME).step("set the host name")?;
    }
    let mut port = None;
    if spec.layers.contains(&Layer::NetworkNamespace) {
        join_network(outer).step("join the network")?;
        if spec.door {
            port = Some(open_door(control)?);
        }
    }
    // Where memory runs out, the jail goes first: its files in memory are charged to no process.
    // While still root the engine cannot lower it; otherwise pid 1 keeps it, being closed to the
    // engine.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let terminal = descriptors::put_in_place(control, spec, root)?;
    drop_privilege(spec, root)?;
    // The harness waits for the outer process: with it gone, nothing in here may go on. A change of
    // uid would have undone this.
    sys::die_with_parent().step("tie to the outer process")?;
    let watch = sys::child_watch().step("watch children")?;
    if spec.layers.contains(&Layer::UnprivilegedUid) {
        // Others of this uid may not look into pid 1; `exec` of the engine sets it back for the
        // engine.
        sys::not_dumpable().step("close pid 1 to others")?;
    }
    // Closed by the engine's `exec`, or its end: from then on the harness's words are for pid 1.
    let (started, starting) = UnixStream::pair().step("watch the start")?;
    match sys::fork().step("fork the engine")? {
        sys::Forked::Child => {
            drop(started);
            let leave = seccomp::Leave {
                tracing: spec.traced,
                // A process has one listener; that of an engine is its witness.
                set_gid_dirs: !spec.watched,
                gives_to_root: root && !spec.watched,
            };
            let becoming = Becoming {
                control,
                spec,
                leave,
                first: starting.as_fd(),
            };
            match becoming.engine(port, terminal.as_ref()) {
                Ok(never) => match never {},
                Err(failed) => give_up(control, failed),
            }
        }
        sys::Forked::Parent(engine) => {
            sys::let_go_of_descriptors().step("let go of descriptors")?;
            drop(starting);
            let first = First {
                control,
                children: &watch,
                engine,
                terminal: terminal.as_ref(),
            };
            first.watch(&started)
        }
    }
}

/// Leaves the host's network for the one that the outer process made.
fn join_network(outer: &UnixStream) -> io::Result<()> {
    let (_, network) = sys::receive_descriptor(outer.as_fd(), &mut [0u8])?;
    let network = network.ok_or_else(|| io::Error::other("it did not arrive"))?;
    let kind = Some(LinkNameSpaceType::Network);
    Ok(move_into_link_name_space(network.as_fd(), kind)?)
}

fn drop_privilege(spec: &JailSpec, root: bool) -> Step<()> {
    if spec.layers.contains(&Layer::ResourceLimits) {
        // A user whose own limit is none at all cannot have this one.
        sys::limit(libc::RLIMIT_CORE, NO_CORE)
            .or_else(|_| sys::limit(libc::RLIMIT_CORE, 0))
            .step("forbid core dumps")?;
        sys::limit(libc::RLIMIT_NOFILE, spec.limits.open_files).step("limit open files")?;
        sys::limit(libc::RLIMIT_DATA, spec.limits.data_bytes).step("limit memory")?;
        if !root {
            limit_shares().step("limit what is counted per user")?;
        }
    }
    if spec.layers.contains(&Layer::NoCapabilities) {
        sys::drop_capabilities().step("empty the bounding set")?;
    }
    if root && spec.layers.contains(&Layer::UnprivilegedUid) {
        sys::become_uid(spec.uid).step("become an unprivileged uid")?;
    }
    if spec.layers.contains(&Layer::ResourceLimits) {
        // After the uid change: the limit counts that uid's processes.
        sys::limit(libc::RLIMIT_NPROC, spec.limits.processes).step("limit processes")?;
    }
    if spec.layers.contains(&Layer::NoCapabilities) {
        sys::clear_capabilities().step("clear capabilities")?;
    }
    if spec.layers.contains(&Layer::NoNewPrivileges) {
        sys::no_new_privileges().step("forbid new privileges")?;
    }
    Ok(())
}

/// Signals that wait, message queues and locked memory are counted for the operator, whose uid this
/// is: a jail leaves some of them.
fn limit_shares() -> io::Result<()> {
    for (resource, number) in [
        (Resource::Sigpending, libc::RLIMIT_SIGPENDING),
        (Resource::Msgqueue, libc::RLIMIT_MSGQUEUE),
        (Resource::Memlock, libc::RLIMIT_MEMLOCK),
    ] {
        if let Some(all) = getrlimit(resource).current {
            sys::limit(number, all / Share::OF)?;
        }
    }
    Ok(())
}

fn open_door(control: &File) -> Step<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").step("open the door")?;
    let port = listener.local_addr().step("open the door")?.port();
    let message = spec::frame(&FromJail::Door { port }).step("open the door")?;
    sys::send_descriptor(control.as_fd(), &message, listener.as_fd()).step("pass the door out")?;
    Ok(port)
}

/// The engine's own process.
struct Becoming<'a> {
    control: &'a File,
    spec: &'a JailSpec,
    leave: seccomp::Leave,
    /// The way to pid 1, closed by the start.
    first: BorrowedFd<'a>,
}

impl Becoming<'_> {
    /// Restricted, measured, and then the engine.
    fn engine(&self, door: Option<u16>, terminal: Option<&OwnedFd>) -> Step<Never> {
        let Self { control, spec, .. } = *self;
        sys::die_with_parent().step("tie to pid 1")?;
        match terminal {
            None => sys::new_session().step("start a session")?,
            Some(terminal) => {
                descriptors::begin_as_a_job(terminal, spec.keys_at_once).step("become a job")?;
            }
        }
        sys::reset_signals().step("reset signals")?;
        let mut notes = Vec::new();
        if spec.layers.contains(&Layer::Landlock) {
            notes.push((
                Layer::Landlock,
                landlock::restrict(&spec.mounts).step("apply Landlock")?,
            ));
        }
        if spec.layers.contains(&Layer::Seccomp) {
            let asked = seccomp::install(self.leave).step("apply seccomp")?;
            if let Some(listener) = asked {
                sys::send_descriptor(self.first, &[0], listener.as_fd())
                    .step("pass questions to pid 1")?;
            }
        }
        std::env::set_current_dir(&spec.cwd).step("enter the workspace")?;
        let report = canary::report(spec, &notes);
        if spec.watched {
            // After the canaries, whose connect is our own; nobody answers before the harness has the
            // listener.
            offer_listener(control).step("pass the listener out")?;
        }
        send_report(control, spec, FromJail::Ready(report)).step("report")?;
        let mut word = [0u8];
        (&mut &*control)
            .read_exact(&mut word)
            .step("wait for the word")?;
        if word != [GO] {
            sys::exit_now(FAILED);
        }
        let error = exec(spec, door);
        // The caller reads this like a shell's complaint: 127 for a program that is not there.
        let _ = writeln!(
            io::stderr(),
            "cto: {}: {error}",
            String::from_utf8_lossy(&spec.program)
        );
        sys::exit_now(if error.kind() == io::ErrorKind::NotFound {
            127
        } else {
            126
        })
    }
}

/// From here on this process and all it starts are seen; its own end of the listener is closed
/// before they run.
fn offer_listener(control: &File) -> io::Result<()> {
    match seccomp::listen() {
        Ok(listener) => sys::send_descriptor(
            control.as_fd(),
            &spec::frame(&FromJail::Listener)?,
            listener.as_fd(),
        ),
        Err(error) => spec::send(
            control,
            &FromJail::NoListener {
                reason: format!("the kernel gave no listener: {error}"),
            },
        ),
    }
}

/// With a /proc of its own, that rides along: it is where the harness counts who is alive in here.
fn send_report(control: &File, spec: &JailSpec, report: FromJail) -> io::Result<()> {
    if !(spec.layers.contains(&Layer::PidNamespace) && spec.layers.contains(&Layer::PrivateRoot)) {
        return spec::send(control, &report);
    }
    sys::send_descriptor(
        control.as_fd(),
        &spec::frame(&report)?,
        File::open("/proc")?.as_fd(),
    )
}

fn exec(spec: &JailSpec, door: Option<u16>) -> io::Error {
    use std::os::unix::process::CommandExt;
    let text = |bytes: &Vec<u8>| OsStr::from_bytes(bytes).to_owned();
    if CString::new(spec.program.clone()).is_err() {
        return io::Error::from(io::ErrorKind::InvalidInput);
    }
    let address = door.map(|port| format!("127.0.0.1:{port}"));
    // Without a door there is no address, and so no variable that names one.
    let named = address.iter().flat_map(|address| {
        let whole = |pieces: &[Vec<u8>]| pieces.join(address.as_bytes());
        let of_door = spec.env_of_door.iter();
        of_door.map(move |(name, pieces)| (name, whole(pieces)))
    });
    std::process::Command::new(text(&spec.program))
        .args(spec.args.iter().map(text))
        .env_clear()
        .envs(
            spec.env
                .iter()
                .map(|(name, value)| (text(name), text(value))),
        )
        .envs(named.map(|(name, value)| (text(name), text(&value))))
        .envs(address.as_ref().map(|address| ("CTO_DOOR", address)))
        .exec()
}
