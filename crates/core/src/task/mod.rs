//! What is asked for: the case file, the contract it becomes, limits, and the source repository.
//!
//! - `case_file.rs` `case.toml`, parsed once, every error with line and column; `typed.rs` a task without one
//! - `contract.rs` the resolved contract, `lane.rs` who does it; `document.rs` its bytes and two digests
//! - `stage.rs` stages and modes; `program.rs` a program that a command names; `runner.rs` the runner of tests in it
//! - `limits.rs` limits of a run; `reasons.rs` what is said ahead about checks, `tests_may_change.rs` about tests; `source/` the repository a try copies, looked at twice
//! - `again.rs` the task of a patch that is judged again, and what differs
//!
//! Imports: values, workspace, containment. Imported by the rooms above it.

pub mod again;
pub mod case_file;
pub mod contract;
pub mod document;
pub mod lane;
pub mod limits;
pub mod program;
pub mod reasons;
pub mod runner;
pub mod source;
pub mod stage;
pub mod tests_may_change;
pub mod typed;
