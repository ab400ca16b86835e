//! ROOM.

pub mod address;
pub mod digest;
pub mod ids;
pub mod json;
pub mod paths;
pub mod seen;
pub mod time;
