//! What is asked of an endpoint without an engine.
//!
//! - `probe.rs` one request before a run; `interview.rs` the same before anything is admitted
//! - `model_list.rs` which models there are; `attended.rs` all of it given up at once

pub mod attended;
pub mod interview;
pub mod model_list;
pub mod probe;
