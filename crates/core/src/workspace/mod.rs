//! A work tree as data: what lies in it, what changed, what a patch says.
//!
//! - `tree.rs` a walked tree and its differences; `change.rs` one changed path; `git_names.rs` names no tree has
//! - `patch.rs` the one reader of a patch; `patch_stat.rs` its numbers
//! - `checkout.rs` a kept checkout, and which kind of workspace a run gets
//! - `environment.rs` what comes along of a work tree although git ignores it; `times/` what of
//!   it is still true of a copy, and which time each file of the copy gets
//! - `tool_home/` what tools keep in their user's home; `tools.rs` variables that keep them honest
//! - `near_tags.rs` tags that are taken over; `lfs.rs` pointers to large files; `head.rs` where HEAD stands, by a reader of our own
//!
//! Imports: values. Imported by the rooms above it.

pub mod change;
pub mod checkout;
pub mod environment;
pub mod git_names;
pub mod head;
pub mod lfs;
pub mod near_tags;
pub mod patch;
pub mod patch_stat;
pub mod times;
pub mod tool_home;
pub mod tools;
pub mod tree;
