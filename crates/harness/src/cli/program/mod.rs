//! ROOM.

pub(super) mod completions;
pub(super) mod config;
pub mod docs;
pub(super) mod doctor;
pub(super) mod man;
