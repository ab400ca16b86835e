//! The system calls of the jail: every `unsafe` block of the project is in this folder.
//!
//! Each wrapper does one thing, checks its result and names no policy. What is called when, and
//! why, is in `enter.rs`.

#![expect(
    unsafe_code,
    reason = "namespaces, mounts and forks have no safe interface; this folder is their only home"
)]

mod descriptors;
mod mounts;
mod notices;
mod privilege;
mod processes;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use descriptors::*;
pub use mounts::*;
pub use notices::*;
pub use privilege::*;
pub use processes::*;

fn check(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}
