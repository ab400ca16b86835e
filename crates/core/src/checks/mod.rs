//! ROOM.

pub mod control;
pub mod runner_output;
pub mod test_ids;
pub mod test_log;
