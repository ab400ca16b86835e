//! ROOM.

pub mod gateway;
pub mod gateway_limits;
pub mod gateway_process;
pub mod lab;
pub mod list;
pub mod matrix;
pub mod pi;
pub mod pi_wire;
pub mod records;
pub mod setup;
pub mod validate;
