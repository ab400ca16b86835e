//! Small values that cannot be wrong once made. Everything else is built from them.
//!
//! - `ids.rs` names of runs, cases and engines; `digest.rs` SHA-256; `time.rs` UTC to the
//!   millisecond
//! - `paths.rs` paths of a tree and path rules; `json.rs` strict and canonical JSON
//! - `address.rs` which IP addresses are loopback, private or neither
//! - `event_type.rs` names of events; `blocker.rs` the one list of blockers; `verdict.rs` the
//!   status
//! - `hint.rs` what to do next about a blocker; `money.rs` amounts and prices
//! - `maybe_known.rs` a value, or that nobody looked; `text.rs` text from outside, safe to show
//!
//! Imports nothing of this crate. Imported by every room.

pub mod address;
pub mod blocker;
pub mod digest;
pub mod event_type;
pub mod hint;
pub mod ids;
pub mod json;
pub mod maybe_known;
pub mod money;
pub mod paths;
pub mod text;
pub mod time;
pub mod verdict;
