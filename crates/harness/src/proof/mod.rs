//! ROOM.

pub mod case_trial;
pub mod matrix;
pub mod validate;
