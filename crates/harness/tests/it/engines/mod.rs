//! Engines and what lets them run: the list, admission records, validators, the failure matrix, the
//! gateway to a model, real agents with a scripted model, and what their admissions pin.

pub mod agents;
pub mod belief;
pub mod cost;
pub mod gate;
pub mod gateway;
pub mod known;
pub mod matrix;
pub mod own_programs;
pub mod packages;
pub mod pi;
pub mod records;
pub mod refused_fields;
pub mod setup;
pub mod validate;
