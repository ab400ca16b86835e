//! ROOM.

pub mod case_check;
pub mod matrix;
pub mod stage2;
