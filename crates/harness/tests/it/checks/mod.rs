//! Verification commands, hidden checks and their control: real runners in pristine copies, and
//! every way to make them lie. None of it may pass.

pub mod attacks;
pub mod cargo_attacks;
pub mod changed_tests;
pub mod cheats;
pub mod known_baseline;
pub mod loading;
pub mod node_attacks;
pub mod not_loaded;
pub mod pytest_attacks;
pub mod pytest_control;
pub mod runners;
pub mod shell_attacks;
pub mod unittest_attacks;
pub mod verification_log;
