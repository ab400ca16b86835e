//! What a person sees: standard output, progress on standard error, tables, and how wide it all is.
//!
//! - `output.rs` answers and errors, as text or as JSON; `table.rs` columns
//! - `progress/` the line under a run, and the board of several
//! - `stat_view.rs` which files a patch changed; `terminal.rs` widths and safe characters; `ascii.rs` a plain
//!   spelling for a plain locale
//!
//! Imports host. Imported by run, proof and cli.

pub mod ascii;
pub mod output;
pub mod progress;
pub mod stat_view;
pub mod table;
pub mod terminal;
