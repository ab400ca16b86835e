//! Kits: what is added so that a runner must turn red, and how its own report is asked for.
//!
//! - `words.rs` names by chance, without a fixed word · `rows.rs` kinds of failing tests, per runner
//! - `control.rs` where they go and which of them were seen red · `entry.rs` how a kit comes into a process
//! - `selection.rs` the command for the control run: where a selection looks, and no early stop
//! - `node/` what is loaded into node processes
//!
//! The failing tests of Python and cargo are in `checks/control/`.

pub mod control;
pub mod entry;
mod rows;
pub mod selection;
pub(in crate::checks) mod words;
