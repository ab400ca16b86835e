//! The deciding half of CTO Harness.
//!
//! Everything here is a total function over values: no file system, environment, process, clock,
//! network or randomness (`clippy.toml` beside this crate makes that a build error). The shell in
//! `crates/harness` gathers facts, performs effects and asks this crate what they mean.
//!
//! The rooms below stand in the order of a run. The order of imports is another one: a room
//! imports only rooms before it in the list of `crates/harness/tests/it/program/tidy/rooms.rs`.

#![forbid(unsafe_code)]

// What everything is made of.
pub mod values;
// What is asked for: case, contract, limits, source.
pub mod task;
// Who shall do it: manifests, the prompt, how each engine talks.
pub mod engine;
// What passes between an engine and its model.
pub mod wire;
// Which programs, models and repositories may be used.
pub mod records;
// May it run? Gates, the ladder of stages, the plan.
pub mod gate;
// What a jail must prove.
pub mod containment;
// What lies in a work tree, and what changed.
pub mod workspace;
// What makes a check worth believing.
pub mod checks;
// What happened, and what it means.
pub mod run;
// How it is written down.
pub mod bundle;
// The same, re-derived by a stranger.
pub mod verify;
// What proves the harness, a case, a stage.
pub mod proof;
// Settings, lists, schemas.
pub mod operator;
