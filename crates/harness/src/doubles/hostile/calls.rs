//! System calls no engine needs. Each is made without arguments: who refuses by name answers before
//! they are looked at.

use std::fs;
use std::io;

use super::{Attack, refused};
use crate::jail::sys;

pub const ATTACKS: &[Attack] = &[
    Attack::new("call", call),
    Attack::new("run-from-memory", run_from_memory),
];

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

/// A call that complains of its arguments was not refused.
fn call(name: &str) -> io::Result<()> {
    let (_, number) = CALLS
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or(io::ErrorKind::InvalidInput)?;
    match sys::call_with_nothing(*number) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
            Err(error)
        }
        Err(_) | Ok(_) => Ok(()),
    }
}

/// A program that lies in no file is held like any other: this one writes where it may not.
fn run_from_memory(path: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let mut program = fs::File::from(rustix::fs::memfd_create(
        "attack",
        rustix::fs::MemfdFlags::empty(),
    )?);
    program.write_all(&fs::read(std::env::current_exe()?)?)?;
    let memory = format!("/proc/self/fd/{}", program.as_raw_fd());
    let ended = std::process::Command::new(memory)
        .args(["__attack", "write-file", path])
        .status()?;
    match ended.code() {
        Some(0) => Ok(()),
        Some(1) => Err(refused("it ran, and was stopped")),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
