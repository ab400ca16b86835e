//! Engines as data: who they are, what they are asked, and how their output is read.
//!
//! - `manifest/` `engines/*.toml`: how an engine is gated and started; `registry.rs` every engine there is;
//!   `profile.rs` knobs of a lane under one name
//! - `prompt.rs` the contract as the engine reads it
//! - `dialect/` the output of each engine, parsed into events; `lingering.rs` may one be ended that stays when its work is done?
//!
//! Imports: values to bundle. Imported by checks, gate and the rooms above them.

pub mod dialect;
pub mod lingering;
pub mod manifest;
pub mod profile;
pub mod prompt;
pub mod registry;
