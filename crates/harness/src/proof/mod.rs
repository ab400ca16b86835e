//! What proves the harness itself: failures it must close, stages it must hold, cases it can trust.
//! Everything runs through the ordinary path.
//!
//! - `matrix/` one row per failure or attack; `validate/` one validator per stage
//! - `case_trial.rs` a case tried out with its own scripts; `lane_records.rs` a validator's own records
//! - `desk.rs` who asks and answers in the place of an operator
//! - `engine_trial.rs` an engine tried out with a scripted model; `unnamed.rs` the double of one that nobody named
//!
//! Imports every room below it but plan. Imported by cli.

pub mod case_trial;
mod desk;
pub mod engine_trial;
mod lane_records;
pub mod matrix;
pub mod unnamed;
pub mod validate;
