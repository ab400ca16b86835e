//! ROOM.

pub mod apply;
pub mod clock;
pub mod faults;
pub mod limits;
pub mod measure;
pub mod overlay;
pub mod run;
pub mod run_all;
pub mod try_real;
pub mod try_run;
