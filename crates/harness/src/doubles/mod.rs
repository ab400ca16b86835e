//! Stand-ins that ship in the binary, reachable only by naming them: the scripted engine, attempts
//! to get past the jail, the hostile kit, an echo behind its door, a scripted model,
//! the gateway without a run, and who asks either.

pub mod agent;
pub mod attacks;
pub mod echo_door;
pub mod fake;
pub mod gateway_alone;
pub mod hostile;
pub mod model;
pub mod model_client;
