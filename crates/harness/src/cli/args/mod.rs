//! ROOM.

pub mod records;
