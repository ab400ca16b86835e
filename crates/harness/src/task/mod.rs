//! ROOM.

pub mod case_dir;
pub mod case_template;
pub mod cases;
pub mod engines;
pub mod request;
