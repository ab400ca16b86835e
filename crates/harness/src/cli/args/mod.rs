//! Arguments that several commands share.
//!
//! - `records.rs` what the command line says about records of gated engines
//!
//! Imported by the other rooms of the command line.

pub mod here;
pub mod records;
