//! The directory that an engine's PATH begins with: links to the programs that run it, by name.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use cto_core::containment::Containment;

use crate::run::execution::Execution;

/// Lays it out; none for an engine that is this program, or one without a jail.
pub fn lay_out(execution: &Execution<'_>) -> io::Result<Option<PathBuf>> {
    let plan = execution.plan;
    let Some(engine) = plan.engine.as_ref() else {
        return Ok(None);
    };
    if plan.containment == Containment::None {
        return Ok(None);
    }
    let dir = execution.work.join("engine-programs");
    fs::create_dir(&dir)?;
    // Everybody may read it: a jail's user is nobody of ours.
    fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
    for (name, program) in &engine.needs {
        symlink(program, dir.join(name))?;
    }
    Ok(Some(dir))
}
