//! Commands about runs that have ended, one file per command. But for `prune` and `recover`, they
//! only read.
//!
//! - `show/` (`checks.rs` its checks, `closeout.rs` who asked, approved and accepted; `markdown.rs` to paste), `log.rs`, `diff.rs`, `replay.rs`, `runs.rs` look, at which run says `last.rs`; `verify.rs` re-checks; `schema.rs` prints
//! - `bundle.rs` packs and unpacks; `keys.rs` keys; `prune.rs`, `recover.rs` change the runs
//!   directory
//!
//! Imported by `cli/mod.rs`, and by `work/` for what a run shows at its end.

pub mod bundle;
pub mod diff;
pub mod keys;
pub mod last;
pub mod log;
pub mod markdown;
pub mod prune;
pub mod recover;
pub mod replay;
pub mod runs;
pub mod schema;
pub mod show;
pub mod verify;
