//! Arguments that several commands share.
//!
//! - `records.rs` what the command line says about records of gated engines; `here.rs` paths as they are typed
//! - `task.rs` what shapes a contract and who works on it
//! - `project.rs` what is known of a repository before a try; `ask.rs` questions at a terminal
//!
//! Imported by the other rooms of the command line.

pub mod ask;
pub mod here;
pub mod project;
pub mod records;
pub mod task;
