//! Stand-ins that ship in the binary, reachable only by naming them: the scripted engine, attempts
//! to get past the jail, the hostile kit, an echo behind its door, a scripted model,
//! the gateway without a run, and who asks either.
//!
//! - `fake.rs` the scripted engine; `agent.rs` one that asks a model; `case/` a double of Case; `attacks.rs`, `hostile/`
//!   attackers
//! - `model/` a scripted model; `model_client.rs` asks it; `gateway_alone.rs`, `echo_door.rs` for
//!   tests

pub mod agent;
pub mod attacks;
pub mod case;
pub mod echo_door;
pub mod fake;
pub mod gateway_alone;
pub mod hostile;
pub mod model;
pub mod model_client;
