//! The shell of CTO Harness: gathers facts, performs effects, asks `cto_core` what they mean.

#![forbid(unsafe_code)]

pub mod bundles;
pub mod cli;
pub mod doubles;
pub mod evidence;
pub mod host;
pub mod plan;
pub mod proof;
pub mod records;
pub mod run;
pub mod screen;
pub mod supervise;
pub mod task;
pub mod workspace;
