//! No core dump of a process that may hold a secret: a key in its environment, a credential it read,
//! an address nobody else may know.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Too small for any file; and where the host hands dumps to a program of its own, which no other
/// limit keeps from being started, the kernel takes this one as a no.
const NO_CORE: u64 = 1;

/// Forbids dumps of this process, and of everything it starts that does not raise its limit. Before
/// anything is read. What enters a jail does so itself, later: a process that is not dumpable does
/// not own its own `/proc`, and cannot map its user there.
pub fn forbid() -> io::Result<()> {
    let limit = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    // A user whose own limit is none at all cannot have this one.
    setrlimit(Resource::Core, limit(NO_CORE)).or_else(|_| setrlimit(Resource::Core, limit(0)))?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
