//! ROOM.

pub mod index;
pub mod pack;
pub mod prune;
pub mod reader;
pub mod runs_root;
pub mod verifier;
