//! Runners as people start them, through the real ones.

pub mod node_runners;
pub mod recognised;
