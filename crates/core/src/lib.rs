//! The deciding half of CTO Harness.
//!
//! Everything here is a total function over values: no file system, environment, process, clock,
//! network or randomness (`clippy.toml` beside this crate makes that a build error). The shell in
//! `crates/harness` gathers facts, performs effects and asks this crate what they mean.

#![forbid(unsafe_code)]

pub mod checks;
pub mod operator;
pub mod proof;
pub mod task;
pub mod values;
pub mod workspace;

pub mod bundle;
pub mod containment;
pub mod engine;
pub mod gate;
pub mod records;
pub mod run;
pub mod verify;
pub mod wire;
