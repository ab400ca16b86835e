//! The habits of the house, checked.
//!
//! - `sources.rs` the source files, and what of them is compiled into the product
//! - `rooms.rs` who may import whom; how full a folder may be
//! - `rules.rs` rules about one file: sizes, names, things that may stand in one place only
//! - `documents.rs` generated pages are fresh

mod documents;
mod rooms;
mod rules;
mod sources;
