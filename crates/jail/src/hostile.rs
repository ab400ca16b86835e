//! Raw system calls for the hostile kit, which tries what a jail refuses. Behind the feature
//! `hostile`; only files below `doubles/` of the harness may name this module.

use std::io;

use crate::sys;
pub use crate::sys::set_host_name;

/// System calls no engine needs.
const CALLS: &[(&str, libc::c_long)] = &[
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("bpf", libc::SYS_bpf),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("ptrace", libc::SYS_ptrace),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("kexec_load", libc::SYS_kexec_load),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("name_to_handle_at", libc::SYS_name_to_handle_at),
    ("open_tree", libc::SYS_open_tree),
    ("fsopen", libc::SYS_fsopen),
    ("move_mount", libc::SYS_move_mount),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("clone3", libc::SYS_clone3),
    ("openat2", libc::SYS_openat2),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("syslog", libc::SYS_syslog),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("acct", libc::SYS_acct),
    ("settimeofday", libc::SYS_settimeofday),
    ("clock_settime", libc::SYS_clock_settime),
];

/// Makes a system call by its name, each argument zero: who refuses by name answers before they
/// are looked at. None for a name that is not in the table.
pub fn call_with_nothing(name: &str) -> Option<io::Result<i64>> {
    let (_, number) = CALLS.iter().find(|(known, _)| *known == name)?;
    Some(sys::call_with_nothing(*number))
}

/// Leaves for a new namespace of this kind.
pub fn new_namespace(kind: &str) -> io::Result<()> {
    let flag = match kind {
        "user" => libc::CLONE_NEWUSER,
        "mount" => libc::CLONE_NEWNS,
        "pid" => libc::CLONE_NEWPID,
        "net" => libc::CLONE_NEWNET,
        "ipc" => libc::CLONE_NEWIPC,
        "uts" => libc::CLONE_NEWUTS,
        "cgroup" => libc::CLONE_NEWCGROUP,
        "time" => libc::CLONE_NEWTIME,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    sys::unshare(flag)
}
