//! Commands that do work: each turns words into a request and prints what came of it.
//!
//! - `run.rs`, `run_all.rs` cases; `try_run.rs` your own repository; `apply/` its patch, `reverify.rs` judged again
//! - `exec.rs` any command in the jail; `project.rs` what is remembered of a repository
//!
//! Imported by `cli/mod.rs`, and by `operator/` for what ends before a word is said.

pub mod apply;
pub mod exec;
pub mod project;
pub mod reverify;
pub mod run;
pub mod run_all;
pub mod try_run;
