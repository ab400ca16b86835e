//! Small values that cannot be wrong once made. Everything else is built from them.
//!
//! - `ids.rs` names of runs, cases and engines; `digest.rs` SHA-256; `time.rs` UTC to the millisecond
//! - `paths.rs` paths of a tree and path rules; `json.rs` strict and canonical JSON
//! - `event_type.rs` names of events; `blocker.rs` the one list of blockers; `verdict.rs` the status
//! - `seen.rs` a value, or the word that nobody looked
//!
//! Imports nothing of this crate. Imported by every room.

pub mod blocker;
pub mod digest;
pub mod event_type;
pub mod ids;
pub mod json;
pub mod paths;
pub mod seen;
pub mod time;
pub mod verdict;
