//! ROOM.

pub mod adversary;
pub mod fuzz;
pub mod odd_input;
pub mod tamper;
