//! The shell of CTO Harness: gathers facts, performs effects, asks `cto_core` what they mean.

pub mod cancel;
pub mod cases;
pub mod cli;
pub mod digest_cache;
pub mod docs;
pub mod doctor;
pub mod doubles;
pub mod engine_run;
pub mod engines;
pub mod evidence;
pub mod failure;
pub mod files;
pub mod git;
pub mod host;
pub mod jail;
pub mod measure;
pub mod progress;
pub mod reader;
pub mod recover;
pub mod run;
pub mod secrets;
pub mod supervise;
pub mod surroundings;
pub mod toolchains;
pub mod verification;
pub mod workspace;
