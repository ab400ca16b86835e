//! ROOM.

pub mod case;
pub mod cases;
pub mod config;
pub mod console;
pub mod contract;
pub mod help;
pub mod json;
pub mod old_names;
pub mod output;
pub mod tidy;
