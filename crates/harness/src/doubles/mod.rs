//! Stand-ins that ship in the binary, reachable only by naming them: the scripted engine.

pub mod fake;
