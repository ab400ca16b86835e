//! The system-call filter: what no engine, compiler or test run needs.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::sys;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused outright: keys, tracing of the kernel, new mounts, modules, and the calls filters cannot
/// see into.
const REFUSED: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Memory that nobody can look into, and so no witness.
    libc::SYS_memfd_secret,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_fanotify_init,
];

/// Looking into other processes, and at what they do.
const TRACING: [i64; 3] = [
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
];

/// What a jail's processes may do beyond the usual.
#[derive(Clone, Copy)]
pub struct Leave {
    /// Trace each other. Nobody gets past a filter by that: it is asked after the tracer.
    pub tracing: bool,
    /// Set the set-gid bit of directories, by asking pid 1.
    pub set_gid_dirs: bool,
    /// Give files to root without an error and without effect: the harness is root's, the jail is
    /// not, and what installs files says so all the same.
    pub gives_to_root: bool,
}

/// What a filter finds in the call it looks at: the number, the kind of machine, and the low half
/// of each argument.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;

const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

#[cfg(target_arch = "x86_64")]
const THIS_MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_MACHINE: u32 = 0xc000_00b7;

/// Has this process and everything it starts tell a listener of programs started and connections
/// made. It decides nothing; calls of another machine are ended by the filter below.
pub fn listen() -> io::Result<OwnedFd> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |offset: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let if_equal = |value: u32, jt: u8, jf: u8| {
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jt, jf, value)
    };
    let answer = |action: u32| step(libc::BPF_RET | libc::BPF_K, 0, 0, action);
    // A send with this flag is a connect; which argument the flags are.
    let sends = [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ];
    let mut program = vec![
        load(MACHINE),
        if_equal(THIS_MACHINE, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        load(NUMBER),
    ];
    for call in [libc::SYS_execve, libc::SYS_execveat, libc::SYS_connect] {
        program.extend([
            if_equal(call as u32, 0, 1),
            answer(libc::SECCOMP_RET_USER_NOTIF),
        ]);
    }
    for (call, flags) in sends {
        program.extend([
            if_equal(call as u32, 0, 4),
            load(argument(flags)),
            step(
                libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
                0,
                1,
                libc::MSG_FASTOPEN as u32,
            ),
            answer(libc::SECCOMP_RET_USER_NOTIF),
            answer(libc::SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    sys::install_listener(&program)
}

/// Has this process and everything it starts ask a listener before a set-gid bit is set on what is
/// there. No filter can see whether that is a directory.
fn ask_for_set_gid() -> io::Result<OwnedFd> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |offset: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let answer = |action: u32| step(libc::BPF_RET | libc::BPF_K, 0, 0, action);
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut program = vec![
        load(MACHINE),
        step(equal, 1, 0, THIS_MACHINE),
        answer(libc::SECCOMP_RET_ALLOW),
        load(NUMBER),
    ];
    for (call, mode) in mode_changes() {
        program.extend([
            step(equal, 0, 4, call as u32),
            load(argument(mode.into())),
            step(
                libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
                0,
                1,
                libc::S_ISGID,
            ),
            answer(libc::SECCOMP_RET_USER_NOTIF),
            answer(libc::SECCOMP_RET_ALLOW),
        ]);
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    sys::install_listener(&program)
}

/// Installs the filter for this process and everything it starts. The listener that comes back is
/// asked for set-gid bits of directories; without one they are refused like all others.
pub fn install(leave: Leave) -> io::Result<Option<OwnedFd>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let listener = match leave.set_gid_dirs {
        true => ask_for_set_gid().ok(),
        false => None,
    };
    let program = compile(
        refused(leave.tracing, listener.is_some()).map_err(io::Error::other)?,
        libc::EPERM as u32,
        arch,
    )?;
    apply_filter(&program).map_err(io::Error::other)?;
    if leave.gives_to_root {
        let given = compile(given_to_root().map_err(io::Error::other)?, 0, arch)?;
        apply_filter(&given).map_err(io::Error::other)?;
    }
    // Their flags are behind a pointer no filter can follow: callers fall back to `clone` and
    // `openat`, which are filtered.
    let hidden = BTreeMap::from([
        (libc::SYS_clone3, Vec::new()),
        (libc::SYS_openat2, Vec::new()),
    ]);
    let hidden = compile(hidden, libc::ENOSYS as u32, arch)?;
    apply_filter(&hidden).map_err(io::Error::other)?;
    let kept = compile(kept_limit().map_err(io::Error::other)?, 0, arch)?;
    apply_filter(&kept).map_err(io::Error::other)?;
    if cfg!(target_arch = "x86_64") {
        apply_filter(&no_x32()).map_err(io::Error::other)?;
    }
    Ok(listener)
}

/// Calls that make root the owner, its group the group, or both.
fn given_to_root() -> Result<Rules, seccompiler::BackendError> {
    const ROOT: u64 = 0;
    const AS_IT_IS: u64 = 0xffff_ffff;
    let is = |index: u8, id: u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, id)
    };
    let mut calls = vec![(libc::SYS_fchown, 1), (libc::SYS_fchownat, 2)];
    #[cfg(target_arch = "x86_64")]
    calls.extend([(libc::SYS_chown, 1), (libc::SYS_lchown, 1)]);
    let mut rules = Rules::new();
    for (call, owner) in calls {
        let mut ways = Vec::new();
        for (uid, gid) in [(ROOT, ROOT), (ROOT, AS_IT_IS), (AS_IT_IS, ROOT)] {
            ways.push(SeccompRule::new(vec![
                is(owner, uid)?,
                is(owner + 1, gid)?,
            ])?);
        }
        rules.insert(call, ways);
    }
    Ok(rules)
}

/// The limit of core dumps stays as it is, and whoever changes it hears that it was done: with any
/// other the kernel would start the host's own crash handler, as root and outside, for a process
/// that crashes in here.
fn kept_limit() -> Result<Rules, seccompiler::BackendError> {
    let core = |index| {
        SeccompCondition::new(
            index,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            libc::RLIMIT_CORE.into(),
        )
    };
    let changes = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    Ok(BTreeMap::from([
        (libc::SYS_setrlimit, vec![SeccompRule::new(vec![core(0)?])?]),
        (
            libc::SYS_prlimit64,
            vec![SeccompRule::new(vec![core(1)?, changes])?],
        ),
    ]))
}

/// The x32 numbers name the same calls a second time, past every rule above.
fn no_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn compile(rules: Rules, errno: u32, arch: TargetArch) -> io::Result<BpfProgram> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        arch,
    )
    .map_err(io::Error::other)?;
    filter
        .try_into()
        .map_err(|error: seccompiler::BackendError| io::Error::other(error))
}

