//! ROOM.

pub mod case_file;
pub mod contract;
pub mod limits;
pub mod source;
