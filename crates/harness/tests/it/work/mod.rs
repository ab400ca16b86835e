//! Runs and tries from their command to their verdict: workspaces, measuring, limits, several runs
//! at once, faults of the machine, and applying a verified patch.

pub mod apply;
pub mod clock;
pub mod environments;
pub mod full_disks;
pub mod killed;
pub mod limits;
pub mod measure;
pub mod overlay;
pub mod programs;
pub mod run;
pub mod run_all;
pub mod secrets;
pub mod try_real;
pub mod try_run;
