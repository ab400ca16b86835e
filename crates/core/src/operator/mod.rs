//! ROOM.

pub mod amounts;
pub mod listing;
pub mod retention;
pub mod schema;
pub mod settings;
pub mod timeline;
