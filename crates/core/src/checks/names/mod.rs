//! Names that mean something to a check, whatever stands in the files.
//!
//! - `former.rs` the names of rules 1 to 4; `test_files.rs` tests, the configuration of runners, and files that take a runner over
//! - `inline_tests.rs` tests inside a source file
//! - `leftovers.rs` what tools leave behind: named, not judged
//! - `rewrites.rs` tracked files that setup or a check wrote to
//!
//! Each asks for the number of the rules, so that an old bundle is read by the names of its time.

pub mod former;
pub mod inline_tests;
pub mod leftovers;
pub mod rewrites;
pub mod test_files;
