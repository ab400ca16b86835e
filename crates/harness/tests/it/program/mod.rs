//! `cto` as a program: help, words, output, settings, cases and contracts on the command line; and
//! the rules of the source tree itself.

pub mod case;
pub mod cases;
pub mod config;
pub mod console;
pub mod contract;
pub mod doctor_repo;
pub mod dumps;
pub mod help;
pub mod json;
pub mod live;
pub mod old_names;
pub mod output;
pub mod tidy;
pub mod traps;
