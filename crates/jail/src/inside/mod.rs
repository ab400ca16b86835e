//! What the process does that becomes the jailed program, from its first step to the last.
//!
//! - `enter.rs` the order of the steps; `root.rs` the private root; `overlay.rs` a workspace over a
//!   kept checkout; `guard.rs` places that become read-only
//! - `descriptors.rs` descriptors 0–2 and the terminal; `first.rs` pid 1 while the process runs
//! - `landlock.rs`, `seccomp.rs` two of the kernel's layers; `set_gid.rs` what the second asks pid 1
//! - `canary.rs` reads back what the kernel enforces and tries what must fail
//!
//! Imported only by `lib.rs`, which names the entry.

pub mod canary;
mod descriptors;
pub mod enter;
mod first;
mod guard;
mod landlock;
mod overlay;
mod root;
mod seccomp;
mod set_gid;
