//! Real agents from the npm registry, other than Pi, with a scripted model.
//!
//! - `codex.rs` `opencode.rs` through the whole path; `acp.rs` those that are talked to, `acp_on_node.rs` those of
//!   them that run on Node
//! - `case/` Case, by its double or a real one
//! - `acp_manners.rs` agents that are talked to and have none
//! - `instructions.rs` what each is told beside its task; `setup.rs` set up by flags, then used

pub mod acp;
pub mod acp_manners;
pub mod acp_on_node;
pub mod case;
pub mod codex;
pub mod instructions;
pub mod opencode;
pub mod setup;
