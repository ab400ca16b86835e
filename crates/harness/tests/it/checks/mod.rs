//! ROOM.

pub mod cargo_attacks;
pub mod cheats;
pub mod verification_attacks;
pub mod verification_log;
