//! Commands about engines: which there are, what admits them, what proves them.
//!
//! - `list.rs` engines, `gate.rs` its open and close · `setup.rs` setup · `admit.rs` admit · `eligibility.rs` eligibility
//! - `ladder.rs` ladder · `validate.rs` validate · `matrix.rs` matrix · `matrix_row.rs` one row, a hidden command
//!
//! Imported by `cli/mod.rs` alone.

pub mod admit;
pub mod eligibility;
mod gate;
pub mod ladder;
pub mod list;
pub mod matrix;
pub mod matrix_row;
pub mod setup;
pub mod validate;
