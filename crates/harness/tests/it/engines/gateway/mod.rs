//! The model gateway against the scripted model, over real sockets and as a process of its own.

pub mod limits;
pub mod passing;
pub mod process;
pub mod refusals;
pub mod secrets;
