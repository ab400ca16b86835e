//! The jail: what an engine, a check or `cto exec` runs in, so that it can reach nothing else.
//!
//! For: starting a process with kernel layers around it (namespaces, private root, Landlock,
//! seccomp, no capabilities, limits) and a report of what the kernel really enforces.
//! Files, outside the jail: `prepare.rs` (start one), `control.rs` (talk to it), `spec.rs` (the
//! words), `owner.rs` (its uid), `survivors.rs` (who lives in it), `witness.rs` (what it tries),
//! `probe.rs` (does it work here?). `inside/` is the way in, step by step. `sys/`
//! holds every `unsafe` block of the project and is private.
//! May be imported by the harness; `hostile` only by its `doubles`. Imports nothing of it.

mod control;
#[cfg(feature = "hostile")]
pub mod hostile;
mod inside;
mod owner;
mod prepare;
pub mod probe;
mod pushes;
mod spec;
mod survivors;
mod sys;
mod witness;

pub use control::{Word, go, last_word, next_word, resume, sever, suspend, terminate};
pub use inside::enter::main as enter_main;
pub use owner::{hand_over, jail_uid};
pub use prepare::{Door, Entry, Given, JailError, JailPlan, Ready, prepare};
pub use spec::{ExitWord, Guarded, JailLimits, Mount, Over, RefusedMap, STAND_IN_DIR};
pub use survivors::{Census, Tally};
pub use sys::{is_root, stop_with_group, terminal_device};
pub use witness::Witness;
