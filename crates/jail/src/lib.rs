//! The jail: what an engine, a check or `cto exec` runs in, so that it can reach nothing else.
//!
//! For: starting a process with kernel layers around it (namespaces, private root, Landlock,
//! seccomp, no capabilities, limits) and a report of what the kernel really enforces.
//! Files, outside the jail: `prepare.rs` (start one), `control.rs` (talk to it), `spec.rs` (the
//! words), `owner.rs` (its uid), `survivors.rs` (who lives in it), `witness.rs` (what it tries),
//! `probe.rs` (does it work here?). Inside: `enter.rs` (the order of steps), `root.rs`,
//! `overlay.rs`, `guard.rs` (mounts), `landlock.rs`, `seccomp.rs`, `canary.rs` (proof). `sys/`
//! holds every `unsafe` block of the project and is private.
//! May be imported by the harness; `hostile` only by its `doubles`. Imports nothing of it.

mod canary;
mod control;
mod enter;
mod guard;
#[cfg(feature = "hostile")]
pub mod hostile;
mod landlock;
mod overlay;
mod owner;
mod prepare;
pub mod probe;
mod root;
mod seccomp;
mod spec;
mod survivors;
mod sys;
mod witness;

pub use control::{go, last_word, sever, terminate};
pub use enter::main as enter_main;
pub use owner::{hand_over, jail_uid};
pub use prepare::{Door, JailError, JailPlan, Ready, prepare};
pub use spec::{ExitWord, Guarded, JailLimits, Mount, Over, STAND_IN_DIR};
pub use survivors::{Census, Tally};
pub use sys::is_root;
pub use witness::Witness;
