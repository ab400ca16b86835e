//! Sealed runs on disk: found, read, verified, packed and deleted. Nothing here runs anything.
//!
//! - `runs_root.rs` the directory of all runs; `reader.rs` documents of one; `index/` all of them,
//!   searchable
//! - `log_tail.rs` the end of a log of any length
//! - `verifier.rs` the files a verifier asks for; `pack.rs` a bundle as one file
//! - `settlements.rs` what was said of a run after it was sealed; `prune.rs` deleting by a rule
//!
//! Imports host and evidence. Imported by records, run, proof and cli.

pub mod index;
pub mod log_tail;
pub mod pack;
pub mod prune;
pub mod reader;
pub mod runs_root;
pub mod settlements;
pub mod verifier;
