//! ROOM.

pub mod bundle;
pub mod diff;
pub mod keys;
pub mod prune;
pub mod recover;
pub mod replay;
pub mod runs;
pub mod schema;
pub mod show;
pub mod verify;
