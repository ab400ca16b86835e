//! A run as data: what happened, in which order it may happen, and what it means.
//!
//! - `event/` the whole event vocabulary, `checked.rs` what the checks' own carries; `chain.rs` the hash chain; `order.rs` the legal orders
//! - `facts.rs` what a chain says; `rules.rs` by which rules it is judged; `judge/` the verdict
//! - `attempt/` what an engine tried that is forbidden; `trace.rs` what the harness did
//! - `loaded.rs` what the loading control did; `belief/` how far a green check is believed; `not_counted.rs` commands that decide nothing
//! - `invariant.rs` two promises as types that have no other value
//!
//! Imports: values, workspace, containment, task, wire, records. Imported by every room from bundle
//! up.

pub mod attempt;
pub mod belief;
pub mod chain;
pub mod checked;
pub mod event;
pub mod facts;
pub mod invariant;
pub mod judge;
pub mod loaded;
pub mod not_counted;
pub mod order;
pub mod rules;
pub mod trace;

#[cfg(test)]
#[path = "run_tests.rs"]
pub mod tests;