fn refused(tracing: bool, asks_for_set_gid: bool) -> Result<Rules, seccompiler::BackendError> {
    let arg = |index: u8, op: SeccompCmpOp, value: u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value)
    };
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if !tracing {
        rules.extend(TRACING.map(|call| (call, Vec::new())));
    }
    let namespaces = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let mut new_namespace = Vec::new();
    for flag in namespaces {
        new_namespace.push(SeccompRule::new(vec![arg(
            0,
            SeccompCmpOp::MaskedEq(flag as u64),
            flag as u64,
        )?])?);
    }
    rules.insert(libc::SYS_clone, new_namespace);
    rules.insert(libc::SYS_unshare, Vec::new());
    let mut terminal = Vec::new();
    // A line discipline is code of the kernel's; nothing that works here sets one.
    for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD] {
        terminal.push(SeccompRule::new(vec![arg(1, SeccompCmpOp::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, terminal);
    // A file with a set-id bit would outlive the jail: no call may make one, and `openat2` hides
    // its mode.
    for (call, index) in mode_changes().into_iter().chain(makers()) {
        let asks = asks_for_set_gid && mode_changes().contains(&(call, index));
        let mut bits = Vec::new();
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            if asks && bit == libc::S_ISGID {
                continue;
            }
            bits.push(SeccompRule::new(vec![arg(
                index,
                SeccompCmpOp::MaskedEq(bit.into()),
                bit.into(),
            )?])?);
        }
        rules.insert(call, bits);
    }
    rules.insert(libc::SYS_prlimit64, vec![limits_of_pid_1(&arg)?]);
    rules.insert(libc::SYS_socket, sockets(&arg)?);
    let not_unix = arg(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?;
    rules.insert(
        libc::SYS_socketpair,
        vec![SeccompRule::new(vec![not_unix])?],
    );
    Ok(rules)
}

/// Pid 1 has this uid, so the kernel would let anybody in here take its limits: with no time left it
/// is killed at the next tick, and nobody learns how the engine ended.
fn limits_of_pid_1(
    arg: &dyn Fn(u8, SeccompCmpOp, u64) -> Result<SeccompCondition, seccompiler::BackendError>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let changes = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    SeccompRule::new(vec![arg(0, SeccompCmpOp::Eq, 1)?, changes])
}

pub const FCHMODAT2: i64 = 452;

/// Calls that change the mode of what is there, and which argument the mode is.
fn mode_changes() -> Vec<(i64, u8)> {
    let mut calls = vec![
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (FCHMODAT2, 2),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.push((libc::SYS_chmod, 1));
    calls
}

/// The same for calls that make a file.
fn makers() -> Vec<(i64, u8)> {
    let mut calls = vec![(libc::SYS_openat, 3), (libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        (libc::SYS_open, 2),
        (libc::SYS_creat, 1),
        (libc::SYS_mknod, 1),
    ]);
    calls
}

/// Unix, IPv4, IPv6 and the routing part of netlink; every other family is refused.
fn sockets(
    arg: &dyn Fn(u8, SeccompCmpOp, u64) -> Result<SeccompCondition, seccompiler::BackendError>,
) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let allowed = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ];
    let mut other = Vec::new();
    for family in allowed {
        other.push(arg(0, SeccompCmpOp::Ne, family as u64)?);
    }
    let netlink = vec![
        arg(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?,
        arg(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?,
    ];
    // Raw sockets would need a capability; refused here as well.
    let raw = |family: i32| -> Result<SeccompRule, seccompiler::BackendError> {
        SeccompRule::new(vec![
            arg(0, SeccompCmpOp::Eq, family as u64)?,
            arg(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_RAW as u64)?,
        ])
    };
    Ok(vec![
        SeccompRule::new(other)?,
        SeccompRule::new(netlink)?,
        raw(libc::AF_INET)?,
        raw(libc::AF_INET6)?,
    ])
}
