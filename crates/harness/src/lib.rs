//! The acting half of CTO Harness: gathers facts, performs effects, asks `cto_core` what they mean.
//!
//! The rooms below stand in the order of a run. The order of imports is another one: a room imports
//! only rooms below it in the list of `tests/it/program/tidy/rooms.rs`. Jails are in `cto-jail`,
//! the way to a model in `cto-gateway`.

#![forbid(unsafe_code)]

// Words become a request, an answer becomes text.
pub mod cli;
// What is asked for: cases, engines, requests.
pub mod task;
// Which programs, models and repositories may be used.
pub mod records;
// May it run? Every gate asked, every look taken.
pub mod plan;
// The run itself, front to back.
pub mod run;
// A private copy to work in, and what changed in it.
pub mod workspace;
// How a process is shaped, started, limited and ended.
pub mod supervise;
// How it is written down, sealed and signed.
pub mod evidence;
// Sealed runs: found, read, verified, packed.
pub mod bundles;
// What proves the harness, a case, a stage.
pub mod proof;
// Stand-ins, reachable by name only.
pub mod doubles;
// This machine: clock, files, settings, toolchains.
pub mod host;
// What a person sees.
pub mod screen;
