//! Engines and what lets them run: the list, admission records, validators, the failure matrix, the
//! gateway to a model, and real agents with a scripted model.

pub mod belief;
pub mod codex;
pub mod gateway;
pub mod list;
pub mod matrix;
pub mod opencode;
pub mod pi;
pub mod pi_wire;
pub mod records;
pub mod refused_fields;
pub mod setup;
pub mod validate;
