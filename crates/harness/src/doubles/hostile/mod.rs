//! `cto __hostile ATTACK [ON…]`: what an engine of the hostile kit tries. Each attempt is made for
//! real and told on a line of its own; whether it may be believed is for those who look at the host
//! afterwards.
//!
//! The rows that use these are in `core/src/proof/matrix/hostile/`.

mod calls;
mod files;
mod floods;
mod namespaces;
mod privilege;
mod processes;
mod sockets;

use std::io::{self, Write};

use cto_core::proof::matrix::Tried;

/// An attempt against one target. `Ok` means that it got through.
pub struct Attack {
    pub name: &'static str,
    attempt: fn(&str) -> io::Result<()>,
}

impl Attack {
    const fn new(name: &'static str, attempt: fn(&str) -> io::Result<()>) -> Self {
        Self { name, attempt }
    }
}

const THEMES: [&[Attack]; 7] = [
    files::ATTACKS,
    privilege::ATTACKS,
    namespaces::ATTACKS,
    sockets::ATTACKS,
    calls::ATTACKS,
    processes::ATTACKS,
    floods::ATTACKS,
];

/// Every attack of the kit.
pub fn attacks() -> impl Iterator<Item = &'static Attack> {
    THEMES.into_iter().flatten()
}

/// Tries an attack on each target, or once without one; 64 for a name nobody knows.
pub fn play(name: &str, targets: &[String]) -> u8 {
    let Some(attack) = attacks().find(|attack| attack.name == name) else {
        return 64;
    };
    let nothing = [String::new()];
    let targets = if targets.is_empty() {
        nothing.as_slice()
    } else {
        targets
    };
    for (number, target) in (0..).zip(targets) {
        let line = match (attack.attempt)(target) {
            Ok(()) => Tried::through(name, number),
            Err(error) => format!("{}: {error}", Tried::stopped(name, number)),
        };
        // Nobody to tell: then the row has no proof, and is red.
        let _ = writeln!(io::stdout(), "\n{line}");
    }
    0
}

/// What an attempt comes to that asks for something and finds it was not given.
fn refused(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}
