//! ROOM.

pub mod admit;
pub mod eligibility;
pub mod list;
pub mod matrix;
pub mod matrix_row;
pub mod setup;
pub mod validate;
