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

use cto_core::engine::manifest::{Dialect, Manifest, Program};

/// The same engine with a double of it, of this program, in place of its own; none for an engine that has no double.
/// Whoever starts it is a validator: an admission of this very program is refused to everybody else.
pub fn in_place_of(manifest: &Manifest) -> Option<Manifest> {
    let mut manifest = manifest.clone();
    let own = manifest.invocation.as_mut()?;
    let word = match (own.dialect, &own.program) {
        (Dialect::Case, Program::Admitted) => "__case",
        _ => return None,
    };
    own.program = Program::Itself;
    own.argv.insert(0, word.to_owned());
    Some(manifest)
}
