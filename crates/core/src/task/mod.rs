//! What is asked for: the case file, the contract it becomes, limits, and the source repository.
//!
//! - `case_file.rs` `case.toml`, parsed once, every error with line and column
//! - `contract.rs` the resolved contract, `lane.rs` who does it; `document.rs` its bytes and two digests
//! - `stage.rs` stages and modes; `program.rs` a program that a command names
//! - `limits.rs` limits of a run; `source.rs` the repository a try copies, looked at twice
//!
//! Imports: values, workspace, containment. Imported by the rooms above it.

pub mod case_file;
pub mod contract;
pub mod document;
pub mod lane;
pub mod limits;
pub mod program;
pub mod source;
pub mod stage;
