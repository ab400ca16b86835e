//! The real Pi, from the npm registry, with a scripted model.
//!
//! - `runs.rs` through the whole path; `wire.rs` when its wire fails; `view.rs` watched
//! - `kept_baseline.rs` the run of `fake` that it is compared with
//! - `four_commands.rs` its page, at a terminal; `versions.rs` every version over every protocol

pub mod four_commands;
pub mod kept_baseline;
pub mod runs;
pub mod versions;
pub mod view;
pub mod wire;
