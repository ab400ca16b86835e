//! Bundles after a run: verified, shown, compared, packed, indexed, pruned, recovered; the keys
//! that sign them; the golden bundles of every format.

pub mod archives;
pub mod diff;
pub mod foreign;
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
