//! Commands of a person who is asked: what is requested, and what they say to it.
//!
//! - `request.rs` request, requests · `answer.rs` approve, deny · `outcome.rs` outcome, revert · `signing.rs` the key
//!
//! Imported by `cli/mod.rs` alone.

pub mod answer;
pub mod outcome;
pub mod request;
pub mod signing;
