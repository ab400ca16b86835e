//! What a repository is tried with, so that nobody types it twice.
//!
//! - `fields.rs` what may be remembered, as a table; `memory.rs` the document of the state home, and what typed
//!   flags leave of it
//! - `propose.rs` a test command out of the files of a repository; `scope.rs` what may change there
//!
//! The files of a repository may be anybody's, and the document may have been edited: both come in as bytes, and nothing of
//! either is obeyed that was not read here.

pub mod fields;
pub mod memory;
pub mod propose;
pub mod scope;
