//! ROOM.

pub mod checkout;
pub mod patch;
pub mod patch_stat;
pub mod tree;
