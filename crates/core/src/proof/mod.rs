//! What proves the harness itself, a case, or a stage of an engine.
//!
//! - `matrix/` the failure matrix and the hostile kit: what each row must show
//! - `case_check.rs` is a case sound? `stage2.rs` the proof of stage 2; `baseline.rs` the run of `fake` it
//!   may rely on; `engine_check.rs` does an engine work here?
//!
//! Imports: every room but operator.

pub mod baseline;
pub mod case_check;
pub mod engine_check;
pub mod matrix;
pub mod stage2;
