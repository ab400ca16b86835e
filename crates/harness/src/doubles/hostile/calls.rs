//! System calls no engine needs. Each is made without arguments: who refuses by name answers before
//! they are looked at.

use std::fs;
use std::io;

use cto_jail::hostile::call_with_nothing;
use rustix::io::Errno;

use super::{Attack, refused};

pub const ATTACKS: &[Attack] = &[
    Attack::new("call", call),
    Attack::new("run-from-memory", run_from_memory),
];

/// How a filter answers; a kernel without the call says the same.
const REFUSALS: [Option<Errno>; 2] = [Some(Errno::PERM), Some(Errno::NOSYS)];

/// A call that complains of its arguments was not refused.
fn call(name: &str) -> io::Result<()> {
    let answer = call_with_nothing(name).ok_or(io::ErrorKind::InvalidInput)?;
    match answer {
        Err(error) if REFUSALS.contains(&Errno::from_io_error(&error)) => Err(error),
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
