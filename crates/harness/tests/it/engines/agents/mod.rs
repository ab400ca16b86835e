//! Real agents from the npm registry, other than Pi, with a scripted model.
//!
//! - `codex.rs` `opencode.rs` through the whole path
//! - `instructions.rs` what each is told beside its task; `setup.rs` set up by flags, then used

pub mod codex;
pub mod instructions;
pub mod opencode;
pub mod setup;
