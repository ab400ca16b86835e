//! What goes wrong in a row by arrangement: applied to the process that runs it.

use std::path::Path;
use std::time::Duration;

use cto_core::proof::matrix::{EDITED_MEANWHILE, Fault, SMALL_FILE};
use cto_core::run::event::Event;
use cto_core::values::ids::RunId;
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use signal_hook::consts::SIGXFSZ;

use crate::host::failure::Failure;
use crate::screen::progress::{Progress, Quiet};

/// Arranges the fault. What waits for the engine is in the progress that is returned.
pub fn apply(fault: Option<Fault>, source: Option<&Path>) -> Result<Box<dyn Progress>, Failure> {
    let unheard = |error: std::io::Error| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&error)
    };
    let mut progress: Box<dyn Progress> = Box::new(Quiet);
    match fault {
        Some(Fault::SmallFiles) => {
            // Handled, so that the write fails instead of ending us.
            let flag = std::sync::Arc::default();
            signal_hook::flag::register(SIGXFSZ, flag).map_err(unheard)?;
            let limit = Rlimit {
                current: Some(SMALL_FILE),
                maximum: Some(SMALL_FILE),
            };
            setrlimit(Resource::Fsize, limit).map_err(|error| {
                Failure::internal("no_limit", "the size of files cannot be limited").because(&error)
            })?;
        }
        Some(Fault::Interrupt) => {
            progress = Box::new(AtFirstSound(|| {
                // Not sent means not interrupted, and the row turns red.
                let _ = kill_process(getpid(), Signal::TERM);
            }))
        }
        Some(Fault::SourceEdited) => {
            let file = source.unwrap_or(Path::new("")).join(EDITED_MEANWHILE);
            progress = Box::new(AtFirstSound(move || {
                // Not written means not edited, and the row turns red.
                let _ = std::fs::write(&file, b"by somebody else\n");
            }));
        }
        // The first came with the process; the other is done once the run has ended.
        Some(Fault::NoGit | Fault::TargetEdited) | None => {}
    }
    Ok(progress)
}

/// Does something as soon as the engine is heard, and again whenever it is.
struct AtFirstSound<F>(F);

impl<F: FnMut()> Progress for AtFirstSound<F> {
    fn started(&mut self, _: &RunId) {}
    fn step(&mut self, _: &str, _: &str) {}

    fn engine_output(&mut self, _: &[u8]) {
        (self.0)();
    }

    fn engine_event(&mut self, _: Duration, _: &Event) {
        (self.0)();
    }

    fn done(&mut self) {}
}
