//! ROOM.

pub mod output;
pub mod progress;
pub mod stat_view;
pub mod table;
pub mod terminal;
