//! Setting an engine up: what is asked, which answers are taken, the records they become, and what
//! is stale when it is done again. Decides only; nobody is asked here and nothing is written.
//!
//! - `answers.rs` the questions and one reader for each answer; no refusal repeats what was typed
//! - `agent.rs` the few values that are read of the agent's own configuration
//! - `package.rs` what a package and its lock file say; `drafts.rs` answers as records
//! - `stale.rs` what of the records still holds, and what has to be written anew; `overview.rs` the
//!   same at a glance
//!
//! See `docs/decisions/0053-setup-writes-everything-at-once.md`.

pub mod agent;
pub mod answers;
pub mod drafts;
pub mod overview;
pub mod package;
pub mod stale;

pub use answers::{Question, Refused};
pub use drafts::{Answers, Drafts};
pub use stale::{Part, Stale, Standing};
