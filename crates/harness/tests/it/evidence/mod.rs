//! ROOM.

pub mod bundle;
pub mod diff;
pub mod golden;
pub mod index;
pub mod keys;
pub mod links;
pub mod prune;
pub mod recover;
pub mod replay;
pub mod runs;
pub mod schema;
pub mod show;
pub mod verify;
