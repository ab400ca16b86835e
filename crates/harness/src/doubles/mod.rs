//! Stand-ins that ship in the binary, reachable only by naming them: the scripted engine, attempts
//! to get past the jail, the hostile kit, an echo behind its door.

pub mod attacks;
pub mod echo_door;
pub mod fake;
pub mod hostile;
