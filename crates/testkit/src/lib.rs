//! A hermetic house for tests: private homes, the real binary, quick cases, and the tools of a
//! forger. Nothing here is shipped, and nothing here shares code with what it tests: digests and
//! canonical JSON are written out again, so that a mistake cannot agree with itself.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: a broken house must stop the test at once"
)]

mod attempt;
mod bundle;
mod case;
mod desk;
mod forger;
mod house;
mod repo;
mod signer;
mod talk;
mod terminal;

pub use bundle::{Bundle, copy_dir, files_below, sha256_hex};
pub use case::{Case, ORACLE, append, exit, print, script, shell, sleep, write};
pub use desk::Desk;
pub use forger::{FORGER, Forged, canonical, chain_start, chained};
pub use house::{Answer, House, is_root, skip, wait_until};
pub use repo::Repo;
pub use signer::{PAYLOAD_TYPE, TestKey, payload};
pub use talk::talk;
pub use terminal::{converse, watch, without_styles};
