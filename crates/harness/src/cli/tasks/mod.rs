//! Commands about cases: what can be asked for.
//!
//! - `cases.rs` lists them; `case.rs` writes a new one and checks one; `contract.rs` prints a
//!   contract
//!
//! Imported by `cli/mod.rs` alone.

pub mod case;
pub mod cases;
pub mod contract;
