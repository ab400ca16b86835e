//! What a person asks of the harness besides a run.
//!
//! - `settings.rs` the config file; `schema.rs` the JSON Schemas of everything written
//! - `listing.rs` rows of `cto runs`; `retention.rs` what a prune may take; `amounts.rs` ages and
//!   sizes
//! - `timeline.rs` a chain of events as a readable timeline, `agent_phases.rs` what the phases of an engine cost in it;
//!   `agent_line.rs` an engine at work, in one line; `project/` what a repository is tried with
//! - `setup/` an engine from nothing to a lane whose first stages can be proven
//!
//! Imports: every room. Imported by none.

pub mod agent_line;
pub mod agent_phases;
pub mod amounts;
pub mod listing;
pub mod project;
pub mod retention;
pub mod schema;
pub mod settings;
pub mod setup;
pub mod timeline;
