//! Commands about this program and this host.
//!
//! - `doctor.rs` the jail on this host, `doctor_repo.rs` the tests of a repository in it; `config.rs` settings
//! - `completions.rs`, `man.rs` for shells and manual readers; `docs.rs` the generated pages
//!
//! Imported by `cli/mod.rs`; a test compares the pages of `docs.rs` with those in the repository.

pub(super) mod completions;
pub(super) mod config;
pub mod docs;
pub(super) mod doctor;
pub(super) mod doctor_repo;
pub(super) mod man;
