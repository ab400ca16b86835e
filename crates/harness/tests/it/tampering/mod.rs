//! Bytes of strangers: changed and forged bundles, odd cases and scripts, random input. Nothing
//! tampered with verifies, and no parser panics.

pub mod adversary;
pub mod forged_verdicts;
pub mod fuzz;
pub mod fuzz_dialects;
pub mod leaves;
pub mod odd_input;
pub mod planted_state;
pub mod relied;
pub mod reverified;
pub mod tamper;
