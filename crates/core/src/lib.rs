//! The deciding half of CTO Harness.
//!
//! Everything here is a total function over values: no file system, environment, process, clock,
//! network or randomness (`clippy.toml` beside this crate makes that a build error). The shell in
//! `crates/harness` gathers facts, performs effects and asks this crate what they mean.

pub mod advice;
pub mod amounts;
pub mod archive;
pub mod attempt;
pub mod attest;
pub mod baseline;
pub mod blocker;
pub mod bundle;
pub mod case_check;
pub mod case_file;
pub mod chain;
pub mod checkout;
pub mod config;
pub mod containment;
pub mod contract;
pub mod control;
pub mod digest;
pub mod eligibility;
pub mod engine;
pub mod event;
pub mod gate;
pub mod guard;
pub mod ids;
pub mod invariant;
pub mod json;
pub mod judge;
pub mod ladder;
pub mod limits;
pub mod listing;
pub mod matrix;
pub mod patch;
pub mod patch_stat;
pub mod plan;
pub mod records;
pub mod report;
pub mod report_md;
pub mod retention;
pub mod rules;
pub mod run;
pub mod runner_output;
pub mod schema;
pub mod scope;
pub mod seen;
pub mod source;
pub mod sums;
pub mod test_ids;
pub mod test_log;
pub mod time;
pub mod timeline;
pub mod trace;
pub mod tree;
pub mod verdict;
pub mod verify;
pub mod wire;
