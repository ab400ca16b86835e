//! Engines as data: a manifest each, what they are told, and the dialects in which they talk.

pub mod dialect;
pub mod manifest;
pub mod prompt;
