//! What is asked for: cases, engines, and requests made of them.
//!
//! - `request.rs` builds every request; `attempt.rs` somebody's own words on their own repository
//! - `again.rs` the patch of an earlier run, to be judged again
//! - `lane.rs` what a gated engine is run with; `engines.rs` every engine there is, `own_engines.rs`
//!   the operator's own
//! - `cases.rs` cases found and loaded; `case_dir.rs` read from a directory; `case_template.rs` new
//! - `instructions.rs` what an engine is told beside its task
//! - `script.rs` what the engine `fake` plays; `projects.rs` what is remembered of repositories
//!
//! Imports host. Imported by workspace, records, plan, run, doubles, proof and cli.

pub mod again;
pub mod attempt;
pub mod case_dir;
pub mod case_template;
pub mod cases;
pub mod engines;
pub mod instructions;
pub mod lane;
pub mod own_engines;
pub mod projects;
pub mod request;
pub mod script;
pub mod typed_patch;
