//! ROOM.

pub mod apply;
pub mod exec;
pub mod run;
pub mod run_all;
pub mod try_run;
