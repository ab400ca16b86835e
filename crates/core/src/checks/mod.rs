//! Checks as data: what makes an honest runner red, which tests ran, how their log is framed.
//!
//! - `control/` the must-fail control: what is added so that a runner must turn red, and did it?
//! - `lacking.rs` which program a red command went without; `missing_module/` which module
//! - `runner_output.rs` test names in the output of known runners
//! - `runners/` which runner a command uses, what it reports, what makes it red
//! - `known_baseline.rs` a baseline that ran before, and when it may be relied on
//! - `loading/` the loading control: what is done to a changed file so that it fails when loaded
//! - `names/` tests, configuration of runners, leftovers, by name
//! - `test_ids/` did every test of the baseline run again? `test_log.rs` the frames of `test.log`
//!
//! Imports: values to engine. Output can only turn a pass into a failure, or, where the untouched copy says the
//! same or the change asks for a module, a failure into a block; never the other way.

pub mod control;
pub mod known_baseline;
pub mod lacking;
pub mod loading;
pub mod missing_module;
pub mod names;
pub mod runner_output;
pub mod runners;
pub mod test_ids;
pub mod test_log;
