//! ROOM.

pub mod attempt;
pub mod case_dir;
pub mod case_template;
pub mod cases;
pub mod engines;
pub mod lane;
pub mod request;
pub mod script;
