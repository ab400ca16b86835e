//! Engines as data: a manifest each, and the dialects in which they talk.

pub mod dialect;
pub mod manifest;
