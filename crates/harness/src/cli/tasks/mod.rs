//! ROOM.

pub mod case;
pub mod cases;
pub mod contract;
