//! ROOM.

pub mod apply;
pub mod checkout;
pub mod git;
pub mod measure;
pub mod on_disk;
pub mod overlay;
pub mod private_copy;
